//! Changes that take more than writing one record.

use super::Requester;
use crate::domain::request::StoredResponse;
use crate::http::error::ApiError;
use crate::store::{AttemptError, PointReads, StoreError, UnitOfWork, WriteError, retry};

/// A change of several records, decided from what was read.
///
/// The handler reads the inputs with [`Command::read`] while the key is verified, and hands them to
/// [`Requester::execute`].
pub trait Command: Sync {
    /// What the decision needs to know of the table.
    type Inputs: Send;
    /// What the change leads to.
    type Outcome: Send;

    /// Reads the inputs.
    fn read(&self, reads: &PointReads) -> impl Future<Output = Result<Self::Inputs, ApiError>> + Send;

    /// Reads the inputs again, for another attempt.
    fn reread(&self, _previous: Self::Inputs, reads: &PointReads) -> impl Future<Output = Result<Self::Inputs, ApiError>> + Send {
        self.read(reads)
    }

    /// Decides the change and adds it to `unit`. Does nothing else: it is called again when another writer was faster.
    ///
    /// # Errors
    ///
    /// Returns why the change is not possible, or [`AttemptError::Outdated`] if the inputs contradict each other.
    fn decide(
        &self,
        requester: &Requester,
        unit: &mut UnitOfWork<'_>,
        inputs: &Self::Inputs,
    ) -> Result<Self::Outcome, AttemptError<ApiError>>;

    /// Returns the response that is stored for a repetition of the request. Only POST requests are repeatable.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Internal`] for a change that no POST makes, or if the response can't be serialized.
    fn stored_response(&self, _: &Self::Outcome) -> Result<StoredResponse, StoreError> {
        Err(not_repeatable())
    }

    /// Returns what a failed commit means: another attempt, or an error.
    fn judge(&self, error: WriteError, _: &Self::Outcome) -> AttemptError<ApiError> {
        error.into()
    }
}

/// Returns the error for a change that has an idempotency key although no POST makes it.
pub(super) fn not_repeatable() -> StoreError {
    StoreError::broken("a repeatable request without a response to store")
}

impl Requester {
    /// Decides and commits a change. Reads the inputs again and decides again when another writer was faster.
    ///
    /// # Errors
    ///
    /// Returns the errors of the command, and [`ApiError::Conflict`] if other writers were faster five times.
    pub async fn execute<C: Command>(&self, command: &C, inputs: C::Inputs) -> Result<C::Outcome, ApiError> {
        retry(
            &self.store,
            &self.context,
            inputs,
            |previous| command.reread(previous, &self.store),
            |unit, inputs| command.decide(self, unit, inputs),
            |outcome| command.stored_response(outcome),
            |error, outcome| command.judge(error, outcome),
        )
        .await
    }
}
