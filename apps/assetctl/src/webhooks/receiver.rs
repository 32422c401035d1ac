//! The program that events are forwarded to, and the secrets that sign deliveries, as [Standard
//! Webhooks](https://www.standardwebhooks.com) describes them.

use crate::error::{CliError, Result};
use crate::http::client::cause;
use base64_simd::STANDARD;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Response, Url, redirect};
use ring::hmac;
use serde::Serialize;
use std::fmt;
use std::str::FromStr;
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

const PREFIX: &str = "whsec_";
const NEW_BYTES: usize = 32;
const BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// Its `Debug` text does not disclose it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    pub fn generate() -> Result<Self> {
        let mut bytes = vec![0; NEW_BYTES];
        getrandom::fill(&mut bytes).map_err(|error| CliError::Failed(format!("no random numbers: {error}")))?;
        Ok(Self(bytes))
    }

    /// The text that receivers verify with.
    #[must_use]
    pub fn expose(&self) -> String {
        format!("{PREFIX}{}", STANDARD.encode_to_string(&self.0))
    }

    /// `seconds` is the Unix time of the delivery.
    #[must_use]
    pub fn sign(&self, id: &str, seconds: u64, body: &str) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.0);
        let signature = hmac::sign(&key, format!("{id}.{seconds}.{body}").as_bytes());
        format!("v1,{}", STANDARD.encode_to_string(signature.as_ref()))
    }
}

impl FromStr for Secret {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bytes = text.strip_prefix(PREFIX).and_then(|encoded| STANDARD.decode_to_vec(encoded).ok());
        let bytes = bytes.filter(|bytes| BYTES.contains(&bytes.len()));
        bytes.map(Self).ok_or_else(|| format!("must be {PREFIX} and {} to {} bytes in base64", BYTES.start(), BYTES.end()))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_those_of_the_specification() {
        let secret: Secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse().expect("a secret");
        let signature = secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn secrets_have_a_prefix_and_enough_bytes() {
        let (one, other) = (Secret::generate().expect("a secret"), Secret::generate().expect("a secret"));
        assert!(one != other && one.expose().parse() == Ok(one.clone()));
        assert_eq!(format!("{one:?}"), "Secret(…)");
        for bad in ["", "whsec_", "whsec_AAAA", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS!"] {
            assert!(bad.parse::<Secret>().is_err(), "{bad}");
        }
    }
}
