//! Faults that a test plans individually ([`Faults`]): calls to any table that fail or wait, indexes that lag or throttle,
//! partitions that throttle writes, and reads that see only part of a transaction.
#![expect(clippy::unwrap_used, reason = "only tests plan faults")]

use super::capacity_limit::read;
use super::table::{WriteAction, write_actions};
use crate::in_process::{http_response, operation, table_call};
use crate::table::TableResponse;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
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
    response: TableResponse,
    /// The engine executes the request, and only its response is lost.
    after: bool,
    timed_out: bool,
}

/// A call that will fail, by its position among all calls.
#[derive(Debug)]
struct FailingCall {
    to_come: usize,
    failure: CallFailure,
    /// The SDK's invocation ID of the call that failed.
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

    pub fn release(self) {
        // The sender may have given up waiting.
        let _ = self.release.send(());
    }
}

/// Planned faults, and the requests sent so far.
#[derive(Debug, Clone, Default)]
pub struct Faults(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    planned: VecDeque<Fault>,
    failing: Option<FailingCall>,
    /// Operations and bodies.
    requests: Vec<(String, Vec<u8>)>,
    holds: Vec<Hold>,
    /// Rows of the index `list_index` while it is frozen, by the first letter of their sort keys.
    list_index: Option<HashMap<char, Value>>,
    /// Rows of the index `history` while it is frozen.
    history: Option<Vec<Value>>,
    pages: Pages,
    throttled: Vec<String>,
    throttled_writes: usize,
    /// Items that reads see in the state before a transaction.
    torn: Vec<TornItem>,
}

impl Faults {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Holds the next request of this operation until it is released.
    pub fn hold(&self, operation: &'static str) -> Held {
        let (sent, arrived) = oneshot::channel();
        let (release, released) = oneshot::channel();
        self.state().holds.push(Hold { operation, arrived: sent, released });
        Held { arrived, release }
    }

    /// Executes `other` while the first call of this operation in `request` is on its way to the table.
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
        self.state().holds.clear();
    }

    /// Answers the next `times` requests of `operation` with this response. With `after`, the engine executes the requests first.
    pub fn plan(&self, operation: &'static str, times: usize, status: u16, body: &Value, after: bool) {
        self.plan_response(operation, times, &TableResponse { status, body: body.clone() }, after);
    }

    fn plan_response(&self, operation: &'static str, times: usize, response: &TableResponse, after: bool) {
        let fault = || Fault { operation, response: response.clone(), after, timed_out: false };
        self.state().planned.extend(std::iter::repeat_with(fault).take(times));
    }

    pub fn throttle(&self, operation: &'static str, times: usize) {
        self.plan_response(operation, times, &TableResponse::error(400, "ThrottlingException", "slow down"), false);
    }

    pub fn conflict(&self, times: usize) {
        self.plan_response("TransactWriteItems", times, &conflict(), false);
    }

    /// Executes the next request of `operation` and loses its response.
    pub fn lose_response(&self, operation: &'static str) {
        self.plan_response(operation, 1, &TableResponse::error(500, "InternalServerError", "lost"), true);
    }

    pub fn planned(&self) -> usize {
        self.state().planned.len()
    }

    /// Makes one call fail, including all retries by the SDK. `place` is the number of calls before it: 0 for the next call.
    pub fn fail_call(&self, place: usize, failure: CallFailure) {
        self.state().failing = Some(FailingCall { to_come: place, failure, failed: None });
    }

    /// Lets every call through again. Returns whether one has failed since [`Faults::fail_call`].
    pub fn stop_failing(&self) -> bool {
        self.state().failing.take().is_some_and(|call| call.failed.is_some())
    }

    /// Returns the operations and bodies of requests since the last call of this function.
    pub fn take_requests(&self) -> Vec<(String, Value)> {
        let requests = std::mem::take(&mut self.state().requests);
        requests.into_iter().map(|(operation, body)| (operation, serde_json::from_slice(&body).unwrap_or_default())).collect()
    }

    /// Freezes the index `list_index` with these rows, grouped by the first letter of their sort keys; `None` unfreezes the
    /// index.
    pub fn freeze_list_index(&self, rows: Option<HashMap<char, Value>>) {
        self.state().list_index = rows;
    }

    /// Freezes the index `history` with these rows; `None` unfreezes the index.
    pub fn freeze_history(&self, rows: Option<Vec<Value>>) {
        self.state().history = rows;
    }

    /// Cuts the pages of the index `list_index` after this many rows.
    pub fn cut_index_pages(&self, rows: usize) {
        self.state().pages.rows = Some(rows);
    }

    /// Throttles the index `list_index` after this many pages, and permits `per_second` more pages each second. `None` stops
    /// throttling.
    pub fn limit_index_pages(&self, pages: Option<usize>, per_second: usize) {
        let capacity = &mut self.state().pages;
        (capacity.left, capacity.per_second) = (pages.map(|pages| pages as f64), per_second as f64);
        capacity.refilled_at = Some(Instant::now());
    }

    /// Returns the number of pages that the index `list_index` has delivered since the last call.
    pub fn take_index_pages(&self) -> usize {
        std::mem::take(&mut self.state().pages.delivered)
    }

    /// Throttles every write to these partitions from now on, as if others used up their write units.
    pub fn throttle_writes_to(&self, partitions: &[String]) {
        let mut state = self.state();
        (state.throttled, state.throttled_writes) = (partitions.to_vec(), 0);
    }

    pub fn throttled_writes(&self) -> usize {
        self.state().throttled_writes
    }

    /// Makes the next `times` batches that read the record `id` return its earlier state `before`; no record if it is `None`.
    pub fn tear_record(&self, times: usize, id: &str, before: Option<Value>) {
        self.tear("BatchGetItem", times, id, None, before);
    }

    /// Hides the event of `version` of the record `id` from the next `times` reads of events that would find it.
    pub fn hide_event(&self, times: usize, id: &str, version: u64) {
        self.tear("Query", times, id, Some(version), None);
    }

    /// Hides the event of `version` of the record `id` from the next `times` reads of single events that would find it.
    pub fn hide_entry(&self, times: usize, id: &str, version: u64) {
        self.tear("BatchGetItem", times, id, Some(version), None);
    }

    fn tear(&self, operation: &'static str, times: usize, id: &str, version: Option<u64>, before: Option<Value>) {
        self.state().torn.push(TornItem { operation, id: id.to_owned(), version, before, times });
    }

    /// Stops tearing reads. Returns the number of items for which torn reads remained.
    pub fn stop_tearing(&self) -> usize {
        std::mem::take(&mut self.state().torn).len()
    }
}

impl State {
    /// Returns a response if a fault keeps the request from the engine. Parsing is slow in a debug build, so this only parses a
    /// body that a fault may depend on.
    fn instead(&mut self, operation: &str, request: &mut HttpRequest) -> Option<TableResponse> {
        if operation == "Query" {
            let (_, body) = table_call(request);
            return self.frozen(&body).or_else(|| self.pages.limit(&body, request));
        }
        if self.throttled.is_empty() || !["PutItem", "UpdateItem", "TransactWriteItems"].contains(&operation) {
            return None;
        }
        let is_throttled = |action: &WriteAction| self.throttled.contains(&action.key.partition);
        if !write_actions(operation, &table_call(request).1).iter().any(is_throttled) {
            return None;
        }
        self.throttled_writes += 1;
        Some(TableResponse::error(400, "ThrottlingException", "the partition is busy"))
    }

    fn next(&mut self, operation: &str, request: &HttpRequest) -> Option<Fault> {
        if self.planned.front().is_some_and(|fault| fault.operation == operation) {
            return self.planned.pop_front();
        }
        let failing = self.failing.as_mut()?;
        // The SDK's attempts at one call carry the same invocation ID.
        let call = request.headers().get("amz-sdk-invocation-id").unwrap_or_default().to_owned();
        let is_retry = failing.failed.as_ref() == Some(&call);
        if !is_retry && (failing.failed.is_some() || failing.to_come > 0) {
            failing.to_come = failing.to_come.saturating_sub(1);
            return None;
        }
        failing.failed = Some(call);
        let after = failing.failure == CallFailure::TimedOutAfter;
        let timed_out = after || failing.failure == CallFailure::TimedOutBefore;
        let is_conflict = failing.failure == CallFailure::Conflict && operation == "TransactWriteItems";
        let throttled = || TableResponse::error(400, "ThrottlingException", "injected");
        Some(Fault { operation: "", response: if is_conflict { conflict() } else { throttled() }, after, timed_out })
    }

    /// Returns the response to a query of a frozen index, and `None` for other queries.
    fn frozen(&self, request: &Value) -> Option<TableResponse> {
        let rows = match request["IndexName"].as_str()? {
            "list_index" => list_index_rows(self.list_index.as_ref()?, request)?,
            "history" => history_rows(self.history.as_ref()?, request),
            _ => return None,
        };
        Some(TableResponse { status: 200, body: json!({"Items": rows, "Count": rows.len()}) })
    }

    fn tears(&self, operation: &str) -> bool {
        self.torn.iter().any(|torn| torn.operation == operation)
    }

    /// Removes the items that are not visible yet from the response, or restores their earlier state.
    fn torn_response(&mut self, operation: &str, whole: &HttpResponse) -> TableResponse {
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
        TableResponse { status: whole.status().as_u16(), body }
    }

    /// Restores the item's earlier state. Returns whether the item existed then.
    fn is_visible(&mut self, operation: &str, item: &mut Value) -> bool {
        let event: Value = item["entry"]["S"].as_str().and_then(|entry| serde_json::from_str(entry).ok()).unwrap_or_default();
        let is_of = |torn: &TornItem| {
            let is_seen = match torn.version {
                Some(version) => event["entity_id"] == torn.id.as_str() && event["version"] == version,
                None => item["id"]["S"] == torn.id.as_str(),
            };
            torn.operation == operation && is_seen
        };
        let Some(at) = self.torn.iter().position(is_of) else { return true };
        self.torn[at].times -= 1;
        let before = self.torn[at].before.clone();
        if self.torn[at].times == 0 {
            self.torn.remove(at);
        }
        let Some(Value::Object(before)) = before else { return false };
        item.as_object_mut().unwrap().extend(before);
        true
    }
}

/// Returns `None` unless the query is for a range of letters.
fn list_index_rows(frozen: &HashMap<char, Value>, request: &Value) -> Option<Vec<Value>> {
    let letter = |bound: &str| request["ExpressionAttributeValues"][bound]["S"].as_str()?.chars().next();
    let rows = (letter(":from")?..=letter(":to")?).filter_map(|letter| frozen.get(&letter)?.as_array());
    Some(rows.flatten().cloned().collect())
}

fn history_rows(frozen: &[Value], request: &Value) -> Vec<Value> {
    let bound = |name: &str| request["ExpressionAttributeValues"][name]["S"].as_str().unwrap();
    let is_within = |item: &&Value| (bound(":from")..=bound(":to")).contains(&item["HS"]["S"].as_str().unwrap());
    let mut rows: Vec<Value> = frozen.iter().filter(is_within).cloned().collect();
    assert_eq!(request["ScanIndexForward"], false);
    rows.sort_by_key(|row| std::cmp::Reverse(row["HS"]["S"].as_str().unwrap().to_owned()));
    rows.truncate(request["Limit"].as_u64().map_or(usize::MAX, |limit| limit as usize));
    rows
}

/// Returns a cancelled transaction that the SDK reads as a conflict.
fn conflict() -> TableResponse {
    let reasons = json!([{"Code": "TransactionConflict"}, {"Code": "None"}]);
    let kind = "com.amazonaws.dynamodb.v20120810#TransactionCanceledException";
    TableResponse { status: 400, body: json!({"__type": kind, "Message": "cancelled", "CancellationReasons": reasons}) }
}

#[derive(Debug, Clone)]
pub struct FaultyClient {
    inner: SharedHttpClient,
    faults: Faults,
}

impl FaultyClient {
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
        let mut state = self.faults.state();
        state.requests.push((operation.clone(), body));
        if let Some(instead) = state.instead(&operation, &mut request) {
            return HttpConnectorFuture::ready(http_response(&instead));
        }
        if let Some(place) = state.holds.iter().position(|hold| hold.operation == operation) {
            let (hold, inner) = (state.holds.remove(place), self.inner.clone());
            return HttpConnectorFuture::new(async move {
                let _ = hold.arrived.send(());
                let _ = hold.released.await;
                inner.call(request).await
            });
        }
        let (fault, is_torn) = (state.next(&operation, &request), state.tears(&operation));
        drop(state);
        let Some(fault) = fault else {
            let whole = self.inner.call(request);
            if !is_torn {
                return whole;
            }
            let faults = self.faults.clone();
            return HttpConnectorFuture::new(async move {
                let whole = read(whole.await?).await?;
                let torn = faults.state().torn_response(&operation, &whole);
                http_response(&torn)
            });
        };
        let outcome =
            if fault.timed_out { Err(ConnectorError::timeout("injected".into())) } else { http_response(&fault.response) };
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

impl Pages {
    /// Limits the page of a request, or returns the response if the request is throttled.
    fn limit(&mut self, body: &Value, request: &mut HttpRequest) -> Option<TableResponse> {
        if body["IndexName"] != "list_index" {
            return None;
        }
        let refill = self.refilled_at.replace(Instant::now()).map_or(0.0, |at| at.elapsed().as_secs_f64() * self.per_second);
        if let Some(left) = &mut self.left {
            *left += refill;
            if *left < 1.0 {
                return Some(TableResponse::error(400, "ProvisionedThroughputExceededException", "the index is busy"));
            }
            *left -= 1.0;
        }
        self.delivered += 1;
        if let Some(rows) = self.rows {
            let mut cut = body.clone();
            cut["Limit"] = rows.into();
            let text = cut.to_string();
            request.headers_mut().insert("content-length", text.len().to_string());
            *request.body_mut() = SdkBody::from(text);
        }
        None
    }
}

/// An item's earlier state, which reads still see.
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
