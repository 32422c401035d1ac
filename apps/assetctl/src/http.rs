//! An HTTP client for the service: sends and retries requests, and reads pages.

use crate::config::Connection;
use crate::error::{CliError, Fault, Result};
use crate::lookup::items;
use crate::output::{Format, duration, exact, hex};
use jiff::fmt::rfc2822::DateTimeParser;
use jiff::{SignedDuration, Timestamp};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, DATE, ETAG, HeaderName, HeaderValue, IF_MATCH, LINK, LOCATION, RETRY_AFTER};
use reqwest::{Response, Url, redirect};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use terminal::print_note;
use tokio::sync::Semaphore;

pub const JSON: &str = "application/json";
pub const USER_AGENT: &str = concat!("assetctl/", env!("CARGO_PKG_VERSION"));

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for one attempt, longer than API Gateway's timeout.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Default of `--give-up-after`.
const GIVE_UP_AFTER: Duration = Duration::from_secs(300);
/// Maximum number of concurrent requests. Further requests wait.
pub const MAX_AT_ONCE: usize = 4;
/// The service's maximum page size.
pub const MAX_PAGE: u64 = 100;
/// Longer bodies are not read: the API's responses have at most 6 MB.
const MAX_BODY_BYTES: usize = 6 * 1024 * 1024;
const UNREADABLE: HeaderName = HeaderName::from_static("x-unreadable");

pub type Query = Vec<(String, String)>;

#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    base_url: Url,
    authorization: HeaderValue,
    /// Time after which a request to a busy or unreachable service fails.
    pub give_up_after: Duration,
    /// Whether JSON is read with [`exact`].
    is_exact: bool,
    under_way: Arc<Semaphore>,
    /// Seconds by which the service's clock is ahead of this computer's, from the last response's `Date`.
    clock_difference: Arc<AtomicI64>,
}

#[derive(Debug, Default)]
pub struct Reply {
    status: u16,
    pub retry_after: Option<Duration>,
    location: Option<String>,
    content_type: Option<String>,
    etag: Option<String>,
    /// Link to the next part.
    next: Option<String>,
    /// IDs of records that an export lacks, because the service can't read them.
    pub unreadable: Vec<String>,
    pub body: Vec<u8>,
    /// Whether the body is longer than [`MAX_BODY_BYTES`], and was not read.
    is_too_long: bool,
}

/// A request, which can be sent several times.
#[derive(Debug, Clone)]
pub struct Request {
    url: Url,
    /// Media type and content of a POST's or PATCH's body; `None` for a GET.
    body: Option<(&'static str, Vec<u8>)>,
    idempotency_key: Option<String>,
    /// `ETag` of the resource that a PATCH changes; `None` for other methods.
    if_match: Option<String>,
}

impl Request {
    fn get(url: Url) -> Self {
        Self { url, body: None, idempotency_key: None, if_match: None }
    }

    pub fn post(url: Url, content_type: &'static str, body: Vec<u8>, idempotency_key: Option<String>) -> Self {
        Self { url, body: Some((content_type, body)), idempotency_key, if_match: None }
    }

    fn patch(url: Url, body: &Value, if_match: String) -> Self {
        Self { if_match: Some(if_match), ..Self::post(url, JSON, body.to_string().into_bytes(), None) }
    }

    /// Whether the request can be sent again without a second effect.
    fn is_repeatable(&self) -> bool {
        let is_dry_run = || self.url.query_pairs().any(|(name, value)| name == "dry_run" && value == "true");
        self.body.is_none() || self.idempotency_key.is_some() || is_dry_run()
    }
}

/// A page of a list or of the feed.
pub struct Page {
    pub rows: Vec<Value>,
    pub meta: Value,
}

impl Page {
    pub fn of(mut document: Value) -> Result<Self> {
        match take(&mut document, "data") {
            Value::Array(rows) => Ok(Self { rows, meta: take(&mut document, "meta") }),
            _ => Err(unreadable()),
        }
    }
}

pub struct Rows {
    pub rows: Vec<Value>,
    /// Number of all matching rows; 0 for the feed, which has no total.
    pub total: u64,
    /// Whether more rows match than were read.
    pub has_more: bool,
    /// The member `meta` of the last page.
    pub meta: Value,
}

impl Client {
    pub fn new(connection: &Connection) -> Result<Self> {
        // Fails only if a provider is already installed.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .user_agent(USER_AGENT)
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(TIMEOUT)
            // Redirects are not followed, because they would send the key elsewhere.
            .redirect(redirect::Policy::none())
            .build()
            .map_err(|error| CliError::Failed(cause(&error)))?;
        Ok(Self {
            http,
            base_url: connection.base_url.clone(),
            authorization: connection.api_key.authorization()?,
            give_up_after: GIVE_UP_AFTER,
            is_exact: false,
            under_way: Arc::new(Semaphore::new(MAX_AT_ONCE)),
            clock_difference: Arc::default(),
        })
    }

    pub fn giving_up_after(self, seconds: u64) -> Self {
        Self { give_up_after: Duration::from_secs(seconds), ..self }
    }

    /// Keeps numbers exactly as the service sends them, for commands that print them.
    pub fn with_exact_numbers(self) -> Self {
        Self { is_exact: true, ..self }
    }

    pub fn url(&self, path: &str, query: &[(impl AsRef<str>, impl AsRef<str>)]) -> Result<Url> {
        let url = format!("{}/{path}", self.base_url.as_str().trim_end_matches('/'));
        let parsed = if query.is_empty() { Url::parse(&url) } else { Url::parse_with_params(&url, query) };
        parsed.map_err(|error| CliError::Usage(format!("{url}: {error}")))
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
        let url = request.url.clone();
        let mut builder = match (&request.body, &request.if_match) {
            (Some(_), Some(etag)) => self.http.patch(url).header(IF_MATCH, etag),
            (Some(_), None) => self.http.post(url),
            (None, _) => self.http.get(url),
        };
        if let Some((content_type, body)) = &request.body {
            builder = builder.header(CONTENT_TYPE, *content_type).body(body.clone());
        }
        if let Some(key) = &request.idempotency_key {
            builder = builder.header("idempotency-key", key);
        }
        let response = builder.header(AUTHORIZATION, self.authorization.clone()).send().await?;
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        if let Some(date) = header(DATE).and_then(|date| DateTimeParser::new().parse_timestamp(&date).ok())
            && let Ok(now) = local_now()
        {
            self.clock_difference.store(date.as_second() - now.as_second(), Relaxed);
        }
        let links = response.headers().get_all(LINK).iter().filter_map(|link| link.to_str().ok());
        let unreadable = header(UNREADABLE).unwrap_or_default();
        let reply = Reply {
            status: response.status().as_u16(),
            retry_after: header(RETRY_AFTER).and_then(|text| seconds(text.trim())),
            location: header(LOCATION),
            content_type: header(CONTENT_TYPE),
            etag: header(ETAG),
            next: links.flat_map(|links| links.split(',')).find_map(next_link).map(str::to_owned),
            unreadable: unreadable.split(", ").filter(|id| !id.is_empty()).map(str::to_owned).collect(),
            ..Reply::default()
        };
        let body = body(response).await?;
        Ok(Reply { is_too_long: body.is_none(), body: body.unwrap_or_default(), ..reply })
    }

    fn unreachable(&self, error: &reqwest::Error) -> Busy {
        let cause = if error.is_timeout() { "the service didn't answer in time".into() } else { cause(error) };
        let hint = if cause.contains("InvalidContentType") {
            "; the server seems to use plain HTTP: try http:// instead of https://"
        } else {
            ""
        };
        let detail = format!("can't reach {}: {cause}{hint}", self.base_url);
        Busy { is_away: true, may_have_effect: !error.is_connect(), detail, ..Busy::default() }
    }

    /// Returns the time by the service's clock, from the `Date` of its last response: exact to a second.
    pub fn now(&self) -> Result<Timestamp> {
        let difference = SignedDuration::from_secs(self.clock_difference.load(Relaxed));
        local_now()?.checked_add(difference).map_err(|error| CliError::Failed(format!("the service's clock: {error}")))
    }

    fn backoff(&self, is_known: bool) -> Backoff {
        Backoff::begin(Some(self.give_up_after), is_known, Instant::now())
    }

    /// Sends a request, and retries it while the service is busy. Fails if the response has a different media type. With a
    /// `reassurance`, prints a note before it waits.
    async fn answered(
        &self,
        request: &Request,
        content_type: &str,
        mut backoff: Backoff,
        reassurance: Option<&str>,
    ) -> Result<Reply> {
        let reply = loop {
            let busy = match self.send(request).await {
                Answer::Done(reply) => break reply,
                Answer::Refused(error) => return Err(error),
                Answer::Busy(busy) if busy.may_have_effect && !request.is_repeatable() => {
                    return Err(CliError::Unanswered(busy.detail));
                }
                Answer::Busy(busy) => busy,
            };
            let pause = backoff.pause(&busy, Instant::now()).map_err(CliError::Unanswered)?;
            if let Some(reassurance) = reassurance.filter(|_| backoff.attempts == 1) {
                print_note(&format!("{}; waiting for it. {reassurance}", busy.detail.trim_end_matches('.')));
            }
            tokio::time::sleep(pause).await;
        };
        if backoff.attempts > 0 && reassurance.is_some() {
            print_note("The service answers again.");
        }
        expecting(request, reply, content_type)
    }

    /// Retries a request while the service is busy.
    ///
    /// # Errors
    ///
    /// Returns [`CliError::Usage`] if the service refuses a parameter, [`CliError::Answered`] if it refuses the request,
    /// [`CliError::Unanswered`] if it is busy for too long, and [`CliError::Failed`] if the response has a different type.
    pub async fn get(&self, url: Url, content_type: &str) -> Result<Reply> {
        self.answered(&Request::get(url), content_type, self.backoff(false), None).await.map_err(wrong_parameter)
    }

    /// Like [`document`](Self::document), but retries forever and prints notes. The first request has a time limit, because its
    /// address may be wrong.
    pub async fn document_endlessly(
        &self,
        path: &str,
        query: &[(&str, &str)],
        is_first: bool,
        reassurance: &str,
    ) -> Result<Value> {
        let backoff = Backoff { limit: is_first.then_some(self.give_up_after), ..self.backoff(true) };
        let request = Request::get(self.url(path, query)?);
        self.json(&self.answered(&request, JSON, backoff, Some(reassurance)).await.map_err(wrong_parameter)?)
    }

    /// Gets a JSON document, and its `ETag` if the response has one.
    pub async fn document(&self, path: &str, query: &[(&str, &str)]) -> Result<(Value, Option<String>)> {
        let reply = self.get(self.url(path, query)?, JSON).await?;
        Ok((self.json(&reply)?, reply.etag))
    }

    fn json(&self, reply: &Reply) -> Result<Value> {
        let read = if self.is_exact { exact(&String::from_utf8_lossy(&reply.body)) } else { serde_json::from_slice(&reply.body) };
        read.map_err(|_| unreadable())
    }

    /// Gets the member `data` of a JSON document.
    pub async fn data(&self, path: &str, query: &[(&str, &str)]) -> Result<Value> {
        data(self.document(path, query).await?.0)
    }

    /// Like [`data`](Self::data), but fails if the member isn't an object.
    pub async fn object(&self, path: &str, query: &[(&str, &str)]) -> Result<Value> {
        self.data(path, query).await.and_then(object)
    }

    /// Sends a JSON document and returns the member `data` of the response. With an idempotency key, the request is retried while
    /// the service is busy. Without a key, it is retried only if it is a dry run or certainly had no effect.
    pub async fn post(&self, path: &str, query: &[(&str, &str)], body: &Value, idempotency_key: Option<&str>) -> Result<Value> {
        data(self.post_document(path, query, body, idempotency_key).await?)
    }

    /// Sends a text that changes nothing, and returns the response.
    pub async fn ask(&self, url: Url, content_type: &'static str, text: Vec<u8>) -> Result<Value> {
        let request = Request::post(url, content_type, text, None);
        self.json(&self.answered(&request, JSON, self.backoff(false), None).await?)
    }

    /// Like [`post`](Self::post), but returns the whole response.
    pub async fn post_document(
        &self,
        path: &str,
        query: &[(&str, &str)],
        body: &Value,
        idempotency_key: Option<&str>,
    ) -> Result<Value> {
        self.posted(path, query, (JSON, body.to_string().into_bytes()), idempotency_key, None).await
    }

    /// Like [`post`](Self::post), for rows of an import.
    pub async fn post_rows(
        &self,
        path: &str,
        query: &[(&str, &str)],
        rows: (Format, Vec<u8>),
        key: Option<&str>,
    ) -> Result<Value> {
        let (format, rows) = rows;
        data(self.posted(path, query, (format.content_type(), rows), key, None).await?)
    }

    /// Like [`post`](Self::post), but prints a note with this reassurance before it waits.
    pub async fn post_noting(
        &self,
        path: &str,
        query: &[(&str, &str)],
        body: &Value,
        key: Option<&str>,
        reassurance: &str,
    ) -> Result<Value> {
        data(self.posted(path, query, (JSON, body.to_string().into_bytes()), key, Some(reassurance)).await?)
    }

    /// Changes the resource if it still has this `ETag`, and returns the member `data` of the response.
    pub async fn patch(&self, path: &str, query: &[(&str, &str)], body: &Value, if_match: String) -> Result<Value> {
        let request = Request::patch(self.url(path, query)?, body, if_match);
        data(self.json(&self.answered(&request, JSON, self.backoff(false), None).await?)?)
    }

    /// Like [`post`](Self::post), for a service that has responded before: retries even if it can't be reached, up to the time
    /// limit, and prints notes. If the first attempt fails, sends the body that `later` returns instead, which must be harmless
    /// even if the first attempt had an effect.
    pub async fn post_patiently(
        &self,
        path: &str,
        body: &Value,
        later: impl FnOnce() -> Value,
        key: &str,
        reassurance: &str,
    ) -> Result<Value> {
        let none: &[(&str, &str)] = &[];
        let request = Request::post(self.url(path, none)?, JSON, body.to_string().into_bytes(), Some(key.to_owned()));
        match self.send(&request).await {
            Answer::Done(reply) => data(self.json(&expecting(&request, reply, JSON)?)?),
            Answer::Refused(error) => Err(error),
            Answer::Busy(_) => self.post_noting(path, &[], &later(), Some(&format!("{key}-later")), reassurance).await,
        }
    }

    async fn posted(
        &self,
        path: &str,
        query: &[(&str, &str)],
        (content_type, body): (&'static str, Vec<u8>),
        key: Option<&str>,
        reassurance: Option<&str>,
    ) -> Result<Value> {
        let request = Request::post(self.url(path, query)?, content_type, body, key.map(str::to_owned));
        let backoff = self.backoff(reassurance.is_some());
        self.json(&self.answered(&request, JSON, backoff, reassurance).await?)
    }

    pub async fn page(&self, path: &str, query: &[(&str, &str)]) -> Result<Page> {
        Page::of(self.document(path, query).await?.0)
    }

    /// Reads the first `limit` rows of a list or of the feed, page by page.
    pub async fn rows(&self, path: &str, mut query: Query, limit: u64) -> Result<Rows> {
        query.push(("limit".to_owned(), MAX_PAGE.min(limit).to_string()));
        let (mut rows, mut next, mut number) = (Vec::new(), None::<(&str, String)>, 1);
        loop {
            let pairs = query.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            let pairs = pairs.chain(next.iter().map(|(name, value)| (*name, value.as_str())));
            let page = self.page(path, &pairs.collect::<Vec<_>>()).await?;
            let is_empty = page.rows.is_empty();
            rows.extend(page.rows);
            number += 1;
            // The feed has a cursor, and lists have numbered pages.
            let following = match page.meta["after"].as_str() {
                Some(after) => ("after", after.to_owned()),
                None => ("page", number.to_string()),
            };
            let (read, total) = (rows.len() as u64, page.meta["total"].as_u64());
            let has_more = match total {
                Some(total) => !is_empty && read < total,
                None => page.meta["has_more"] == true && next.as_ref() != Some(&following),
            };
            if !has_more || read >= limit {
                rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
                return Ok(Rows { rows, total: total.unwrap_or_default(), has_more: has_more || read > limit, meta: page.meta });
            }
            next = Some(following);
        }
    }

    /// Reads an export, part by part.
    pub async fn parts(
        &self,
        path: &str,
        mut query: Query,
        format: Format,
        mut each: impl FnMut(Reply) -> Result<()>,
    ) -> Result<()> {
        query.push(("format".to_owned(), format.name().to_owned()));
        let mut url = self.url(path, &query)?;
        loop {
            let mut part = self.get(url.clone(), format.content_type()).await?;
            let next = part.next.take();
            each(part)?;
            let Some(link) = next else { return Ok(()) };
            // The key must not be sent to another server.
            let following = url.join(&link).ok().filter(|next| next.origin() == self.base_url.origin() && *next != url);
            let wrong = || CliError::Failed(format!("the service's link to the next part can't be followed: {link}"));
            url = following.ok_or_else(wrong)?;
        }
    }
}

/// Fails if the response has a different media type.
fn expecting(request: &Request, reply: Reply, content_type: &str) -> Result<Reply> {
    match reply.content_type.as_deref() {
        Some(found) if found.starts_with(content_type) => Ok(reply),
        found => {
            let (url, found) = (&request.url, found.unwrap_or("nothing"));
            Err(CliError::Failed(format!("{url} answered with {found} instead of {content_type}; check --base-url")))
        }
    }
}

/// Returns the time by this computer's clock, to the millisecond.
#[expect(clippy::disallowed_methods, reason = "the user's clock")]
pub fn local_now() -> Result<Timestamp> {
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millisecond(i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX))
        .map_err(|error| CliError::Failed(format!("this computer's clock is out of range: {error}")))
}

/// Reads the body. `None` if it is longer than [`MAX_BODY_BYTES`].
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

/// Parses a number of seconds, capped at `u32::MAX` so that adding it to a time can't overflow.
fn seconds(text: &str) -> Option<Duration> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| Duration::from_secs(text.parse::<u32>().unwrap_or(u32::MAX).into()))
}

fn next_link(link: &str) -> Option<&str> {
    let (target, parameters) = link.trim().strip_prefix('<')?.split_once('>')?;
    let relation = |parameter: &str| parameter.trim().strip_prefix("rel=").map(|words| words.trim_matches('"').to_owned());
    let is_next = |parameter: &str| relation(parameter).is_some_and(|words| words.split(' ').any(|word| word == "next"));
    parameters.split(';').any(is_next).then_some(target)
}

/// Returns the innermost cause, without the URL.
pub fn cause(error: &reqwest::Error) -> String {
    let first = std::error::Error::source(error);
    let last = std::iter::successors(first, |&cause| cause.source()).last();
    last.map_or_else(|| error.to_string(), ToString::to_string)
}

/// Turns a validation error into a usage error, if only the command line can cause it.
pub fn wrong_parameter(error: CliError) -> CliError {
    match error {
        CliError::Answered { status: 422, .. } => CliError::Usage(error.to_string()),
        error => error,
    }
}

pub fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| CliError::Failed(format!("can't generate random numbers: {error}")))?;
    Ok(bytes)
}

/// Generates the prefix of a command's idempotency keys.
pub fn new_run_id() -> Result<String> {
    Ok(hex(&random::<16>()?))
}

/// Takes a member out of a response body; null if the body isn't an object, or lacks the member.
pub fn take(answer: &mut Value, member: &str) -> Value {
    answer.get_mut(member).map(Value::take).unwrap_or_default()
}

pub fn object(data: Value) -> Result<Value> {
    if data.is_object() { Ok(data) } else { Err(unreadable()) }
}

fn data(document: Value) -> Result<Value> {
    match document {
        Value::Object(mut members) if members.contains_key("data") => Ok(members.swap_remove("data").unwrap_or_default()),
        _ => Err(unreadable()),
    }
}

pub fn unreadable() -> CliError {
    CliError::Failed("can't read the service's response; check --base-url".into())
}

/// A request fails after this many attempts that get status 500, or no response from a service that has never responded.
const MAX_FAULTS: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// Maximum pause between retries, unless the service asks for a longer one.
const MAX_PAUSE: Duration = Duration::from_secs(10);
/// Maximum pause between retries that never end, even if the service asks for a longer one.
const MAX_ENDLESS_PAUSE: Duration = Duration::from_secs(300);

/// Decides how often and for how long a request is retried.
#[derive(Debug)]
pub struct Backoff {
    /// Maximum time without progress; `None` retries forever.
    limit: Option<Duration>,
    /// Whether the service has responded before, so that it is likely to come back.
    is_known: bool,
    since: Instant,
    /// Failed attempts since the last progress.
    attempts: u32,
}

impl Backoff {
    pub fn begin(limit: Option<Duration>, is_known: bool, now: Instant) -> Self {
        Self { limit, is_known, since: now, attempts: 0 }
    }

    /// Starts over, because the service has done part of the request.
    pub fn renew(&mut self, now: Instant) {
        (self.since, self.attempts, self.is_known) = (now, 0, true);
    }

    /// Returns the pause before the next attempt: exponential backoff with jitter, or the service's `Retry-After` if that is
    /// longer.
    ///
    /// # Errors
    ///
    /// Returns an error if waiting is pointless: the time is up, `Retry-After` exceeds the time left, or the request has failed
    /// [`MAX_FAULTS`] times.
    pub fn pause(&mut self, busy: &Busy, now: Instant) -> Result<Duration, String> {
        self.attempts = self.attempts.saturating_add(1);
        let pause = pause(self.attempts, busy.retry_after, fastrand::f64());
        let Some(limit) = self.limit else { return Ok(pause.min(MAX_ENDLESS_PAUSE)) };
        let left = limit.saturating_sub(now.saturating_duration_since(self.since));
        let is_fault = busy.is_fault || (busy.is_away && !self.is_known);
        if left.is_zero() || (is_fault && self.attempts >= MAX_FAULTS) {
            return Err(busy.detail.clone());
        }
        match busy.retry_after.filter(|wait| *wait > left) {
            Some(wait) => Err(format!(
                "{}\nThe service asks to wait {}, and this command gives up after {}. Try again after that time.",
                busy.detail,
                duration(wait),
                duration(left)
            )),
            None => Ok(pause.min(left)),
        }
    }
}

/// Returns the pause after this many attempts; `random` is between 0 and 1.
fn pause(attempts: u32, retry_after: Option<Duration>, random: f64) -> Duration {
    let longest = FIRST_PAUSE.saturating_mul(1 << attempts.saturating_sub(1).min(6)).min(MAX_PAUSE);
    longest.mul_f64(0.5 + random / 2.0).max(retry_after.unwrap_or_default())
}

#[derive(Debug)]
pub enum Answer {
    /// The response has the requested type.
    Done(Reply),
    Busy(Busy),
    /// Retrying is pointless.
    Refused(CliError),
}

/// Why a request should be retried later.
#[derive(Debug, Default)]
pub struct Busy {
    pub retry_after: Option<Duration>,
    /// Whether this is status 500, which the request itself may have caused.
    pub is_fault: bool,
    /// No response arrived. The address may be wrong.
    pub is_away: bool,
    /// Whether the request may have taken effect.
    pub may_have_effect: bool,
    /// Error text if the service stays busy.
    pub detail: String,
}

fn interpret(reply: Reply) -> Answer {
    let (status, retry_after) = (reply.status, reply.retry_after);
    if (200..300).contains(&status) && !reply.is_too_long {
        return Answer::Done(reply);
    }
    // A problem document (RFC 9457); null if the body isn't JSON.
    let problem: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    let code = problem["code"].as_str().unwrap_or_default().to_owned();
    let detail = describe(&reply, &problem);
    let busy = |is_fault, detail| {
        Answer::Busy(Busy { retry_after, is_fault, may_have_effect: status != 429, detail, ..Busy::default() })
    };
    match status {
        _ if reply.is_too_long => {
            Answer::Refused(CliError::Failed(detail + " with more than 6 MB, which the API never does; check --base-url"))
        }
        408 | 429 | 502..=504 => busy(false, detail),
        409 if code == "REQUEST_IN_PROGRESS" => busy(false, detail),
        // An erasure waits until earlier requests of the user can't be running any more.
        409 if problem["retry_at"].is_string() => busy(false, detail),
        500 => busy(true, detail),
        _ => Answer::Refused(CliError::Answered { status, code, detail, errors: faults(&problem) }),
    }
}

/// Returns the errors of a problem document.
fn faults(problem: &Value) -> Vec<Fault> {
    let fault = |error: &Value| {
        let place = ["column", "parameter", "header", "pointer"].iter().find_map(|name| error[*name].as_str());
        Fault { place: one_line(place.unwrap_or("request")), detail: one_line(error["detail"].as_str().unwrap_or_default()) }
    };
    items(&problem["errors"]).iter().map(fault).collect()
}

/// Joins the lines, so that none of them can look like a message from this program.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

fn describe(reply: &Reply, problem: &Value) -> String {
    let member = |object: &Value, name: &str| one_line(object[name].as_str().unwrap_or_default());
    let [code, detail, request] = ["code", "detail", "request_id"].map(|name| member(problem, name));
    let mut text = format!("the service answered {} {code}", reply.status).trim_end().to_owned();
    if !detail.is_empty() {
        text.push_str(if code.is_empty() { " " } else { ": " });
        text.push_str(&detail);
    }
    if !request.is_empty() && reply.status >= 500 {
        text.push_str(&format!(" (request {request})"));
    }
    let hint = match reply.status {
        300..=399 => {
            format!("\nSet --base-url to where it redirects: {}", one_line(reply.location.as_deref().unwrap_or("unknown")))
        }
        401 => "\nCheck the key in ASSETCTL_API_KEY or in the file that ASSETCTL_API_KEY_FILE names.".into(),
        403 => "\nUse a key with this scope.".into(),
        404 | 405 if code.is_empty() => "\nCheck --base-url: it ends in /v1.".into(),
        _ => String::new(),
    };
    text + &hint
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_could_take_effect_twice_are_not_repeated() {
        let url = |query: &str| Url::parse(&format!("https://a.example/v1/assets?{query}")).unwrap();
        let post = |query, key: Option<&str>| Request::post(url(query), JSON, Vec::new(), key.map(str::to_owned));
        for request in [Request::get(url("")), post("", Some("k")), post("dry_run=true", None)] {
            assert!(request.is_repeatable(), "{request:?}");
        }
        assert!(!post("", None).is_repeatable() && !post("dry_run=false", None).is_repeatable());
    }

    #[test]
    fn a_time_to_wait_is_a_number_of_seconds() {
        assert_eq!(seconds("7"), Some(Duration::from_secs(7)));
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

    fn busy(retry_after: Option<u64>) -> Busy {
        Busy { retry_after: retry_after.map(Duration::from_secs), detail: "Not now.".into(), ..Busy::default() }
    }

    #[test]
    fn nothing_waits_for_longer_than_is_left() {
        let (limit, start) = (Duration::from_secs(3), Instant::now());
        let mut backoff = Backoff::begin(Some(limit), false, start);
        let later = start + Duration::from_secs(2);
        assert_eq!(backoff.pause(&busy(Some(3)), start), Ok(limit));
        assert_eq!(backoff.pause(&busy(Some(1)), later), Ok(Duration::from_secs(1)));
        for _ in 0..9 {
            assert!(backoff.pause(&busy(None), later).unwrap() <= Duration::from_secs(1));
        }
        assert_eq!(backoff.pause(&busy(None), later), Ok(Duration::from_secs(1)));
        let told = backoff.pause(&busy(Some(2)), later).unwrap_err();
        assert!(told.contains("Not now.\nThe service asks to wait 2 s, and this command gives up after 1 s."), "{told}");
        assert_eq!(backoff.pause(&busy(Some(0)), start + limit), Err("Not now.".into()));
        backoff.renew(later);
        assert_eq!(backoff.pause(&busy(Some(3)), later), Ok(limit));
    }

    #[test]
    fn faults_and_wrong_addresses_are_given_up_after_a_few_attempts() {
        let (start, limit) = (Instant::now(), Some(Duration::from_secs(300)));
        let attempts = |is_known, is_fault, is_away| {
            let (mut backoff, busy) = (Backoff::begin(limit, is_known, start), Busy { is_fault, is_away, ..busy(None) });
            (1..=20).find(|_| backoff.pause(&busy, start).is_err())
        };
        assert_eq!(attempts(true, true, false), Some(MAX_FAULTS));
        assert_eq!(attempts(false, false, true), Some(MAX_FAULTS));
        // The attempts are unlimited if the service has responded before, or is only busy.
        assert_eq!((attempts(true, false, true), attempts(false, false, false)), (None, None));
    }

    #[test]
    fn requests_that_are_never_given_up_pause_at_most_five_minutes() {
        let (mut backoff, start) = (Backoff::begin(None, true, Instant::now()), Instant::now());
        assert_eq!(backoff.pause(&busy(Some(86_400)), start), Ok(MAX_ENDLESS_PAUSE));
        assert_eq!(backoff.pause(&busy(Some(7)), start), Ok(Duration::from_secs(7)));
    }

    #[test]
    fn pauses_double_up_to_a_limit_and_are_as_long_as_the_service_asks_for() {
        let ms = Duration::from_millis;
        assert_eq!(pause(1, Some(ms(7_000)), 0.5), ms(7_000));
        assert_eq!(pause(1, None, 0.0), ms(100));
        assert_eq!(pause(3, None, 1.0), ms(800));
        assert_eq!(pause(99, None, 1.0), MAX_PAUSE);
    }

    fn reply(status: u16, body: &str) -> Reply {
        Reply { status, body: body.as_bytes().to_vec(), ..Reply::default() }
    }

    #[test]
    fn temporary_errors_are_repeated() {
        for (status, body) in [(429, ""), (503, "{}"), (502, "<html>"), (409, r#"{"code": "REQUEST_IN_PROGRESS"}"#)] {
            let Answer::Busy(busy) = interpret(reply(status, body)) else { panic!("{status}") };
            assert_eq!((busy.is_fault, busy.may_have_effect), (false, status != 429), "{status}");
        }
        assert!(matches!(interpret(reply(500, "")), Answer::Busy(Busy { is_fault: true, .. })));
        assert!(matches!(interpret(reply(200, "{}")), Answer::Done(_)));
    }

    #[test]
    fn other_errors_say_what_to_do() {
        let body =
            r#"{"code": "VALIDATION_ERROR", "detail": "2\nerrors.", "errors": [{"column": "RAM", "detail": "unknown column"}]}"#;
        let refused = |status, body| match interpret(reply(status, body)) {
            Answer::Refused(error) => error.to_string(),
            other => panic!("{other:?}"),
        };
        assert_eq!(refused(422, body), "the service answered 422 VALIDATION_ERROR: 2 errors.\n  RAM: unknown column");
        assert!(refused(401, "").contains("ASSETCTL_API_KEY"));
        assert!(refused(404, "").contains("--base-url"));
        assert!(refused(308, "").contains("redirects"));
        assert!(refused(409, "{}").contains("409"));
    }
}
