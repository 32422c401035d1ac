//! Batches: several changes in one transaction.

use super::command::Operation;
use crate::auth::VerifiedCaller;
use crate::domain::record::StoredResponse;
use crate::domain::values::field_error::FieldError;
use crate::http::bulk::operations::BatchResult;
use crate::http::responses::{ApiError, ConflictCode};
use crate::store::{CommitFailure, StoreError, UnitOfWork, WriteError};
use serde_json::json;
use std::collections::HashMap;

impl VerifiedCaller {
    /// Executes all operations in one transaction, or none. `faults` are errors in the request besides those in the operations'
    /// bodies, each with the position of its operation.
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
        let inputs = self.inputs_of_all(operations, faults, false).await?;
        let attempt = |inputs: Vec<O::Inputs>| async move {
            let mut unit = self.unit();
            let result = self.decide_all(operations, &mut unit, &inputs)?;
            let stored = || Ok(StoredResponse::new(200, serde_json::to_string(&result).map_err(StoreError::broken)?));
            let committed = unit.commit_with(stored).await;
            committed.map(|()| result).map_err(|error| failure_of_all(operations, error))
        };
        match Box::pin(self.retry(inputs, || self.inputs_of_all(operations, faults, true), attempt)).await {
            Err(error @ ApiError::Conflict(_)) => Err(self.error_of_one(operations, error).await?),
            result => result,
        }
    }

    /// Returns the inputs of all operations, or all of their errors.
    async fn inputs_of_all<O: Operation>(
        &self,
        operations: &[O],
        faults: &[(usize, FieldError)],
        is_retry: bool,
    ) -> Result<Vec<O::Inputs>, ApiError> {
        let all: Vec<&O> = operations.iter().collect();
        // Boxed, because the compiler limits how deep future types can nest.
        let read = Box::pin(O::read(self, &all, is_retry)).await?;
        let has_errors = !faults.is_empty() || read.iter().any(Result::is_err);
        let (mut all, mut errors) = (Vec::new(), OperationErrors::with_faults(faults));
        for (index, (operation, inputs)) in operations.iter().zip(read).enumerate() {
            match inputs {
                // Decide anyway, so that all errors are reported together.
                Ok(inputs) if has_errors => {
                    if let Err(CommitFailure::Failed(error)) = operation.decide(self, &mut self.unit(), &inputs) {
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

    fn decide_all<O: Operation>(
        &self,
        operations: &[O],
        unit: &mut UnitOfWork<'_>,
        inputs: &[O::Inputs],
    ) -> Result<BatchResult, CommitFailure<ApiError>> {
        let (mut errors, mut responses, mut values) = (OperationErrors::default(), Vec::new(), HashMap::new());
        for (index, (operation, inputs)) in operations.iter().zip(inputs).enumerate() {
            if let Some((field, value)) = operation.unique_value() {
                let earlier = *values.entry((field, value)).or_insert(index);
                if earlier < index {
                    let detail = format!("Operation {earlier} of the request has the same {field}.");
                    errors.add(index, ApiError::conflict(ConflictCode::Duplicate, detail, json!({ "field": field })));
                }
            }
            match operation.decide(self, unit, inputs) {
                Ok(outcome) => responses.push(O::response(&outcome)?),
                Err(CommitFailure::Failed(error)) => errors.add(index, error),
                Err(outdated) => return Err(outdated),
            }
        }
        errors.check()?;
        Ok(BatchResult::new(&responses, self.store.is_dry_run())?)
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

/// Lets the first operation classify the error, because a failed condition doesn't say which operation it belongs to.
fn failure_of_all<O: Operation>(operations: &[O], error: WriteError) -> CommitFailure<ApiError> {
    match (error, operations.first()) {
        (WriteError::TooLarge, _) => {
            let detail = "don't fit in one transaction; send fewer operations at once";
            ApiError::Invalid(vec![FieldError::field("operations", detail)]).into()
        }
        (error, Some(operation)) => operation.classify_failure(error),
        (error, None) => error.into(),
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
