//! Sends the chunks of a file, several at once, until all rows are settled.

use crate::error::{CliError, Result};
use crate::http::{Answer, Backoff, Busy, Client, MAX_AT_ONCE, Request, local_now};
use crate::import::chunks::{Chunk, Chunks};
use crate::import::keys::Keys;
use crate::import::report::{Outcome, Report, Results, RowResult, results};
use crate::import::rows::{Row, RowError, Shape};
use crate::import::skip_bad::{bad_cells, without_cells};

use crate::interrupt::Interrupt;
use crate::output::{Format, Progress, count};
use domain::import::columns::Column;
use reqwest::Url;
use serde_json::json;
use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use terminal::print_note;
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// Maximum time to wait for requests in flight after Ctrl-C.
const GRACE: Duration = Duration::from_secs(10);
/// Maximum number of chunks, of up to 1 MB, that are read but not reported yet: later chunks are sent while an earlier one is
/// retried.
const MAX_OPEN: usize = 16;

pub struct Sender<'a> {
    pub client: &'a Client,
    pub url: Url,
    /// The same request as a dry run.
    pub check_url: Url,
    /// Parameters that are too long for the URL.
    pub in_body: &'a [(&'static str, String)],
    /// Fields whose refused cells are left out.
    pub skip_bad: &'a [String],
    pub shape: &'a Rc<Shape>,
    /// Names of the file's columns.
    pub names: &'a [String],
    pub format: Format,
    /// Idempotency keys; `None` in a dry run.
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
    /// A row was refused, and later rows were not sent.
    Refused,
    /// Interrupted after this many rows.
    Interrupted(u64),
}

/// A chunk that isn't in the report yet.
struct Open {
    chunk: Chunk,
    results: Option<Vec<RowResult>>,
}

impl Sender<'_> {
    /// # Errors
    ///
    /// Returns [`CliError::Answered`] if the service refuses the first request, [`CliError::Usage`] if an earlier run sent it
    /// with other rows, and [`CliError::Failed`] if the service refuses a later request or doesn't respond for too long.
    pub async fn run(&self, chunks: &mut Chunks, report: &mut Report<'_>, progress: &mut Progress) -> Result<Ending> {
        let (mut open, mut under_way, waits) = (VecDeque::<Open>::new(), JoinSet::new(), Arc::new(Notify::new()));
        let (mut next, mut is_at_end, mut is_stopping, mut has_answered, mut rows) = (None, false, false, false, 0);
        let mut interrupt = self.interrupt.clone();
        loop {
            while !is_at_end && !is_stopping && interrupt.count() == 0 {
                report_settled(&mut open, report)?;
                // Only one request is sent at first, because its response shows whether key, columns and address are right.
                let at_once = if has_answered { MAX_AT_ONCE } else { 1 };
                if under_way.len() >= at_once || open.len() >= MAX_OPEN {
                    break;
                }
                let Some(chunk) = (if next.is_some() { next.take() } else { chunks.next()? }) else {
                    is_at_end = true;
                    break;
                };
                // Rows for the same record are sent in file order.
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
                    print_note(&format!("Stopping: waiting for {requests} in progress. Press Ctrl-C again to stop at once."));
                }
            }
        }
    }

    /// Sends a chunk until all of its rows are settled. Returns `None` if interrupted while the service is busy. `is_known` means
    /// that the service has responded before.
    ///
    /// Cells to leave out are found with dry runs. A repeated import leaves out the same cells, because rows that are sent again
    /// with other cells could be created twice.
    pub fn send(
        &self,
        chunk: &Chunk,
        is_known: bool,
        waits: &Arc<Notify>,
    ) -> impl Future<Output = Result<Option<Vec<RowResult>>>> + use<> {
        let (url, body, number) = (self.url.clone(), chunk.body.clone(), chunk.number);
        let (keys, protects) = (self.keys.cloned(), self.keys.is_some_and(|keys| keys.protects(chunk)));
        let places = |field: &String| (field.clone(), self.shape.columns.column(field).map(Column::places).unwrap_or_default());
        let sending = Sending {
            client: self.client.clone(),
            interrupt: self.interrupt.clone(),
            waits: Arc::clone(waits),
            check_url: self.check_url.clone(),
            in_body: self.in_body.to_vec(),
            format: self.format,
            skip_bad: self.skip_bad.to_vec(),
            places: self.skip_bad.iter().map(places).collect(),
            names: if self.skip_bad.is_empty() { Vec::new() } else { self.names.to_vec() },
            is_known,
            rows: chunk.sent().count(),
        };
        async move {
            let Some((body, left_out)) = sending.without_bad_cells(number, body, keys.as_ref()).await? else { return Ok(None) };
            let key = keys.map(|keys| keys.of(number, &body, protects));
            let Some(mut results) = sending.send(&sending.request(url, &body, key)).await? else { return Ok(None) };
            for (row, error) in left_out {
                results[row].skipped_cells.push(error);
            }
            Ok(Some(results))
        }
    }

    /// Adds advice on how to continue. `rows` is the number of rows settled before; `None` for the first request.
    fn explain(&self, error: CliError, chunk: &Chunk, rows: Option<u64>) -> CliError {
        let Some(keys) = self.keys else { return error };
        if error.is_used_key() && keys.protects(chunk) {
            let [first, last] = [chunk.rows.first(), chunk.rows.last()].map(|row: Option<&Row>| row.map_or(0, |row| row.number));
            let text = format!(
                "an import of {} in the last 24 hours sent rows {first} to {last} with different content or options. Importing \
                 them now could create some twice. Correct refused rows in the file of refused rows, and import that file. If none \
                 of these rows was imported, or if all should be created again, add --again.",
                self.file.display()
            );
            return if rows.is_none() { CliError::Usage(text) } else { CliError::Failed(text) };
        }
        match (error, rows) {
            (error @ CliError::Answered { .. }, None) => error,
            (error, rows) => {
                let rows = count(rows.unwrap_or_default(), "row");
                CliError::Failed(format!("{error}\nStopped after {rows}. After fixing that, {}.", self.resume))
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

/// Sends requests of a chunk.
struct Sending {
    client: Client,
    interrupt: Interrupt,
    waits: Arc<Notify>,
    check_url: Url,
    in_body: Vec<(&'static str, String)>,
    format: Format,
    skip_bad: Vec<String>,
    /// The columns of the fields in `skip_bad`.
    places: HashMap<String, Vec<usize>>,
    names: Vec<String>,
    is_known: bool,
    /// Number of rows in each request.
    rows: usize,
}

impl Sending {
    fn request(&self, url: Url, body: &[u8], key: Option<String>) -> Request {
        if self.in_body.is_empty() {
            return Request::post(url, self.format.content_type(), body.to_vec(), key);
        }
        let parameters: Vec<_> = self.in_body.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        let body = json!({"parameters": parameters, "text": String::from_utf8_lossy(body)});
        Request::post(url, "application/json", body.to_string().into_bytes(), key)
    }

    fn without(&self, body: &[u8], cells: &[(usize, RowError)]) -> Result<Vec<u8>> {
        let cells = cells.iter().filter_map(|(row, error)| Some((*row, self.places.get(error.column.as_ref()?)?.as_slice())));
        without_cells(body, self.format, &self.names, cells)
    }

    /// Returns the body without the cells to leave out, and these cells, each with the position of its row; `None` if interrupted.
    async fn without_bad_cells(
        &self,
        number: u64,
        body: Vec<u8>,
        keys: Option<&Keys>,
    ) -> Result<Option<(Vec<u8>, Vec<(usize, RowError)>)>> {
        if self.skip_bad.is_empty() {
            return Ok(Some((body, Vec::new())));
        }
        let now = local_now()?.as_second();
        if let Some(left_out) = keys.and_then(|keys| keys.left_out(number, &body, &self.skip_bad, now)) {
            return Ok(Some((self.without(&body, &left_out)?, left_out)));
        }
        let (mut rest, mut left_out) = (body.clone(), Vec::new());
        // One error can hide others, which the next dry run finds.
        for _ in &self.skip_bad {
            let check = self.request(self.check_url.clone(), &rest, None);
            let Some(results) = self.send(&check).await? else { return Ok(None) };
            let bad = bad_cells(&results, &self.skip_bad);
            if bad.is_empty() {
                break;
            }
            rest = self.without(&rest, &bad)?;
            left_out.extend(bad);
        }
        if let Some(keys) = keys {
            keys.note_left_out(number, &body, &self.skip_bad, now, &left_out);
        }
        Ok(Some((rest, left_out)))
    }

    /// Sends a request until all rows are settled. Returns `None` if interrupted while the service is busy.
    async fn send(&self, request: &Request) -> Result<Option<Vec<RowResult>>> {
        let mut backoff = Backoff::begin(Some(self.client.give_up_after), self.is_known, Instant::now());
        let (mut interrupt, mut may_be_done, mut unavailable) = (self.interrupt.clone(), false, self.rows);
        loop {
            let busy = match self.client.send(request).await {
                Answer::Refused(error) => return Err(error),
                Answer::Busy(busy) => busy,
                Answer::Done(reply) => match results(&reply.body, self.rows)? {
                    Results::Settled(mut rows) => {
                        // An earlier attempt of this run may have imported the rows, so they don't count as imported
                        // by an earlier run.
                        rows.iter_mut().for_each(|row| row.replayed &= !may_be_done);
                        return Ok(Some(rows));
                    }
                    Results::Unavailable(rows) => {
                        if rows < unavailable {
                            backoff.renew(Instant::now());
                        }
                        unavailable = rows;
                        let detail = format!("the service is busy: {} must wait", count(rows as u64, "row"));
                        let retry_after = reply.retry_after;
                        Busy { retry_after, may_have_effect: true, detail, ..Busy::default() }
                    }
                },
            };
            may_be_done |= busy.may_have_effect;
            let pause = backoff.pause(&busy, Instant::now()).map_err(CliError::Unanswered)?;
            self.waits.notify_one();
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = interrupt.next() => return Ok(None),
            }
        }
    }
}
