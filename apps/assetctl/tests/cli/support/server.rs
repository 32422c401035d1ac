//! A fake import endpoint in memory, with faults on demand.

use super::{KEY, serve};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::runtime::Runtime;

/// The fault for each request, numbered from 0.
pub type Mischief = Box<dyn Fn(usize) -> Option<Misbehaviour> + Send + Sync>;

#[derive(Debug, Clone, Copy)]
pub enum Misbehaviour {
    Status(u16, Option<u64>),
    /// Every second row that isn't stored yet gets UNAVAILABLE.
    RowsUnavailable,
    /// The request takes effect, but its response is lost.
    LoseResponse,
}

pub type Fields = BTreeMap<String, String>;

#[derive(Default)]
pub struct Seen {
    /// Imported rows, in order of their effect. An update replaces its row.
    pub rows: Vec<Fields>,
    pub requests: usize,
    pub most_at_once: usize,
    under_way: usize,
    /// The outcomes of imported rows, by idempotency key.
    settled: HashMap<String, BTreeMap<usize, &'static str>>,
    bodies: HashMap<String, Bytes>,
}

struct Service {
    seen: Mutex<Seen>,
    mischief: Mischief,
    delay: Duration,
    crowd: usize,
}

pub struct Server {
    service: Arc<Service>,
    _runtime: Runtime,
    pub url: String,
}

pub struct Options {
    pub mischief: Mischief,
    pub delay: Duration,
    /// After this many requests, further ones wait until this many arrive concurrently.
    pub crowd: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { mischief: Box::new(|_| None), delay: Duration::ZERO, crowd: 0 }
    }
}

impl Server {
    pub fn start() -> Self {
        Self::with(Options::default())
    }

    pub fn with(options: Options) -> Self {
        let Options { mischief, delay, crowd } = options;
        let service = Arc::new(Service { seen: Mutex::default(), mischief, delay, crowd });
        let routes = Router::new().route("/v1/assets/import", post(import)).route("/v1/users/import", post(import));
        let (runtime, url) = serve(routes.with_state(Arc::clone(&service)));
        Self { service, _runtime: runtime, url: url + "/v1" }
    }

    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        self.service.seen.lock().unwrap()
    }
}

impl Service {
    /// Waits for enough concurrent requests, up to a time limit.
    async fn wait_for_crowd(&self) {
        for _ in 0..1_000 {
            if self.seen.lock().unwrap().most_at_once >= self.crowd {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

fn problem(status: u16, code: &str, detail: &str, errors: Value) -> Response {
    let body = json!({"status": status, "code": code, "detail": detail, "request_id": "r", "errors": errors}).to_string();
    (StatusCode::from_u16(status).unwrap(), [("content-type", "application/problem+json")], body).into_response()
}

async fn import(
    State(service): State<Arc<Service>>,
    Query(query): Query<HashMap<String, String>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let number = {
        let mut seen = service.seen.lock().unwrap();
        seen.requests += 1;
        seen.under_way += 1;
        seen.most_at_once = seen.most_at_once.max(seen.under_way);
        seen.requests - 1
    };
    tokio::time::sleep(service.delay).await;
    if number >= service.crowd {
        service.wait_for_crowd().await;
    }
    let mut seen = service.seen.lock().unwrap();
    seen.under_way -= 1;
    if headers["authorization"] != format!("Bearer {KEY}") {
        return problem(401, "UNAUTHORIZED", "No valid key.", json!([]));
    }
    assert!(body.len() < 1 << 20);
    let misbehaviour = (service.mischief)(number);
    if let Some(Misbehaviour::Status(status, retry_after)) = misbehaviour {
        let mut response = problem(status, "SOME_CODE", "Not now.", json!([]));
        if let Some(seconds) = retry_after {
            response.headers_mut().insert("retry-after", seconds.into());
        }
        return response;
    }
    let is_csv = headers["content-type"] == "text/csv";
    let rows = if is_csv { csv_rows(&body) } else { ndjson_rows(&body) };
    if let Some(column) = rows.first().and_then(|row| row.keys().find(|column| *column == "custom_fields.unknown")) {
        return problem(422, "VALIDATION_ERROR", "Invalid.", json!([{"column": column, "detail": "unknown column"}]));
    }
    let key = headers["idempotency-key"].to_str().unwrap().to_owned();
    if seen.bodies.get(&key).is_some_and(|earlier| *earlier != body) {
        let errors = json!([{"header": "Idempotency-Key", "detail": "was sent with another request"}]);
        return problem(422, "VALIDATION_ERROR", "1 error.", errors);
    }
    seen.bodies.insert(key.clone(), body);
    let is_busy = matches!(misbehaviour, Some(Misbehaviour::RowsUnavailable));
    let data = seen.import(&query, &key, &rows, is_busy);
    if matches!(misbehaviour, Some(Misbehaviour::LoseResponse)) {
        return problem(502, "", "", json!([]));
    }
    axum::Json(json!({"data": data, "meta": {"rows": data.len()}})).into_response()
}

impl Seen {
    fn import(&mut self, query: &HashMap<String, String>, key: &str, rows: &[Fields], is_busy: bool) -> Vec<Value> {
        assert!(rows.len() <= 200 && !rows.is_empty());
        let mut settled = self.settled.remove(key).unwrap_or_default();
        let match_column = query.get("match").filter(|column| *column != "none").map(String::as_str);
        let mut data = Vec::new();
        for (index, row) in rows.iter().enumerate() {
            let refused = |error: Value| json!({"row": index + 1, "outcome": "refused", "id": null, "errors": [error]});
            data.push(if let Some(outcome) = settled.get(&index) {
                json!({"row": index + 1, "outcome": outcome, "id": "x", "replayed": true})
            } else if let Some((column, detail)) = refusal(row) {
                refused(json!({"column": column, "detail": detail, "code": "VALIDATION_ERROR"}))
            } else if is_busy && index % 2 == 0 {
                refused(json!({"detail": "busy", "code": "UNAVAILABLE"}))
            } else {
                let outcome = self.write(row, match_column);
                settled.insert(index, outcome);
                json!({"row": index + 1, "outcome": outcome, "id": null})
            });
        }
        self.settled.insert(key.to_owned(), settled);
        data
    }

    fn write(&mut self, row: &Fields, match_column: Option<&str>) -> &'static str {
        let value = match_column.and_then(|column| row.get(column)).filter(|value| !value.is_empty());
        let same = |value: &String| {
            self.rows.iter().position(|stored| match_column.and_then(|column| stored.get(column)) == Some(value))
        };
        let found = value.and_then(same);
        match found {
            Some(index) if self.rows[index] == *row => "unchanged",
            Some(index) => {
                self.rows[index] = row.clone();
                "updated"
            }
            None => {
                self.rows.push(row.clone());
                "created"
            }
        }
    }
}

fn refusal(row: &Fields) -> Option<(&'static str, &'static str)> {
    let value = |column: &str| row.get(column).map(String::as_str).unwrap_or_default();
    if value("manufacturer").starts_with("Unbekannt") {
        return Some(("manufacturer", "unknown manufacturer"));
    }
    if ["purchase_date", "warranty_until"].iter().any(|column| value(column) == "?") {
        return Some(("purchase_date", "must be a date"));
    }
    let is_price = |text: &str| text.parse::<f64>().is_ok();
    (!value("purchase_price").is_empty() && !is_price(value("purchase_price"))).then_some(("purchase_price", "must be a number"))
}

fn csv_rows(body: &[u8]) -> Vec<Fields> {
    let mut reader = csv::Reader::from_reader(body);
    let header = reader.headers().unwrap().clone();
    let row =
        |record: csv::StringRecord| header.iter().zip(&record).map(|(name, cell)| (name.to_owned(), cell.to_owned())).collect();
    reader.records().map(|record| row(record.unwrap())).collect()
}

fn ndjson_rows(body: &[u8]) -> Vec<Fields> {
    let text = std::str::from_utf8(body).unwrap();
    let object = |line: &str| serde_json::from_str::<BTreeMap<String, Value>>(line).unwrap();
    let cell = |value: Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    text.lines().map(|line| object(line).into_iter().map(|(name, value)| (name, cell(value))).collect()).collect()
}
