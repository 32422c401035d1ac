//! A service in memory that answers as the real one does, and misbehaves on request.

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// Faults by the number of the request, from 0.
pub type Mischief = Box<dyn Fn(usize) -> Option<Misbehaviour> + Send + Sync>;

#[derive(Debug, Clone, Copy)]
pub enum Misbehaviour {
    Status(u16, Option<u64>),
    /// Every second row that isn't stored yet is UNAVAILABLE.
    RowsUnavailable,
    /// It takes effect, but the response is lost.
    LoseResponse,
}

pub type Fields = BTreeMap<String, String>;

#[derive(Default)]
pub struct Seen {
    /// Imported rows, in the order in which they took effect; updates replace them.
    pub rows: Vec<Fields>,
    pub requests: usize,
    pub queries: Vec<HashMap<String, String>>,
    pub most_at_once: usize,
    under_way: usize,
    /// The outcomes of the rows that took effect, for each idempotency key.
    settled: HashMap<String, BTreeMap<usize, &'static str>>,
    bodies: HashMap<String, Bytes>,
}

struct Service {
    seen: Mutex<Seen>,
    mischief: Mischief,
    delay: Duration,
    crowd: usize,
    pages: Vec<String>,
    unreadable: Option<String>,
}

pub struct Server {
    service: Arc<Service>,
    _runtime: Runtime,
    pub url: String,
}

pub struct Options {
    pub mischief: Mischief,
    pub delay: Duration,
    /// After so many requests, the others wait until as many are there at once.
    pub crowd: usize,
    pub pages: Vec<String>,
    /// An id that every part names as unreadable.
    pub unreadable: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { mischief: Box::new(|_| None), delay: Duration::ZERO, crowd: 0, pages: Vec::new(), unreadable: None }
    }
}

impl Server {
    pub fn start() -> Self {
        Self::with(Options::default())
    }

    pub fn with(options: Options) -> Self {
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let Options { mischief, delay, crowd, pages, unreadable } = options;
        let service = Arc::new(Service { seen: Mutex::default(), mischief, delay, crowd, pages, unreadable });
        let routes = Router::new()
            .route("/v1/assets/import", post(import))
            .route("/v1/users/import", post(import))
            .route("/v1/assets/export", get(export))
            .with_state(Arc::clone(&service));
        runtime.spawn(async move { axum::serve(listener, routes).await });
        Self { service, _runtime: runtime, url }
    }

    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        self.service.seen.lock().unwrap()
    }
}

impl Service {
    /// Waits until enough requests were there at once, but not forever.
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
        seen.queries.push(query.clone());
        seen.requests - 1
    };
    tokio::time::sleep(service.delay).await;
    if number >= service.crowd {
        service.wait_for_crowd().await;
    }
    let mut seen = service.seen.lock().unwrap();
    seen.under_way -= 1;
    if headers["authorization"] != "Bearer apl_0351f4Sjsecret" {
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
    let key = headers.get("idempotency-key").map(|key| key.to_str().unwrap().to_owned());
    let is_dry_run = query.contains_key("dry_run");
    assert_eq!(key.is_none(), is_dry_run);
    let key = key.unwrap_or_else(|| format!("dry run {number}"));
    if seen.bodies.get(&key).is_some_and(|earlier| *earlier != body) {
        let errors = json!([{"header": "Idempotency-Key", "detail": "was sent with another request"}]);
        return problem(422, "VALIDATION_ERROR", "1 error.", errors);
    }
    let has_begun = seen.bodies.contains_key(&key);
    let aborts = !has_begun && query["on_error"] == "abort" && rows.iter().any(|row| refusal(row).is_some());
    if !aborts {
        seen.bodies.insert(key.clone(), body);
    }
    let is_busy = matches!(misbehaviour, Some(Misbehaviour::RowsUnavailable));
    let data = seen.import(&query, &key, &rows, aborts, is_busy);
    if matches!(misbehaviour, Some(Misbehaviour::LoseResponse)) {
        return problem(502, "", "", json!([]));
    }
    axum::Json(json!({"data": data, "meta": {"rows": data.len()}})).into_response()
}

impl Seen {
    /// If it `aborts`, good rows are skipped.
    fn import(&mut self, query: &HashMap<String, String>, key: &str, rows: &[Fields], aborts: bool, is_busy: bool) -> Vec<Value> {
        assert!(rows.len() <= 200 && !rows.is_empty());
        let mut settled = self.settled.remove(key).unwrap_or_default();
        let match_column = query.get("match").filter(|column| *column != "none").map(String::as_str);
        let mut data = Vec::new();
        for (index, row) in rows.iter().enumerate() {
            let result = |outcome: &str| json!({"row": index + 1, "outcome": outcome, "id": null});
            let refused = |error: Value| json!({"row": index + 1, "outcome": "refused", "id": null, "errors": [error]});
            data.push(if let Some(outcome) = settled.get(&index) {
                json!({"row": index + 1, "outcome": outcome, "id": "x", "replayed": true})
            } else if let Some((column, detail)) = refusal(row) {
                refused(json!({"column": column, "detail": detail, "code": "VALIDATION_ERROR"}))
            } else if aborts {
                result("skipped")
            } else if is_busy && index % 2 == 0 {
                refused(json!({"detail": "busy", "code": "UNAVAILABLE"}))
            } else {
                let outcome = self.write(row, match_column, query.contains_key("dry_run"));
                settled.insert(index, outcome);
                result(outcome)
            });
        }
        self.settled.insert(key.to_owned(), settled);
        data
    }

    fn write(&mut self, row: &Fields, match_column: Option<&str>, is_dry_run: bool) -> &'static str {
        let value = match_column.and_then(|column| row.get(column)).filter(|value| !value.is_empty());
        let same = |value: &String| {
            self.rows.iter().position(|stored| match_column.and_then(|column| stored.get(column)) == Some(value))
        };
        let found = value.and_then(same);
        match found {
            Some(index) if self.rows[index] == *row => "unchanged",
            Some(index) => {
                if !is_dry_run {
                    self.rows[index] = row.clone();
                }
                "updated"
            }
            None => {
                if !is_dry_run {
                    self.rows.push(row.clone());
                }
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

async fn export(State(service): State<Arc<Service>>, Query(query): Query<HashMap<String, String>>) -> Response {
    let page: usize = query.get("after").map_or(0, |after| after.parse().unwrap());
    let format = query["format"].clone();
    let failures = {
        let mut seen = service.seen.lock().unwrap();
        seen.requests += 1;
        seen.queries.push(query);
        seen.requests - 1
    };
    if let Some(Misbehaviour::Status(status, _)) = (service.mischief)(failures) {
        return problem(status, "SOME_CODE", "Not now.", json!([]));
    }
    let content_type = if format == "csv" { "text/csv; charset=utf-8" } else { "application/x-ndjson" };
    let mut response = ([("content-type", content_type)], service.pages[page].clone()).into_response();
    if let Some(id) = &service.unreadable {
        response.headers_mut().insert("x-unreadable", id.parse().unwrap());
    }
    if page + 1 < service.pages.len() {
        let link = format!("</v1/assets/export?format={format}&after={}>; rel=\"next\"", page + 1);
        response.headers_mut().insert("link", link.parse().unwrap());
    }
    response
}
