//! A connection to a receiver, with or without TLS.

use hyper::http::Extensions;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection as Describe};
use hyper_util::rt::TokioIo;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite};

/// What bytes go through.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Whether there was a response over a connection. If it breaks when it is used again, that says nothing about the receiver.
#[derive(Debug, Clone, Default)]
pub(super) struct HasResponded(Arc<AtomicBool>);

impl HasResponded {
    /// Notes a response, in what the connection gave it.
    pub fn set(response: &Extensions) {
        if let Some(Self(flag)) = response.get() {
            flag.store(true, Ordering::Relaxed);
        }
    }

    /// Returns whether there was a response over a connection.
    pub fn is_set(connected: &Connected) -> bool {
        let mut extensions = Extensions::new();
        connected.get_extras(&mut extensions);
        extensions.get().is_some_and(|Self(flag)| flag.load(Ordering::Relaxed))
    }
}

/// A connection.
pub(super) struct Connection {
    stream: TokioIo<Box<dyn Stream>>,
    has_responded: HasResponded,
}

impl Connection {
    /// Returns a connection that is new.
    pub fn new(stream: impl Stream + 'static) -> Self {
        Self { stream: TokioIo::new(Box::new(stream)), has_responded: HasResponded::default() }
    }
}

impl Describe for Connection {
    fn connected(&self) -> Connected {
        Connected::new().extra(self.has_responded.clone())
    }
}

impl Read for Connection {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Write for Connection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
