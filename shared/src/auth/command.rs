//! The one way to write on behalf of a caller: a command decides, and decides again from fresh data when another writer was
//! faster (optimistic locking).

use super::Principal;
use crate::domain::request::StoredResponse;
use crate::http::error::ApiError;
use crate::store::{CommitFailure, StoreError, TenantStore, UnitOfWork, WriteError, has_time_for_operation, pause};

/// Attempts before the caller is told to try again.
const MAX_ATTEMPTS: u32 = 5;

/// A change of one or several records, decided from its inputs.
///
/// The handler reads the inputs with [`Command::read`] while the key is verified, and hands them to [`Principal::execute`].
pub trait Command: Sync {
    /// The records that the decision needs.
    type Inputs: Send;
    type Outcome: Send;

    fn read(&self, reads: &TenantStore) -> impl Future<Output = Result<Self::Inputs, ApiError>> + Send;

    /// Reads the inputs again, for another attempt.
    fn reread(
        &self,
        _previous: Self::Inputs,
        principal: &Principal,
    ) -> impl Future<Output = Result<Self::Inputs, ApiError>> + Send {
        self.read(&principal.store)
    }

    /// Decides the change and adds it to `unit`. Does nothing else: it is called again when another writer was faster.
    ///
    /// # Errors
    ///
    /// Returns why the change is not possible, or [`CommitFailure::Outdated`] if the inputs contradict each other.
    fn decide(
        &self,
        principal: &Principal,
        unit: &mut UnitOfWork<'_>,
        inputs: &Self::Inputs,
    ) -> Result<Self::Outcome, CommitFailure<ApiError>>;

    /// Returns the response that is stored for a repetition of the request. Only POST requests are repeatable.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Internal`] for a change that no POST makes, or if the response can't be serialized.
    fn stored_response(&self, _: &Self::Outcome) -> Result<StoredResponse, StoreError> {
        Err(StoreError::broken("a repeatable request without a response to store"))
    }

    /// The meaning of a failed commit: another attempt, or an error.
    fn classify_failure(&self, error: WriteError, _: &Self::Outcome) -> CommitFailure<ApiError> {
        error.into()
    }
}

impl Principal {
    /// Decides a change from `inputs` and commits it in one transaction. When another writer was faster, pauses, reads the
    /// inputs again and decides again, up to five times.
    ///
    /// # Errors
    ///
    /// Returns the errors of the command, what it makes of a failed commit, or the last [`WriteError`] if every attempt was
    /// outdated.
    pub async fn execute<C: Command>(&self, command: &C, mut inputs: C::Inputs) -> Result<C::Outcome, ApiError> {
        let mut attempt = 1;
        loop {
            let mut unit = UnitOfWork::new(&self.store, &self.context);
            let failure = match command.decide(self, &mut unit, &inputs) {
                Err(failure) => failure,
                Ok(outcome) => match unit.commit_with(|| command.stored_response(&outcome)).await {
                    Ok(()) => return Ok(outcome),
                    Err(error) => command.classify_failure(error, &outcome),
                },
            };
            match failure {
                CommitFailure::Failed(error) => return Err(error),
                CommitFailure::Outdated(error) if attempt == MAX_ATTEMPTS || !has_time_for_operation() => {
                    return Err(error.into());
                }
                CommitFailure::Outdated(_) => {
                    pause(self.store.store(), attempt - 1).await;
                    inputs = command.reread(inputs, self).await?;
                }
            }
            attempt += 1;
        }
    }
}
