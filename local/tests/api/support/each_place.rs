//! Requests that are disturbed at each of the places where they can be.

use local::sample::{full_tests, sample};
use std::fmt::Debug;

/// Calls `case` for each way of disturbing a request and each place, from 0 on, until the case returns that there was nothing
/// to disturb. There are at least `least` places. Every day, only a sample of `count` of the first `least` places is tried.
pub async fn at_each_place<W: Copy + Debug>(ways: &[W], least: usize, count: usize, mut case: impl AsyncFnMut(usize, W) -> bool) {
    if !full_tests() {
        for (way, place) in sample(ways.iter().flat_map(|way| (0..least).map(move |place| (way, place))), count) {
            assert!(case(place, *way).await, "nothing to disturb at place {place}, {way:?}");
        }
        return;
    }
    for way in ways {
        let mut places = 0;
        while case(places, *way).await {
            places += 1;
        }
        assert!(places >= least, "only {places} places, {way:?}");
    }
}
