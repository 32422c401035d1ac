//! Imports: one transaction per row. With an idempotency key, each row is a part of the request, and the row's transaction also
//! stores the row's response. A retry of the request returns the stored responses and executes the remaining rows.

use super::command::Operation;
use crate::auth::VerifiedCaller;
use crate::domain::record::{IdempotentRequest, StoredResponse};
use crate::http::bulk::import::{Executed, ImportResult, OnError, RowError};
use crate::http::bulk::rows::Row;
use crate::http::responses::{ApiError, Dependency, Json};
use crate::log::error_chain;
use crate::store::{ChangeContext, PreviousRequest, StoreError, WriteError, has_time_for_operation};
use futures_util::{StreamExt, stream};
use std::collections::{BTreeSet, HashMap};
use std::error::Error;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Number of rows executed concurrently. If the table throttles, more rows would not make an import faster, but only slow down
/// other users of the table.
const CONCURRENT_ROWS: usize = 5;

/// An operation that is committed separately from the others of its request, such as a row of an import.
pub trait ImportRow: Operation {
    /// Returns the names of the values and records that other rows might change, too. Rows that share a name are executed last,
    /// one by one.
    fn subjects(&self, _: &Self::Inputs) -> BTreeSet<String> {
        BTreeSet::new()
    }

    /// Gives an error its location in the row, such as a column.
    fn locate(&self, error: ApiError) -> ApiError {
        error
    }

    /// Returns the row's result, including skipped cells: a retry of the request can't detect them again, because the row is
    /// already written.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Internal`] if the result can't be serialized.
    fn row_response(outcome: &Self::Outcome, _skipped: &[RowError]) -> Result<StoredResponse, StoreError> {
        Self::response(outcome)
    }
}

/// State shared by the rows of a request during execution.
#[derive(Default)]
struct Progress {
    /// If set, no further row starts, because this dependency is unavailable.
    halted: OnceLock<Dependency>,
    /// Set when another attempt has executed a row: the inputs may then be stale.
    is_outdated: AtomicBool,
}

impl VerifiedCaller {
    /// Writes the rows, each in a separate transaction. Calls `operations`, which builds the rows' operations, for each check
    /// and again for the writes. Invalid cells in the columns `skip_bad` are dropped from rows without other errors.
    ///
    /// # Errors
    ///
    /// Returns the errors of `operations`, and [`ApiError::Unavailable`] if the table is unavailable at the start.
    pub async fn execute_import<O: ImportRow, F: Future<Output = Result<Vec<O>, ApiError>>>(
        &self,
        on_error: OnError,
        skip_bad: &[String],
        mut rows: Vec<Row>,
        operations: impl Fn(Self, Vec<Row>) -> F,
    ) -> Result<Json<ImportResult>, ApiError> {
        self.refuse_precondition()?;
        let skipped = self.skip_bad_cells(skip_bad, &mut rows, &operations).await?;
        // A resumed request has passed the check, so its remaining rows are written.
        if on_error == OnError::Abort && !self.is_resumed() {
            let checker = self.with_dry_run();
            let operations = operations(checker.clone(), rows.clone()).await?;
            let checked = checker.execute_rows(&operations, &skipped).await?;
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
        let operations = operations(self.clone(), rows).await?;
        Ok(Json(ImportResult::new(&self.execute_rows(&operations, &skipped).await?, false)?))
    }

    /// Removes invalid cells in these columns from rows without other errors. Returns the errors of the removed cells, per row.
    async fn skip_bad_cells<O: ImportRow, F: Future<Output = Result<Vec<O>, ApiError>>>(
        &self,
        columns: &[String],
        rows: &mut [Row],
        operations: &impl Fn(Self, Vec<Row>) -> F,
    ) -> Result<Vec<Vec<RowError>>, ApiError> {
        let mut skipped = vec![Vec::new(); rows.len()];
        let done = match &self.context.idempotency {
            Some(request) if self.is_resumed() && !columns.is_empty() => self.store.previous_parts(request, rows.len()).await?,
            _ => vec![None; rows.len()],
        };
        // A row that an earlier attempt wrote would now be a duplicate of itself. Its stored response lists the skipped cells.
        let left: Vec<usize> = (0..rows.len()).filter(|index| done[*index].is_none()).collect();
        // One error can hide others, which the next check finds.
        for _ in columns {
            let checker = self.with_new_dry_run();
            let checked_rows = left.iter().map(|index| rows[*index].clone()).collect();
            let operations = operations(checker.clone(), checked_rows).await?;
            let checked = checker.execute_rows(&operations, &vec![Vec::new(); left.len()]).await?;
            let result = ImportResult::new(&checked, false)?;
            let result = result.without_placeholders(|text| checker.store.is_placeholder(text));
            let mut has_skipped = false;
            for (index, outcome) in left.iter().zip(result.rows()) {
                for error in outcome.bad_cells(columns).unwrap_or_default() {
                    rows[*index].leave_out(error.column());
                    skipped[*index].push(error.clone());
                    has_skipped = true;
                }
            }
            if !has_skipped {
                break;
            }
        }
        Ok(skipped)
    }

    /// Executes operations that are not rows of a file, each in a separate transaction.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Unavailable`] if the table is unavailable at the start, and [`ApiError::Conflict`] if another request
    /// has the same idempotency key.
    pub async fn execute_each<O: ImportRow>(&self, operations: &[O]) -> Result<Vec<StoredResponse>, ApiError> {
        Ok(self.execute_rows(operations, &vec![Vec::new(); operations.len()]).await?.responses)
    }

    /// Executes the rows, each in a separate transaction, and returns a response for each: the result of the change, or a problem
    /// document. After a temporary error, such as throttling, no further row starts, and the remaining rows get the same kind of
    /// error. Errors are not stored, so a retry of the request executes these rows.
    ///
    /// Rows without a common subject run first, concurrently. The others follow one by one, in order, so that each sees the
    /// changes of the rows before it.
    async fn execute_rows<O: ImportRow>(&self, rows: &[O], skipped: &[Vec<RowError>]) -> Result<Executed, ApiError> {
        let mut responses = match &self.context.idempotency {
            Some(request) if self.begin(request).await? => self.store.previous_parts(request, rows.len()).await?,
            _ => vec![None; rows.len()],
        };
        let are_replayed = responses.iter().map(Option::is_some).collect();
        let left: Vec<usize> = (0..rows.len()).filter(|index| responses[*index].is_none()).collect();
        if left.is_empty() {
            if !rows.is_empty() {
                self.notes.note_replay();
            }
            return Ok(Executed { responses: responses.into_iter().flatten().collect(), are_replayed });
        }
        let rows_left: Vec<&O> = left.iter().map(|index| &rows[*index]).collect();
        // Boxed, because the compiler limits how deep future types can nest.
        let read = Box::pin(O::read(self, &rows_left, false)).await?;
        let subjects = left.iter().zip(&read).map(|(index, inputs)| match inputs {
            Ok(inputs) => rows[*index].subjects(inputs),
            Err(_) => BTreeSet::new(),
        });
        let are_connected = are_connected(&subjects.collect::<Vec<_>>());
        let (mut apart, mut connected) = (Vec::new(), Vec::new());
        for ((index, inputs), is_connected) in left.into_iter().zip(read).zip(are_connected) {
            if is_connected { connected.push(index) } else { apart.push((index, inputs)) }
        }
        let progress = &Progress::default();
        let execute = |(index, inputs): (usize, Result<O::Inputs, ApiError>)| async move {
            (index, self.execute_row(index, &rows[index], &skipped[index], Some(inputs), progress).await)
        };
        let executed: Vec<(usize, StoredResponse)> =
            stream::iter(apart).map(execute).buffer_unordered(CONCURRENT_ROWS).collect().await;
        for (index, response) in executed {
            responses[index] = Some(response);
        }
        for index in connected {
            responses[index] = Some(self.execute_row(index, &rows[index], &skipped[index], None, progress).await);
        }
        Ok(Executed { responses: responses.into_iter().flatten().collect(), are_replayed })
    }

    /// Executes a row, unless the request is halted, and returns its response or error. Reads the inputs if `inputs` is `None` or
    /// stale.
    async fn execute_row<O: ImportRow>(
        &self,
        index: usize,
        row: &O,
        skipped: &[RowError],
        inputs: Option<Result<O::Inputs, ApiError>>,
        progress: &Progress,
    ) -> StoredResponse {
        let idempotency = self.context.idempotency.as_ref().map(|request| request.part(index));
        let caller = self.with_context(ChangeContext { idempotency, ..self.context.clone() });
        if !has_time_for_operation() {
            let _ = progress.halted.set(Dependency::Service);
        }
        let result = match progress.halted.get() {
            Some(dependency) => Err(ApiError::Unavailable(*dependency, "not executed".into())),
            None => {
                let inputs = inputs.filter(|_| !progress.is_outdated.load(Ordering::Relaxed));
                match caller.write_row(row, skipped, inputs).await {
                    Ok(response) => Ok(response),
                    Err(error) => caller.settle(row.locate(error), progress).await,
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

    async fn write_row<O: ImportRow>(
        &self,
        row: &O,
        skipped: &[RowError],
        inputs: Option<Result<O::Inputs, ApiError>>,
    ) -> Result<StoredResponse, ApiError> {
        let respond = |outcome: &O::Outcome| O::row_response(outcome, skipped);
        let inputs = match inputs {
            Some(inputs) => inputs?,
            None => self.inputs(row, true).await?,
        };
        let outcome = Box::pin(self.execute_alone(row, inputs, respond)).await?;
        Ok(O::row_response(&outcome, skipped)?)
    }

    /// Returns the stored response of a failed row if the row took effect after all: in another attempt, or despite a timeout.
    /// Otherwise returns the error.
    async fn settle(&self, error: ApiError, progress: &Progress) -> Result<StoredResponse, ApiError> {
        if let Some(cause) = error.source().map(error_chain) {
            tracing::error!(request_id = self.notes.request_id(), cause, "an operation of a request failed");
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
}

/// Returns, for each row, whether it shares a subject with another row.
fn are_connected(subjects: &[BTreeSet<String>]) -> Vec<bool> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for subject in subjects.iter().flatten() {
        *counts.entry(subject).or_default() += 1;
    }
    subjects.iter().map(|own| own.iter().any(|subject| counts[subject.as_str()] > 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_connected_by_what_they_both_touch() {
        let subjects = |rows: &[&[&str]]| -> Vec<BTreeSet<String>> {
            rows.iter().map(|row| row.iter().map(|subject| (*subject).to_owned()).collect()).collect()
        };
        assert_eq!(are_connected(&subjects(&[&[], &["a"], &["b"], &[]])), [false; 4]);
        assert_eq!(are_connected(&subjects(&[&["a", "b"], &["c"], &["b", "d"], &["d"]])), [true, false, true, true]);
        assert!(are_connected(&[]).is_empty());
    }
}
