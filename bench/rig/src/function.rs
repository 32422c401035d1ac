//! Runs a function's binary in the environment that Lambda provides, with its variables and the Runtime API ("Using the Lambda
//! runtime API" in the AWS Lambda developer guide). Also measures the memory and CPU time of a process, on Linux only.

use anyhow::{Context, Result, bail};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{self, State};
use axum::http::{Response, StatusCode};
use axum::routing::{get, post};
use serde_json::Value;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

/// Lambda's limit for the init phase, which ends when the function requests its first event.
const INIT_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns the variables that Lambda sets, and the variable that template.yaml sets for all functions.
#[must_use]
pub const fn lambda_variables() -> [(&'static str, &'static str); 9] {
    [
        ("AWS_LAMBDA_FUNCTION_NAME", "local"),
        ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256"),
        ("AWS_LAMBDA_LOG_FORMAT", "JSON"),
        ("AWS_LAMBDA_HTTP_IGNORE_STAGE_IN_PATH", "true"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "local"),
        ("AWS_SECRET_ACCESS_KEY", "local"),
        ("AWS_SESSION_TOKEN", "local"),
    ]
}

/// A running function. Dropping it kills the process.
pub struct Function {
    /// The Runtime API from which the function receives its events.
    pub runtime_api: RuntimeApi,
    /// Time from the start of the process to its first request for an event.
    pub init: Duration,
    child: Child,
    pid: u32,
    stdout: tempfile::NamedTempFile,
}

/// Returns `FUNCTIONS_DIR`, or by default `target/functions`, where `.ci/functions/build` creates links to the functions.
#[must_use]
pub fn binaries_dir() -> PathBuf {
    let built = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/functions");
    std::env::var_os("FUNCTIONS_DIR").map_or_else(built, PathBuf::from)
}

impl Function {
    /// Starts a binary, with `variables` added to Lambda's variables, and waits for the end of its init phase.
    ///
    /// # Errors
    ///
    /// Returns an error if the binary is missing, exits, or requests no event within Lambda's limit.
    pub async fn start<N: AsRef<OsStr>, V: AsRef<OsStr>>(
        binary: &Path,
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self> {
        let runtime_api = RuntimeApi::start().await?;
        let stdout = tempfile::NamedTempFile::new()?;
        let mut command = Command::new(binary);
        command
            .env_clear()
            .env("AWS_LAMBDA_RUNTIME_API", &runtime_api.address)
            .envs(lambda_variables())
            .envs(variables)
            .stdin(Stdio::null())
            .stdout(stdout.reopen()?)
            .stderr(Stdio::null())
            .kill_on_drop(true);
        let start = Instant::now();
        let mut child = command.spawn().with_context(|| format!("can't start {}; build it first", binary.display()))?;
        let pid = child.id().context("the process has already exited")?;
        let ready = tokio::select! {
            ready = tokio::time::timeout(INIT_TIMEOUT, runtime_api.ready()) => ready.context("the function requests no event")?,
            exited = child.wait() => {
                bail!("{} exited with {}: {}", binary.display(), exited?, std::fs::read_to_string(stdout.path())?)
            }
        };
        Ok(Self { runtime_api, init: ready - start, child, pid, stdout })
    }

    /// Returns the function's log, as one JSON object per line.
    ///
    /// # Errors
    ///
    /// Returns an error if a line is not JSON.
    pub fn log(&self) -> Result<Vec<Value>> {
        let text = std::fs::read_to_string(self.stdout.path())?;
        text.lines().map(|line| serde_json::from_str(line).with_context(|| format!("not JSON: {line}"))).collect()
    }

    /// Returns the CPU time of all threads so far.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel doesn't report it.
    pub fn cpu_time(&self) -> Result<Duration> {
        cpu_time(self.pid)
    }

    /// # Errors
    ///
    /// Returns an error if the kernel doesn't report it.
    pub fn peak_memory_bytes(&self) -> Result<u64> {
        Ok(memory_kilobytes(self.pid, "VmHWM")? * 1024)
    }

    /// Sends SIGTERM and waits for the process to exit.
    ///
    /// # Errors
    ///
    /// Returns an error if the process doesn't exit within two seconds, the time that Lambda allows.
    pub async fn terminate(mut self) -> Result<()> {
        let sent = Command::new("kill").arg("-TERM").arg(self.pid.to_string()).status().await?;
        if !sent.success() {
            bail!("the process has already exited");
        }
        tokio::time::timeout(Duration::from_secs(2), self.child.wait()).await.context("the process ignores SIGTERM")??;
        Ok(())
    }

    /// Kills the process, as Lambda does with an idle function, and waits until it has exited.
    ///
    /// # Errors
    ///
    /// Returns an error if the process has already exited.
    pub async fn kill(mut self) -> Result<()> {
        Ok(self.child.kill().await?)
    }

    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

/// Returns the memory of a process in KB: with `figure` `VmRSS`, the current use; with `VmHWM`, the peak. `process` is a process
/// ID or `self`.
///
/// # Errors
///
/// Returns an error if the kernel doesn't report it.
pub fn memory_kilobytes(process: impl Display, figure: &str) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let value = status.lines().find_map(|line| line.strip_prefix(figure)?.strip_prefix(':'));
    let value = value.with_context(|| format!("no {figure} in the process status"))?;
    Ok(value.trim().trim_end_matches(" kB").parse()?)
}

/// Returns the CPU time of all threads so far.
///
/// # Errors
///
/// Returns an error if the kernel doesn't report it.
pub fn cpu_time(process: impl Display) -> Result<Duration> {
    let mut nanos = 0;
    for thread in std::fs::read_dir(format!("/proc/{process}/task"))? {
        let text = std::fs::read_to_string(thread?.path().join("schedstat"))?;
        nanos += text.split(' ').next().and_then(|number| number.parse::<u64>().ok()).context("can't parse schedstat")?;
    }
    Ok(Duration::from_nanos(nanos))
}

#[derive(Debug)]
pub struct Invocation {
    pub request_id: String,
    /// The response in API Gateway's format: `statusCode`, `headers`, `body`.
    pub response: Value,
    /// Time from sending the event to receiving the response.
    pub duration: Duration,
}

struct Event {
    request_id: String,
    deadline_millis: u128,
    body: String,
    outcome: oneshot::Sender<(Duration, Outcome)>,
}

/// The response body, or the error that the function reported.
type Outcome = Result<Bytes, String>;

/// By request ID: the time when the event was sent, and the channel for the response.
type Pending = HashMap<String, (Instant, oneshot::Sender<(Duration, Outcome)>)>;

#[derive(Clone)]
struct Shared {
    events: Arc<tokio::sync::Mutex<mpsc::UnboundedReceiver<Event>>>,
    pending: Arc<Mutex<Pending>>,
    /// Time of the function's first request for an event.
    first_request: watch::Sender<Option<Instant>>,
}

/// A running Runtime API for one function. Stops when dropped.
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
    /// Returns an error if no port is free.
    pub async fn start() -> Result<Self> {
        let (events, queue) = mpsc::unbounded_channel();
        let first_request = watch::channel(None).0;
        let shared = Shared { events: Arc::new(tokio::sync::Mutex::new(queue)), pending: Arc::default(), first_request };
        let router = Router::new()
            .route("/2018-06-01/runtime/invocation/next", get(next_event))
            .route("/2018-06-01/runtime/invocation/{id}/response", post(receive_response))
            .route("/2018-06-01/runtime/invocation/{id}/error", post(receive_error))
            .route("/2018-06-01/runtime/init/error", post(async || StatusCode::ACCEPTED))
            .with_state(shared.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let task = tokio::spawn(async move {
            // Runs until the task is aborted.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { address, shared, events, task })
    }

    /// Waits until the function requests its first event, which ends its init phase.
    pub async fn ready(&self) -> Instant {
        let mut first = self.shared.first_request.subscribe();
        let requested = first.wait_for(Option::is_some).await.ok().and_then(|first| *first);
        // The sender is never dropped before `self`.
        requested.unwrap_or_else(Instant::now)
    }

    /// Sends an event to the function, and waits for the response. `timeout` is the function's timeout.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no response in time, or if the function reports an error.
    pub async fn invoke(&self, event: &str, timeout: Duration) -> Result<Invocation> {
        let (outcome, received) = oneshot::channel();
        let now = now_millis();
        let request_id = format!("00000000-0000-4000-8000-{:012x}", now_nanos() & 0xffff_ffff_ffff);
        let event =
            Event { request_id: request_id.clone(), deadline_millis: now + timeout.as_millis(), body: event.to_owned(), outcome };
        self.events.send(event).context("the Runtime API has ended")?;
        let (duration, outcome) = tokio::time::timeout(timeout, received).await.context("no response before the deadline")??;
        match outcome {
            Ok(body) => Ok(Invocation { request_id, response: serde_json::from_slice(&body)?, duration }),
            Err(error) => bail!("the function reported an error: {error}"),
        }
    }
}

impl Shared {
    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn next_event(State(shared): State<Shared>) -> Response<Body> {
    shared.first_request.send_if_modified(|first| first.is_none() && first.replace(Instant::now()).is_none());
    let Some(event) = shared.events.lock().await.recv().await else {
        return status(StatusCode::GONE);
    };
    shared.pending().insert(event.request_id.clone(), (Instant::now(), event.outcome));
    Response::builder()
        .header("content-type", "application/json")
        .header("lambda-runtime-aws-request-id", &event.request_id)
        .header("lambda-runtime-deadline-ms", event.deadline_millis.to_string())
        .header("lambda-runtime-invoked-function-arn", "arn:aws:lambda:us-east-1:123456789012:function:local")
        .header("lambda-runtime-trace-id", "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=0")
        .body(Body::from(event.body))
        .unwrap_or_else(|_| status(StatusCode::INTERNAL_SERVER_ERROR))
}

async fn receive_response(State(shared): State<Shared>, extract::Path(id): extract::Path<String>, body: Bytes) -> StatusCode {
    complete(&shared, &id, Ok(body))
}

async fn receive_error(State(shared): State<Shared>, extract::Path(id): extract::Path<String>, body: Bytes) -> StatusCode {
    complete(&shared, &id, Err(String::from_utf8_lossy(&body).into_owned()))
}

fn complete(shared: &Shared, id: &str, outcome: Outcome) -> StatusCode {
    let at = Instant::now();
    let Some((sent_at, sender)) = shared.pending().remove(id) else { return StatusCode::BAD_REQUEST };
    // Fails if the deadline has passed and the receiver is gone.
    let _ = sender.send((at - sent_at, outcome));
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
