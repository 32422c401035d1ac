//! A fake Amazon SQS that records its requests, and fails or refuses messages on demand. `.ci/aws/queue` tests the client against a
//! server that is closer to the real SQS.

use anyhow::Result;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

#[derive(Default)]
struct Requests {
    received: Vec<(String, Value)>,
    failures: Vec<(StatusCode, &'static str)>,
    refused: Vec<Vec<usize>>,
}

type Shared = Arc<Mutex<Requests>>;

/// A running fake SQS. Stops when dropped.
pub struct FakeSqs {
    /// The base URL, for `AWS_ENDPOINT_URL_SQS`.
    pub url: String,
    requests: Shared,
    task: JoinHandle<()>,
}

impl Drop for FakeSqs {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl FakeSqs {
    /// # Errors
    ///
    /// Returns an error if no port is free.
    pub async fn start() -> Result<Self> {
        let requests = Shared::default();
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let router = Router::new().route("/", post(respond)).with_state(Arc::clone(&requests));
        let task = tokio::spawn(async move {
            // Runs until the task is aborted.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { url, requests, task })
    }

    /// Returns the value for `DELIVERY_QUEUE_URL`.
    #[must_use]
    pub fn queue_url(&self) -> String {
        format!("{}/123456789012/deliveries", self.url)
    }

    /// Returns the value for `RETRY_QUEUE_URL`.
    #[must_use]
    pub fn retry_queue_url(&self) -> String {
        format!("{}/123456789012/retries", self.url)
    }

    /// Answers the next requests with these statuses and error codes. The last element is for the next request.
    pub fn fail(&self, failures: Vec<(StatusCode, &'static str)>) {
        lock(&self.requests).failures = failures;
    }

    /// Rejects messages of the next batches, by their place in the batch. The last element is for the next batch.
    pub fn refuse(&self, places: Vec<Vec<usize>>) {
        lock(&self.requests).refused = places;
    }

    /// Returns the operation and body of each request since the last call.
    #[must_use]
    pub fn take_requests(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut lock(&self.requests).received)
    }
}

fn lock(requests: &Shared) -> MutexGuard<'_, Requests> {
    requests.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn respond(State(requests): State<Shared>, headers: HeaderMap, body: Bytes) -> (StatusCode, String) {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let error = |status: StatusCode, code: &str| (status, json!({"__type": code, "message": "no"}).to_string());
    if !header("authorization").contains("/sqs/aws4_request") {
        return error(StatusCode::FORBIDDEN, "IncompleteSignature");
    }
    let operation = header("x-amz-target").trim_start_matches("AmazonSQS.").to_owned();
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let entries = request["Entries"].as_array().cloned().unwrap_or_default();
    let mut requests = lock(&requests);
    requests.received.push((operation, request));
    if let Some((status, code)) = requests.failures.pop() {
        return error(status, code);
    }
    let refused = requests.refused.pop().unwrap_or_default();
    let (failed, successful): (Vec<_>, Vec<_>) = entries.iter().enumerate().partition(|(place, _)| refused.contains(place));
    let failed = failed.iter().map(|(_, entry)| json!({"Id": entry["Id"], "SenderFault": false, "Code": "InternalError"}));
    let successful = successful.iter().map(|(_, entry)| json!({"Id": entry["Id"], "MessageId": "m", "MD5OfMessageBody": "0"}));
    let response = json!({"Failed": failed.collect::<Vec<_>>(), "Successful": successful.collect::<Vec<_>>()});
    (StatusCode::OK, response.to_string())
}
