//! Several changes in one transaction: all or none.

use super::Operation;
use crate::auth::{Caller, Command, Principal};
use crate::domain::request::StoredResponse;
use crate::domain::values::field_error::FieldError;
use crate::http::error::ApiError;
use crate::store::{CommitFailure, StoreError, TenantStore, UnitOfWork, WriteError};
use std::collections::HashSet;

struct Together<'a, O, R> {
    principal: &'a Principal,
    operations: &'a [O],
    respond: R,
}

impl<O: Operation, R: Sync> Together<'_, O, R> {
    /// Returns the inputs of all operations, or the errors of all of them.
    async fn inputs(&self, is_retry: bool) -> Result<Vec<O::Inputs>, ApiError> {
        let Self { principal, operations, .. } = self;
        O::prepare(principal, &operations.iter().collect::<Vec<_>>()).await?;
        let (mut all, mut errors) = (Vec::new(), OperationErrors::default());
        for (index, operation) in operations.iter().enumerate() {
            match operation.inputs(principal, is_retry).await {
                Ok(inputs) => all.push((index, operation, inputs)),
                Err(error) => errors.add(index, error),
            }
        }
        if !errors.is_empty() {
            // The errors of the others, so that all are reported together.
            for (index, operation, inputs) in &all {
                let mut scratch = UnitOfWork::new(&principal.store, &principal.context);
                if let Err(CommitFailure::Failed(error)) = operation.decide(principal, &mut scratch, inputs) {
                    errors.add(*index, error);
                }
            }
        }
        errors.check()?;
        Ok(all.into_iter().map(|(_, _, inputs)| inputs).collect())
    }
}

impl<O, R> Command for Together<'_, O, R>
where
    O: Operation,
    R: Fn(&[StoredResponse]) -> Result<StoredResponse, ApiError> + Sync,
{
    type Inputs = Vec<O::Inputs>;
    type Outcome = (Vec<O::Outcome>, StoredResponse);

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
    ) -> Result<Self::Outcome, CommitFailure<ApiError>> {
        let (mut errors, mut outcomes, mut responses) = (OperationErrors::default(), Vec::new(), Vec::new());
        let mut values = HashSet::new();
        for (index, (operation, inputs)) in self.operations.iter().zip(inputs).enumerate() {
            for (field, value) in operation.unique_values() {
                if !values.insert((field, value)) {
                    errors.add(index, WriteError::Duplicate(field, None).into());
                }
            }
            match operation.decide(principal, unit, inputs) {
                Ok(outcome) => {
                    responses.push(operation.stored_response(&outcome)?);
                    outcomes.push(outcome);
                }
                Err(CommitFailure::Failed(error)) => errors.add(index, error),
                Err(outdated) => return Err(outdated),
            }
        }
        errors.check()?;
        Ok((outcomes, (self.respond)(&responses)?))
    }

    fn stored_response(&self, (_, response): &Self::Outcome) -> Result<StoredResponse, StoreError> {
        Ok(response.clone())
    }

    /// The operation of a failed condition is unknown, so the first one speaks for all.
    fn classify_failure(&self, error: WriteError, (outcomes, _): &Self::Outcome) -> CommitFailure<ApiError> {
        match (error, self.operations.first().zip(outcomes.first())) {
            (WriteError::TooLarge, _) => {
                let detail = "take more than one transaction can hold; send fewer of them together";
                ApiError::Invalid(vec![FieldError::field("operations", detail)]).into()
            }
            (error, Some((operation, outcome))) => operation.classify_failure(error, outcome),
            (error, None) => error.into(),
        }
    }
}

impl Caller {
    /// Executes all operations in one transaction, or none. `respond` makes the response to the request of those to its
    /// operations.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Invalid`] with every bad field of all operations, or the error of the first operation that has
    /// another one.
    pub async fn execute_together<O: Operation>(
        &self,
        operations: &[O],
        respond: impl Fn(&[StoredResponse]) -> Result<StoredResponse, ApiError> + Sync,
    ) -> Result<StoredResponse, ApiError> {
        let together = Together { principal: self, operations, respond };
        match self.execute(&together, together.inputs(false).await?).await {
            Ok((_, response)) => Ok(response),
            Err(error @ ApiError::Conflict(_)) => Err(self.error_of_one(operations, error).await?),
            Err(error) => Err(error),
        }
    }

    /// Returns the error of the first operation that fails alone, or else the error of all together. Only the commit knows
    /// whether other records refer to one, and it does not say to which.
    async fn error_of_one<O: Operation>(&self, operations: &[O], error: ApiError) -> Result<ApiError, ApiError> {
        let checker = self.with_dry_run();
        for (index, operation) in operations.iter().enumerate() {
            if let Err(own) = checker.execute_alone(operation).await {
                return Ok(ApiError::InOperation(index, Box::new(own)));
            }
        }
        Ok(error)
    }
}

#[derive(Default)]
struct OperationErrors {
    fields: Vec<FieldError>,
    first_other: Option<(usize, ApiError)>,
}

impl OperationErrors {
    fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.first_other.is_none()
    }

    fn add(&mut self, index: usize, error: ApiError) {
        match error {
            ApiError::Invalid(errors) => self.fields.extend(errors.into_iter().map(|error| error.in_operation(index))),
            error if self.first_other.as_ref().is_none_or(|(first, _)| index < *first) => self.first_other = Some((index, error)),
            _ => {}
        }
    }

    fn check(self) -> Result<(), ApiError> {
        match self.first_other {
            Some((_, error)) if error.is_temporary() => Err(error),
            _ if !self.fields.is_empty() => Err(ApiError::Invalid(self.fields)),
            Some((index, error)) => Err(ApiError::InOperation(index, Box::new(error))),
            None => Ok(()),
        }
    }
}
