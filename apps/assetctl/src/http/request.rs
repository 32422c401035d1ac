//! Sends requests until the service answers them, and says what a response's status means for the request.

use crate::error::{CliError, Result};
use crate::http::client::{Client, Reply, Request};
use crate::output::{duration, exact};
use reqwest::Url;
use serde::Deserialize;
use serde_json::Value;
use std::time::{Duration, Instant};
use terminal::print_note;

pub const JSON: &str = "application/json";

/// Attempts at a request that the service fails at, or that nobody answers.
const MAX_FAULTS: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// The longest pause that the service didn't ask for.
const MAX_PAUSE: Duration = Duration::from_secs(10);
/// The longest pause of a request that is never given up, however long the service asks to wait.
const MAX_ENDLESS_PAUSE: Duration = Duration::from_secs(300);

/// Repeats the request while the service is busy.
///
/// # Errors
///
/// Returns [`CliError::Usage`] when the service refuses a parameter, [`CliError::Answered`] when it refuses the request,
/// [`CliError::Unanswered`] when it is busy for too long, and [`CliError::Failed`] when it sends another type.
pub async fn get(client: &Client, url: &Url, content_type: &str) -> Result<Reply> {
    let patience = Patience::begin(Some(client.patience), false, Instant::now());
    let reply = answered(client, &Request::get(url.clone()), patience, None).await.map_err(wrong_parameter)?;
    expect_type(&reply, url, content_type)?;
    Ok(reply)
}

/// Gets the member `data` of a JSON document.
pub async fn get_data(client: &Client, path: &str, query: &[(&str, &str)]) -> Result<Value> {
    data(get_document(client, path, query).await?.0)
}

/// Gets a JSON document, and its `ETag` if it has one.
pub async fn get_document(client: &Client, path: &str, query: &[(&str, &str)]) -> Result<(Value, Option<String>)> {
    let reply = get(client, &client.url(path, query)?, JSON).await?;
    let mut document: Value = serde_json::from_slice(&reply.body).map_err(|_| unreadable())?;
    if client.is_exact {
        document = exact(&String::from_utf8_lossy(&reply.body)).map_err(|_| unreadable())?;
    }
    Ok((document, reply.etag))
}

/// Sends a JSON document and returns the member `data` of the answer. With an idempotency key, the request is repeated while the
/// service is busy, and takes effect once. Without one, it is repeated only if it is a dry run, or surely had no effect.
pub async fn post_data(client: &Client, url: &Url, body: &Value, idempotency_key: Option<&str>) -> Result<Value> {
    post(client, url, body, idempotency_key, None).await
}

/// As [`post_data`], to a service that has answered before: waits for it to come back, with a note that ends in `comfort`.
pub async fn post_patiently(client: &Client, url: &Url, body: &Value, idempotency_key: &str, comfort: &str) -> Result<Value> {
    post(client, url, body, Some(idempotency_key), Some(comfort)).await
}

async fn post(client: &Client, url: &Url, body: &Value, key: Option<&str>, comfort: Option<&str>) -> Result<Value> {
    let request = Request::post(url.clone(), JSON, body.to_string().into_bytes(), key.map(str::to_owned));
    let patience = Patience::begin(Some(client.patience), comfort.is_some(), Instant::now());
    let reply = answered(client, &request, patience, comfort).await?;
    expect_type(&reply, url, JSON)?;
    data(serde_json::from_slice(&reply.body).unwrap_or_default())
}

/// Repeats the request until the service answers, and prints a note that ends in `comfort` while it doesn't. Only the first
/// request gives up: the address may be wrong.
///
/// # Errors
///
/// Returns [`CliError::Usage`] when the service refuses a parameter, [`CliError::Answered`] when it refuses the request, and
/// [`CliError::Failed`] when it sends another type.
pub async fn get_endlessly(client: &Client, url: &Url, is_first: bool, comfort: &str) -> Result<Vec<u8>> {
    let patience = Patience::begin(is_first.then_some(client.patience), true, Instant::now());
    let reply = answered(client, &Request::get(url.clone()), patience, Some(comfort)).await.map_err(wrong_parameter)?;
    expect_type(&reply, url, JSON)?;
    Ok(reply.body)
}

/// A GET that is refused as invalid has a parameter from the command line that doesn't fit.
fn wrong_parameter(error: CliError) -> CliError {
    match error {
        CliError::Answered { status: 422, detail, .. } => CliError::Usage(detail),
        error => error,
    }
}

/// Without `comfort`, the end of the note that tells of a wait, the wait is silent.
async fn answered(client: &Client, request: &Request, mut patience: Patience, comfort: Option<&str>) -> Result<Reply> {
    loop {
        let busy = match client.send(request).await {
            Answer::Done(reply) => {
                if patience.attempts > 0 && comfort.is_some() {
                    print_note("The service answers again.");
                }
                return Ok(reply);
            }
            Answer::Refused(error) => return Err(error),
            Answer::Busy(busy) if busy.may_have_effect && !request.is_repeatable() => {
                return Err(CliError::Unanswered(busy.detail));
            }
            Answer::Busy(busy) => busy,
        };
        let pause = patience.pause(&busy, Instant::now()).map_err(CliError::Unanswered)?;
        if let Some(comfort) = comfort.filter(|_| patience.attempts == 1) {
            print_note(&format!("{}; waiting for it. {comfort}", busy.detail));
        }
        tokio::time::sleep(pause).await;
    }
}

/// How often and how long a request is repeated.
#[derive(Debug)]
pub struct Patience {
    /// For the time without progress. Endless without.
    limit: Option<Duration>,
    /// The service was there before, so that it may come back.
    is_known: bool,
    since: Instant,
    /// Failed ones since the last progress.
    attempts: u32,
}

impl Patience {
    #[must_use]
    pub fn begin(limit: Option<Duration>, is_known: bool, now: Instant) -> Self {
        Self { limit, is_known, since: now, attempts: 0 }
    }

    /// The service has done a part of the request.
    pub fn renew(&mut self, now: Instant) {
        (self.since, self.attempts, self.is_known) = (now, 0, true);
    }

    /// The pause before the request is repeated: exponential, with jitter, and as long as the service asks for.
    ///
    /// # Errors
    ///
    /// Waiting is of no use: the time is over, the service asks for a longer wait, or it fails at the request.
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

/// After so many attempts; `random` is from 0 to 1.
fn pause(attempts: u32, retry_after: Option<Duration>, random: f64) -> Duration {
    let longest = FIRST_PAUSE.saturating_mul(1 << attempts.saturating_sub(1).min(6)).min(MAX_PAUSE);
    longest.mul_f64(0.5 + random / 2.0).max(retry_after.unwrap_or_default())
}

/// The prefix of a command's idempotency keys.
pub fn new_run_id() -> Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| CliError::Failed(format!("no random numbers: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn expect_type(reply: &Reply, url: &Url, content_type: &str) -> Result<()> {
    let found = reply.content_type.as_deref();
    if found.is_some_and(|found| found.starts_with(content_type)) {
        return Ok(());
    }
    let found = found.unwrap_or("nothing");
    Err(CliError::Failed(format!("{url} answered with {found} instead of {content_type}; check --base-url")))
}

/// A member of an answer; null if the answer is something else than an object, or lacks it.
pub fn take(answer: &mut Value, member: &str) -> Value {
    answer.get_mut(member).map(Value::take).unwrap_or_default()
}

/// Gets the member `data`, which is one thing.
///
/// # Errors
///
/// As [`get`], also if it is anything else than an object.
pub async fn get_object(client: &Client, path: &str, query: &[(&str, &str)]) -> Result<Value> {
    get_data(client, path, query).await.and_then(object)
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

#[must_use]
pub fn unreadable() -> CliError {
    CliError::Failed("can't read the service's answer; check --base-url".into())
}

#[derive(Debug)]
pub enum Answer {
    /// The body is the requested one.
    Done(Reply),
    /// Send the request again later.
    Busy(Busy),
    /// Repeating doesn't help.
    Refused(CliError),
}

/// The reason for sending a request again later.
#[derive(Debug, Default)]
pub struct Busy {
    pub retry_after: Option<Duration>,
    /// A fault of the service, which may not pass.
    pub is_fault: bool,
    /// Nobody answered. The address may be wrong.
    pub is_away: bool,
    /// The request may have taken effect nevertheless.
    pub may_have_effect: bool,
    /// The error if it doesn't pass.
    pub detail: String,
}

/// A problem document (RFC 9457).
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Problem {
    detail: String,
    code: String,
    request_id: String,
    errors: Vec<ProblemError>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ProblemError {
    detail: String,
    column: Option<String>,
    parameter: Option<String>,
    header: Option<String>,
    pointer: Option<String>,
}

#[must_use]
pub fn interpret(reply: Reply) -> Answer {
    let problem: Problem = serde_json::from_slice(&reply.body).unwrap_or_default();
    let (status, retry_after, detail) = (reply.status, reply.retry_after, describe(&reply, &problem));
    let busy = |is_fault, detail| {
        Answer::Busy(Busy { retry_after, is_fault, may_have_effect: status != 429, detail, ..Busy::default() })
    };
    match status {
        _ if reply.is_too_long => {
            Answer::Refused(CliError::Failed(detail + " with more than 6 MB, which the API never does; check --base-url"))
        }
        200..=299 => Answer::Done(reply),
        408 | 429 | 502..=504 => busy(false, detail),
        409 if problem.code == "REQUEST_IN_PROGRESS" => busy(false, detail),
        500 => busy(true, detail),
        _ => Answer::Refused(CliError::Answered { status, code: problem.code, detail }),
    }
}

/// Without line breaks, so that no part of it can pretend to be a line of this program.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

fn describe(reply: &Reply, problem: &Problem) -> String {
    let mut text = format!("the service answered {}", reply.status);
    for part in [&problem.code, &problem.detail].into_iter().filter(|part| !part.is_empty()) {
        text.push_str(if text.ends_with(&problem.code) && !problem.code.is_empty() { ": " } else { " " });
        text.push_str(&one_line(part));
    }
    for error in problem.errors.iter().take(20) {
        let place =
            error.column.as_deref().or(error.parameter.as_deref()).or(error.header.as_deref()).or(error.pointer.as_deref());
        text.push_str(&format!("\n  {}: {}", one_line(place.unwrap_or("request")), one_line(&error.detail)));
    }
    if !problem.request_id.is_empty() && reply.status >= 500 {
        text.push_str(&format!(" (request {})", one_line(&problem.request_id)));
    }
    let hint = match reply.status {
        300..=399 => {
            format!("\nSet --base-url to where it redirects: {}", one_line(reply.location.as_deref().unwrap_or("unknown")))
        }
        401 => "\nCheck the key in ASSETCTL_API_KEY or in the file that ASSETCTL_API_KEY_FILE names.".into(),
        403 => "\nUse a key with the scope that is named.".into(),
        404 | 405 if problem.code.is_empty() => "\nCheck --base-url: it ends in /v1.".into(),
        _ => String::new(),
    };
    text + &hint
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy(retry_after: Option<u64>) -> Busy {
        Busy { retry_after: retry_after.map(Duration::from_secs), detail: "Not now.".into(), ..Busy::default() }
    }

    #[test]
    fn nothing_waits_for_longer_than_is_left() {
        let (limit, start) = (Duration::from_secs(3), Instant::now());
        let mut patience = Patience::begin(Some(limit), false, start);
        let later = start + Duration::from_secs(2);
        assert_eq!(patience.pause(&busy(Some(3)), start), Ok(limit));
        assert_eq!(patience.pause(&busy(Some(1)), later), Ok(Duration::from_secs(1)));
        for _ in 0..9 {
            assert!(patience.pause(&busy(None), later).unwrap() <= Duration::from_secs(1));
        }
        assert_eq!(patience.pause(&busy(None), later), Ok(Duration::from_secs(1)));
        let told = patience.pause(&busy(Some(2)), later).unwrap_err();
        assert!(told.contains("Not now.\nThe service asks to wait 2 s, and this command gives up after 1 s."), "{told}");
        assert_eq!(patience.pause(&busy(Some(0)), start + limit), Err("Not now.".into()));
        patience.renew(later);
        assert_eq!(patience.pause(&busy(Some(3)), later), Ok(limit));
    }

    #[test]
    fn faults_and_wrong_addresses_are_given_up_after_a_few_attempts() {
        let (start, limit) = (Instant::now(), Some(Duration::from_secs(300)));
        let attempts = |is_known, is_fault, is_away| {
            let (mut patience, busy) = (Patience::begin(limit, is_known, start), Busy { is_fault, is_away, ..busy(None) });
            (1..=20).find(|_| patience.pause(&busy, start).is_err())
        };
        assert_eq!(attempts(true, true, false), Some(MAX_FAULTS));
        assert_eq!(attempts(false, false, true), Some(MAX_FAULTS));
        // One that was there comes back, and one that is busy is there.
        assert_eq!((attempts(true, false, true), attempts(false, false, false)), (None, None));
    }

    #[test]
    fn who_never_gives_up_still_asks_again() {
        let (mut patience, start) = (Patience::begin(None, true, Instant::now()), Instant::now());
        assert_eq!(patience.pause(&busy(Some(86_400)), start), Ok(MAX_ENDLESS_PAUSE));
        assert_eq!(patience.pause(&busy(Some(7)), start), Ok(Duration::from_secs(7)));
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
    fn what_passes_is_repeated() {
        for (status, body) in [(429, ""), (503, "{}"), (502, "<html>"), (409, r#"{"code": "REQUEST_IN_PROGRESS"}"#)] {
            let Answer::Busy(busy) = interpret(reply(status, body)) else { panic!("{status}") };
            assert_eq!((busy.is_fault, busy.may_have_effect), (false, status != 429), "{status}");
        }
        assert!(matches!(interpret(reply(500, "")), Answer::Busy(Busy { is_fault: true, .. })));
        assert!(matches!(interpret(reply(200, "{}")), Answer::Done(_)));
    }

    #[test]
    fn what_does_not_pass_says_what_to_do() {
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
