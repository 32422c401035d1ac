//! Faults that a test plans one by one ([`Faults`]): calls to any table that fail or wait, indexes that lag or throttle,
//! partitions that throttle writes, and reads that see only part of a transaction.
#![expect(clippy::unwrap_used, reason = "only tests plan faults")]

use super::capacity_limit::read;
use super::table::write_actions;
use crate::in_process::{operation, table_call};
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
use tokio::time::Instant;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallFailure {
    Throttled,
    /// A conflict for a transaction; other calls are throttled.
    Conflict,
    /// No response arrives, and the call had no effect.
    TimedOutBefore,
    /// No response arrives, but the call took effect.
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
    /// The engine executes the request, and only its response is lost.
    after: bool,
    timed_out: bool,
}

/// A call that will fail, by its position among all calls.
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

/// A request that is waiting on its way to the engine.
#[derive(Debug)]
pub struct Held {
    arrived: oneshot::Receiver<()>,
    release: oneshot::Sender<()>,
}

impl Held {
    pub async fn arrived(&mut self) {
        (&mut self.arrived).await.unwrap();
    }

    /// Lets the request continue to the engine.
    pub fn release(self) {
        // The sender may have given up waiting.
        let _ = self.release.send(());
    }
}

/// Operation and body.
type SentRequest = (String, Vec<u8>);

/// Planned faults, and the requests sent so far.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    planned: Arc<Mutex<VecDeque<Fault>>>,
    failing: Arc<Mutex<Option<FailingCall>>>,
    requests: Arc<Mutex<Vec<SentRequest>>>,
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

    /// Executes `other` while `request` has its first call of this operation on the way to the table.
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

    /// Answers the next `times` requests of `operation` with this response. With `after`, the engine executes them first.
    pub fn plan(&self, operation: &'static str, times: usize, status: u16, body: &Value, after: bool) {
        let fault = || Fault { operation, status, body: body.to_string(), after, timed_out: false };
        self.planned.lock().unwrap().extend(std::iter::repeat_with(fault).take(times));
    }

    pub fn throttle(&self, operation: &'static str, times: usize) {
        let body = json!({"__type": "com.amazonaws.dynamodb.v20120810#ThrottlingException", "message": "slow down"});
        self.plan(operation, times, 400, &body, false);
    }

    /// Makes the next transactions fail with a conflict.
    pub fn conflict(&self, times: usize) {
        self.plan("TransactWriteItems", times, 400, &conflict(), false);
    }

    /// Executes the next request of `operation` and loses its response.
    pub fn lose_response(&self, operation: &'static str) {
        let body = json!({"__type": "com.amazonaws.dynamodb.v20120810#InternalServerError", "message": "lost"});
        self.plan(operation, 1, 500, &body, true);
    }

    /// Number of faults that haven't happened yet.
    pub fn planned(&self) -> usize {
        self.planned.lock().unwrap().len()
    }

    /// Makes one call fail, including all retries by the SDK. `place` 0 is the next call, 1 the one after it, and so on.
    pub fn fail_call(&self, place: usize, failure: CallFailure) {
        *self.failing.lock().unwrap() = Some(FailingCall { to_come: place, failure, failed: None });
    }

    /// Lets every call through again. Returns whether one has failed since [`Faults::fail_call`].
    pub fn stop_failing(&self) -> bool {
        self.failing.lock().unwrap().take().is_some_and(|call| call.failed.is_some())
    }

    /// Operations and bodies since the last call.
    pub fn take_requests(&self) -> Vec<(String, Value)> {
        let requests = std::mem::take(&mut *self.requests.lock().unwrap());
        requests.into_iter().map(|(operation, body)| (operation, serde_json::from_slice(&body).unwrap_or_default())).collect()
    }

    /// Freezes the index `list_index` with these rows, by the first letter of their sort keys; `None` thaws it.
    pub fn freeze_list_index(&self, rows: Option<HashMap<char, Value>>) {
        *self.frozen.list_index.lock().unwrap() = rows;
    }

    /// Freezes the index `history` with these rows; `None` thaws it.
    pub fn freeze_history(&self, rows: Option<Vec<Value>>) {
        *self.frozen.history.lock().unwrap() = rows;
    }

    /// Cuts the pages of the index `list_index` after this many rows.
    pub fn cut_index_pages(&self, rows: usize) {
        self.index_capacity.0.lock().unwrap().rows = Some(rows);
    }

    /// Throttles the index `list_index` after this many pages, and permits `per_second` more each second. `None` stops
    /// throttling.
    pub fn limit_index_pages(&self, pages: Option<usize>, per_second: usize) {
        let mut capacity = self.index_capacity.0.lock().unwrap();
        (capacity.left, capacity.per_second) = (pages.map(|pages| pages as f64), per_second as f64);
        capacity.refilled_at = Some(Instant::now());
    }

    /// Number of pages that the index `list_index` has delivered since the last call.
    pub fn take_index_pages(&self) -> usize {
        std::mem::take(&mut self.index_capacity.0.lock().unwrap().delivered)
    }

    /// Throttles every write to these partitions from now on, as if others used up their write units.
    pub fn throttle_writes_to(&self, partitions: &[String]) {
        *self.throttled.0.lock().unwrap() = (partitions.to_vec(), 0);
    }

    /// Number of throttled writes since [`Faults::throttle_writes_to`].
    pub fn throttled_writes(&self) -> usize {
        self.throttled.0.lock().unwrap().1
    }

    /// Makes the next lists that read a record see an earlier state: with these attributes, or, for `None`, no record.
    pub fn tear_record(&self, times: usize, id: &str, before: Option<Value>) {
        let torn = TornItem { operation: "BatchGetItem", id: id.to_owned(), version: None, before, times };
        self.torn.0.lock().unwrap().push(torn);
    }

    /// Hides the event of this version of a record from the next reads of events that would find it.
    pub fn hide_event(&self, times: usize, id: &str, version: u64) {
        let torn = TornItem { operation: "Query", id: id.to_owned(), version: Some(version), before: None, times };
        self.torn.0.lock().unwrap().push(torn);
    }

    /// Hides the event of this version of a record from the next reads of single events that would find it.
    pub fn hide_entry(&self, times: usize, id: &str, version: u64) {
        let torn = TornItem { operation: "BatchGetItem", id: id.to_owned(), version: Some(version), before: None, times };
        self.torn.0.lock().unwrap().push(torn);
    }

    /// Stops tearing reads. Returns the number of items that were still to be torn.
    pub fn stop_tearing(&self) -> usize {
        std::mem::take(&mut *self.torn.0.lock().unwrap()).len()
    }

    /// The response to a request that the engine doesn't get. Parsing is slow in a debug build, so that only a body that decides
    /// about it is parsed.
    fn instead(&self, operation: &str, request: &mut HttpRequest) -> Option<HttpResponse> {
        if operation == "Query" {
            let (_, body) = table_call(request);
            return self.frozen.response(&body).or_else(|| self.index_capacity.limit(&body, request));
        }
        if self.throttled.0.lock().unwrap().0.is_empty() {
            return None;
        }
        self.throttled.response(operation, &table_call(request).1)
    }

    fn next(&self, operation: &str, request: &HttpRequest) -> Option<Fault> {
        let mut planned = self.planned.lock().unwrap();
        if planned.front().is_some_and(|fault| fault.operation == operation) {
            return planned.pop_front();
        }
        drop(planned);
        self.failing_call(operation, request)
    }

    /// Returns the fault if this is an attempt of the failing call.
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

/// An HTTP client that injects planned faults.
#[derive(Debug, Clone)]
pub struct FaultyClient {
    inner: SharedHttpClient,
    faults: Faults,
}

impl FaultyClient {
    /// `inner` sends the requests that don't fail.
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
        let operation = operation(&request);
        let body = request.body().bytes().unwrap_or_default().to_vec();
        self.faults.requests.lock().unwrap().push((operation.clone(), body));
        if let Some(instead) = self.faults.instead(&operation, &mut request) {
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

#[derive(Debug, Clone, Default)]
struct FrozenIndexes {
    list_index: Arc<Mutex<Option<HashMap<char, Value>>>>,
    history: Arc<Mutex<Option<Vec<Value>>>>,
}

impl FrozenIndexes {
    /// `None` unless the query is of a frozen index.
    fn response(&self, request: &Value) -> Option<HttpResponse> {
        let rows = match request["IndexName"].as_str()? {
            "list_index" => self.list_index_rows(request)?,
            "history" => self.history_rows(request)?,
            _ => return None,
        };
        Some(response(200, json!({"Items": rows, "Count": rows.len()}).to_string()))
    }

    fn list_index_rows(&self, request: &Value) -> Option<Vec<Value>> {
        let frozen = self.list_index.lock().unwrap();
        let letter = |bound: &str| request["ExpressionAttributeValues"][bound]["S"].as_str()?.chars().next();
        let rows = (letter(":from")?..=letter(":to")?).filter_map(|letter| frozen.as_ref()?.get(&letter)?.as_array());
        frozen.as_ref()?;
        Some(rows.flatten().cloned().collect())
    }

    fn history_rows(&self, request: &Value) -> Option<Vec<Value>> {
        let frozen = self.history.lock().unwrap();
        let bound = |name: &str| request["ExpressionAttributeValues"][name]["S"].as_str().unwrap();
        let is_within = |item: &&Value| (bound(":from")..=bound(":to")).contains(&item["HS"]["S"].as_str().unwrap());
        let mut rows: Vec<Value> = frozen.as_ref()?.iter().filter(is_within).cloned().collect();
        assert_eq!(request["ScanIndexForward"], false);
        rows.sort_by_key(|row| std::cmp::Reverse(row["HS"]["S"].as_str().unwrap().to_owned()));
        rows.truncate(request["Limit"].as_u64().map_or(usize::MAX, |limit| limit as usize));
        Some(rows)
    }
}

#[derive(Debug, Default)]
struct Pages {
    rows: Option<usize>,
    /// Pages left before the index throttles.
    left: Option<f64>,
    /// Pages added each second.
    per_second: f64,
    refilled_at: Option<Instant>,
    delivered: usize,
}

#[derive(Debug, Clone, Default)]
struct IndexCapacity(Arc<Mutex<Pages>>);

impl IndexCapacity {
    /// Limits the page of a request, or returns the response to a throttled one.
    fn limit(&self, body: &Value, request: &mut HttpRequest) -> Option<HttpResponse> {
        if body["IndexName"] != "list_index" {
            return None;
        }
        let mut pages = self.0.lock().unwrap();
        let refill = pages.refilled_at.replace(Instant::now()).map_or(0.0, |at| at.elapsed().as_secs_f64() * pages.per_second);
        if let Some(left) = &mut pages.left {
            *left += refill;
            if *left < 1.0 {
                let code = "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException";
                return Some(response(400, json!({"__type": code, "message": "the index is busy"}).to_string()));
            }
            *left -= 1.0;
        }
        pages.delivered += 1;
        if let Some(rows) = pages.rows {
            let mut cut = body.clone();
            cut["Limit"] = rows.into();
            let text = cut.to_string();
            request.headers_mut().insert("content-length", text.len().to_string());
            *request.body_mut() = SdkBody::from(text);
        }
        None
    }
}

/// The partitions whose writes are throttled, and the number of throttled writes.
#[derive(Debug, Clone, Default)]
struct ThrottledPartitions(Arc<Mutex<(Vec<String>, usize)>>);

impl ThrottledPartitions {
    /// Returns the response to a throttled request: one that writes to one of the partitions.
    fn response(&self, operation: &str, request: &Value) -> Option<HttpResponse> {
        let is_write = ["PutItem", "UpdateItem", "TransactWriteItems"].contains(&operation);
        let mut throttled = self.0.lock().unwrap();
        let is_throttled = |partition: &String| throttled.0.contains(partition);
        if !is_write || !write_actions(operation, request).iter().any(|action| is_throttled(&action.key.partition)) {
            return None;
        }
        throttled.1 += 1;
        let code = "com.amazonaws.dynamodb.v20120810#ThrottlingException";
        Some(response(400, json!({"__type": code, "message": "the partition is busy"}).to_string()))
    }
}

/// An earlier state of an item that reads still see.
#[derive(Debug)]
struct TornItem {
    operation: &'static str,
    /// ID of the record, or of the event's record.
    id: String,
    version: Option<u64>,
    /// The attributes that differed; `None` if the item did not exist.
    before: Option<Value>,
    /// Number of reads that will still see this state.
    times: usize,
}

/// Items that reads see in the state before a transaction.
#[derive(Debug, Clone, Default)]
struct TornItems(Arc<Mutex<Vec<TornItem>>>);

impl TornItems {
    fn concern(&self, operation: &str) -> bool {
        self.0.lock().unwrap().iter().any(|torn| torn.operation == operation)
    }

    /// Removes the part of the transaction that is not visible yet.
    fn tear(&self, operation: &str, whole: HttpResponse) -> HttpResponse {
        let status = whole.status().as_u16();
        let mut body: Value = whole.body().bytes().and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap();
        let lists = match operation {
            "Query" => body.get_mut("Items").into_iter().collect::<Vec<_>>(),
            _ => body["Responses"].as_object_mut().map(|tables| tables.values_mut().collect()).unwrap_or_default(),
        };
        for items in lists.into_iter().filter_map(Value::as_array_mut) {
            items.retain_mut(|item| self.is_visible(operation, item));
        }
        if let Some(items) = body["Items"].as_array().map(Vec::len) {
            body["Count"] = items.into();
        }
        response(status, body.to_string())
    }

    /// Restores the item's earlier state. Returns whether it existed.
    fn is_visible(&self, operation: &str, item: &mut Value) -> bool {
        let event: Value = item["entry"]["S"].as_str().and_then(|entry| serde_json::from_str(entry).ok()).unwrap_or_default();
        let is_of = |torn: &TornItem| {
            let is_seen = match torn.version {
                Some(version) => event["entity_id"] == torn.id.as_str() && event["version"] == version,
                None => item["id"]["S"] == torn.id.as_str(),
            };
            torn.operation == operation && is_seen
        };
        let mut torn = self.0.lock().unwrap();
        let Some(at) = torn.iter().position(is_of) else { return true };
        torn[at].times -= 1;
        let before = torn[at].before.clone();
        if torn[at].times == 0 {
            torn.remove(at);
        }
        let Some(Value::Object(before)) = before else { return false };
        item.as_object_mut().unwrap().extend(before);
        true
    }
}
