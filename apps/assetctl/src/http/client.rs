//! Requests to the service.

use crate::config::Connection;
use crate::error::{CliError, Result};
use crate::http::request::{Answer, Busy, interpret};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, LINK, LOCATION, RETRY_AFTER};
use reqwest::{Response, Url, redirect};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A gateway gives up earlier.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Without an option.
const PATIENCE: Duration = Duration::from_secs(300);

/// The requests that are under way at the same time. Others wait.
pub const MAX_AT_ONCE: usize = 4;

/// The API answers with 6 MB at most.
const MAX_BODY_BYTES: usize = 6 * 1024 * 1024;
/// The ids of records that an export lacks.
const UNREADABLE: HeaderName = HeaderName::from_static("x-unreadable");

#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    base_url: Url,
    authorization: HeaderValue,
    /// The wait for a service that is busy or can't be reached.
    pub patience: Duration,
    /// JSON is read by [`exact`](crate::output::exact).
    pub is_exact: bool,
    under_way: Arc<Semaphore>,
}

#[derive(Debug, Default)]
pub struct Reply {
    pub status: u16,
    /// `Retry-After`, in seconds.
    pub retry_after: Option<Duration>,
    pub location: Option<String>,
    pub content_type: Option<String>,
    pub etag: Option<String>,
    /// The link to the next part.
    pub next: Option<String>,
    /// Ids of records that an export lacks, because the service can't read them.
    pub unreadable: Vec<String>,
    pub body: Vec<u8>,
    /// The body was not read, because it is longer than any of the API.
    pub is_too_long: bool,
}

/// A request, which can be sent again.
#[derive(Debug, Clone)]
pub struct Request {
    url: Url,
    /// Type and content of the body of a POST. A GET has none.
    body: Option<(&'static str, Vec<u8>)>,
    idempotency_key: Option<String>,
}

impl Request {
    #[must_use]
    pub fn get(url: Url) -> Self {
        Self { url, body: None, idempotency_key: None }
    }

    #[must_use]
    pub fn post(url: Url, content_type: &'static str, body: Vec<u8>, idempotency_key: Option<String>) -> Self {
        Self { url, body: Some((content_type, body)), idempotency_key }
    }

    /// Sent twice, it has the effect of once.
    #[must_use]
    pub fn is_repeatable(&self) -> bool {
        let is_dry_run = || self.url.query_pairs().any(|(name, value)| name == "dry_run" && value == "true");
        self.body.is_none() || self.idempotency_key.is_some() || is_dry_run()
    }
}

impl Client {
    pub fn new(connection: &Connection) -> Result<Self> {
        // A provider that was installed before is fine, too.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .user_agent(concat!("assetctl/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(TIMEOUT)
            // A redirect would carry the key to somewhere else.
            .redirect(redirect::Policy::none())
            .build()
            .map_err(|error| CliError::Failed(describe(&error)))?;
        let authorization = connection.api_key.authorization()?;
        let under_way = Arc::new(Semaphore::new(MAX_AT_ONCE));
        Ok(Self { http, base_url: connection.base_url.clone(), authorization, patience: PATIENCE, is_exact: false, under_way })
    }

    #[must_use]
    pub fn with_patience(self, seconds: u64) -> Self {
        Self { patience: Duration::from_secs(seconds), ..self }
    }

    /// For commands that print numbers as the service has them.
    #[must_use]
    pub fn with_exact_numbers(self) -> Self {
        Self { is_exact: true, ..self }
    }

    pub fn url(&self, path: &str, query: &[(impl AsRef<str>, impl AsRef<str>)]) -> Result<Url> {
        let url = format!("{}/{path}", self.base_url.as_str().trim_end_matches('/'));
        let parsed = if query.is_empty() { Url::parse(&url) } else { Url::parse_with_params(&url, query) };
        parsed.map_err(|error| CliError::Usage(format!("{url}: {error}")))
    }

    /// Fails if the link leads to another server: the key must not go there.
    pub fn follow(&self, current: &Url, link: &str) -> Result<Url> {
        let url = current.join(link).ok().filter(|url| url.origin() == self.base_url.origin());
        url.filter(|url| url != current)
            .ok_or_else(|| CliError::Failed(format!("the service's link to the next part can't be followed: {link}")))
    }

    /// Sends the request once.
    pub async fn send(&self, request: &Request) -> Answer {
        let _permit = self.under_way.acquire().await;
        match self.reply(request).await {
            Ok(reply) => interpret(reply),
            Err(error) => Answer::Busy(self.unreachable(&error)),
        }
    }

    async fn reply(&self, request: &Request) -> reqwest::Result<Reply> {
        let mut builder = match &request.body {
            Some((content_type, body)) => {
                self.http.post(request.url.clone()).header(CONTENT_TYPE, *content_type).body(body.clone())
            }
            None => self.http.get(request.url.clone()),
        };
        if let Some(key) = &request.idempotency_key {
            builder = builder.header("idempotency-key", key);
        }
        let response = builder.header(AUTHORIZATION, self.authorization.clone()).send().await?;
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let retry_after = header(RETRY_AFTER).and_then(|text| seconds(text.trim()));
        let links = response.headers().get_all(LINK).iter().filter_map(|link| link.to_str().ok());
        let (status, location, content_type) = (response.status().as_u16(), header(LOCATION), header(CONTENT_TYPE));
        let etag = header(ETAG);
        let next = links.flat_map(|links| links.split(',')).find_map(next_link).map(str::to_owned);
        let unreadable = header(UNREADABLE).unwrap_or_default();
        let unreadable = unreadable.split(", ").filter(|id| !id.is_empty()).map(str::to_owned).collect();
        let body = body(response).await?;
        let is_too_long = body.is_none();
        let body = body.unwrap_or_default();
        Ok(Reply { status, retry_after, location, content_type, etag, next, unreadable, body, is_too_long })
    }

    fn unreachable(&self, error: &reqwest::Error) -> Busy {
        let cause = describe(error);
        let hint = if cause.contains("InvalidContentType") { "; it answers without TLS, as http:// does" } else { "" };
        let detail = format!("can't reach {}: {cause}{hint}", self.base_url);
        Busy { is_away: true, may_have_effect: !error.is_connect(), detail, ..Busy::default() }
    }
}

/// `None` if the body is longer than any of the API.
async fn body(mut response: Response) -> reqwest::Result<Option<Vec<u8>>> {
    let mut body = Vec::new();
    if response.content_length().is_some_and(|length| length > MAX_BODY_BYTES as u64) {
        return Ok(None);
    }
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > MAX_BODY_BYTES {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}

/// Capped at `u32::MAX` so that adding it to a time can't overflow.
fn seconds(text: &str) -> Option<Duration> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| Duration::from_secs(text.parse::<u32>().unwrap_or(u32::MAX).into()))
}

fn next_link(link: &str) -> Option<&str> {
    let (target, parameters) = link.trim().strip_prefix('<')?.split_once('>')?;
    let is_next = |parameter: &str| {
        parameter
            .trim()
            .strip_prefix("rel=")
            .is_some_and(|relation| relation.trim_matches('"').split(' ').any(|word| word == "next"))
    };
    parameters.split(';').any(is_next).then_some(target)
}

/// The reason of a missing response, without the key.
fn describe(error: &reqwest::Error) -> String {
    if error.is_timeout() { "the service didn't answer in time".into() } else { cause(error) }
}

/// The innermost cause.
#[must_use]
pub fn cause(error: &reqwest::Error) -> String {
    let mut causes = Vec::new();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        causes.push(error.to_string());
        cause = error.source();
    }
    causes.pop().unwrap_or_else(|| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_take_effect_twice_is_not_repeatable() {
        let url = |query: &str| Url::parse(&format!("https://a.example/v1/assets?{query}")).unwrap();
        let post = |query, key: Option<&str>| Request::post(url(query), "application/json", Vec::new(), key.map(str::to_owned));
        for request in [Request::get(url("")), post("", Some("k")), post("dry_run=true", None)] {
            assert!(request.is_repeatable(), "{request:?}");
        }
        assert!(!post("", None).is_repeatable() && !post("dry_run=false", None).is_repeatable());
    }

    #[test]
    fn no_time_is_too_long_to_calculate_with() {
        assert_eq!(seconds("7"), Some(Duration::from_secs(7)));
        for text in ["4294967296", "18446744073709551615", "99999999999999999999999"] {
            assert!(std::time::Instant::now().checked_add(seconds(text).unwrap()).is_some(), "{text}");
        }
        for text in ["", "-1", "1.5", "Wed, 21 Oct 2099 07:28:00 GMT"] {
            assert_eq!(seconds(text), None);
        }
    }

    #[test]
    fn only_next_links_are_followed() {
        assert_eq!(next_link("</v1/assets/export?after=1>; rel=\"next\""), Some("/v1/assets/export?after=1"));
        assert_eq!(next_link(" <x>;rel=next"), Some("x"));
        assert_eq!(next_link("<x>; rel=\"prev\""), None);
        assert_eq!(next_link("x; rel=next"), None);
    }
}
