//! Serves connections within limits, because anyone in the network can reach a dev server that listens on all addresses. Also
//! checks the addresses to listen on.

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
use shared::http::endpoints::WithoutOneHost;
use std::convert::Infallible;
use std::io::{Error, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
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

/// Buffer size for a request before it is parsed. API Gateway accepts 10 KiB of headers.
const MAX_BUFFER_BYTES: usize = 64 * 1024;

#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Maximum number of concurrent connections. Further connections wait in the socket's backlog until one ends.
    pub connections: usize,
    /// Time limit for the headers of a request, from the start of the connection or the end of the previous response. Also limits
    /// how long a connection can be idle.
    pub headers: Duration,
    /// Maximum pause within a request body.
    pub pause: Duration,
    /// Time limit for a whole request body.
    pub body: Duration,
    /// How long a client can stop reading a response. Enforced only on Linux.
    pub response: Duration,
}

impl Default for Limits {
    /// Bodies, of at most 1 MiB each, take at most about 100 MB of memory. A phone in a weak network can transfer the largest
    /// bodies in time.
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

/// Serves HTTP/1.1 until `stop` resolves. Returns the connections that are still open.
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
        // Errors are ignored: they come from the client or the network.
        tokio::spawn(open.watch(http.serve_connection(TokioIo::new(stream), service)));
    }
}

/// Handles the request on a separate thread, so that a long computation doesn't block other requests. Occupies `place` until the
/// request is handled, even if its connection closes earlier.
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

/// # Errors
///
/// Returns a message with an example.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "must be an IP address and a port, such as 127.0.0.1:3001".to_owned())
}

/// Returns the address that clients should use for a server listening on `address`: if it listens on all interfaces, the address
/// in the network, or else loopback.
pub fn reachable(address: SocketAddr) -> SocketAddr {
    if !address.ip().is_unspecified() {
        return address;
    }
    let ip = address_in_network().unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    SocketAddr::new(ip, address.port())
}

/// Returns the source address of packets to other networks. Connecting a UDP socket sends nothing.
fn address_in_network() -> Option<IpAddr> {
    // An address for documentation (RFC 5737): no packet is sent to it.
    const ELSEWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 9);
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect(ELSEWHERE).ok()?;
    socket.local_addr().ok().map(|address| address.ip())
}

/// Returns an error text with the reason, and a better value for `option`.
pub fn cant_listen(option: &str, address: SocketAddr, error: &Error) -> String {
    let (reason, instead) = match error.kind() {
        ErrorKind::AddrInUse => {
            let next = SocketAddr::new(address.ip(), address.port().checked_add(1).unwrap_or_default());
            ("the port is in use, perhaps by another dev server: stop that, or choose another port, such as".to_owned(), next)
        }
        ErrorKind::PermissionDenied => (
            "you don't have permission to use this port: choose one from 1024 up, such as".to_owned(),
            SocketAddr::new(address.ip(), 3000),
        ),
        ErrorKind::AddrNotAvailable => {
            let here = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), address.port());
            ("this computer doesn't have that address: choose another, such as".to_owned(), here)
        }
        _ => (format!("{error}: choose another address, such as"), SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0)),
    };
    format!("can't listen on {address}: {reason} {option} {instead}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_get_an_address_that_they_can_open() {
        for address in ["127.0.0.1:3000", "192.0.2.7:80", "[::1]:3000"] {
            assert_eq!(reachable(address.parse().unwrap()).to_string(), address);
        }
        for address in ["0.0.0.0:3000", "[::]:3000"] {
            let shown = reachable(address.parse().unwrap());
            assert!(!shown.ip().is_unspecified() && shown.port() == 3000, "{shown}");
        }
    }

    #[test]
    fn errors_say_what_to_give_instead() {
        let line = |text: &str, kind: ErrorKind| cant_listen("--addr", text.parse().unwrap(), &kind.into());
        for (text, kind, end) in [
            ("127.0.0.1:3000", ErrorKind::AddrInUse, "such as --addr 127.0.0.1:3001"),
            ("[::1]:65535", ErrorKind::AddrInUse, "such as --addr [::1]:0"),
            ("0.0.0.0:80", ErrorKind::PermissionDenied, "from 1024 up, such as --addr 0.0.0.0:3000"),
            ("192.0.2.1:3000", ErrorKind::AddrNotAvailable, "such as --addr 127.0.0.1:3000"),
            ("127.0.0.1:3000", ErrorKind::Other, "such as --addr 127.0.0.1:0"),
        ] {
            let line = line(text, kind);
            assert!(line.starts_with(&format!("can't listen on {text}: ")) && line.ends_with(end), "{line}");
        }
        assert_eq!(address("127.0.0.1:3000"), Ok(([127, 0, 0, 1], 3000).into()));
        assert!(address("3000").unwrap_err().contains("127.0.0.1:3001"));
    }
}
