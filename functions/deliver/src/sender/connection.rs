//! A connection to a receiver, with or without TLS.

use hyper::http::Extensions;
use hyper_util::client::legacy::connect::{Connected, Connection as Describe};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The bytes of a connection, with TLS or without.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// The connection has responded before, and was written to again without a byte in return. If it breaks then, that says nothing
/// about the receiver: many close an unused connection just when it is used again.
#[derive(Debug, Clone, Default)]
pub(super) struct AwaitsNextResponse(Arc<AtomicBool>);

impl AwaitsNextResponse {
    pub fn is_set(connected: &Connected) -> bool {
        let mut extensions = Extensions::new();
        connected.get_extras(&mut extensions);
        extensions.get().is_some_and(|Self(flag)| flag.load(Ordering::Relaxed))
    }

    fn set(&self, value: bool) {
        self.0.store(value, Ordering::Relaxed);
    }
}

pub(super) struct Connection {
    stream: Box<dyn Stream>,
    has_responded: bool,
    awaits_next_response: AwaitsNextResponse,
}

impl Connection {
    pub fn new(stream: impl Stream + 'static) -> Self {
        Self { stream: Box::new(stream), has_responded: false, awaits_next_response: AwaitsNextResponse::default() }
    }
}

impl Describe for Connection {
    fn connected(&self) -> Connected {
        Connected::new().extra(self.awaits_next_response.clone())
    }
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = ready!(Pin::new(&mut self.stream).poll_read(context, buffer));
        if buffer.filled().len() > before {
            self.has_responded = true;
            self.awaits_next_response.set(false);
        }
        Poll::Ready(result)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.has_responded {
            self.awaits_next_response.set(true);
        }
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
