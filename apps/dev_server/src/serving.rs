//! Serves connections within limits: strangers in the network reach a dev server that listens on all addresses.

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, Version, header};
use axum::serve::Listener;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
#[cfg(target_os = "linux")]
use rustix::net::sockopt::set_tcp_user_timeout;
use shared::http::base_url::WithoutOneHost;
use std::convert::Infallible;
use std::panic::resume_unwind;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tower::ServiceExt;
use tower_http::timeout::{DeadlineBody, TimeoutBody};

/// The buffer of a request before it is parsed: more than any headers have. API Gateway takes 10 KiB of them.
const MAX_BUFFER_BYTES: usize = 64 * 1024;

#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections that are served at the same time. Others wait until one ends, in the system's queue of the socket.
    pub connections: usize,
    /// The time for the headers of a request, from the start of the connection or the end of the response before. So a connection
    /// may be idle as long.
    pub headers: Duration,
    /// The longest pause of a body.
    pub pause: Duration,
    /// The time for a whole body.
    pub body: Duration,
    /// The longest time that a client may take no part of a response. Only Linux enforces it.
    pub response: Duration,
}

impl Default for Limits {
    /// Bodies, of at most 1 MiB each, take some 100 MB of memory at most. A phone in a weak network sends and receives the
    /// largest ones in this time.
    fn default() -> Self {
        Self {
            connections: 64,
            headers: Duration::from_secs(15),
            pause: Duration::from_secs(10),
            body: Duration::from_secs(30),
            response: Duration::from_secs(60),
        }
    }
}

/// HTTP/1.1, until `stop` ends. Returns the connections that are open then.
pub async fn serve(
    mut listener: TcpListener,
    router: Router,
    limits: Limits,
    stop: impl Future<Output = ()>,
) -> GracefulShutdown {
    let (open, free) = (GracefulShutdown::new(), Arc::new(Semaphore::new(limits.connections)));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.headers).max_buf_size(MAX_BUFFER_BYTES);
    let mut stop = pin!(stop);
    loop {
        let accept = async {
            let place = Arc::clone(&free).acquire_owned().await;
            (place, Listener::accept(&mut listener).await.0)
        };
        let (place, stream) = tokio::select! {
            // The semaphore is never closed.
            (Ok(place), stream) = accept => (Arc::new(place), stream),
            () = &mut stop => return open,
        };
        #[cfg(target_os = "linux")]
        if let Err(error) = set_tcp_user_timeout(&stream, u32::try_from(limits.response.as_millis()).unwrap_or(u32::MAX)) {
            tracing::debug!(%error, "a connection has no limit for its responses");
        }
        let router = router.clone();
        let service = service_fn(move |request| respond(router.clone(), request, limits, Arc::clone(&place)));
        // Errors are those of the client, or of the network.
        tokio::spawn(open.watch(http.serve_connection(TokioIo::new(stream), service)));
    }
}

/// A thread of its own handles the request, so that one that computes for long doesn't hold up others. `place` is taken until it
/// ends, also if its connection ends before.
async fn respond(
    router: Router,
    request: Request<Incoming>,
    limits: Limits,
    place: Arc<OwnedSemaphorePermit>,
) -> Result<Response<Body>, Infallible> {
    let (mut parts, body) = request.into_parts();
    let hosts = parts.headers.get_all(header::HOST).iter().count();
    if hosts > 1 || hosts == 0 && parts.version == Version::HTTP_11 {
        parts.extensions.insert(WithoutOneHost);
    }
    let body = DeadlineBody::new(limits.body, TimeoutBody::new(limits.pause, body));
    let response = router.oneshot(Request::from_parts(parts, body));
    let handled = spawn_blocking(move || {
        let response = Handle::current().block_on(response);
        drop(place);
        response
    });
    handled.await.unwrap_or_else(|error| resume_unwind(error.into_panic()))
}
