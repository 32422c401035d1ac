//! The faulty table itself. The SDK calls it through a special HTTP client, which loses or delays requests and responses;
//! each call is executed on copies of the engine's database, which show a change at different times.

use super::capacity_limit::{Capacity, Partition, Usage};
use super::{MAX_DELAY_MILLIS, SeededRandom, Weaknesses};
use crate::engine;
use crate::in_process::{http_response, table_call};
use crate::table::{self, TableEngine, TableResponse};
use anyhow::Result;
use aws_sdk_dynamodb::config::Builder;
use aws_sdk_dynamodb::config::retry::RetryPartition;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until};

/// The entry of [`FaultyTable::shown`] that counts pages of queries for all records of a kind, which lists don't need.
pub const WHOLE_LISTS: &str = "whole lists";

const KEY: [&str; 2] = ["PK", "SK"];

/// A table in this process, with weaknesses that can be set at any time. Cheap to clone.
#[derive(Clone)]
pub struct FaultyTable(Arc<Shared>);

struct Shared {
    databases: Databases,
    random: SeededRandom,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    weaknesses: Weaknesses,
    pending: Pending,
    capacity: Capacity,
    /// Sort keys of the items in each index, including items that will appear there.
    indexed: HashMap<(usize, ItemKey), Value>,
    shown: BTreeMap<&'static str, u64>,
}

impl std::fmt::Debug for FaultyTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FaultyTable").finish_non_exhaustive()
    }
}

impl FaultyTable {
    /// # Errors
    ///
    /// Returns an error if the engine can't start.
    pub fn new(seed: u64) -> Result<Self> {
        let (databases, random) = (Databases::new()?, SeededRandom::new(seed));
        Ok(Self(Arc::new(Shared { databases, random, state: Mutex::default() })))
    }

    /// Returns the configuration of a client. Each client has its own quota of retries, as in a separate process.
    #[must_use]
    pub fn config(&self) -> Builder {
        engine::config("http://faulty.invalid")
            .http_client(self.clone())
            .retry_partition(RetryPartition::custom("faulty").build())
    }

    pub fn set(&self, weaknesses: Weaknesses) {
        self.state().weaknesses = weaknesses;
    }

    #[must_use]
    pub fn weaknesses(&self) -> Weaknesses {
        self.state().weaknesses.clone()
    }

    #[must_use]
    pub fn shown(&self) -> BTreeMap<&'static str, u64> {
        self.state().shown.clone()
    }

    pub(super) fn random(&self) -> &SeededRandom {
        &self.0.random
    }

    pub(super) fn show(&self, weakness: &'static str) {
        *self.state().shown.entry(weakness).or_default() += 1;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request to the table and its response back. Returns `None` if the request or the response is lost.
    async fn carry(&self, operation: String, body: Value) -> Option<TableResponse> {
        let weaknesses = self.weaknesses();
        let mut way = self.random().below(weaknesses.latency_millis + 1);
        if self.random().chance(weaknesses.slow_per_mille) {
            self.show("late requests");
            way += self.random().below(MAX_DELAY_MILLIS);
        }
        sleep(Duration::from_millis(way)).await;
        if self.random().chance(weaknesses.lost_before_per_mille) {
            self.show("lost requests");
            return None;
        }
        let response = self.execute(&operation, body).await;
        sleep(Duration::from_millis(self.random().below(weaknesses.latency_millis + 1))).await;
        if self.random().chance(weaknesses.lost_after_per_mille) {
            self.show("lost responses");
            return None;
        }
        Some(response)
    }

    async fn execute(&self, operation: &str, mut body: Value) -> TableResponse {
        self.apply_due();
        let weaknesses = self.weaknesses();
        let is_write = matches!(operation, "PutItem" | "UpdateItem" | "DeleteItem" | "TransactWriteItems");
        let is_read = matches!(operation, "GetItem" | "BatchGetItem" | "TransactGetItems" | "Query" | "Scan");
        if !is_write && !is_read {
            return self.0.databases.execute_on_all(operation, &body);
        }
        if self.random().chance(weaknesses.failed_per_mille) {
            self.show("internal errors");
            return TableResponse::error(500, "InternalServerError", "injected");
        }
        let usage = if is_write { Usage::Write } else { Usage::Read };
        let (partitions, limit) = (self.partitions(operation, &body, usage), usage.limit(&weaknesses));
        let is_exhausted = limit.is_some_and(|limit| self.is_exhausted(&partitions, usage, limit));
        if self.random().chance(weaknesses.throttled_per_mille) || is_exhausted {
            self.show("throttled calls");
            return self.throttled(operation, &body);
        }
        if limit.is_some() {
            body["ReturnConsumedCapacity"] = json!("INDEXES");
        }
        let response =
            if is_write { self.write(operation, &body, &weaknesses).await } else { self.read(operation, body, &weaknesses) };
        if let Some(limit) = limit {
            self.charge(&partitions, usage, limit, &response);
        }
        response
    }

    fn apply_due(&self) {
        let now = Instant::now();
        loop {
            let due = self.state().pending.take_due(now);
            let Some(PendingImage { view, table, key, image }) = due else { return };
            let (operation, body) = match image {
                Some(item) => ("PutItem", json!({"TableName": table, "Item": item})),
                None => ("DeleteItem", json!({"TableName": table, "Key": key.to_json()})),
            };
            self.0.databases.execute(view, operation, &body);
        }
    }

    fn partitions(&self, operation: &str, body: &Value, usage: Usage) -> Vec<Partition> {
        let index = body["IndexName"].as_str().map(str::to_owned);
        let mut partitions: Vec<Partition> = match usage {
            Usage::Read => read_partitions(operation, body).into_iter().map(|partition| (index.clone(), partition)).collect(),
            Usage::Write => write_actions(operation, body).into_iter().map(|action| (None, action.key.partition)).collect(),
        };
        partitions.sort_unstable();
        partitions.dedup();
        partitions
    }

    fn is_exhausted(&self, partitions: &[Partition], usage: Usage, limit: f64) -> bool {
        let (mut state, now) = (self.state(), Instant::now());
        partitions.iter().any(|partition| !state.capacity.has_any(partition, usage, limit, now))
    }

    /// Charges consumed units to the partitions, in equal parts.
    fn charge(&self, partitions: &[Partition], usage: Usage, limit: f64, response: &TableResponse) {
        let (mut state, now) = (self.state(), Instant::now());
        for (index, units) in consumed(&response.body) {
            for (_, partition) in partitions {
                let share = units / partitions.len() as f64;
                state.capacity.take(&(index.clone(), partition.clone()), usage, share, limit, now);
            }
        }
    }

    fn throttled(&self, operation: &str, body: &Value) -> TableResponse {
        let code = if self.random().below(2) == 0 { "ThrottlingException" } else { "ProvisionedThroughputExceededException" };
        if operation == "TransactWriteItems" && self.random().below(2) == 0 {
            return cancelled(&write_actions(operation, body), |_| true, "ThrottlingError");
        }
        TableResponse::error(400, code, "The throughput of this partition is exceeded.")
    }

    /// Commits a write, and shows it in the other views later.
    async fn write(&self, operation: &str, body: &Value, weaknesses: &Weaknesses) -> TableResponse {
        let (actions, now) = (write_actions(operation, body), Instant::now());
        let is_transaction = operation == "TransactWriteItems";
        let token = body["ClientRequestToken"].as_str().map(str::to_owned);
        match token.as_ref().and_then(|token| self.state().pending.tokens.get(token).copied()) {
            Some(until) if until > now => {
                self.show("transactions in progress");
                return TableResponse::error(400, "TransactionInProgressException", "The transaction is in progress.");
            }
            // The engine replays the response. The write is visible, or will be.
            Some(_) => return self.0.databases.execute(View::Committed, operation, body),
            None => {}
        }
        let is_held = |action: &WriteAction| self.state().pending.held.get(&action.key).is_some_and(|until| *until > now);
        if actions.iter().any(is_held) {
            self.show("conflicts");
            if is_transaction {
                return cancelled(&actions, is_held, "TransactionConflict");
            }
            return TableResponse::error(400, "TransactionConflictException", "A transaction is in progress for the item.");
        }
        if is_transaction && self.random().chance(weaknesses.conflict_per_mille) {
            self.show("conflicts");
            let place = self.random().below(actions.len() as u64) as usize;
            return cancelled(&actions, |action| action.key == actions[place].key, "TransactionConflict");
        }
        let response = self.0.databases.execute(View::Committed, operation, body);
        if !response.is_success() {
            return response;
        }
        let mut end = now;
        for action in actions.iter().filter(|action| !action.is_check) {
            let torn = if is_transaction { self.random().below(weaknesses.torn_millis + 1) } else { 0 };
            let visible_at = now + Duration::from_millis(torn);
            end = end.max(visible_at);
            self.publish(action, visible_at, weaknesses);
        }
        {
            // Locks the items of a transaction until it completes.
            let pending = &mut self.state().pending;
            pending.held.extend(actions.into_iter().map(|action| (action.key, end)));
            pending.tokens.extend(token.map(|token| (token, end)));
        }
        sleep_until(end).await;
        response
    }

    /// Shows an item to queries from `visible_at` on, and in each index after a separate lag.
    fn publish(&self, action: &WriteAction, visible_at: Instant, weaknesses: &Weaknesses) {
        let request = json!({"TableName": action.table, "Key": action.key.to_json()});
        let mut read = self.0.databases.execute(View::Committed, "GetItem", &request).body;
        let image = read.as_object_mut().and_then(|read| read.remove("Item")).filter(Value::is_object);
        let pending = |view, image| PendingImage { view, table: action.table.clone(), key: action.key.clone(), image };
        let mut state = self.state();
        state.pending.add(visible_at, pending(View::Visible, image.clone()));
        for (place, &IndexDatabase { name, range_key, .. }) in self.0.databases.indexes.iter().enumerate() {
            let row = image.clone().filter(|image| image.get(range_key).is_some());
            let sort_key = row.as_ref().map(|row| row[range_key].clone());
            let entry = (place, action.key.clone());
            let before = match &sort_key {
                Some(sort_key) => state.indexed.insert(entry, sort_key.clone()),
                None => state.indexed.remove(&entry),
            };
            let is_list_index = name == shared::store::keys::LIST_INDEX;
            let lag = if is_list_index { weaknesses.list_index_lag_millis } else { weaknesses.history_lag_millis };
            let at = || visible_at + Duration::from_millis(self.random().below(lag + 1));
            // A row that moves within the index is deleted and put again.
            let is_gone = before.as_ref().is_some_and(|before| Some(before) != sort_key.as_ref());
            let deleted_at = is_gone.then(at);
            if let Some(deleted_at) = deleted_at {
                state.pending.add(deleted_at, pending(View::Index(place), None));
            }
            if row.is_some() {
                let put_at = at();
                state
                    .pending
                    .add(deleted_at.map_or(put_at, |deleted_at| deleted_at.max(put_at)), pending(View::Index(place), row));
            }
        }
    }

    fn read(&self, operation: &str, mut body: Value, weaknesses: &Weaknesses) -> TableResponse {
        let view = match (operation, body["IndexName"].as_str()) {
            // Single reads and transactional reads are isolated from other transactions.
            ("GetItem" | "TransactGetItems", _) => View::Committed,
            (_, Some(index)) => self.0.databases.index(index).unwrap_or(View::Committed),
            (_, None) => View::Visible,
        };
        if operation == "Query" && is_whole_list(&body) {
            self.show(WHOLE_LISTS);
        }
        if operation == "Query" && self.random().chance(weaknesses.cut_page_per_mille) {
            self.show("cut pages");
            let limit = body["Limit"].as_u64().unwrap_or(20).max(1);
            body["Limit"] = json!(1 + self.random().below(limit));
        }
        let is_batch = operation == "BatchGetItem" && self.random().chance(weaknesses.unprocessed_per_mille);
        let unprocessed = is_batch.then(|| take_unprocessed(&mut body, || self.random().below(3) == 0));
        let mut response = self.0.databases.execute(view, operation, &body);
        if let Some(unprocessed) = unprocessed.filter(|_| response.is_success()) {
            self.show("batches with unprocessed keys");
            response.body["UnprocessedKeys"] = unprocessed;
        }
        response
    }
}

impl HttpClient for FaultyTable {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for FaultyTable {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let (operation, body) = table_call(&request);
        let (mut sender, receiver) = oneshot::channel();
        let table = self.clone();
        // A separate task, so that a sent request takes effect even if the sender stops waiting.
        tokio::spawn(async move {
            let response = table.carry(operation, body).await;
            let is_reset = response.is_none() && table.random().below(2) == 0;
            match response {
                Some(response) => drop(sender.send(Ok(response))),
                None if is_reset => drop(sender.send(Err(ConnectorError::io("connection reset".into())))),
                // Sends no response, so that the sender's timeout expires.
                None => sender.closed().await,
            }
        });
        HttpConnectorFuture::new(async move {
            let response = receiver.await.map_err(|error| ConnectorError::other(error.into(), None))??;
            http_response(&response)
        })
    }
}

/// Whether this is a query for all records of a kind that has a list index.
fn is_whole_list(body: &Value) -> bool {
    let prefix = body["ExpressionAttributeValues"][":sk"]["S"].as_str();
    body["IndexName"].is_null() && matches!(prefix, Some("ASSET#" | "USER#" | "INSTANCE#" | "MOVEMENT#"))
}

fn cancelled(actions: &[WriteAction], is_reason: impl Fn(&WriteAction) -> bool, code: &str) -> TableResponse {
    let reason = |action| json!({"Code": if is_reason(action) { code } else { "None" }});
    let reasons: Vec<Value> = actions.iter().map(reason).collect();
    let kind = "com.amazonaws.dynamodb.v20120810#TransactionCanceledException";
    TableResponse { status: 400, body: json!({"__type": kind, "Message": "cancelled", "CancellationReasons": reasons}) }
}

#[derive(Debug)]
struct PendingImage {
    view: View,
    table: String,
    key: ItemKey,
    /// `None` if the item is deleted, or not in the index.
    image: Option<Value>,
}

#[derive(Debug, Default)]
struct Pending {
    images: BTreeMap<(Instant, u64), PendingImage>,
    count: u64,
    /// Time when the latest image of an item reaches a view. An earlier image never arrives later.
    latest: HashMap<(View, ItemKey), Instant>,
    /// A transaction locks the item until this time.
    held: HashMap<ItemKey, Instant>,
    /// The transaction with this `ClientRequestToken` is in progress until this time.
    tokens: HashMap<String, Instant>,
}

impl Pending {
    /// Shows an item in a view from `at` on, or from the time of its previous change if that is later.
    fn add(&mut self, at: Instant, image: PendingImage) {
        let latest = self.latest.entry((image.view, image.key.clone())).or_insert(at);
        *latest = at.max(*latest);
        self.count += 1;
        self.images.insert((*latest, self.count), image);
    }

    fn take_due(&mut self, now: Instant) -> Option<PendingImage> {
        let entry = self.images.first_entry()?;
        (entry.key().0 <= now).then(|| entry.remove())
    }
}

/// A copy of the table as of some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum View {
    /// Everything committed: for writes, their conditions, and reads of single items.
    Committed,
    /// For queries and batches.
    Visible,
    /// For an index, by its position in the template.
    Index(usize),
}

struct IndexDatabase {
    name: &'static str,
    range_key: &'static str,
    database: TableEngine,
}

struct Databases {
    committed: TableEngine,
    visible: TableEngine,
    indexes: Vec<IndexDatabase>,
}

impl Databases {
    fn new() -> Result<Self> {
        let mut indexes = Vec::new();
        for index in &table::declared()?.global_secondary_indexes {
            let range_key = index.key_schema.last().map_or("", |part| part.attribute_name.as_str());
            indexes.push(IndexDatabase { name: &index.index_name, range_key, database: TableEngine::in_memory()? });
        }
        Ok(Self { committed: TableEngine::in_memory()?, visible: TableEngine::in_memory()?, indexes })
    }

    fn index(&self, name: &str) -> Option<View> {
        self.indexes.iter().position(|index| index.name == name).map(View::Index)
    }

    fn execute(&self, view: View, operation: &str, body: &Value) -> TableResponse {
        let database = match view {
            View::Committed => &self.committed,
            View::Visible => &self.visible,
            View::Index(place) => &self.indexes[place].database,
        };
        database.execute(operation, body.clone())
    }

    /// Executes a call on the table itself on all copies, and returns the committed copy's response. Each other copy only has the
    /// index that it shows.
    fn execute_on_all(&self, operation: &str, body: &Value) -> TableResponse {
        let shown = std::iter::once((&self.visible, None));
        let indexes = self.indexes.iter().map(|index| (&index.database, Some(index.name)));
        for (database, index) in shown.chain(indexes) {
            let mut body = body.clone();
            if operation == "CreateTable" {
                keep_index(&mut body, index);
            }
            database.execute(operation, body);
        }
        self.committed.execute(operation, body.clone())
    }
}

/// Reduces a CreateTable request to one index, or to none, and to the attributes that are still keys.
fn keep_index(body: &mut Value, name: Option<&str>) {
    let Some(request) = body.as_object_mut() else { return };
    let mut indexes = request.remove("GlobalSecondaryIndexes").unwrap_or_default();
    if let Some(indexes) = indexes.as_array_mut() {
        indexes.retain(|index| index["IndexName"].as_str() == name);
    }
    let keys = format!("{} {indexes}", request["KeySchema"]);
    if let Some(attributes) = request["AttributeDefinitions"].as_array_mut() {
        attributes.retain(|attribute| keys.contains(&attribute["AttributeName"].to_string()));
    }
    if indexes.as_array().is_some_and(|indexes| !indexes.is_empty()) {
        request.insert("GlobalSecondaryIndexes".to_owned(), indexes);
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ItemKey {
    pub partition: String,
    pub sort: String,
}

impl ItemKey {
    fn of(item: &Value) -> Self {
        let text = |name: &str| item[name]["S"].as_str().unwrap_or_default().to_owned();
        Self { partition: text(KEY[0]), sort: text(KEY[1]) }
    }

    fn to_json(&self) -> Value {
        json!({KEY[0]: {"S": self.partition}, KEY[1]: {"S": self.sort}})
    }
}

pub struct WriteAction {
    pub table: String,
    pub key: ItemKey,
    pub is_check: bool,
}

fn action(operation: &str, body: &Value) -> WriteAction {
    let item = if operation.starts_with("Put") { &body["Item"] } else { &body["Key"] };
    let table = body["TableName"].as_str().unwrap_or_default().to_owned();
    WriteAction { table, key: ItemKey::of(item), is_check: operation == "ConditionCheck" }
}

pub fn write_actions(operation: &str, body: &Value) -> Vec<WriteAction> {
    if operation != "TransactWriteItems" {
        return vec![action(operation, body)];
    }
    let members = body["TransactItems"].as_array().into_iter().flatten().filter_map(Value::as_object);
    members.flat_map(Map::iter).map(|(kind, action_body)| action(kind, action_body)).collect()
}

/// Returns the partitions that a request reads, one per key.
fn read_partitions(operation: &str, body: &Value) -> Vec<String> {
    match operation {
        "GetItem" => vec![ItemKey::of(&body["Key"]).partition],
        "BatchGetItem" => {
            let tables = body["RequestItems"].as_object().into_iter().flat_map(Map::values);
            let keys = tables.flat_map(|table| table["Keys"].as_array().into_iter().flatten());
            keys.map(|key| ItemKey::of(key).partition).collect()
        }
        // Every query names its partition in a condition `#pk = :pk`.
        _ => body["ExpressionAttributeValues"][":pk"]["S"].as_str().map(str::to_owned).into_iter().collect(),
    }
}

/// Removes the keys that `leave` selects from a batch, and returns them as `UnprocessedKeys`. Calls `leave` in the order of the
/// keys. At least one key stays.
fn take_unprocessed(body: &mut Value, mut leave: impl FnMut() -> bool) -> Value {
    let mut unprocessed = Map::new();
    for (table, request) in body["RequestItems"].as_object_mut().into_iter().flatten() {
        let Some(keys) = request["Keys"].as_array_mut() else { continue };
        keys.sort_by_cached_key(ItemKey::of);
        let (mut taken, mut kept) = (Vec::new(), Vec::new());
        for key in keys.drain(..) {
            if leave() { taken.push(key) } else { kept.push(key) }
        }
        if kept.is_empty() {
            kept.extend(taken.pop());
        }
        *keys = kept;
        if !taken.is_empty() {
            let mut left = request.clone();
            left["Keys"] = Value::Array(taken);
            unprocessed.insert(table.clone(), left);
        }
    }
    Value::Object(unprocessed)
}

/// Returns the consumed units per index. The table's own units have no name.
fn consumed(response: &Value) -> Vec<(Option<String>, f64)> {
    let reported = match &response["ConsumedCapacity"] {
        Value::Array(all) => all.iter().collect(),
        one @ Value::Object(_) => vec![one],
        _ => Vec::new(),
    };
    let mut units = Vec::new();
    for capacity in reported {
        units.extend(capacity["Table"]["CapacityUnits"].as_f64().map(|table| (None, table)));
        for (name, index) in capacity["GlobalSecondaryIndexes"].as_object().into_iter().flatten() {
            units.extend(index["CapacityUnits"].as_f64().map(|index| (Some(name.clone()), index)));
        }
    }
    units
}
