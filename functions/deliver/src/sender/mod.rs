//! Sends a delivery over HTTP, to public addresses only.

mod connection;
mod connector;
mod failure;
mod resolver;
mod rules;
#[cfg(test)]
mod tests;

pub use resolver::{Resolve, Resolver};

use connection::AwaitsNextResponse;
use connector::{Connector, tls_config};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Request, Response, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rules::Rules;
use rustls::RootCertStore;
use shared::domain::values::time::Timestamp;
use shared::domain::webhooks::{AddressPolicy, Attempt, AttemptFailure, WebhookUrl};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use url::{Position, Url};

/// The value of `User-Agent`.
const CLIENT: &str = concat!("asset-lifecycle-webhooks/", env!("CARGO_PKG_VERSION"));
const MAX_IDLE_CONNECTIONS: usize = 8;
const MAX_HEAD_BYTES: usize = 64 * 1024;

#[derive(Debug, Clone, Copy)]
struct Limits {
    /// From the name of the host to the head of the response.
    total: Duration,
    /// The time that an unused connection is kept. Many servers close theirs after 5 seconds or later.
    idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { total: Duration::from_secs(15), idle: Duration::from_secs(15) }
    }
}

/// A delivery with its headers.
#[derive(Debug, Clone)]
pub struct SignedDelivery<'a> {
    pub url: &'a WebhookUrl,
    /// The value of `webhook-id`.
    pub id: String,
    /// The value of `webhook-timestamp`: Unix time in seconds.
    pub seconds: i64,
    /// The value of `webhook-signature`: signatures, separated by spaces.
    pub signatures: String,
    pub body: String,
}

/// Sends deliveries. Connections are kept for a short time, and used again for other deliveries to the same host.
pub struct Sender {
    pooled: Client<Connector, Full<Bytes>>,
    /// Makes a connection for each request.
    unpooled: Client<Connector, Full<Bytes>>,
    limits: Limits,
}

impl Sender {
    /// Trusts the certificate authorities that Mozilla trusts.
    #[must_use]
    pub fn new(policy: AddressPolicy, resolver: Arc<dyn Resolve>) -> Self {
        let roots = webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect();
        Self::with(Rules::new(policy), resolver, roots, Limits::default())
    }

    /// With everything that tests replace.
    fn with(rules: Rules, resolver: Arc<dyn Resolve>, roots: RootCertStore, limits: Limits) -> Self {
        let connector = Connector::new(rules, resolver, tls_config(roots), limits.total);
        let client = |max_idle| {
            Client::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(limits.idle)
                .pool_max_idle_per_host(max_idle)
                .http1_max_buf_size(MAX_HEAD_BYTES)
                .build(connector.clone())
        };
        Self { pooled: client(MAX_IDLE_CONNECTIONS), unpooled: client(0), limits }
    }

    /// Sends a delivery once. Takes at most 15 seconds.
    pub async fn send(&self, delivery: SignedDelivery<'_>, at: Timestamp) -> Attempt {
        let url = delivery.url.as_str().to_owned();
        self.send_to(&url, delivery, at).await
    }

    /// Sends a delivery to an address that need not be a [`WebhookUrl`].
    async fn send_to(&self, url: &str, delivery: SignedDelivery<'_>, at: Timestamp) -> Attempt {
        let begin = Instant::now();
        let end = begin + self.limits.total;
        let head = match request(url, delivery) {
            Some(request) => timeout_at(end, self.response(request)).await.unwrap_or(Err(AttemptFailure::TimedOut)),
            None => Err(AttemptFailure::AddressNotAllowed),
        };
        let (status, error) = match head {
            Ok(response) => (Some(response.status().as_u16()), None),
            Err(error) => (None, Some(error)),
        };
        let duration_ms = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
        Attempt { at, status, error, duration_ms }
    }

    /// The body of the response is not read. A receiver may close an unused connection just when it is used again. Then the
    /// request is sent once more, over a new connection: another unused one may break in the same way, and the receiver may have
    /// read the request before it closed.
    async fn response(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, AttemptFailure> {
        let result = match self.pooled.request(request.clone()).await {
            Err(error) if error.connect_info().is_some_and(AwaitsNextResponse::is_set) => self.unpooled.request(request).await,
            result => result,
        };
        result.map_err(|error| failure::classify(&error))
    }
}

/// `None` if it has no address that can be requested, or one with a user's name or password.
fn request(url: &str, delivery: SignedDelivery<'_>) -> Option<Request<Full<Bytes>>> {
    // Reads hosts as browsers do: `0x7f.1` is 127.0.0.1.
    let url = Url::parse(url).ok()?;
    if !url.username().is_empty() || url.password().is_some() {
        return None;
    }
    Request::post(url[..Position::AfterQuery].parse::<Uri>().ok()?)
        .header(HeaderName::from_static("webhook-id"), delivery.id)
        .header(HeaderName::from_static("webhook-timestamp"), delivery.seconds)
        .header(HeaderName::from_static("webhook-signature"), delivery.signatures)
        .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
        .header(USER_AGENT, HeaderValue::from_static(CLIENT))
        .body(Full::from(delivery.body))
        .ok()
}
