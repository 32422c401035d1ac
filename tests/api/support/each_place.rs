//! Requests that are disturbed at each possible place.

use dev_server::sample::{full_tests, sample};
use std::fmt::Debug;

/// More places than any request has.
const MAX_PLACES: usize = 200;

/// Calls `case` for each way to disturb a request and each place, from 0 on, until the case returns `false` because there was
/// nothing to disturb. There are at least `least` places for each way. Every day, only a sample of `count` of these is tried.
#[track_caller]
pub fn at_each_place<W: Copy + Debug>(
    ways: &[W],
    least: usize,
    count: usize,
    mut case: impl AsyncFnMut(usize, W) -> bool,
) -> impl Future<Output = ()> {
    let places = sample(ways.iter().flat_map(|way| (0..least).map(move |place| (way, place))), count);
    async move {
        if !full_tests() {
            for (way, place) in places {
                assert!(case(place, *way).await, "nothing to disturb at place {place}, {way:?}");
            }
            return;
        }
        for way in ways {
            let mut places = 0;
            while case(places, *way).await {
                places += 1;
                assert!(places < MAX_PLACES, "{way:?} never ends");
            }
            eprintln!("{places} places, {way:?}");
            assert!(places >= least, "only {places} places, {way:?}");
        }
    }
}
