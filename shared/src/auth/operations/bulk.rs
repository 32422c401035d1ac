//! Batches and imports: their operations, executed each in a transaction of its own or all in one.

use super::Operation;
use crate::auth::Caller;
use crate::domain::request::StoredResponse;
use crate::http::bulk::batch::BatchResult;
use crate::http::bulk::import::{ImportResult, OnError};
use crate::http::error::ApiError;
use crate::http::responses::{Json, Success};
use crate::store::StoreError;

impl Caller {
    /// # Errors
    ///
    /// As [`Caller::execute_each`] or, if they are atomic, [`Caller::execute_together`].
    pub async fn execute_batch<O: Operation>(&self, operations: &[O], is_atomic: bool) -> Result<BatchResult, ApiError> {
        self.refuse_precondition()?;
        let is_dry_run = self.store.is_dry_run();
        if !is_atomic {
            return BatchResult::new(&self.execute_each(operations).await?, is_dry_run);
        }
        let respond = |responses: &[StoredResponse]| {
            let body = serde_json::to_string(&BatchResult::new(responses, is_dry_run)?).map_err(StoreError::broken)?;
            Ok(StoredResponse::new(200, body))
        };
        let response = self.execute_together(operations, respond).await?;
        Ok(serde_json::from_str(&response.body).map_err(StoreError::broken)?)
    }

    /// Writes the rows, each in a transaction of its own. `operations` makes the rows' operations; it is called again to
    /// write what has been checked.
    ///
    /// # Errors
    ///
    /// Returns the errors of `operations`, and [`ApiError::Unavailable`] if the table can't be reached at the beginning.
    pub async fn execute_import<O: Operation, F: Future<Output = Result<Vec<O>, ApiError>>>(
        &self,
        on_error: OnError,
        operations: impl Fn(Self) -> F,
    ) -> Result<Json<ImportResult>, ApiError> {
        self.refuse_precondition()?;
        // Checked rows are written to the end, also if the request was interrupted.
        if on_error == OnError::Abort && !self.is_resumed() {
            let checker = self.with_dry_run();
            let checked = checker.execute_each(&operations(checker.clone()).await?).await?;
            let is_good = checked.iter().all(|response| response.status < 300);
            let result = ImportResult::new(&checked, !is_good)?;
            if is_good && self.store.is_dry_run() {
                return Ok(Json(result));
            }
            let result = result.without_placeholders(|text| checker.store.is_placeholder(text));
            // A repetition gets the same answer, unless the check could not be completed.
            if !is_good && (!result.is_final() || self.store_refusal(&Json(&result).to_stored(Vec::new())?).await?) {
                return Ok(Json(result));
            }
        }
        let rows = operations(self.clone()).await?;
        Ok(Json(ImportResult::new(&self.execute_each(&rows).await?, false)?))
    }
}
