//! Batches, whose operations are one transaction, and imports, where each row is one.

use super::Operation;
use crate::auth::Caller;
use crate::domain::request::StoredResponse;
use crate::http::bulk::batch::BatchResult;
use crate::http::bulk::import::{ImportResult, OnError, RowError};
use crate::http::bulk::rows::Row;
use crate::http::error::ApiError;
use crate::http::responses::{Json, Success};
use crate::store::StoreError;

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
    /// write what has been checked. Bad cells of the columns `skip_bad` are left out of rows that have no other errors.
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
            let checked = checker.execute_each(&operations(checker.clone(), rows.clone()).await?).await?;
            let is_good = checked.iter().all(|response| response.status < 300);
            let result = ImportResult::new(&checked, !is_good)?.with_skipped_cells(&skipped);
            if is_good && self.store.is_dry_run() {
                return Ok(Json(result));
            }
            let result = result.without_placeholders(|text| checker.store.is_placeholder(text));
            // A repetition gets the same answer, unless the check could not be completed.
            if !is_good && (!result.is_final() || self.store_refusal(&Json(&result).to_stored(Vec::new())?).await?) {
                return Ok(Json(result));
            }
        }
        let operations = operations(self.clone(), rows).await?;
        Ok(Json(ImportResult::new(&self.execute_each(&operations).await?, false)?.with_skipped_cells(&skipped)))
    }

    /// Removes the bad cells of these columns from rows without other errors. Returns what was wrong with them.
    async fn skip_bad_cells<O: Operation, F: Future<Output = Result<Vec<O>, ApiError>>>(
        &self,
        columns: &[String],
        rows: &mut [Row],
        operations: &impl Fn(Self, Vec<Row>) -> F,
    ) -> Result<Vec<Vec<RowError>>, ApiError> {
        let mut skipped = vec![Vec::new(); rows.len()];
        // An error can hide others, which the next check finds.
        for _ in columns {
            let checker = self.with_new_dry_run();
            let checked = checker.execute_each(&operations(checker.clone(), rows.to_vec()).await?).await?;
            let result = ImportResult::new(&checked, false)?;
            let mut has_skipped = false;
            for ((row, skipped), outcome) in rows.iter_mut().zip(&mut skipped).zip(result.rows()) {
                for error in outcome.bad_cells(columns).unwrap_or_default() {
                    row.leave_out(error.column());
                    skipped.push(error.clone());
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
