//! Injects faults into requests and messages: a call to the table or to the queue fails, or the work is dropped at an await point.

use super::queue::TestQueue;
use super::{Api, Reply};
use dev_server::faulty_table::planned::CallFailure;
use dev_server::test_data::{full_tests, sample};
use std::fmt::Debug;
use std::future::poll_fn;
use std::task::Poll;

/// More table calls or await points than any request has.
const MAX_PLACES: usize = 200;

/// Calls `case` for each kind of fault at each place. A place is the number of a table call or await point, from 0. If `case`
/// returns `false`, no fault was injected, and the next kind follows. Fails if a kind has fewer than `least` places. The daily
/// run uses only a sample of `count` cases.
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
                assert!(case(place, *way).await, "no fault was injected at place {place}, {way:?}");
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disturbance {
    Fails(CallFailure),
    /// Sending a message fails; with `true`, after the message was sent.
    QueueFails(bool),
    /// The request is dropped, as by Lambda at its deadline.
    IsDropped,
}

impl Disturbance {
    /// Sends a request, injects this fault at the table call or await point `place` (from 0), and retries while the response is a
    /// 503 or `REQUEST_IN_PROGRESS`. Returns the last response, and whether the fault was injected.
    pub async fn at(self, api: &Api, place: usize, send: impl AsyncFn() -> Reply) -> (Reply, bool) {
        if self == Self::IsDropped {
            let done = dropped_after(place + 1, send()).await;
            return (insist(&send).await, done.is_none());
        }
        self.begin(api, &api.queue, place);
        let reply = insist(&send).await;
        (reply, end(api, &api.queue))
    }

    /// Lets call number `place` (from 0) fail, until [`end`].
    pub fn begin(self, api: &Api, queue: &TestQueue, place: usize) {
        match self {
            Self::Fails(failure) => api.faults.fail_call(place, failure),
            Self::QueueFails(is_sent) => queue.fail_call(place, is_sent),
            Self::IsDropped => {}
        }
    }
}

/// Returns whether a call has failed.
pub fn end(api: &Api, queue: &TestQueue) -> bool {
    api.faults.stop_failing() | queue.stop_failing()
}

/// Sends a request up to five times, while it or a part of it is unavailable or in progress.
async fn insist(send: impl AsyncFn() -> Reply) -> Reply {
    for _ in 0..5 {
        let reply = send().await;
        if !["\"code\":\"UNAVAILABLE\"", "REQUEST_IN_PROGRESS"].iter().any(|code| reply.text().contains(code)) {
            return reply;
        }
    }
    panic!("still unavailable");
}

/// Polls a future at most this many times, then drops it. Returns its output if it completed.
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
