//! A fake Amazon SQS that records its requests. `.ci/aws/queue` tests the client against a server that is closer to the real SQS.

use anyhow::Result;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

#[derive(Default)]
struct Requests {
    received: Vec<(String, Value)>,
    is_down: bool,
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

    pub fn set_down(&self, is_down: bool) {
        lock(&self.requests).is_down = is_down;
    }

    /// Returns the operation and body of each request since the last call.
    #[must_use]
    pub fn take_requests(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut lock(&self.requests).received)
    }
}

fn lock(requests: &Shared) -> std::sync::MutexGuard<'_, Requests> {
    requests.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn respond(State(requests): State<Shared>, headers: HeaderMap, body: Bytes) -> (StatusCode, String) {
    let target = headers.get("x-amz-target").and_then(|target| target.to_str().ok()).unwrap_or_default();
    let operation = target.trim_start_matches("AmazonSQS.").to_owned();
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let entries = request["Entries"].as_array().cloned().unwrap_or_default();
    let mut requests = lock(&requests);
    requests.received.push((operation, request));
    if requests.is_down {
        return (StatusCode::SERVICE_UNAVAILABLE, json!({"__type": "InternalFailure", "message": "down"}).to_string());
    }
    let successful = entries.iter().map(|entry| json!({"Id": entry["Id"], "MessageId": "m", "MD5OfMessageBody": "0"}));
    (StatusCode::OK, json!({"Failed": [], "Successful": successful.collect::<Vec<_>>()}).to_string())
}
