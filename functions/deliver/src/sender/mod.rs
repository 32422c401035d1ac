//! Sends a delivery over HTTP, to public addresses only. Names are resolved here; a single forbidden address rules out the name.

#[cfg(test)]
mod tests;

use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::{Client, redirect};
use rustls::{ClientConfig, RootCertStore};
use shared::domain::values::time::Timestamp;
use shared::domain::webhooks::{AddressPolicy, Attempt, AttemptFailure, WebhookUrl, is_local_name, is_public};
use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};
use tokio::time::{Instant, timeout};

/// Value of `User-Agent`.
const CLIENT: &str = concat!("asset-lifecycle-webhooks/", env!("CARGO_PKG_VERSION"));
const MAX_IDLE_CONNECTIONS: usize = 8;
/// Maximum number of a name's addresses to try, all within one time limit. Further addresses are ignored.
const MAX_ADDRESSES: usize = 4;

#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Time limit from resolving the host's name to the head of the response.
    total: Duration,
    /// How long an idle connection is kept. Many servers close theirs after 5 seconds.
    idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { total: Duration::from_secs(15), idle: Duration::from_secs(4) }
    }
}

/// A delivery with its headers.
#[derive(Debug, Clone)]
pub struct SignedDelivery<'a> {
    pub url: &'a WebhookUrl,
    /// Value of `webhook-id`.
    pub id: String,
    /// Value of `webhook-timestamp`: Unix time in seconds.
    pub seconds: i64,
    /// Value of `webhook-signature`: signatures, separated by spaces.
    pub signatures: String,
    pub body: String,
}

/// Sends deliveries to their receivers. Tests replace this trait.
pub trait Transport: Send + Sync {
    /// Sends a delivery once.
    fn send<'a>(&'a self, delivery: SignedDelivery<'a>, at: Timestamp) -> BoxFuture<'a, Attempt>;
}

/// Sends deliveries. Reuses connections to the same host for a short time.
pub struct Sender {
    http: Client,
    policy: AddressPolicy,
    limits: Limits,
}

impl Sender {
    /// Creates a sender that trusts the certificate authorities that Mozilla trusts.
    ///
    /// # Errors
    ///
    /// Returns an error if the HTTP client can't be built, which doesn't happen with these settings.
    pub fn new(policy: AddressPolicy) -> reqwest::Result<Self> {
        let roots = webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect();
        Self::with(CheckedResolver::new(policy), roots, Limits::default())
    }

    /// Does the same as `new`, with parameters for everything that tests replace.
    fn with(resolver: CheckedResolver, roots: RootCertStore, limits: Limits) -> reqwest::Result<Self> {
        // Fails if a provider is already installed, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut tls = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let policy = resolver.policy;
        let http = Client::builder()
            .user_agent(CLIENT)
            .tls_backend_preconfigured(tls)
            .http1_only()
            .no_proxy()
            .redirect(redirect::Policy::none())
            .dns_resolver(resolver)
            .connect_timeout(limits.total)
            .pool_idle_timeout(limits.idle)
            .pool_max_idle_per_host(MAX_IDLE_CONNECTIONS)
            .build()?;
        Ok(Self { http, policy, limits })
    }

    /// Sends a delivery to an address that needn't be valid for webhooks. Doesn't read the body of the response.
    async fn send_to(&self, url: &str, delivery: SignedDelivery<'_>, at: Timestamp) -> Attempt {
        let begin = Instant::now();
        let request = self
            .http
            .post(url)
            .header(HeaderName::from_static("webhook-id"), delivery.id)
            .header(HeaderName::from_static("webhook-timestamp"), delivery.seconds)
            .header(HeaderName::from_static("webhook-signature"), delivery.signatures)
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .body(delivery.body);
        let (status, error) = match timeout(self.limits.total, request.send()).await {
            Ok(Ok(response)) => (Some(response.status().as_u16()), None),
            Ok(Err(error)) if !error.is_timeout() => (None, Some(classify(&error))),
            Ok(Err(_)) | Err(_) => (None, Some(AttemptFailure::TimedOut)),
        };
        let duration_ms = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
        Attempt { at, status, error, duration_ms }
    }
}

impl Transport for Sender {
    /// Times out after 15 seconds.
    fn send<'a>(&'a self, delivery: SignedDelivery<'a>, at: Timestamp) -> BoxFuture<'a, Attempt> {
        Box::pin(async move {
            // Checked here, because the resolver isn't called for a host that is an IP address.
            if delivery.url.check(self.policy).is_err() {
                return Attempt { at, status: None, error: Some(AttemptFailure::AddressNotAllowed), duration_ms: 0 };
            }
            self.send_to(delivery.url.as_str(), delivery, at).await
        })
    }
}

/// Why the resolver returned no address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Refused(AttemptFailure);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no address of the host can be used: {:?}", self.0)
    }
}

impl Error for Refused {}

/// Classifies a missing response by its first known cause. Unknown errors count as a failed connection.
fn classify(error: &(dyn Error + 'static)) -> AttemptFailure {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(Refused(meaning)) = error.downcast_ref() {
            return *meaning;
        }
        if error.is::<rustls::Error>() {
            return AttemptFailure::TlsFailed;
        }
        cause = match error.downcast_ref::<io::Error>() {
            Some(error) if error.kind() == io::ErrorKind::TimedOut => return AttemptFailure::TimedOut,
            // An I/O error's source is the source of the error that it contains.
            Some(error) => error.get_ref().map(|error| error as &(dyn Error + 'static)),
            None => error.source(),
        };
    }
    AttemptFailure::ConnectionFailed
}

type Lookup = dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync;

/// Resolves a name once per connection, which then goes to one of the checked addresses.
struct CheckedResolver {
    policy: AddressPolicy,
    /// Replaced by tests, which have no public addresses.
    is_public: fn(IpAddr) -> bool,
    lookup: Arc<Lookup>,
}

impl CheckedResolver {
    /// Uses the system's resolver.
    fn new(policy: AddressPolicy) -> Self {
        Self { policy, is_public, lookup: Arc::new(|name| Box::pin(lookup(name))) }
    }
}

async fn lookup(name: String) -> io::Result<Vec<IpAddr>> {
    Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let Self { policy, is_public, .. } = *self;
        let (name, found) = (name.as_str().to_owned(), (self.lookup)(name.as_str().to_owned()));
        Box::pin(async move {
            let found = found.await.unwrap_or_default();
            if found.is_empty() {
                return Err(Refused(AttemptFailure::NameNotFound).into());
            }
            let is_loopback = policy == AddressPolicy::PublicOrLoopback && found.iter().all(IpAddr::is_loopback);
            if !is_loopback && (is_local_name(&name) || !found.iter().copied().all(is_public)) {
                return Err(Refused(AttemptFailure::AddressNotAllowed).into());
            }
            let addresses: Addrs = Box::new(found.into_iter().take(MAX_ADDRESSES).map(|address| SocketAddr::new(address, 0)));
            Ok(addresses)
        })
    }
}
