//! Requests that are sent until the service answers them.

use crate::error::{CliError, Result};
use crate::http::answer::{Answer, Busy, interpret};
use crate::http::client::{Client, Reply, Unreachable};
use crate::http::patience::{self, Patience, endless_pause};
use reqwest::Url;
use serde_json::Value;
use std::time::{Duration, Instant};
use terminal::print_note;

pub const JSON: &str = "application/json";

/// Repeats the request while the service is busy.
///
/// # Errors
///
/// Returns [`CliError::Usage`] when the service refuses a parameter, [`CliError::Answered`] when it refuses the request,
/// [`CliError::Unanswered`] when it is busy for too long, and [`CliError::Failed`] when it sends another type.
pub async fn get(client: &Client, url: &Url, content_type: &str, patience: Duration) -> Result<Reply> {
    let reply = answered(Waiting::silent(patience), || client.get(url.clone())).await.map_err(wrong_parameter)?;
    expect_type(&reply, url, content_type)?;
    Ok(reply)
}

/// Gets the member `data` of a JSON document.
pub async fn get_data(client: &Client, path: &str, query: &[(&str, &str)]) -> Result<Value> {
    data(get_document(client, path, query).await?.0)
}

/// Gets a JSON document, and its `ETag` if it has one.
pub async fn get_document(client: &Client, path: &str, query: &[(&str, &str)]) -> Result<(Value, Option<String>)> {
    let reply = get(client, &client.url(path, query)?, JSON, patience_of(client)).await?;
    Ok((serde_json::from_slice(&reply.body).map_err(|_| unreadable())?, reply.etag))
}

/// Sends a JSON document and returns the member `data` of the answer. With an idempotency key, the request takes effect once,
/// even if it is repeated.
pub async fn post_data(client: &Client, url: &Url, body: &Value, idempotency_key: Option<&str>) -> Result<Value> {
    let reply = answered(Waiting::silent(patience_of(client)), || client.post(url.clone(), body, idempotency_key)).await?;
    expect_type(&reply, url, JSON)?;
    data(serde_json::from_slice(&reply.body).unwrap_or_default())
}

fn patience_of(client: &Client) -> Duration {
    client.patience.unwrap_or(patience::DEFAULT)
}

/// Repeats the request until the service answers, and prints a note that ends in `comfort` while it doesn't. Only the first
/// request gives up: the address may be wrong.
///
/// # Errors
///
/// Returns [`CliError::Usage`] when the service refuses a parameter, [`CliError::Answered`] when it refuses the request, and
/// [`CliError::Failed`] when it sends another type.
pub async fn get_endlessly(client: &Client, url: &Url, is_first: bool, comfort: &str) -> Result<Vec<u8>> {
    let waiting = Waiting { patience: is_first.then_some(patience::DEFAULT), comfort: Some(comfort) };
    let reply = answered(waiting, || client.get(url.clone())).await.map_err(wrong_parameter)?;
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

/// The wait for a service that is busy or can't be reached.
struct Waiting<'c> {
    /// Endless without.
    patience: Option<Duration>,
    /// The end of the note that tells of the wait. Without one, the wait is silent, and an address that can't be reached is a
    /// fault, which ends it early.
    comfort: Option<&'c str>,
}

impl Waiting<'_> {
    fn silent(patience: Duration) -> Self {
        Self { patience: Some(patience), comfort: None }
    }
}

async fn answered<F>(waiting: Waiting<'_>, send: impl Fn() -> F) -> Result<Reply>
where
    F: Future<Output = std::result::Result<Reply, Unreachable>>,
{
    let Waiting { patience, comfort } = waiting;
    let (patience, mut attempts) = (patience.map(|limit| Patience::begin(limit, Instant::now())), 0_u32);
    loop {
        attempts = attempts.saturating_add(1);
        let busy = match send().await {
            Err(unreachable) => Busy::unreachable(unreachable, comfort.is_none()),
            Ok(reply) => match interpret(&reply) {
                Answer::Done => {
                    if attempts > 1 && comfort.is_some() {
                        print_note("The service answers again.");
                    }
                    return Ok(reply);
                }
                Answer::Refused { code, detail } => return Err(CliError::Answered { status: reply.status, code, detail }),
                Answer::Busy(busy) => busy,
            },
        };
        let pause = match patience {
            Some(patience) => patience.pause(attempts, &busy, Instant::now()).map_err(CliError::Unanswered)?,
            None => endless_pause(attempts, &busy),
        };
        if let Some(comfort) = comfort.filter(|_| attempts == 1) {
            print_note(&format!("{}; waiting for it. {comfort}", busy.detail));
        }
        tokio::time::sleep(pause).await;
    }
}

/// The prefix of a command's idempotency keys.
pub fn new_run_id() -> Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| CliError::Failed(format!("no random numbers: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

pub fn expect_type(reply: &Reply, url: &Url, content_type: &str) -> Result<()> {
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
