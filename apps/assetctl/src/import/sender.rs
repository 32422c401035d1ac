//! Sends the chunks of a file, several at once, until all are settled.

use crate::error::{CliError, Result};
use crate::http::answer::{Answer, Busy, interpret};
use crate::http::client::{Client, ImportRequest, Reply, Unreachable};
use crate::http::pace::{Pace, Permit};
use crate::http::patience::Patience;
use crate::import::chunks::{Chunk, Chunks};
use crate::import::journal::Journal;
use crate::import::settlement::{Settlement, Verdict};
use crate::import::unsettled::Unsettled;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, Instant};
use terminal::print_note;
use tokio::task::JoinSet;

/// The wait for requests under way after Ctrl-C.
const GRACE: Duration = Duration::from_secs(10);

/// Sends chunks and notes their results in the journal.
pub struct Sender<'a> {
    pub client: Client,
    pub request: Arc<ImportRequest>,
    /// Nothing is written: requests then have no idempotency keys.
    pub is_dry_run: bool,
    pub stops_at_refusal: bool,
    pub journal: &'a mut Journal,
    pub progress: &'a mut Progress,
    pub patience: Duration,
    pub interrupt: Interrupt,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Ending {
    Complete,
    /// A row was refused, and the rest was not sent.
    Refused,
    Interrupted,
}

struct Response {
    chunk: u64,
    sent: Instant,
    result: std::result::Result<Reply, Unreachable>,
}

struct State {
    pace: Pace,
    unsettled: Unsettled,
    under_way: JoinSet<Response>,
    is_at_end: bool,
    is_stopping: bool,
    has_answered: bool,
    /// A request may have taken effect although it was not answered in full.
    is_in_doubt: bool,
    patience: Patience,
}

impl Sender<'_> {
    /// Sends all chunks that the journal lacks.
    ///
    /// # Errors
    ///
    /// Returns [`CliError::Failed`] when the service refuses a request as a whole, or doesn't answer for too long.
    pub async fn run<R: Read>(mut self, chunks: &mut Chunks<R>) -> Result<Ending> {
        let mut state = State {
            pace: Pace::default(),
            unsettled: Unsettled::default(),
            under_way: JoinSet::new(),
            is_at_end: false,
            is_stopping: false,
            has_answered: false,
            is_in_doubt: false,
            patience: Patience::begin(self.patience, Instant::now()),
        };
        loop {
            let mut wake = Instant::now() + Duration::from_secs(5);
            if !state.is_stopping && self.interrupt.count() == 0 {
                self.fill(&mut state, chunks)?;
                wake = self.start(&mut state, wake);
            }
            if state.under_way.is_empty() {
                if state.is_stopping {
                    return Ok(Ending::Refused);
                }
                if state.is_at_end && state.unsettled.is_empty() {
                    return Ok(Ending::Complete);
                }
                if self.interrupt.count() > 0 {
                    return Ok(Ending::Interrupted);
                }
            }
            let is_ending = self.interrupt.count() > 0;
            tokio::select! {
                Some(response) = state.under_way.join_next() => {
                    let response = response.map_err(|error| CliError::Failed(error.to_string()))?;
                    self.note(&mut state, response)?;
                }
                () = tokio::time::sleep_until(wake.into()), if !is_ending => {}
                () = tokio::time::sleep(GRACE), if is_ending => return Ok(Ending::Interrupted),
                count = self.interrupt.next() => {
                    if count > 1 {
                        return Ok(Ending::Interrupted);
                    }
                    let requests = state.under_way.len();
                    print_note(&format!("Ending: waiting for {requests} requests under way. Press Ctrl-C again to end at once."));
                }
            }
        }
    }

    /// Reads chunks ahead, so that one that must wait doesn't hold up the others.
    fn fill<R: Read>(&mut self, state: &mut State, chunks: &mut Chunks<R>) -> Result<()> {
        while !state.is_at_end && !state.unsettled.is_full() {
            match chunks.next()? {
                None => state.is_at_end = true,
                Some(chunk) if self.journal.has(chunk.number) => self.progress.skip(chunk.raw_length),
                Some(chunk) if chunk.body.is_empty() => {
                    self.progress.settled(chunk.rows.len() as u64, chunk.raw_length, "");
                    state.patience.renew(Instant::now());
                }
                Some(chunk) => state.unsettled.add(chunk),
            }
        }
        Ok(())
    }

    /// Sends the requests that the pace permits. Returns the time for the next look.
    fn start(&self, state: &mut State, mut wake: Instant) -> Instant {
        loop {
            let now = Instant::now();
            if !state.has_answered && !state.under_way.is_empty() {
                // The first request alone shows whether key, columns and address are right.
                return wake;
            }
            match state.pace.permit(state.under_way.len(), now) {
                Permit::Full => return wake,
                Permit::At(time) => return wake.min(time),
                Permit::Now => {}
            }
            let Some(chunk) = state.unsettled.start_next(now) else {
                if let Some(time) = state.unsettled.next_time() {
                    wake = wake.min(time);
                }
                return wake;
            };
            let (client, request, number, body) =
                (self.client.clone(), Arc::clone(&self.request), chunk.number, chunk.body.clone());
            let key = (!self.is_dry_run).then(|| format!("{}-{number}", self.journal.run_id()));
            state.under_way.spawn(async move {
                let result = client.import(request, body, key).await;
                Response { chunk: number, sent: now, result }
            });
        }
    }

    fn note(&mut self, state: &mut State, response: Response) -> Result<()> {
        let now = Instant::now();
        let Response { chunk, sent, result } = response;
        let busy = match result {
            Err(unreachable) => {
                state.is_in_doubt |= unreachable.may_be_sent;
                Busy::unreachable(unreachable, !state.has_answered)
            }
            Ok(reply) => {
                state.has_answered = true;
                // The rows may have been imported.
                state.is_in_doubt |= reply.is_too_long;
                match interpret(&reply) {
                    Answer::Refused { detail, .. } if self.has_no_effect(state) => return Err(CliError::Rejected(detail)),
                    Answer::Refused { detail, .. } => return Err(CliError::Failed(detail)),
                    Answer::Busy(busy) => {
                        state.is_in_doubt = true;
                        busy
                    }
                    Answer::Done => match self.verdict(state, chunk, &reply)? {
                        Verdict::Settled(settlement) => {
                            state.pace.answered(sent, now);
                            return self.settle(state, chunk, settlement);
                        }
                        Verdict::Unexpected(detail) => return Err(CliError::Failed(detail)),
                        Verdict::Unavailable(rows) => {
                            state.is_in_doubt = true;
                            if state.unsettled.note_unavailable(chunk, rows) {
                                state.patience.renew(now);
                            }
                            let detail = format!("the service is busy: {rows} rows must wait");
                            Busy { retry_after: reply.retry_after, is_fault: false, detail }
                        }
                    },
                }
            }
        };
        let attempts = state.unsettled.failed(chunk);
        let pause = state.patience.pause(attempts, &busy, now);
        let has_no_effect = self.has_no_effect(state);
        let pause = pause.map_err(if has_no_effect { CliError::Rejected } else { CliError::Failed })?;
        state.pace.overloaded(sent, now, busy.retry_after);
        state.unsettled.retry(chunk, now + pause);
        self.progress.settled(0, 0, ", waiting for the service");
        Ok(())
    }

    fn has_no_effect(&self, state: &State) -> bool {
        self.journal.len() == 0 && !state.is_in_doubt && state.under_way.is_empty()
    }

    fn verdict(&self, state: &State, chunk: u64, reply: &Reply) -> Result<Verdict> {
        let response = serde_json::from_slice(&reply.body)
            .map_err(|error| CliError::Failed(format!("can't read the service's answer; check --base-url: {error}")))?;
        let sent = state.unsettled.chunk(chunk).map_or(0, |chunk| chunk.sent().count());
        Ok(Verdict::of(response, sent))
    }

    fn settle(&mut self, state: &mut State, number: u64, settlement: Settlement) -> Result<()> {
        state.patience.renew(Instant::now());
        state.is_stopping |= self.stops_at_refusal && settlement.counts.refused > 0;
        self.journal.settle(number, settlement)?;
        if let Some(Chunk { rows, raw_length, .. }) = state.unsettled.remove(number) {
            self.progress.settled(rows.len() as u64, raw_length, "");
        }
        Ok(())
    }
}
