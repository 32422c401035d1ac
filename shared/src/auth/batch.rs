//! Batches: several changes in one transaction.

use super::command::Operation;
use crate::auth::{Command, Principal, VerifiedCaller};
use crate::domain::record::StoredResponse;
use crate::domain::values::field_error::FieldError;
use crate::http::bulk::operations::BatchResult;
use crate::http::responses::{ApiError, ConflictCode};
use crate::store::{CommitFailure, StoreError, TenantStore, UnitOfWork, WriteError};
use serde_json::json;
use std::collections::HashMap;

struct Together<'a, O> {
    principal: &'a Principal,
    operations: &'a [O],
    /// Errors in the request besides those in the operations' bodies, each with the position of its operation.
    faults: &'a [(usize, FieldError)],
}

impl<O: Operation> Together<'_, O> {
    /// Returns the inputs of all operations, or all of their errors.
    async fn inputs(&self, is_retry: bool) -> Result<Vec<O::Inputs>, ApiError> {
        let Self { principal, operations, .. } = self;
        let all: Vec<&O> = operations.iter().collect();
        // Boxed, because the compiler limits how deep future types can nest.
        let read = Box::pin(O::read(principal, &all, is_retry)).await?;
        let has_errors = !self.faults.is_empty() || read.iter().any(Result::is_err);
        let (mut all, mut errors) = (Vec::new(), OperationErrors::with_faults(self.faults));
        for (index, (operation, inputs)) in operations.iter().zip(read).enumerate() {
            match inputs {
                // Decide anyway, so that all errors are reported together.
                Ok(inputs) if has_errors => {
                    let mut scratch = UnitOfWork::new(&principal.store, &principal.context);
                    if let Err(CommitFailure::Failed(error)) = operation.decide(principal, &mut scratch, &inputs) {
                        errors.add(index, error);
                    }
                }
                Ok(inputs) => all.push(inputs),
                Err(error) => errors.add(index, error),
            }
        }
        errors.check()?;
        Ok(all)
    }
}

impl<O: Operation> Command for Together<'_, O> {
    type Inputs = Vec<O::Inputs>;
    type Outcome = BatchResult;

    async fn read(&self, _: &TenantStore) -> Result<Self::Inputs, ApiError> {
        self.inputs(false).await
    }

    async fn reread(&self, _: Self::Inputs, _: &Principal) -> Result<Self::Inputs, ApiError> {
        self.inputs(true).await
    }

    fn decide(
        &self,
        principal: &Principal,
        unit: &mut UnitOfWork<'_>,
        inputs: &Self::Inputs,
    ) -> Result<BatchResult, CommitFailure<ApiError>> {
        let (mut errors, mut responses, mut values) = (OperationErrors::default(), Vec::new(), HashMap::new());
        for (index, (operation, inputs)) in self.operations.iter().zip(inputs).enumerate() {
            if let Some((field, value)) = operation.unique_value() {
                let earlier = *values.entry((field, value)).or_insert(index);
                if earlier < index {
                    let detail = format!("Operation {earlier} of the request has the same {field}.");
                    errors.add(index, ApiError::conflict(ConflictCode::Duplicate, detail, json!({ "field": field })));
                }
            }
            match operation.decide(principal, unit, inputs) {
                Ok(outcome) => responses.push(O::response(&outcome)?),
                Err(CommitFailure::Failed(error)) => errors.add(index, error),
                Err(outdated) => return Err(outdated),
            }
        }
        errors.check()?;
        Ok(BatchResult::new(&responses, principal.store.is_dry_run())?)
    }

    fn stored_response(&self, result: &BatchResult) -> Result<StoredResponse, StoreError> {
        Ok(StoredResponse::new(200, serde_json::to_string(result).map_err(StoreError::broken)?))
    }

    /// Lets the first operation classify the error, because a failed condition doesn't say which operation it belongs to.
    fn classify_failure(&self, error: WriteError, _: &BatchResult) -> CommitFailure<ApiError> {
        match (error, self.operations.first()) {
            (WriteError::TooLarge, _) => {
                let detail = "don't fit in one transaction; send fewer operations at once";
                ApiError::Invalid(vec![FieldError::field("operations", detail)]).into()
            }
            (error, Some(operation)) => operation.classify_failure(error),
            (error, None) => error.into(),
        }
    }
}

impl VerifiedCaller {
    /// Executes all operations in one transaction, or none.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Invalid`] with `faults` and the errors of all operations if a field is invalid; otherwise
    /// [`ApiError::InOperations`].
    pub async fn execute_batch<O: Operation>(
        &self,
        operations: &[O],
        faults: &[(usize, FieldError)],
    ) -> Result<BatchResult, ApiError> {
        self.refuse_precondition()?;
        let together = Together { principal: self, operations, faults };
        let inputs = together.inputs(false).await?;
        match Box::pin(self.execute(&together, inputs)).await {
            Err(error @ ApiError::Conflict(_)) => Err(self.error_of_one(operations, error).await?),
            result => result,
        }
    }

    /// Dry-runs the operations of a failed batch one by one. Returns their errors, or `error` if every dry run succeeds. The failed
    /// commit alone doesn't show which operation's record is still referenced.
    async fn error_of_one<O: Operation>(&self, operations: &[O], error: ApiError) -> Result<ApiError, ApiError> {
        let (checker, mut errors) = (self.with_dry_run(), OperationErrors::default());
        for (index, operation) in operations.iter().enumerate() {
            if let Err(own) = Box::pin(checker.read_and_execute(operation)).await {
                errors.add(index, own);
            }
        }
        Ok(errors.check().err().unwrap_or(error))
    }
}

#[derive(Default)]
struct OperationErrors {
    /// All errors, each with the position of its operation.
    all: Vec<(usize, FieldError)>,
    /// Whether some errors concern fields.
    has_fields: bool,
    /// The first error that doesn't concern fields.
    first_other: Option<(usize, ApiError)>,
}

impl OperationErrors {
    fn with_faults(faults: &[(usize, FieldError)]) -> Self {
        Self { all: faults.to_vec(), has_fields: !faults.is_empty(), first_other: None }
    }

    fn add(&mut self, index: usize, error: ApiError) {
        if let ApiError::Invalid(errors) = error {
            self.has_fields = true;
            self.all.extend(errors.into_iter().map(|error| (index, error.in_operation(index))));
            return;
        }
        self.all.push((index, FieldError::whole(error.detail()).in_operation(index)));
        if self.first_other.as_ref().is_none_or(|(first, _)| index < *first) {
            self.first_other = Some((index, error));
        }
    }

    /// Returns all errors together, unless the first one is temporary.
    fn check(mut self) -> Result<(), ApiError> {
        self.all.sort_by_key(|(index, _)| *index);
        let all = self.all.into_iter().map(|(_, error)| error).collect();
        match self.first_other {
            Some((_, error)) if error.is_temporary() => Err(error),
            _ if self.has_fields => Err(ApiError::Invalid(all)),
            Some((_, error)) => Err(ApiError::InOperations(Box::new(error), all)),
            None => Ok(()),
        }
    }
}
