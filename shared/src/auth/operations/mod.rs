//! Changes of one kind that come alone, together in a batch, or as the rows of an import.

mod batch;
mod import;

use super::{Command, Principal, VerifiedCaller};
use crate::domain::request::StoredResponse;
use crate::domain::values::field_error::{ErrorLocation, FieldError};
use crate::http::error::ApiError;
use crate::store::{CommitFailure, DryRun, StoreError, TenantStore, UnitOfWork, WriteError};
pub use import::ImportRow;

/// A change of one record.
pub trait Operation: Sync + Sized {
    /// What the decision is made from.
    type Inputs: Send + Sync;
    /// The record after the change.
    type Outcome: Send;

    /// Reads the inputs of all these operations together; for each, its inputs, or why it is not possible. In a retry, another
    /// writer was faster.
    fn read(
        principal: &Principal,
        operations: &[&Self],
        is_retry: bool,
    ) -> impl Future<Output = Result<Vec<Result<Self::Inputs, ApiError>>, ApiError>> + Send;

    /// As [`Command::decide`].
    ///
    /// # Errors
    ///
    /// As [`Command::decide`].
    fn decide(
        &self,
        principal: &Principal,
        unit: &mut UnitOfWork<'_>,
        inputs: &Self::Inputs,
    ) -> Result<Self::Outcome, CommitFailure<ApiError>>;

    /// As [`Command::classify_failure`].
    fn classify_failure(&self, error: WriteError) -> CommitFailure<ApiError> {
        error.into()
    }

    /// The field that the operation sets and that must be unique, with its value.
    fn unique_value(&self) -> Option<(&'static str, String)>;

    /// The response of the single request.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Internal`] if it can't be serialized.
    fn response(outcome: &Self::Outcome) -> Result<StoredResponse, StoreError>;
}

/// The command of one operation. `respond` makes the response that is stored.
struct Alone<'a, O, R> {
    principal: &'a Principal,
    operation: &'a O,
    respond: R,
}

impl<O: Operation, R: Sync> Alone<'_, O, R> {
    async fn inputs(&self, is_retry: bool) -> Result<O::Inputs, ApiError> {
        // In a box, since the compiler nests the types of futures only so deep.
        let read = Box::pin(O::read(self.principal, &[self.operation], is_retry)).await?.pop();
        read.unwrap_or_else(|| Err(ApiError::Internal("an operation without inputs".into())))
    }
}

impl<O, R> Command for Alone<'_, O, R>
where
    O: Operation,
    R: Fn(&O::Outcome) -> Result<StoredResponse, StoreError> + Sync,
{
    type Inputs = O::Inputs;
    type Outcome = O::Outcome;

    async fn read(&self, _: &TenantStore) -> Result<O::Inputs, ApiError> {
        self.inputs(false).await
    }

    async fn reread(&self, _: O::Inputs, _: &Principal) -> Result<O::Inputs, ApiError> {
        self.inputs(true).await
    }

    fn decide(
        &self,
        principal: &Principal,
        unit: &mut UnitOfWork<'_>,
        inputs: &O::Inputs,
    ) -> Result<O::Outcome, CommitFailure<ApiError>> {
        self.operation.decide(principal, unit, inputs)
    }

    fn stored_response(&self, outcome: &O::Outcome) -> Result<StoredResponse, StoreError> {
        (self.respond)(outcome)
    }

    fn classify_failure(&self, error: WriteError, _: &O::Outcome) -> CommitFailure<ApiError> {
        self.operation.classify_failure(error)
    }
}

impl VerifiedCaller {
    /// Executes the only operation of a request, from inputs that were just read.
    ///
    /// # Errors
    ///
    /// As [`Principal::execute`].
    pub async fn execute_operation<O: Operation>(&self, operation: &O, inputs: O::Inputs) -> Result<O::Outcome, ApiError> {
        self.execute(&Alone { principal: self, operation, respond: O::response }, inputs).await
    }

    /// [`VerifiedCaller::execute_operation`] with the reads.
    ///
    /// # Errors
    ///
    /// As [`Principal::execute`].
    pub async fn read_and_execute<O: Operation>(&self, operation: &O) -> Result<O::Outcome, ApiError> {
        let alone = Alone { principal: self, operation, respond: O::response };
        self.execute(&alone, alone.inputs(false).await?).await
    }

    /// Refuses a precondition for the request as a whole: it changes several records.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Invalid`] for a request with `If-Match`.
    pub fn refuse_precondition(&self) -> Result<(), ApiError> {
        if self.context.precondition.is_none() {
            return Ok(());
        }
        let detail = "can't be sent with several changes; the operations of a batch can have if_match".to_owned();
        Err(ApiError::Invalid(vec![FieldError { location: ErrorLocation::Header("If-Match"), detail }]))
    }

    /// Ignores the request's own parameter.
    fn with_dry_run(&self) -> Self {
        if self.store.is_dry_run() { self.without_idempotency_key() } else { self.with_new_dry_run() }
    }

    /// A dry run that knows nothing of the request's own.
    fn with_new_dry_run(&self) -> Self {
        let mut checker = self.without_idempotency_key();
        checker.principal.store = checker.principal.store.in_dry_run(DryRun::default());
        checker
    }
}
