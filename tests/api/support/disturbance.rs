//! Requests that are disturbed at each possible place: by failures of the table, or dropped before they are done.

use super::{Api, Reply};
use dev_server::faulty_table::planned::CallFailure;
use dev_server::test_data::{full_tests, sample};
use std::fmt::Debug;
use std::future::poll_fn;
use std::task::Poll;

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

/// A way to disturb a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disturbance {
    /// A call to the table fails.
    Fails(CallFailure),
    /// The request is dropped, as Lambda does at its deadline.
    IsDropped,
}

impl Disturbance {
    /// Sends a request that is disturbed at a place, and repeats it until it is available. Returns the last response, and
    /// whether the request was disturbed.
    pub async fn at(self, api: &Api, place: usize, send: impl AsyncFn() -> Reply) -> (Reply, bool) {
        match self {
            Self::Fails(failure) => {
                api.faults.fail_call(place, failure);
                let reply = insist(&send).await;
                (reply, api.faults.stop_failing())
            }
            Self::IsDropped => {
                let done = dropped_after(place + 1, send()).await;
                (insist(&send).await, done.is_none())
            }
        }
    }
}

/// Sends a request until it is not unavailable any more.
async fn insist(send: impl AsyncFn() -> Reply) -> Reply {
    for _ in 0..5 {
        let reply = send().await;
        if reply.status != 503 && !reply.text().contains("REQUEST_IN_PROGRESS") {
            return reply;
        }
    }
    panic!("still unavailable");
}

/// Drops the future after so many polls. Returns its output if it was done by then.
pub async fn dropped_after<T>(polls: usize, future: impl Future<Output = T>) -> Option<T> {
    let mut future = std::pin::pin!(future);
    let mut left = polls;
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        future.as_mut().poll(context).map(Some)
    })
    .await
}
