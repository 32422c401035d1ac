//! A request's body, which must arrive in time. The rest that the service leaves is read as well, so that the client gets its
//! response: a connection that is closed with unread bytes is reset, which can destroy what was sent before.

use super::Limits;
use axum::Error;
use axum::body::{Body, BodyDataStream, Bytes, HttpBody};
use futures_util::StreamExt;
use futures_util::stream::unfold;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Read and dropped: as much as of a body that is too large, in `shared/src/http/receive.rs`.
const MAX_DROPPED_BYTES: usize = 10 * 1024 * 1024;

pub struct Arriving {
    chunks: BodyDataStream,
    pause: Duration,
    deadline: Instant,
}

impl Arriving {
    async fn next(&mut self) -> Option<Result<Bytes, Error>> {
        let until = self.deadline.min(Instant::now() + self.pause);
        timeout_at(until, self.chunks.next()).await.unwrap_or_else(|elapsed| Some(Err(Error::new(elapsed))))
    }

    pub async fn drop_rest(mut self) {
        let mut dropped = 0usize;
        while let Some(Ok(chunk)) = self.next().await {
            dropped = dropped.saturating_add(chunk.len());
            if dropped > MAX_DROPPED_BYTES {
                break;
            }
        }
    }
}

/// The part of a body that the service has not read.
struct Unread {
    arriving: Option<Arriving>,
    left: Sender<Arriving>,
}

impl Unread {
    async fn next(mut self) -> Option<(Result<Bytes, Error>, Self)> {
        let chunk = self.arriving.as_mut()?.next().await;
        if matches!(chunk, Some(Err(_)) | None) {
            self.arriving = None;
        }
        Some((chunk?, self))
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        if let Some(arriving) = self.arriving.take() {
            let _ = self.left.send(arriving);
        }
    }
}

/// A body for the service, and the rest if the service drops it before its end.
pub fn timed(body: Body, limits: Limits) -> (Body, Receiver<Arriving>) {
    let (left, rest) = channel();
    if body.is_end_stream() {
        return (body, rest);
    }
    let deadline = Instant::now() + limits.body;
    let arriving = Arriving { chunks: body.into_data_stream(), pause: limits.pause, deadline };
    (Body::from_stream(unfold(Unread { arriving: Some(arriving), left }, Unread::next)), rest)
}
