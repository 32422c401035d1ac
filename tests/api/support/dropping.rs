//! Futures that are dropped before they are done, as Lambda does at its deadline.

use std::future::poll_fn;
use std::task::Poll;

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
