//! Several changes in one transaction: all or none.

use super::Operation;
use crate::auth::Caller;
use crate::domain::request::StoredResponse;
use crate::domain::values::field_error::FieldError;
use crate::http::error::ApiError;
use crate::store::{AttemptError, UnitOfWork, WriteError, retry};
use std::collections::HashSet;

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
        respond: impl Fn(&[StoredResponse]) -> Result<StoredResponse, ApiError>,
    ) -> Result<StoredResponse, ApiError> {
        let decide = |unit: &mut UnitOfWork<'_>, inputs: &Vec<O::Inputs>| {
            let (mut errors, mut responses) = (OperationErrors::default(), Vec::new());
            let mut values = HashSet::new();
            for (index, (operation, inputs)) in operations.iter().zip(inputs).enumerate() {
                for (field, value) in operation.unique_values() {
                    if !values.insert((field, value)) {
                        errors.add(index, WriteError::Duplicate(field, None).into());
                    }
                }
                match operation.decide(self, unit, inputs) {
                    Ok(outcome) => responses.push(operation.respond(&outcome)?),
                    Err(AttemptError::Failed(error)) => errors.add(index, error),
                    Err(outdated) => return Err(outdated),
                }
            }
            errors.check()?;
            Ok(respond(&responses)?)
        };
        let judge = |error, _: &StoredResponse| match error {
            WriteError::TooLarge => {
                let detail = "take more than one transaction can hold; send fewer of them together";
                ApiError::Invalid(vec![FieldError::field("operations", detail)]).into()
            }
            error => O::judge(error),
        };
        let inputs = self.inputs_of_all(operations, false).await?;
        let reread = |_| self.inputs_of_all(operations, true);
        let committed = retry(&self.store, &self.context, inputs, reread, decide, |response| Ok(response.clone()), judge).await;
        match committed {
            Err(error @ ApiError::Conflict(_)) => Err(self.error_of_one(operations, error).await?),
            committed => committed,
        }
    }

    /// Returns the inputs of all operations, or the errors of all of them.
    async fn inputs_of_all<O: Operation>(&self, operations: &[O], is_retry: bool) -> Result<Vec<O::Inputs>, ApiError> {
        O::prepare(self, &operations.iter().collect::<Vec<_>>()).await?;
        let (mut all, mut errors) = (Vec::new(), OperationErrors::default());
        for (index, operation) in operations.iter().enumerate() {
            match operation.inputs(self, is_retry).await {
                Ok(inputs) => all.push((index, inputs)),
                Err(error) => errors.add(index, error),
            }
        }
        if !errors.is_empty() {
            // The errors of the others, so that all are reported together.
            for (index, inputs) in &all {
                let mut scratch = UnitOfWork::new(&self.store, &self.context);
                if let Err(AttemptError::Failed(error)) = operations[*index].decide(self, &mut scratch, inputs) {
                    errors.add(*index, error);
                }
            }
        }
        errors.check()?;
        Ok(all.into_iter().map(|(_, inputs)| inputs).collect())
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

/// The errors of the operations of an atomic batch.
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

    /// Returns the error of the request, if there is one.
    fn check(self) -> Result<(), ApiError> {
        match self.first_other {
            Some((_, error)) if error.is_temporary() => Err(error),
            _ if !self.fields.is_empty() => Err(ApiError::Invalid(self.fields)),
            Some((index, error)) => Err(ApiError::InOperation(index, Box::new(error))),
            None => Ok(()),
        }
    }
}
