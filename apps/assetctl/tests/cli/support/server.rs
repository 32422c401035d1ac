//! A fake import endpoint in memory, with faults on demand.

use super::scripted::{Answer, Request, Scripted};
use axum::body::Bytes;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::sleep;
use std::time::Duration;

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

pub struct Server {
    seen: Arc<Mutex<Seen>>,
    _scripted: Scripted,
    pub url: String,
}

pub struct Options {
    pub mischief: Mischief,
    pub delay: Duration,
    /// Once this many requests have arrived, further requests wait until this many are concurrent.
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
        let seen = Arc::<Mutex<Seen>>::default();
        let shared = Arc::clone(&seen);
        let scripted = Scripted::start(move |request, _| answer(&shared, &options, request));
        Self { seen, url: scripted.url.clone(), _scripted: scripted }
    }

    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap()
    }
}

fn answer(seen: &Mutex<Seen>, options: &Options, request: &Request) -> Answer {
    assert!(["POST /assets/import", "POST /users/import"].contains(&request.route.as_str()), "{}", request.route);
    let number = {
        let mut seen = seen.lock().unwrap();
        seen.requests += 1;
        seen.under_way += 1;
        seen.most_at_once = seen.most_at_once.max(seen.under_way);
        seen.requests - 1
    };
    sleep(options.delay);
    // Waits for enough concurrent requests, up to a time limit.
    let is_crowded = || number < options.crowd || seen.lock().unwrap().most_at_once >= options.crowd;
    (0..1_000).take_while(|_| !is_crowded()).for_each(|_| sleep(Duration::from_millis(10)));
    let mut seen = seen.lock().unwrap();
    seen.under_way -= 1;
    assert!(request.bytes.len() < 1 << 20);
    let misbehaviour = (options.mischief)(number);
    if let Some(Misbehaviour::Status(status, retry_after)) = misbehaviour {
        let answer = Answer::problem(status, "SOME_CODE", "Not now.");
        return match retry_after {
            Some(seconds) => answer.with("retry-after", seconds.to_string()),
            None => answer,
        };
    }
    let is_csv = request.content_type == "text/csv";
    let rows = if is_csv { csv_rows(&request.bytes) } else { ndjson_rows(&request.bytes) };
    if let Some(column) = rows.first().and_then(|row| row.keys().find(|column| *column == "custom_fields.unknown")) {
        return Answer::invalid(&json!({"column": column, "detail": "unknown column"}));
    }
    let key = request.idempotency_key.as_deref().unwrap();
    if seen.bodies.get(key).is_some_and(|earlier| *earlier != request.bytes) {
        return Answer::invalid(&json!({"header": "Idempotency-Key", "detail": "was sent with another request"}));
    }
    seen.bodies.insert(key.to_owned(), request.bytes.clone());
    let is_busy = matches!(misbehaviour, Some(Misbehaviour::RowsUnavailable));
    let data = seen.import(request.parameter("match"), key, &rows, is_busy);
    if matches!(misbehaviour, Some(Misbehaviour::LoseResponse)) {
        return Answer::problem(502, "", "");
    }
    Answer::data(&data.into())
}

impl Seen {
    fn import(&mut self, match_column: &str, key: &str, rows: &[Fields], is_busy: bool) -> Vec<Value> {
        assert!(rows.len() <= 200 && !rows.is_empty());
        let mut settled = self.settled.remove(key).unwrap_or_default();
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

    /// Stores a row. No row has a column `none`, so matching by `none` creates each row.
    fn write(&mut self, row: &Fields, match_column: &str) -> &'static str {
        let value = row.get(match_column).filter(|value| !value.is_empty());
        match value.and_then(|value| self.rows.iter().position(|stored| stored.get(match_column) == Some(value))) {
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
