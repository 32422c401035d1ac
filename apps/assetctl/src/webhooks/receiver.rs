//! The program that events are forwarded to.

use crate::error::{CliError, Result};
use crate::http::client::cause;
use crate::webhooks::signature::Secret;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Response, Url, redirect};
use serde::Serialize;
use std::time::{Duration, Instant, UNIX_EPOCH};

/// The service has the same limit.
const TIMEOUT: Duration = Duration::from_secs(15);
/// The limit for the body, which decides nothing.
const BODY_TIMEOUT: Duration = Duration::from_secs(1);
const MAX_BODY_BYTES: usize = 256;

pub struct Receiver {
    http: reqwest::Client,
    url: Url,
    secret: Secret,
}

#[derive(Debug, Serialize)]
pub struct Attempt {
    pub status: Option<u16>,
    pub error: Option<String>,
    pub duration_ms: u128,
    pub response: Option<String>,
}

impl Attempt {
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status))
    }
}

impl Receiver {
    pub fn new(url: Url, secret: Secret) -> Result<Self> {
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("assetctl/", env!("CARGO_PKG_VERSION")))
            .timeout(TIMEOUT)
            // The service follows none either.
            .redirect(redirect::Policy::none())
            // A receiver can be started anew at any time.
            .pool_max_idle_per_host(0);
        if matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]")) {
            builder = builder.no_proxy();
        }
        let http = builder.build().map_err(|error| CliError::Failed(cause(&error)))?;
        Ok(Self { http, url, secret })
    }

    pub async fn send(&self, id: &str, body: String) -> Attempt {
        let began = Instant::now();
        let seconds = UNIX_EPOCH.elapsed().unwrap_or_default().as_secs();
        let request = self
            .http
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header("webhook-id", id)
            .header("webhook-timestamp", seconds)
            .header("webhook-signature", self.secret.sign(id, seconds, &body));
        let result = request.body(body).send().await;
        let duration_ms = began.elapsed().as_millis();
        match result {
            Ok(response) => {
                let status = Some(response.status().as_u16());
                Attempt { status, error: None, duration_ms, response: beginning(response).await }
            }
            Err(error) => {
                let error = if error.is_timeout() { "no response within 15 s".into() } else { cause(&error) };
                Attempt { status: None, error: Some(error), duration_ms, response: None }
            }
        }
    }
}

/// `None` for an empty body.
async fn beginning(mut response: Response) -> Option<String> {
    let mut bytes = Vec::new();
    let read = async {
        while bytes.len() < MAX_BODY_BYTES
            && let Ok(Some(chunk)) = response.chunk().await
        {
            bytes.extend_from_slice(&chunk);
        }
    };
    // The bytes until then are enough.
    let _ = tokio::time::timeout(BODY_TIMEOUT, read).await;
    bytes.truncate(MAX_BODY_BYTES);
    (!bytes.is_empty()).then(|| String::from_utf8_lossy(&bytes).into_owned())
}
