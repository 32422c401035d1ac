//! Batches, whose operations are one transaction, and imports, where each row is one.

use super::Operation;
use crate::auth::{Caller, Command, Principal};
use crate::domain::request::StoredResponse;
use crate::http::bulk::batch::BatchResult;
use crate::http::bulk::import::{ImportResult, OnError, RowError, with_skipped_cells};
use crate::http::bulk::rows::Row;
use crate::http::error::ApiError;
use crate::http::responses::Json;
use crate::store::{CommitFailure, StoreError, TenantStore, UnitOfWork, WriteError};

/// The operation of a row. The cells that were skipped are part of its stored response: a repetition of the request can't find them
/// again, since the row is written.
struct RowOperation<O> {
    operation: O,
    skipped: Vec<RowError>,
}

impl<O> RowOperation<O> {
    /// `skipped`: the cells of each row.
    fn all(operations: Vec<O>, skipped: &[Vec<RowError>]) -> Vec<Self> {
        let rows = operations.into_iter().zip(skipped);
        rows.map(|(operation, skipped)| Self { operation, skipped: skipped.clone() }).collect()
    }
}

impl<O: Operation> Command for RowOperation<O> {
    type Inputs = O::Inputs;
    type Outcome = O::Outcome;

    async fn read(&self, reads: &TenantStore) -> Result<Self::Inputs, ApiError> {
        self.operation.read(reads).await
    }

    async fn reread(&self, previous: Self::Inputs, principal: &Principal) -> Result<Self::Inputs, ApiError> {
        self.operation.reread(previous, principal).await
    }

    fn decide(
        &self,
        principal: &Principal,
        unit: &mut UnitOfWork<'_>,
        inputs: &Self::Inputs,
    ) -> Result<Self::Outcome, CommitFailure<ApiError>> {
        self.operation.decide(principal, unit, inputs)
    }

    fn stored_response(&self, outcome: &Self::Outcome) -> Result<StoredResponse, StoreError> {
        with_skipped_cells(self.operation.stored_response(outcome)?, &self.skipped)
    }

    fn classify_failure(&self, error: WriteError, outcome: &Self::Outcome) -> CommitFailure<ApiError> {
        self.operation.classify_failure(error, outcome)
    }
}

impl<O: Operation> Operation for RowOperation<O> {
    async fn prepare(principal: &Principal, operations: &[&Self]) -> Result<(), ApiError> {
        let operations: Vec<&O> = operations.iter().map(|row| &row.operation).collect();
        O::prepare(principal, &operations).await
    }

    fn subjects(&self) -> Vec<String> {
        self.operation.subjects()
    }

    fn unique_values(&self) -> Vec<(&'static str, String)> {
        self.operation.unique_values()
    }

    async fn inputs(&self, principal: &Principal, is_retry: bool) -> Result<Self::Inputs, ApiError> {
        self.operation.inputs(principal, is_retry).await
    }

    fn note(&self, outcome: &Self::Outcome) {
        self.operation.note(outcome);
    }
}

impl Caller {
    /// # Errors
    ///
    /// As [`Caller::execute_together`].
    pub async fn execute_batch<O: Operation>(&self, operations: &[O]) -> Result<BatchResult, ApiError> {
        self.refuse_precondition()?;
        let is_dry_run = self.store.is_dry_run();
        let respond = |responses: &[StoredResponse]| {
            let body = serde_json::to_string(&BatchResult::new(responses, is_dry_run)?).map_err(StoreError::broken)?;
            Ok(StoredResponse::new(200, body))
        };
        let response = self.execute_together(operations, respond).await?;
        Ok(serde_json::from_str(&response.body).map_err(StoreError::broken)?)
    }

    /// Writes the rows, each in a transaction of its own. `operations` makes the rows' operations; it is called again to
    /// write what has been checked. Invalid cells of the columns `skip_bad` are dropped from rows without other errors.
    ///
    /// # Errors
    ///
    /// Returns the errors of `operations`, and [`ApiError::Unavailable`] if the table can't be reached at the beginning.
    pub async fn execute_import<O: Operation, F: Future<Output = Result<Vec<O>, ApiError>>>(
        &self,
        on_error: OnError,
        skip_bad: &[String],
        mut rows: Vec<Row>,
        operations: impl Fn(Self, Vec<Row>) -> F,
    ) -> Result<Json<ImportResult>, ApiError> {
        self.refuse_precondition()?;
        let skipped = self.skip_bad_cells(skip_bad, &mut rows, &operations).await?;
        // Checked rows are written to the end, also if the request was interrupted.
        if on_error == OnError::Abort && !self.is_resumed() {
            let checker = self.with_dry_run();
            let operations = operations(checker.clone(), rows.clone()).await?;
            let checked = checker.execute_each(&RowOperation::all(operations, &skipped)).await?;
            let is_good = checked.responses.iter().all(|response| response.status < 300);
            let result = ImportResult::new(&checked, !is_good)?;
            if is_good && self.store.is_dry_run() {
                return Ok(Json(result));
            }
            // What another attempt has written can refuse these rows.
            if !is_good && !self.has_begun_elsewhere().await? {
                return Ok(Json(result.without_placeholders(|text| checker.store.is_placeholder(text))));
            }
        }
        let operations = RowOperation::all(operations(self.clone(), rows).await?, &skipped);
        Ok(Json(ImportResult::new(&self.execute_each(&operations).await?, false)?))
    }

    /// Removes the bad cells of these columns from rows without other errors. Returns what was wrong with them.
    async fn skip_bad_cells<O: Operation, F: Future<Output = Result<Vec<O>, ApiError>>>(
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
        // A row that an earlier attempt has written would be a duplicate of itself. Its stored response has the skipped cells.
        let left: Vec<usize> = (0..rows.len()).filter(|index| done[*index].is_none()).collect();
        // An error can hide others, which the next check finds.
        for _ in columns {
            let checker = self.with_new_dry_run();
            let checked_rows = left.iter().map(|index| rows[*index].clone()).collect();
            let checked = checker.execute_each(&operations(checker.clone(), checked_rows).await?).await?;
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
}
