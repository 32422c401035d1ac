//! Faults that a test plans, one by one: calls to any table that fail, wait, see an old index or see only a part of a transaction.
#![expect(clippy::unwrap_used, reason = "only tests plan faults")]

mod frozen;
mod index_capacity;
mod throttled;
mod torn;

use super::capacity_limit::read;
use crate::in_process::table_call;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use frozen::FrozenIndexes;
use index_capacity::IndexCapacity;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use throttled::ThrottledPartitions;
use tokio::sync::oneshot;
use torn::TornItems;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallFailure {
    Throttled,
    /// A transaction meets another one; other calls are throttled.
    Conflict,
    /// No response comes, and the call had no effect.
    TimedOutBefore,
    /// No response comes, and the call took effect.
    TimedOutAfter,
}

impl CallFailure {
    pub const ALL: [Self; 4] = [Self::Throttled, Self::Conflict, Self::TimedOutBefore, Self::TimedOutAfter];
}

#[derive(Debug)]
struct Fault {
    operation: &'static str,
    status: u16,
    body: String,
    /// The engine executes the request first, and only its response is lost.
    after: bool,
    timed_out: bool,
}

/// A call that is to fail, by its place among all calls.
#[derive(Debug)]
struct FailingCall {
    to_come: usize,
    failure: CallFailure,
    /// The call that failed, by the SDK's id for it.
    failed: Option<String>,
}

#[derive(Debug)]
struct Hold {
    operation: &'static str,
    arrived: oneshot::Sender<()>,
    released: oneshot::Receiver<()>,
}

/// A request that waits on its way to the engine.
#[derive(Debug)]
pub struct Held {
    arrived: oneshot::Receiver<()>,
    release: oneshot::Sender<()>,
}

impl Held {
    pub async fn arrived(&mut self) {
        (&mut self.arrived).await.unwrap();
    }

    /// Lets the request go on to the engine.
    pub fn release(self) {
        // The sender may have given up waiting.
        let _ = self.release.send(());
    }
}

/// Faults that are planned, and the requests that were sent.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    planned: Arc<Mutex<VecDeque<Fault>>>,
    failing: Arc<Mutex<Option<FailingCall>>>,
    requests: Arc<Mutex<Vec<(String, Value)>>>,
    holds: Arc<Mutex<Vec<Hold>>>,
    frozen: FrozenIndexes,
    throttled: ThrottledPartitions,
    torn: TornItems,
    index_capacity: IndexCapacity,
}

impl Faults {
    /// Holds the next request of this operation until it is released.
    pub fn hold(&self, operation: &'static str) -> Held {
        let (sent, arrived) = oneshot::channel();
        let (release, released) = oneshot::channel();
        self.holds.lock().unwrap().push(Hold { operation, arrived: sent, released });
        Held { arrived, release }
    }

    /// Executes `other` while the first call of this operation, which `request` makes, is on its way to the table.
    pub async fn overtake<A, B>(
        &self,
        operation: &'static str,
        request: impl Future<Output = A>,
        other: impl Future<Output = B>,
    ) -> (A, B) {
        let mut held = self.hold(operation);
        let other = async {
            held.arrived().await;
            let done = other.await;
            held.release();
            done
        };
        futures_util::join!(request, other)
    }

    pub fn clear_holds(&self) {
        self.holds.lock().unwrap().clear();
    }

    /// Answers the next requests of `operation` with this response, as many as `times`; with `after`, the engine
    /// executes them first.
    pub fn plan(&self, operation: &'static str, times: usize, status: u16, body: &Value, after: bool) {
        let fault = || Fault { operation, status, body: body.to_string(), after, timed_out: false };
        self.planned.lock().unwrap().extend(std::iter::repeat_with(fault).take(times));
    }

    pub fn throttle(&self, operation: &'static str, times: usize) {
        let body = json!({"__type": "com.amazonaws.dynamodb.v20120810#ThrottlingException", "message": "slow down"});
        self.plan(operation, times, 400, &body, false);
    }

    /// Lets the next transactions meet a conflict.
    pub fn conflict(&self, times: usize) {
        self.plan("TransactWriteItems", times, 400, &conflict(), false);
    }

    /// Executes the next request of `operation` and loses its response.
    pub fn lose_response(&self, operation: &'static str) {
        let body = json!({"__type": "com.amazonaws.dynamodb.v20120810#InternalServerError", "message": "lost"});
        self.plan(operation, 1, 500, &body, true);
    }

    /// The faults that have not happened yet.
    pub fn planned(&self) -> usize {
        self.planned.lock().unwrap().len()
    }

    /// Makes one call fail with all the SDK's attempts at it: the first from now on for 0, the second for 1, and so on.
    pub fn fail_call(&self, place: usize, failure: CallFailure) {
        *self.failing.lock().unwrap() = Some(FailingCall { to_come: place, failure, failed: None });
    }

    /// Lets every call through again. Returns whether one has failed since [`Faults::fail_call`].
    pub fn stop_failing(&self) -> bool {
        self.failing.lock().unwrap().take().is_some_and(|call| call.failed.is_some())
    }

    /// Operations and bodies since the last call.
    pub fn take_requests(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut *self.requests.lock().unwrap())
    }

    fn next(&self, operation: &str, request: &HttpRequest) -> Option<Fault> {
        let mut planned = self.planned.lock().unwrap();
        if planned.front().is_some_and(|fault| fault.operation == operation) {
            return planned.pop_front();
        }
        drop(planned);
        self.failing_call(operation, request)
    }

    /// For an attempt at the one call that is to fail.
    fn failing_call(&self, operation: &str, request: &HttpRequest) -> Option<Fault> {
        let mut slot = self.failing.lock().unwrap();
        let failing = slot.as_mut()?;
        // The SDK's attempts at one call carry the same invocation id.
        let call = request.headers().get("amz-sdk-invocation-id").unwrap_or_default().to_owned();
        let is_retry = failing.failed.as_ref() == Some(&call);
        if !is_retry && (failing.failed.is_some() || failing.to_come > 0) {
            failing.to_come = failing.to_come.saturating_sub(1);
            return None;
        }
        failing.failed = Some(call);
        let after = failing.failure == CallFailure::TimedOutAfter;
        let timed_out = after || failing.failure == CallFailure::TimedOutBefore;
        let throttled = json!({"__type": "com.amazonaws.dynamodb.v20120810#ThrottlingException", "message": "injected"});
        let is_conflict = failing.failure == CallFailure::Conflict && operation == "TransactWriteItems";
        let body = if is_conflict { conflict() } else { throttled };
        Some(Fault { operation: "", status: 400, body: body.to_string(), after, timed_out })
    }
}

/// The body of a cancelled transaction that the SDK reads as a conflict.
fn conflict() -> Value {
    json!({
        "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException", "Message": "cancelled",
        "CancellationReasons": [{"Code": "TransactionConflict"}, {"Code": "None"}]
    })
}

/// An HTTP client that follows a plan of faults.
#[derive(Debug, Clone)]
pub struct FaultyClient {
    inner: SharedHttpClient,
    faults: Faults,
}

impl FaultyClient {
    /// `inner` sends the requests that are not to fail.
    #[must_use]
    pub fn new(inner: SharedHttpClient, faults: Faults) -> Self {
        Self { inner, faults }
    }
}

impl HttpClient for FaultyClient {
    fn http_connector(&self, settings: &HttpConnectorSettings, components: &RuntimeComponents) -> SharedHttpConnector {
        let inner = self.inner.http_connector(settings, components);
        SharedHttpConnector::new(FaultyConnector { inner, faults: self.faults.clone() })
    }
}

#[derive(Debug)]
struct FaultyConnector {
    inner: SharedHttpConnector,
    faults: Faults,
}

impl HttpConnector for FaultyConnector {
    fn call(&self, mut request: HttpRequest) -> HttpConnectorFuture {
        let (operation, body) = table_call(&request);
        let frozen = self.faults.frozen.response(&operation, &body);
        let instead = frozen.or_else(|| self.faults.throttled.response(&operation, &body));
        let instead = instead.or_else(|| self.faults.index_capacity.limit(&body, &mut request));
        self.faults.requests.lock().unwrap().push((operation.clone(), body));
        if let Some(instead) = instead {
            return HttpConnectorFuture::ready(Ok(instead));
        }
        let mut holds = self.faults.holds.lock().unwrap();
        let hold = holds.iter().position(|hold| hold.operation == operation).map(|place| holds.remove(place));
        drop(holds);
        if let Some(hold) = hold {
            let inner = self.inner.clone();
            return HttpConnectorFuture::new(async move {
                let _ = hold.arrived.send(());
                let _ = hold.released.await;
                inner.call(request).await
            });
        }
        let Some(fault) = self.faults.next(&operation, &request) else {
            let whole = self.inner.call(request);
            let torn = self.faults.torn.clone();
            if !torn.concern(&operation) {
                return whole;
            }
            return HttpConnectorFuture::new(async move { Ok(torn.tear(&operation, read(whole.await?).await?)) });
        };
        let outcome = if fault.timed_out {
            Err(ConnectorError::timeout("injected".into()))
        } else {
            Ok(response(fault.status, fault.body))
        };
        if !fault.after {
            return HttpConnectorFuture::ready(outcome);
        }
        let executed = self.inner.call(request);
        HttpConnectorFuture::new(async move {
            executed.await?;
            outcome
        })
    }
}

fn response(status: u16, body: String) -> HttpResponse {
    let mut response = HttpResponse::new(status.try_into().unwrap(), SdkBody::from(body));
    response.headers_mut().insert("content-type", "application/x-amz-json-1.0");
    response
}
