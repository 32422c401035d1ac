//! Imports: one transaction per row. With an idempotency key, each row is a part of the request, and the row's transaction also
//! stores the row's response. A retry of the request returns the stored responses and executes the remaining rows.

use crate::auth::VerifiedCaller;
use crate::domain::record::{IdempotentRequest, StoredResponse};
use crate::http::bulk::import::{Executed, ImportResult, OnError};
use crate::http::responses::{ApiError, Dependency, Json};
use crate::log::error_chain;
use crate::store::{ChangeContext, PreviousRequest, WriteError, has_time_for_operation};
use futures_util::{StreamExt, stream};
use std::collections::{BTreeSet, HashMap};
use std::error::Error;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Number of rows executed concurrently. If the table throttles, more rows would not make an import faster, but only slow down
/// other users of the table.
const CONCURRENT_ROWS: usize = 5;

/// The rows of a request, each written in a transaction of its own.
pub struct Rows {
    caller: VerifiedCaller,
    /// The responses of an earlier attempt at the request, by row.
    responses: Vec<Option<StoredResponse>>,
}

/// A row's inputs, read together with those of the other rows, and the names of the values and records that other rows might
/// change, too.
pub type RowInputs<I> = (Result<I, ApiError>, BTreeSet<String>);

/// State shared by the rows of a request during execution.
#[derive(Default)]
struct Progress {
    /// If set, no further row starts, because this dependency is unavailable.
    halted: OnceLock<Dependency>,
    /// Set when another attempt has executed a row: the inputs may then be stale.
    is_outdated: AtomicBool,
}

impl VerifiedCaller {
    /// Imports a file. `execute` writes its rows for the caller that it is given: first in a dry run, if all rows must be good.
    ///
    /// # Errors
    ///
    /// Returns the errors of `execute`.
    pub async fn import<F>(&self, on_error: OnError, execute: impl Fn(Self) -> F) -> Result<Json<ImportResult>, ApiError>
    where
        F: Future<Output = Result<Executed, ApiError>>,
    {
        self.refuse_precondition()?;
        // A resumed request has passed the check, so its remaining rows are written.
        if on_error == OnError::Abort && !self.is_resumed {
            let checker = self.with_dry_run();
            let checked = execute(checker.clone()).await?;
            let is_good = checked.responses.iter().all(|response| response.status < 300);
            let result = ImportResult::new(&checked, !is_good)?;
            if is_good && self.store.is_dry_run() {
                return Ok(Json(result));
            }
            // The check can fail because of rows that another attempt has written.
            if !is_good && !self.has_begun_elsewhere().await? {
                return Ok(Json(result.without_placeholders(|text| checker.store.is_placeholder(text))));
            }
        }
        Ok(Json(ImportResult::new(&execute(self.clone()).await?, false)?))
    }

    /// Begins the rows of a request.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Unavailable`] if the table is unavailable, and [`ApiError::Conflict`] if another request has the same
    /// idempotency key.
    pub async fn rows(&self, count: usize) -> Result<Rows, ApiError> {
        let responses = match &self.context.idempotency {
            Some(request) if self.begin(request).await? => self.store.previous_parts(request, count).await?,
            _ => vec![None; count],
        };
        Ok(Rows { caller: self.clone(), responses })
    }

    #[must_use]
    pub fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    /// Whether another attempt has started to execute its rows since this attempt checked.
    async fn has_begun_elsewhere(&self) -> Result<bool, ApiError> {
        let Some(request) = &self.context.idempotency else { return Ok(false) };
        let previous = self.store.previous_request(request).await?;
        Ok(matches!(previous, Some(PreviousRequest::Same(response)) if response.is_in_parts))
    }

    /// Records that the request has started. Returns whether it had already started: each row is then executed once, by the
    /// attempt that commits it first.
    async fn begin(&self, request: &IdempotentRequest) -> Result<bool, ApiError> {
        if self.is_resumed {
            return Ok(true);
        }
        match self.store.store_response_alone(request, &StoredResponse::of_request_in_parts()).await {
            Ok(()) => return Ok(false),
            Err(WriteError::AlreadyAnswered) => {}
            Err(error) => return Err(error.into()),
        }
        // The middleware sends any other stored response.
        if self.has_begun_elsewhere().await? { Ok(true) } else { Err(WriteError::AlreadyAnswered.into()) }
    }

    /// Returns the stored response of a failed row if the row took effect after all: in another attempt, or despite a timeout.
    /// Otherwise returns the error.
    async fn settle(&self, error: ApiError, progress: &Progress) -> Result<StoredResponse, ApiError> {
        if let Some(cause) = error.source().map(error_chain) {
            tracing::error!(request_id = self.notes.request_id(), cause, "a row of a request failed");
        }
        let Some(part) = &self.context.idempotency else { return Err(error) };
        match self.store.previous_request(part).await? {
            Some(PreviousRequest::Same(response)) => {
                progress.is_outdated.store(true, Ordering::Relaxed);
                Ok(*response)
            }
            _ => Err(error),
        }
    }
}

impl Rows {
    /// Returns the positions of the rows that no earlier attempt has written.
    #[must_use]
    pub fn left(&self) -> Vec<usize> {
        (0..self.responses.len()).filter(|index| self.responses[*index].is_none()).collect()
    }

    /// Writes the rows that are left, and returns a response for each row: the result of the change, or a problem document. After
    /// a temporary error, such as throttling, no further row starts, and the remaining rows get the same kind of error. Errors
    /// are not stored, so a retry of the request executes these rows.
    ///
    /// `inputs` are those of the rows that are left. `write` gets a row's caller, position and inputs; it reads the inputs itself
    /// if they are `None`, because they are stale. Rows without a common name in their inputs run first, concurrently. The others
    /// follow one by one, in order, so that each sees the changes of the rows before it.
    pub async fn write<I, F>(
        self,
        inputs: Vec<RowInputs<I>>,
        write: impl Fn(VerifiedCaller, usize, Option<Result<I, ApiError>>) -> F,
    ) -> Executed
    where
        F: Future<Output = Result<StoredResponse, ApiError>>,
    {
        let are_replayed = self.responses.iter().map(Option::is_some).collect();
        let left = self.left();
        if left.is_empty() && !self.responses.is_empty() {
            self.caller.notes.note_replay();
        }
        let (inputs, names): (Vec<_>, Vec<_>) = inputs.into_iter().unzip();
        let (mut apart, mut connected) = (Vec::new(), Vec::new());
        for ((index, inputs), is_connected) in left.into_iter().zip(inputs).zip(are_connected(&names)) {
            if is_connected { connected.push(index) } else { apart.push((index, inputs)) }
        }
        let progress = &Progress::default();
        let (caller, write) = (&self.caller, &write);
        let execute = |(index, inputs)| async move { (index, caller.execute_row(index, Some(inputs), write, progress).await) };
        let executed: Vec<(usize, StoredResponse)> =
            stream::iter(apart).map(execute).buffer_unordered(CONCURRENT_ROWS).collect().await;
        let mut responses = self.responses;
        for (index, response) in executed {
            responses[index] = Some(response);
        }
        for index in connected {
            responses[index] = Some(caller.execute_row(index, None, write, progress).await);
        }
        Executed { responses: responses.into_iter().flatten().collect(), are_replayed }
    }
}

impl VerifiedCaller {
    /// Executes a row, unless the request is halted, and returns its response or error.
    async fn execute_row<I, F>(
        &self,
        index: usize,
        inputs: Option<Result<I, ApiError>>,
        write: &impl Fn(Self, usize, Option<Result<I, ApiError>>) -> F,
        progress: &Progress,
    ) -> StoredResponse
    where
        F: Future<Output = Result<StoredResponse, ApiError>>,
    {
        let idempotency = self.context.idempotency.as_ref().map(|request| request.part(index));
        let caller = self.with_context(ChangeContext { idempotency, ..self.context.clone() });
        if !has_time_for_operation() {
            let _ = progress.halted.set(Dependency::Service);
        }
        let result = match progress.halted.get() {
            Some(dependency) => Err(ApiError::Unavailable(*dependency, "not executed".into())),
            None => {
                let inputs = inputs.filter(|_| !progress.is_outdated.load(Ordering::Relaxed));
                match write(caller.clone(), index, inputs).await {
                    Ok(response) => Ok(response),
                    Err(error) => caller.settle(error, progress).await,
                }
            }
        };
        result.unwrap_or_else(|error| {
            if let ApiError::Unavailable(dependency, _) = &error {
                let _ = progress.halted.set(*dependency);
            }
            self.notes.problem(&error)
        })
    }
}

/// Returns, for each row, whether it shares a name with another row.
fn are_connected(names: &[BTreeSet<String>]) -> Vec<bool> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for name in names.iter().flatten() {
        *counts.entry(name).or_default() += 1;
    }
    names.iter().map(|own| own.iter().any(|name| counts[name.as_str()] > 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_a_common_name_are_connected() {
        let subjects = |rows: &[&[&str]]| -> Vec<BTreeSet<String>> {
            rows.iter().map(|row| row.iter().map(|subject| (*subject).to_owned()).collect()).collect()
        };
        assert_eq!(are_connected(&subjects(&[&[], &["a"], &["b"], &[]])), [false; 4]);
        assert_eq!(are_connected(&subjects(&[&["a", "b"], &["c"], &["b", "d"], &["d"]])), [true, false, true, true]);
        assert!(are_connected(&[]).is_empty());
    }
}
