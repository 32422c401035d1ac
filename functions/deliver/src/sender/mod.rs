//! Sends a delivery over HTTP, to public addresses only.

mod failure;
mod resolver;
#[cfg(test)]
mod tests;

use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::{Client, redirect};
use resolver::CheckedResolver;
use rustls::{ClientConfig, RootCertStore};
use shared::domain::values::time::Timestamp;
use shared::domain::webhooks::{AddressPolicy, Attempt, AttemptFailure, WebhookUrl};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// The value of `User-Agent`.
const CLIENT: &str = concat!("asset-lifecycle-webhooks/", env!("CARGO_PKG_VERSION"));
const MAX_IDLE_CONNECTIONS: usize = 8;

#[derive(Debug, Clone, Copy)]
struct Limits {
    /// From the name of the host to the head of the response.
    total: Duration,
    /// The time that an unused connection is kept. Many servers close theirs after 5 seconds.
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
    http: Client,
    policy: AddressPolicy,
    limits: Limits,
}

impl Sender {
    /// Trusts the certificate authorities that Mozilla trusts.
    ///
    /// # Errors
    ///
    /// Returns an error when there can't be an HTTP client, which doesn't happen with these settings.
    pub fn new(policy: AddressPolicy) -> reqwest::Result<Self> {
        let roots = webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect();
        Self::with(CheckedResolver::new(policy), roots, Limits::default())
    }

    /// With everything that tests replace.
    fn with(resolver: CheckedResolver, roots: RootCertStore, limits: Limits) -> reqwest::Result<Self> {
        // A provider that was installed before is fine, too.
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

    /// Sends a delivery once. Takes at most 15 seconds.
    pub async fn send(&self, delivery: SignedDelivery<'_>, at: Timestamp) -> Attempt {
        // Here, because no resolver is asked about a host that is an address.
        if delivery.url.check(self.policy).is_err() {
            return Attempt { at, status: None, error: Some(AttemptFailure::AddressNotAllowed), duration_ms: 0 };
        }
        let url = delivery.url.as_str().to_owned();
        self.send_to(&url, delivery, at).await
    }

    /// Sends a delivery to an address that need not be one of webhooks. The body of the response is not read.
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
            Ok(Err(error)) if !error.is_timeout() => (None, Some(failure::classify(&error))),
            Ok(Err(_)) | Err(_) => (None, Some(AttemptFailure::TimedOut)),
        };
        let duration_ms = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
        Attempt { at, status, error, duration_ms }
    }
}
