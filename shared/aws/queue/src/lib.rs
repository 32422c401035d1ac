//! The delivery and retry queues in Amazon SQS (docs/adr/0020-webhooks.md).

pub use aws_sdk_sqs as sdk;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::{BehaviorVersion, Builder, Config};
use aws_sdk_sqs::types::{BatchResultErrorEntry, SendMessageBatchRequestEntry};
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use shared::aws::environment::{EnvironmentError, endpoint, function_environment, limits};
use shared::queue::{MAX_DELAY, NewMessage, Queue, QueueError, is_arn_of};
use std::sync::OnceLock;
use std::time::Duration;

/// The environment variable with the URL of the queue for first attempts.
pub const QUEUE_URL: &str = "DELIVERY_QUEUE_URL";
pub const RETRY_QUEUE_URL: &str = "RETRY_QUEUE_URL";
const ENDPOINT: &str = "AWS_ENDPOINT_URL_SQS";

const PARALLEL_REQUESTS: usize = 8;

/// Maximum number of messages per request (SQS: SendMessageBatch).
const MAX_MESSAGES: usize = 10;
/// SQS has accepted requests of 1 MiB since 2025; the earlier limit was 256 KiB. A message is smaller than 4 KiB, so ten messages
/// reach neither limit.
const MAX_BYTES: usize = 256 * 1024;

pub type Connect = dyn Fn() -> Result<Client, EnvironmentError> + Send + Sync;

/// Standard SQS queues: one for first attempts and, in functions outside the API, one for retries.
pub struct Sqs {
    /// The SQS client, created on first use: most API requests send no message.
    client: OnceLock<Client>,
    connect: Box<Connect>,
    url: String,
    retry_url: Option<String>,
}

impl Sqs {
    #[must_use]
    pub fn new(connect: Box<Connect>, url: String) -> Self {
        Self { client: OnceLock::new(), connect, url, retry_url: None }
    }

    #[must_use]
    pub fn with_retries(self, url: String) -> Self {
        Self { retry_url: Some(url), ..self }
    }

    /// Adds the retry queue at `RETRY_QUEUE_URL`.
    ///
    /// # Errors
    ///
    /// Returns [`EnvironmentError::Missing`] when the variable is not set and [`EnvironmentError::Endpoint`] when it is not a
    /// URL.
    pub fn with_retries_from_env(self) -> Result<Self, EnvironmentError> {
        let url = endpoint(RETRY_QUEUE_URL)?.ok_or(EnvironmentError::Missing(RETRY_QUEUE_URL))?;
        Ok(self.with_retries(url))
    }

    /// Returns the queue for first attempts at `DELIVERY_QUEUE_URL`; `None` if the variable is not set. `AWS_ENDPOINT_URL_SQS`
    /// can override the SQS endpoint.
    ///
    /// # Errors
    ///
    /// Returns [`EnvironmentError::Endpoint`] when either variable is not a URL.
    pub fn from_env() -> Result<Option<Self>, EnvironmentError> {
        let address = endpoint(ENDPOINT)?;
        let queue = endpoint(QUEUE_URL)?;
        Ok(queue.map(|url| Self::new(Box::new(move || function_client(address.clone())), url)))
    }

    fn client(&self) -> Result<&Client, QueueError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = (self.connect)().map_err(queue_error)?;
        Ok(self.client.get_or_init(|| client))
    }

    async fn send_to(&self, url: &str, messages: Vec<NewMessage>) -> Result<(), QueueError> {
        let messages = messages.iter().map(outgoing).collect::<Result<Vec<_>, _>>()?;
        let requests = stream::iter(batches(messages)).map(|batch| Ok(self.send_batch(url, batch)));
        requests.try_buffer_unordered(PARALLEL_REQUESTS).try_collect().await
    }

    /// Sends a batch, and resends rejected messages once, because part of a batch can fail even if the request succeeds.
    async fn send_batch(&self, url: &str, batch: Vec<Outgoing>) -> Result<(), QueueError> {
        let refused = self.try_batch(url, &batch).await?;
        let Some(first) = refused.first() else { return Ok(()) };
        tracing::warn!(refused = refused.len(), code = first.code(), "the queue rejected messages; sending them again");
        let is_refused = |place: usize| refused.iter().any(|entry| entry.id() == place.to_string());
        let rest = batch.into_iter().enumerate().filter(|(place, _)| is_refused(*place)).map(|(_, message)| message);
        match self.try_batch(url, &rest.collect::<Vec<_>>()).await?.first() {
            Some(entry) => Err(queue_error(format!("the queue rejected a message twice: {}", entry.code()))),
            None => Ok(()),
        }
    }

    /// Sends a batch once, and returns the rejected messages.
    async fn try_batch(&self, url: &str, batch: &[Outgoing]) -> Result<Vec<BatchResultErrorEntry>, QueueError> {
        let entry = |(place, message): (usize, &Outgoing)| {
            SendMessageBatchRequestEntry::builder()
                .id(place.to_string())
                .message_group_id(&message.group)
                .message_body(&message.body)
                .delay_seconds(message.delay_seconds)
                .build()
        };
        let entries = batch.iter().enumerate().map(entry).collect::<Result<_, _>>().map_err(queue_error)?;
        let request = self.client()?.send_message_batch().queue_url(url).set_entries(Some(entries));
        Ok(request.send().await.map_err(queue_error)?.failed)
    }
}

fn function_client(address: Option<String>) -> Result<Client, EnvironmentError> {
    let environment = function_environment()?;
    let mut config = configure(Config::builder())
        .behavior_version(BehaviorVersion::latest())
        .http_client(environment.http_client())
        .region(environment.region)
        .credentials_provider(environment.credentials);
    config.set_endpoint_url(address);
    Ok(Client::from_conf(config.build()))
}

/// Sets the timeouts and retries of every SQS client.
#[must_use]
pub fn configure(config: Builder) -> Builder {
    let (retries, timeouts) = limits();
    config.retry_config(retries).timeout_config(timeouts)
}

fn queue_error(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> QueueError {
    QueueError(cause.into())
}

/// Converts a delay to the whole seconds that SQS expects: rounded up, at most [`MAX_DELAY`].
fn seconds(time: Duration) -> i32 {
    let seconds = time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0));
    i32::try_from(seconds.min(MAX_DELAY.as_secs())).unwrap_or(i32::MAX)
}

fn outgoing(new: &NewMessage) -> Result<Outgoing, QueueError> {
    let body = serde_json::to_string(&new.message).map_err(queue_error)?;
    Ok(Outgoing { group: new.message.group(), body, delay_seconds: seconds(new.delay) })
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Outgoing {
    /// Messages of one group don't delay other groups.
    group: String,
    /// JSON.
    body: String,
    delay_seconds: i32,
}

/// Splits messages into batches that SQS accepts, in order.
fn batches(messages: Vec<Outgoing>) -> Vec<Vec<Outgoing>> {
    let mut batches: Vec<Vec<Outgoing>> = Vec::new();
    let mut bytes = 0;
    for message in messages {
        match batches.last_mut() {
            Some(batch) if batch.len() < MAX_MESSAGES && bytes + message.body.len() <= MAX_BYTES => {
                bytes += message.body.len();
                batch.push(message);
            }
            _ => {
                bytes = message.body.len();
                batches.push(vec![message]);
            }
        }
    }
    batches
}

impl Queue for Sqs {
    fn send<'a>(&'a self, messages: Vec<NewMessage>) -> BoxFuture<'a, Result<(), QueueError>> {
        self.send_to(&self.url, messages).boxed()
    }

    fn send_retry<'a>(&'a self, messages: Vec<NewMessage>) -> BoxFuture<'a, Result<(), QueueError>> {
        async move {
            let url = self.retry_url.as_deref().ok_or_else(|| queue_error("no retry queue is configured"))?;
            self.send_to(url, messages).await
        }
        .boxed()
    }

    fn is_of_retries(&self, arn: &str) -> bool {
        self.retry_url.as_deref().is_some_and(|url| is_arn_of(arn, url))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_up_and_limited() {
        let of = |millis| seconds(Duration::from_millis(millis));
        assert_eq!([of(0), of(1), of(1000), of(1001), of(900_000), of(900_001)], [0, 1, 1, 2, 900, 900]);
    }

    fn message(bytes: usize) -> Outgoing {
        Outgoing { group: "g".into(), body: "x".repeat(bytes), delay_seconds: 0 }
    }

    fn lengths(sizes: &[usize]) -> Vec<usize> {
        batches(sizes.iter().map(|size| message(*size)).collect()).iter().map(Vec::len).collect()
    }

    #[test]
    fn a_batch_has_at_most_ten_messages() {
        assert_eq!(lengths(&[]), [0; 0]);
        assert_eq!(lengths(&[1; 10]), [10]);
        assert_eq!(lengths(&[1; 25]), [10, 10, 5]);
    }

    #[test]
    fn a_batch_is_not_larger_than_sqs_takes() {
        assert_eq!(lengths(&[MAX_BYTES / 2; 5]), [2, 2, 1]);
        assert_eq!(lengths(&[MAX_BYTES - 1, 1, 1]), [2, 1]);
        // SQS rejects the large message, but not the others.
        assert_eq!(lengths(&[1, MAX_BYTES + 1, 1]), [1, 1, 1]);
    }

    #[test]
    fn batches_keep_the_order() {
        let messages: Vec<Outgoing> = (0..25).map(message).collect();
        assert_eq!(batches(messages.clone()).concat(), messages);
    }
}
