//! An HTTP client below the SDK's retries that follows a script: what the engine can't show.

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use tokio::sync::oneshot;

/// One answer to hand out instead of the engine's.
#[derive(Debug)]
struct Fault {
    operation: &'static str,
    status: u16,
    body: String,
    /// Whether the engine does what was asked first, and only its answer is lost.
    after: bool,
    /// Whether there is no answer at all.
    timed_out: bool,
}

/// Faults to come, and requests that were seen.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    script: Arc<Mutex<VecDeque<Fault>>>,
    one: Arc<Mutex<Option<OneCall>>>,
    seen: Arc<Mutex<Vec<(String, Value)>>>,
    holds: Arc<Mutex<Vec<Hold>>>,
    index: Arc<Mutex<Option<HashMap<char, Value>>>>,
    history: Arc<Mutex<Option<Vec<Value>>>>,
}

/// A request that is to wait.
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
    /// Waits until the request has been sent.
    pub async fn arrived(&mut self) {
        (&mut self.arrived).await.unwrap();
    }

    /// Lets it go on to the engine.
    pub fn release(self) {
        // A request that nobody waits for any more is gone.
        let _ = self.release.send(());
    }
}

impl Faults {
    /// Holds the next request of this operation until it is released.
    pub fn hold(&self, operation: &'static str) -> Held {
        let (sent, arrived) = oneshot::channel();
        let (release, released) = oneshot::channel();
        self.holds.lock().unwrap().push(Hold { operation, arrived: sent, released });
        Held { arrived, release }
    }

    /// Forgets what was to be held and did not come.
    pub fn hold_nothing(&self) {
        self.holds.lock().unwrap().clear();
    }

    /// From now on the index `list_index` answers with these items, by the first letter of their key, as one that
    /// lags behind would; `None`: with what it has.
    pub fn freeze_index(&self, items: Option<HashMap<char, Value>>) {
        *self.index.lock().unwrap() = items;
    }

    /// From now on the index `history` answers from these items, as one that lags behind would; `None`: with what
    /// it has.
    pub fn freeze_history(&self, items: Option<Vec<Value>>) {
        *self.history.lock().unwrap() = items;
    }

    fn frozen(&self, operation: &str, request: &Value) -> Option<HttpResponse> {
        if operation == "Query" && request["IndexName"] == "history" {
            return self.frozen_history(request);
        }
        let index = self.index.lock().unwrap();
        let frozen = index.as_ref().filter(|_| operation == "Query" && request["IndexName"] == "list_index")?;
        let letter = request["ExpressionAttributeValues"][":from"]["S"].as_str()?.chars().next()?;
        let items = frozen.get(&letter).cloned().unwrap_or(json!([]));
        Some(reply(200, json!({"Items": items, "Count": items.as_array()?.len()}).to_string()))
    }

    fn frozen_history(&self, request: &Value) -> Option<HttpResponse> {
        let index = self.history.lock().unwrap();
        let bound = |name: &str| request["ExpressionAttributeValues"][name]["S"].as_str().unwrap();
        let within = |item: &&Value| (bound(":from")..=bound(":to")).contains(&item["HS"]["S"].as_str().unwrap());
        let mut items: Vec<&Value> = index.as_ref()?.iter().filter(within).collect();
        assert_eq!(request["ScanIndexForward"], false);
        items.sort_by_key(|item| std::cmp::Reverse(item["HS"]["S"].as_str().unwrap()));
        items.truncate(request["Limit"].as_u64().map_or(usize::MAX, |limit| limit as usize));
        Some(reply(200, json!({"Items": items, "Count": items.len()}).to_string()))
    }

    pub fn plan(&self, operation: &'static str, times: usize, status: u16, body: &Value, after: bool) {
        let fault = || Fault { operation, status, body: body.to_string(), after, timed_out: false };
        self.script.lock().unwrap().extend(std::iter::repeat_with(fault).take(times));
    }

    pub fn throttle(&self, operation: &'static str, times: usize) {
        let body = json!({"__type": "com.amazonaws.dynamodb.v20120810#ThrottlingException", "message": "slow down"});
        self.plan(operation, times, 400, &body, false);
    }

    pub fn conflict(&self, times: usize) {
        self.plan("TransactWriteItems", times, 400, &conflict(), false);
    }

    pub fn lose_answer(&self, operation: &'static str) {
        let body = json!({"__type": "com.amazonaws.dynamodb.v20120810#InternalServerError", "message": "lost"});
        self.plan(operation, 1, 500, &body, true);
    }

    /// Makes the call number `place` from now on fail, whichever it is, with all the SDK's tries of it; those
    /// `timed out after` take effect first.
    pub fn fail_call(&self, place: usize, kind: &'static str) {
        *self.one.lock().unwrap() = Some(OneCall { to_come: place, kind, failed: None });
    }

    /// Lets every call through again; tells whether there was one to fail.
    pub fn heal(&self) -> bool {
        self.one.lock().unwrap().take().is_some_and(|one| one.failed.is_some())
    }

    /// The fault of the one call that is to fail, if this is it.
    fn due(&self, operation: &str, request: &HttpRequest) -> Option<Fault> {
        let mut slot = self.one.lock().unwrap();
        let one = slot.as_mut()?;
        // The SDK's tries of one call carry the same invocation id.
        let call = request.headers().get("amz-sdk-invocation-id").unwrap_or_default().to_owned();
        let is_again = one.failed.as_ref() == Some(&call);
        if !is_again && (one.failed.is_some() || one.to_come > 0) {
            one.to_come = one.to_come.saturating_sub(1);
            return None;
        }
        one.failed = Some(call);
        let after = one.kind == "timed out after";
        let timed_out = after || one.kind == "timed out before";
        let throttled = json!({"__type": "com.amazonaws.dynamodb.v20120810#ThrottlingException", "message": "injected"});
        let body = if one.kind == "conflict" && operation == "TransactWriteItems" { conflict() } else { throttled };
        Some(Fault { operation: "", status: 400, body: body.to_string(), after, timed_out })
    }

    pub fn left(&self) -> usize {
        self.script.lock().unwrap().len()
    }

    pub fn take_seen(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut *self.seen.lock().unwrap())
    }
}

/// The one call that is to fail.
#[derive(Debug)]
struct OneCall {
    to_come: usize,
    kind: &'static str,
    /// The call that failed, by the SDK's id for it.
    failed: Option<String>,
}

/// A cancelled transaction's body that the SDK reads as a conflict.
fn conflict() -> Value {
    json!({
        "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException", "Message": "cancelled",
        "CancellationReasons": [{"Code": "TransactionConflict"}, {"Code": "None"}]
    })
}

/// An HTTP client that follows a script of faults.
#[derive(Debug, Clone)]
pub struct Faulty {
    inner: SharedHttpClient,
    faults: Faults,
}

impl Faulty {
    pub fn new(inner: SharedHttpClient, faults: Faults) -> Self {
        Self { inner, faults }
    }
}

#[derive(Debug)]
struct Connector {
    inner: SharedHttpConnector,
    faults: Faults,
}

impl HttpClient for Faulty {
    fn http_connector(&self, settings: &HttpConnectorSettings, components: &RuntimeComponents) -> SharedHttpConnector {
        let inner = self.inner.http_connector(settings, components);
        SharedHttpConnector::new(Connector { inner, faults: self.faults.clone() })
    }
}

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let target = request.headers().get("x-amz-target").and_then(|target| target.split('.').nth(1));
        let operation = target.unwrap_or_default().to_owned();
        let body = request.body().bytes().and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap_or_default();
        let frozen = self.faults.frozen(&operation, &body);
        self.faults.seen.lock().unwrap().push((operation.clone(), body));
        if let Some(frozen) = frozen {
            return HttpConnectorFuture::ready(Ok(frozen));
        }
        let mut holds = self.faults.holds.lock().unwrap();
        let held = holds.iter().position(|hold| hold.operation == operation).map(|place| holds.remove(place));
        drop(holds);
        if let Some(hold) = held {
            let inner = self.inner.clone();
            return HttpConnectorFuture::new(async move {
                let _ = hold.arrived.send(());
                let _ = hold.released.await;
                inner.call(request).await
            });
        }
        let mut script = self.faults.script.lock().unwrap();
        let due = script.front().is_some_and(|fault| fault.operation == operation);
        let fault = if due { script.pop_front() } else { self.faults.due(&operation, &request) };
        drop(script);
        let Some(fault) = fault else { return self.inner.call(request) };
        let answer =
            if fault.timed_out { Err(ConnectorError::timeout("injected".into())) } else { Ok(reply(fault.status, fault.body)) };
        if !fault.after {
            return HttpConnectorFuture::ready(answer);
        }
        let done = self.inner.call(request);
        HttpConnectorFuture::new(async move {
            done.await?;
            answer
        })
    }
}

fn reply(status: u16, body: String) -> HttpResponse {
    let mut reply = HttpResponse::new(status.try_into().unwrap(), SdkBody::from(body));
    reply.headers_mut().insert("content-type", "application/x-amz-json-1.0");
    reply
}
