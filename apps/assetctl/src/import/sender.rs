//! Sends the chunks of a file, several at once, until all are settled, and sums up the fields that a dry run would change.

use crate::error::{CliError, Result};
use crate::http::client::{Client, MAX_AT_ONCE, Request};
use crate::http::request::{Answer, Busy, Patience};
use crate::import::chunks::{Chunk, ChunkRow, Chunks};
use crate::import::keys::Keys;
use crate::import::refused::Report;
use crate::import::summary::{Outcome, Results, RowResult, results};
use crate::interrupt::Interrupt;
use crate::output::{Progress, count, digits, exact};
use reqwest::Url;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use terminal::print_note;
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// The wait for requests under way after Ctrl-C.
const GRACE: Duration = Duration::from_secs(10);
/// Chunks that are read and not in the report yet, of at most 1 MB each: while one is repeated, those behind it go ahead.
const MAX_OPEN: usize = 16;

/// Sends chunks and reports their results.
pub struct Sender<'a> {
    pub client: &'a Client,
    pub url: Url,
    pub content_type: &'static str,
    /// Nothing is written without.
    pub keys: Option<&'a Keys>,
    pub file: &'a Path,
    /// The command that continues the import.
    pub resume: &'a str,
    pub stops_at_refusal: bool,
    pub interrupt: &'a Interrupt,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Ending {
    Complete,
    /// A row was refused, and the rest was not sent.
    Refused,
    /// After so many rows.
    Interrupted(u64),
}

/// A chunk that is not in the report yet.
struct Open {
    chunk: Chunk,
    results: Option<Vec<RowResult>>,
}

impl Sender<'_> {
    /// # Errors
    ///
    /// Returns [`CliError::Answered`] when the service refuses the first request, [`CliError::Usage`] when an earlier run sent
    /// it with other rows, and [`CliError::Failed`] when it refuses another one, or doesn't answer for too long.
    pub async fn run<R: Read>(&self, chunks: &mut Chunks<R>, report: &mut Report<'_>, progress: &mut Progress) -> Result<Ending> {
        let (mut open, mut under_way, waits) = (VecDeque::<Open>::new(), JoinSet::new(), Arc::new(Notify::new()));
        let (mut next, mut is_at_end, mut is_stopping, mut has_answered, mut rows) = (None, false, false, false, 0);
        let mut interrupt = self.interrupt.clone();
        loop {
            while !is_at_end && !is_stopping && interrupt.count() == 0 {
                report_settled(&mut open, report)?;
                // The first request alone shows whether key, columns and address are right.
                let at_once = if has_answered { MAX_AT_ONCE } else { 1 };
                if under_way.len() >= at_once || open.len() >= MAX_OPEN {
                    break;
                }
                let Some(chunk) = (if next.is_some() { next.take() } else { chunks.next()? }) else {
                    is_at_end = true;
                    break;
                };
                // Rows that can touch the same record take effect in the file's order.
                if open.iter().any(|earlier| earlier.results.is_none() && !earlier.chunk.keys.is_disjoint(&chunk.keys)) {
                    next = Some(chunk);
                    break;
                }
                let results = if chunk.body.is_empty() {
                    progress.settled(chunk.rows.len() as u64, chunk.raw_length, "");
                    Some(Vec::new())
                } else {
                    let sent = self.send(&chunk, has_answered, &waits);
                    let number = chunk.number;
                    under_way.spawn(async move { (number, sent.await) });
                    None
                };
                open.push_back(Open { chunk, results });
            }
            report_settled(&mut open, report)?;
            if under_way.is_empty() {
                return Ok(match (is_stopping, is_at_end && open.is_empty()) {
                    (true, _) => Ending::Refused,
                    (_, true) => Ending::Complete,
                    _ => Ending::Interrupted(rows),
                });
            }
            let is_ending = interrupt.count() > 0;
            tokio::select! {
                Some(answered) = under_way.join_next() => {
                    let (number, results) = answered.map_err(|error| CliError::Failed(error.to_string()))?;
                    let Some(settled) = open.iter_mut().find(|open| open.chunk.number == number) else { continue };
                    let results = results.map_err(|error| self.explain(error, &settled.chunk, has_answered.then_some(rows)))?;
                    if let Some(results) = results {
                        has_answered = true;
                        is_stopping |= self.stops_at_refusal && results.iter().any(|row| row.outcome == Outcome::Refused);
                        rows += settled.chunk.rows.len() as u64;
                        progress.settled(settled.chunk.rows.len() as u64, settled.chunk.raw_length, "");
                        settled.results = Some(results);
                    }
                }
                () = waits.notified() => progress.settled(0, 0, ", waiting for the service"),
                () = tokio::time::sleep(GRACE), if is_ending => return Ok(Ending::Interrupted(rows)),
                interrupts = interrupt.next() => {
                    if interrupts > 1 {
                        return Ok(Ending::Interrupted(rows));
                    }
                    let requests = count(under_way.len() as u64, "request");
                    print_note(&format!("Ending: waiting for {requests} under way. Press Ctrl-C again to end at once."));
                }
            }
        }
    }

    /// Sends a chunk until all of its rows are settled. Ends without results if it is interrupted while the service is busy.
    /// `is_known`: the service has answered before.
    pub fn send(
        &self,
        chunk: &Chunk,
        is_known: bool,
        waits: &Arc<Notify>,
    ) -> impl Future<Output = Result<Option<Vec<RowResult>>>> + use<> {
        let key = self.keys.map(|keys| keys.of(chunk));
        let request = Request::post(self.url.clone(), self.content_type, chunk.body.clone(), key);
        let (client, mut interrupt, waits) = (self.client.clone(), self.interrupt.clone(), Arc::clone(waits));
        let mut patience = Patience::begin(Some(client.patience), is_known, Instant::now());
        let (sent, mut may_be_done) = (chunk.sent().count(), false);
        let mut unavailable = sent;
        async move {
            loop {
                let busy = match client.send(&request).await {
                    Answer::Refused(error) => return Err(error),
                    Answer::Busy(busy) => busy,
                    Answer::Done(reply) => match results(&reply.body, sent)? {
                        Results::Settled(mut rows) => {
                            // Then they are results of this run.
                            rows.iter_mut().for_each(|row| row.replayed &= !may_be_done);
                            return Ok(Some(rows));
                        }
                        Results::Unavailable(rows) => {
                            if rows < unavailable {
                                patience.renew(Instant::now());
                            }
                            unavailable = rows;
                            let detail = format!("the service is busy: {} must wait", count(rows as u64, "row"));
                            let retry_after = reply.retry_after;
                            Busy { retry_after, may_have_effect: true, detail, ..Busy::default() }
                        }
                    },
                };
                may_be_done |= busy.may_have_effect;
                let pause = patience.pause(&busy, Instant::now()).map_err(CliError::Unanswered)?;
                waits.notify_one();
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    _ = interrupt.next() => return Ok(None),
                }
            }
        }
    }

    /// Says how to go on. `rows`: how many were settled before; `None` if it is the first request.
    fn explain(&self, error: CliError, chunk: &Chunk, rows: Option<u64>) -> CliError {
        let Some(keys) = self.keys else { return error };
        if error.is_used_key() && keys.protects(chunk) {
            let number = |row: Option<&ChunkRow>| row.map_or(0, |row| row.number);
            let text = format!(
                "an import of {} in the last 24 hours sent rows {} to {} with another content or other options. Importing them now \
                 could create some twice. Correct refused rows in the file of refused rows, and import that file. If none of these \
                 rows was imported, or all are to be created again, add --again.",
                self.file.display(),
                number(chunk.rows.first()),
                number(chunk.rows.last())
            );
            return if rows.is_none() { CliError::Usage(text) } else { CliError::Failed(text) };
        }
        match (error, rows) {
            (error @ CliError::Answered { .. }, None) => error,
            (error, rows) => {
                let rows = count(rows.unwrap_or_default(), "row");
                CliError::Failed(format!("{error}\nStopped after {rows}. When that is mended, {}.", self.resume))
            }
        }
    }
}

fn report_settled(open: &mut VecDeque<Open>, report: &mut Report<'_>) -> Result<()> {
    while let Some(Open { chunk, results: Some(results) }) = open.pop_front_if(|open| open.results.is_some()) {
        report.add(chunk, results)?;
    }
    Ok(())
}

/// The fields that are summed up: a file can name a new custom field in each row.
const MAX_FIELDS: usize = 1_000;

/// One change of a row, as the service says it.
#[derive(Debug, Deserialize)]
pub struct FieldChange {
    field: String,
    #[serde(deserialize_with = "exactly")]
    old: Value,
    #[serde(deserialize_with = "exactly")]
    new: Value,
}

fn exactly<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    exact(Box::<RawValue>::deserialize(deserializer)?.get()).map_err(serde::de::Error::custom)
}

/// The changes of all rows, by field.
#[derive(Debug, Default)]
pub struct Changes(BTreeMap<String, Change>);

/// The changes of a field.
#[derive(Debug, Default)]
pub struct Change {
    pub rows: u64,
    /// The first old and new value.
    pub example: (String, String),
    /// Rows in which only leading zeros differ.
    pub zeros: u64,
    pub example_of_zeros: (String, String),
}

impl Changes {
    pub fn add(&mut self, change: &FieldChange) {
        let FieldChange { field, old, new } = change;
        if self.0.len() >= MAX_FIELDS && !self.0.contains_key(field) {
            return;
        }
        let (sum, example) = (self.0.entry(field.clone()).or_default(), (text(old), text(new)));
        sum.rows += 1;
        if differ_in_zeros(&example.0, &example.1) {
            sum.zeros += 1;
            if sum.zeros == 1 {
                sum.example_of_zeros.clone_from(&example);
            }
        }
        if sum.rows == 1 {
            sum.example = example;
        }
    }

    /// Those that most rows have come first.
    #[must_use]
    pub fn most_frequent(&self) -> Vec<(&str, &Change)> {
        let mut changes: Vec<_> = self.0.iter().map(|(field, change)| (field.as_str(), change)).collect();
        changes.sort_by_key(|(_, change)| std::cmp::Reverse(change.rows));
        changes
    }

    #[must_use]
    pub fn as_json(&self) -> Value {
        let change = |(field, change): (&str, &Change)| {
            let (old, new) = &change.example;
            json!({"field": field, "rows": change.rows, "old": old, "new": new, "only_leading_zeros": change.zeros})
        };
        self.most_frequent().into_iter().map(change).collect()
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        number if digits(number).is_some() => digits(number).unwrap_or_default().to_owned(),
        Value::String(text) if text.is_empty() => "an empty text".to_owned(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

fn differ_in_zeros(old: &str, new: &str) -> bool {
    let bare = |text: &str| text.trim_start_matches('0').to_owned();
    old != new && !bare(old).is_empty() && bare(old) == bare(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_counted_by_field_and_lost_zeros_apart() {
        let mut all = Changes::default();
        for (field, old, new) in [
            ("custom_fields.cost_center", json!("4711"), json!("4712")),
            ("custom_fields.cost_center", json!("0815"), json!("815")),
            ("custom_fields.cost_center", json!("007"), json!("7")),
            ("assigned_to", json!(null), json!("a")),
            ("purchase_price", json!(0), exact("1.50").unwrap()),
        ] {
            all.add(&FieldChange { field: field.into(), old, new });
        }
        let expected = json!([
            {"field": "custom_fields.cost_center", "rows": 3, "old": "4711", "new": "4712", "only_leading_zeros": 2},
            {"field": "assigned_to", "rows": 1, "old": "nothing", "new": "a", "only_leading_zeros": 0},
            {"field": "purchase_price", "rows": 1, "old": "0", "new": "1.50", "only_leading_zeros": 0},
        ]);
        assert_eq!(all.as_json(), expected);
        assert_eq!(all.most_frequent()[0].1.example_of_zeros, ("0815".into(), "815".into()));
    }
}
