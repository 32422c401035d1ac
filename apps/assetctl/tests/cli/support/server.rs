//! A fake import endpoint in memory, with faults on demand.

use super::scripted::{Answer, Request, Scripted};
use axum::body::Bytes;
use serde_json::{Value, json};
use shared::domain::import::Kind;
use shared::domain::import::columns::Columns;
use shared::domain::import::parameters::Reading;
use std::collections::{BTreeMap, BTreeSet, HashMap};
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
    /// Bodies and queries by idempotency key.
    sent: HashMap<String, (Bytes, Vec<(String, String)>)>,
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
    let rows = match rows(request) {
        Ok(rows) => rows,
        Err(error) => return Answer::invalid(&error),
    };
    let key = request.idempotency_key.as_deref().unwrap();
    let sent = (request.bytes.clone(), request.pairs.clone());
    if seen.sent.get(key).is_some_and(|earlier| *earlier != sent) {
        return Answer::invalid(&json!({"header": "Idempotency-Key", "detail": "was sent with another request"}));
    }
    seen.sent.insert(key.to_owned(), sent);
    let is_busy = matches!(misbehaviour, Some(Misbehaviour::RowsUnavailable));
    let data = seen.import(request.parameter("match"), key, &rows, is_busy);
    if matches!(misbehaviour, Some(Misbehaviour::LoseResponse)) {
        return Answer::problem(502, "", "");
    }
    Answer::data(&data.into())
}

impl Seen {
    fn import(&mut self, match_column: &str, key: &str, rows: &[Result<Fields, Value>], is_busy: bool) -> Vec<Value> {
        assert!(rows.len() <= 200 && !rows.is_empty());
        let mut settled = self.settled.remove(key).unwrap_or_default();
        let mut data = Vec::new();
        for (index, row) in rows.iter().enumerate() {
            let refused = |error: Value| json!({"row": index + 1, "outcome": "refused", "id": null, "errors": [error]});
            data.push(if let Some(outcome) = settled.get(&index) {
                json!({"row": index + 1, "outcome": outcome, "id": "x", "replayed": true})
            } else if let Err(error) = row {
                refused(error.clone())
            } else if is_busy && index % 2 == 0 {
                refused(json!({"detail": "busy", "code": "UNAVAILABLE"}))
            } else {
                let outcome = row.as_ref().map_or("refused", |row| self.write(row, match_column));
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

/// Reads the rows as the service does; an error for a file with an unknown field.
fn rows(request: &Request) -> Result<Vec<Result<Fields, Value>>, Value> {
    let reading = Reading::parse(request.pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()))).unwrap();
    let text = std::str::from_utf8(&request.bytes).unwrap();
    let kind = if request.route.contains("users") { Kind::Users } else { Kind::Assets };
    let (names, cells): (Vec<String>, Vec<Fields>) = if request.content_type == "text/csv" {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let names: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
        let row = |record: csv::StringRecord| names.iter().cloned().zip(record.iter().map(str::to_owned)).collect();
        let cells = reader.records().map(|record| row(record.unwrap())).collect();
        (names, cells)
    } else {
        let object = |line: &str| serde_json::from_str::<BTreeMap<String, Value>>(line).unwrap();
        let cell = |value: Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let cells: Vec<Fields> =
            text.lines().map(|line| object(line).into_iter().map(|(name, value)| (name, cell(value))).collect()).collect();
        (cells.iter().flat_map(BTreeMap::keys).cloned().collect::<BTreeSet<_>>().into_iter().collect(), cells)
    };
    if let Some(column) = names.iter().find(|name| *name == "custom_fields.unknown") {
        return Err(json!({"column": column, "detail": "unknown column"}));
    }
    let matched = Some(request.parameter("match")).filter(|matched| *matched != "none");
    let columns = Columns::resolve(kind, &names, &BTreeMap::new(), &reading, matched).unwrap();
    Ok(cells.iter().map(|cells| row(&columns, &names, cells)).collect())
}

fn row(columns: &Columns, names: &[String], cells: &Fields) -> Result<Fields, Value> {
    let mut fields = Fields::new();
    for column in &columns.columns {
        let error = |detail: &str| json!({"column": column.field, "heading": column.heading, "detail": detail, "code": "VALIDATION_ERROR"});
        let Some(text) = columns.text(column, |index| cells.get(&names[index]).map(String::as_str)) else { continue };
        let value = columns.convert(column, text).map_err(|detail| error(&detail))?;
        if column.field == "manufacturer" && value.starts_with("Unbekannt") {
            return Err(error("unknown manufacturer"));
        }
        fields.insert(column.field.clone(), value.into_owned());
    }
    let constants = columns.constants().map(|(field, value)| (field.to_owned(), value.unwrap().into_owned()));
    fields.extend(constants);
    Ok(fields)
}
