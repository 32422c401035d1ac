//! The part of Lambda's Runtime API that a function's binary needs ("AWS Lambda runtime API" in the AWS guide).

use anyhow::{Context, Result, bail};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{Response, StatusCode};
use axum::routing::{get, post};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;

/// What a function made of an event.
#[derive(Debug)]
pub struct Invocation {
    /// Lambda's id of the request.
    pub request_id: String,
    /// The gateway's form of the answer: `statusCode`, `headers`, `body`.
    pub answer: Value,
    /// From the handing over of the event to the arrival of the answer.
    pub took: Duration,
}

struct Event {
    request_id: String,
    deadline_millis: u128,
    body: String,
    done: oneshot::Sender<(Instant, Outcome)>,
}

type Outcome = Result<Bytes, String>;

#[derive(Default)]
struct Waiting {
    /// When the function asked for its first event.
    first_next: Option<Instant>,
    answers: HashMap<String, oneshot::Sender<(Instant, Outcome)>>,
    handed_over: HashMap<String, Instant>,
}

#[derive(Clone)]
struct Shared {
    events: Arc<tokio::sync::Mutex<mpsc::UnboundedReceiver<Event>>>,
    waiting: Arc<Mutex<Waiting>>,
    asked: Arc<Notify>,
}

/// A Runtime API for one function; ends when dropped.
pub struct RuntimeApi {
    /// What `AWS_LAMBDA_RUNTIME_API` is to be.
    pub address: String,
    shared: Shared,
    events: mpsc::UnboundedSender<Event>,
    serving: JoinHandle<()>,
}

impl Drop for RuntimeApi {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl RuntimeApi {
    /// Starts it on a free port of the loopback.
    ///
    /// # Errors
    ///
    /// There is none.
    pub async fn start() -> Result<Self> {
        let (events, queue) = mpsc::unbounded_channel();
        let shared = Shared { events: Arc::new(tokio::sync::Mutex::new(queue)), waiting: Arc::default(), asked: Arc::default() };
        let router = Router::new()
            .route("/2018-06-01/runtime/invocation/next", get(next))
            .route("/2018-06-01/runtime/invocation/{id}/response", post(respond))
            .route("/2018-06-01/runtime/invocation/{id}/error", post(fail))
            .route("/2018-06-01/runtime/init/error", post(async || StatusCode::ACCEPTED))
            .with_state(shared.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let serving = tokio::spawn(async move {
            // Ends by being aborted.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { address, shared, events, serving })
    }

    /// Waits until the function asks for its first event; gives when it did: the end of its init phase.
    pub async fn ready(&self) -> Instant {
        loop {
            let asked = self.shared.asked.notified();
            if let Some(at) = self.shared.lock().first_next {
                return at;
            }
            asked.await;
        }
    }

    /// Hands an event to the function and waits for what it makes of it, until Lambda would end it.
    ///
    /// # Errors
    ///
    /// There is no answer within the limit, or the function reports an error.
    pub async fn invoke(&self, event: &str, limit: Duration) -> Result<Invocation> {
        let (done, answered) = oneshot::channel();
        let now = now_millis();
        let request_id = format!("00000000-0000-4000-8000-{:012x}", now_nanos() & 0xffff_ffff_ffff);
        let event =
            Event { request_id: request_id.clone(), deadline_millis: now + limit.as_millis(), body: event.to_owned(), done };
        self.events.send(event).context("the Runtime API has ended")?;
        let (at, outcome) = tokio::time::timeout(limit, answered).await.context("no answer before the deadline")??;
        let began = self.shared.lock().handed_over.remove(&request_id).context("answered before it was asked")?;
        match outcome {
            Ok(body) => Ok(Invocation { request_id, answer: serde_json::from_slice(&body)?, took: at - began }),
            Err(error) => bail!("the function reports an error: {error}"),
        }
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn next(State(shared): State<Shared>) -> Response<Body> {
    shared.lock().first_next.get_or_insert_with(Instant::now);
    shared.asked.notify_waiters();
    let Some(event) = shared.events.lock().await.recv().await else {
        return status(StatusCode::GONE);
    };
    let mut waiting = shared.lock();
    waiting.handed_over.insert(event.request_id.clone(), Instant::now());
    waiting.answers.insert(event.request_id.clone(), event.done);
    drop(waiting);
    Response::builder()
        .header("content-type", "application/json")
        .header("lambda-runtime-aws-request-id", &event.request_id)
        .header("lambda-runtime-deadline-ms", event.deadline_millis.to_string())
        .header("lambda-runtime-invoked-function-arn", "arn:aws:lambda:us-east-1:123456789012:function:local")
        .header("lambda-runtime-trace-id", "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=0")
        .body(Body::from(event.body))
        .unwrap_or_else(|_| status(StatusCode::INTERNAL_SERVER_ERROR))
}

async fn respond(State(shared): State<Shared>, Path(id): Path<String>, body: Bytes) -> StatusCode {
    settle(&shared, &id, Ok(body))
}

async fn fail(State(shared): State<Shared>, Path(id): Path<String>, body: Bytes) -> StatusCode {
    settle(&shared, &id, Err(String::from_utf8_lossy(&body).into_owned()))
}

fn settle(shared: &Shared, id: &str, outcome: Outcome) -> StatusCode {
    let at = Instant::now();
    let Some(done) = shared.lock().answers.remove(id) else { return StatusCode::BAD_REQUEST };
    // Nobody waits any more for an answer that comes after the deadline.
    let _ = done.send((at, outcome));
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
