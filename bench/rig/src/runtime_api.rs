//! The part of Lambda's Runtime API that a function's binary uses. See "Using the Lambda runtime API" in the AWS Lambda
//! developer guide.

use anyhow::{Context, Result, bail};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{self, Path};
use axum::http::{Response, StatusCode};
use axum::routing::{get, post};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;

#[derive(Debug)]
pub struct Invocation {
    pub request_id: String,
    /// The response in API Gateway's format: `statusCode`, `headers`, `body`.
    pub response: Value,
    /// The time from sending the event to receiving the response.
    pub duration: Duration,
}

struct Event {
    request_id: String,
    deadline_millis: u128,
    body: String,
    outcome: oneshot::Sender<(Instant, Outcome)>,
}

/// The response body, or the error that the function reported.
type Outcome = Result<Bytes, String>;

#[derive(Default)]
struct State {
    /// The time of the function's first request for an event.
    first_request: Option<Instant>,
    pending: HashMap<String, oneshot::Sender<(Instant, Outcome)>>,
    sent_at: HashMap<String, Instant>,
}

#[derive(Clone)]
struct Shared {
    events: Arc<tokio::sync::Mutex<mpsc::UnboundedReceiver<Event>>>,
    state: Arc<Mutex<State>>,
    requested: Arc<Notify>,
}

/// A running Runtime API for one function. Dropping it ends it.
pub struct RuntimeApi {
    /// The value for `AWS_LAMBDA_RUNTIME_API`.
    pub address: String,
    shared: Shared,
    events: mpsc::UnboundedSender<Event>,
    task: JoinHandle<()>,
}

impl Drop for RuntimeApi {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl RuntimeApi {
    /// # Errors
    ///
    /// Returns an error when no port is free.
    pub async fn start() -> Result<Self> {
        let (events, queue) = mpsc::unbounded_channel();
        let shared =
            Shared { events: Arc::new(tokio::sync::Mutex::new(queue)), state: Arc::default(), requested: Arc::default() };
        let router = Router::new()
            .route("/2018-06-01/runtime/invocation/next", get(next_event))
            .route("/2018-06-01/runtime/invocation/{id}/response", post(receive_response))
            .route("/2018-06-01/runtime/invocation/{id}/error", post(receive_error))
            .route("/2018-06-01/runtime/init/error", post(async || StatusCode::ACCEPTED))
            .with_state(shared.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let task = tokio::spawn(async move {
            // Runs until it is aborted.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { address, shared, events, task })
    }

    /// Waits until the function requests its first event, which ends its init phase.
    pub async fn ready(&self) -> Instant {
        loop {
            let requested = self.shared.requested.notified();
            if let Some(at) = self.shared.lock().first_request {
                return at;
            }
            requested.await;
        }
    }

    /// `timeout` is the function's.
    ///
    /// # Errors
    ///
    /// Returns an error when there is no response in time, or when the function reports an error.
    pub async fn invoke(&self, event: &str, timeout: Duration) -> Result<Invocation> {
        let (outcome, received) = oneshot::channel();
        let now = now_millis();
        let request_id = format!("00000000-0000-4000-8000-{:012x}", now_nanos() & 0xffff_ffff_ffff);
        let event =
            Event { request_id: request_id.clone(), deadline_millis: now + timeout.as_millis(), body: event.to_owned(), outcome };
        self.events.send(event).context("the Runtime API has ended")?;
        let (at, outcome) = tokio::time::timeout(timeout, received).await.context("no response before the deadline")??;
        let sent_at = self.shared.lock().sent_at.remove(&request_id).context("a response to an event that wasn't sent")?;
        match outcome {
            Ok(body) => Ok(Invocation { request_id, response: serde_json::from_slice(&body)?, duration: at - sent_at }),
            Err(error) => bail!("the function reported an error: {error}"),
        }
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn next_event(extract::State(shared): extract::State<Shared>) -> Response<Body> {
    shared.lock().first_request.get_or_insert_with(Instant::now);
    shared.requested.notify_waiters();
    let Some(event) = shared.events.lock().await.recv().await else {
        return status(StatusCode::GONE);
    };
    let mut state = shared.lock();
    state.sent_at.insert(event.request_id.clone(), Instant::now());
    state.pending.insert(event.request_id.clone(), event.outcome);
    drop(state);
    Response::builder()
        .header("content-type", "application/json")
        .header("lambda-runtime-aws-request-id", &event.request_id)
        .header("lambda-runtime-deadline-ms", event.deadline_millis.to_string())
        .header("lambda-runtime-invoked-function-arn", "arn:aws:lambda:us-east-1:123456789012:function:local")
        .header("lambda-runtime-trace-id", "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=0")
        .body(Body::from(event.body))
        .unwrap_or_else(|_| status(StatusCode::INTERNAL_SERVER_ERROR))
}

async fn receive_response(extract::State(shared): extract::State<Shared>, Path(id): Path<String>, body: Bytes) -> StatusCode {
    complete(&shared, &id, Ok(body))
}

async fn receive_error(extract::State(shared): extract::State<Shared>, Path(id): Path<String>, body: Bytes) -> StatusCode {
    complete(&shared, &id, Err(String::from_utf8_lossy(&body).into_owned()))
}

fn complete(shared: &Shared, id: &str, outcome: Outcome) -> StatusCode {
    let at = Instant::now();
    let Some(sender) = shared.lock().pending.remove(id) else { return StatusCode::BAD_REQUEST };
    // Fails when the deadline has passed and the receiver is gone.
    let _ = sender.send((at, outcome));
    StatusCode::ACCEPTED
}

fn status(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

fn now_millis() -> u128 {
    now_nanos() / 1_000_000
}

#[expect(clippy::disallowed_methods, reason = "Lambda's clock, not the service's")]
fn now_nanos() -> u128 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |now| now.as_nanos())
}
