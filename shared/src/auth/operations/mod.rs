//! Requests with several changes. A batch commits them together, an import each in a transaction of its own.
//!
//! With an idempotency key, each row of an import is a part of the request with a stored response of its own, written in the
//! transaction of the change. A repetition of the request takes those responses and executes the rest.

mod bulk;
mod together;
mod waves;

use super::{Caller, Command, Principal};
use crate::domain::request::{IdempotentRequest, StoredResponse};
use crate::domain::values::field_error::{ErrorLocation, FieldError};
use crate::http::bulk::import::Executed;
use crate::http::error::{ApiError, Dependency};
use crate::log::error_chain;
use crate::store::{ChangeContext, DryRun, PreviousRequest, WriteError, has_time_for_operation};
use futures_util::StreamExt;
use futures_util::stream;
use std::error::Error;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use waves::waves;

/// The operations of a request that are executed at the same time. With more, a table that throttles lets a request go on no
/// faster, and others that share the table wait longer.
pub const CONCURRENT_OPERATIONS: usize = 5;

pub trait Operation: Command + Sized {
    /// Reads the inputs of all these operations. Called again for an operation whose inputs are outdated.
    fn prepare(principal: &Principal, operations: &[&Self]) -> impl Future<Output = Result<(), ApiError>> + Send;

    /// Names of the things that the operation touches. Operations with a common name are executed one after another, in the
    /// request's order.
    fn subjects(&self) -> Vec<String>;

    /// The fields that the operation sets and that must be unique, with their values.
    fn unique_values(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// The inputs, from the reads for all operations together.
    fn inputs(&self, principal: &Principal, is_retry: bool) -> impl Future<Output = Result<Self::Inputs, ApiError>> + Send;

    fn inputs_alone(&self, principal: &Principal, is_retry: bool) -> impl Future<Output = Result<Self::Inputs, ApiError>> + Send {
        async move {
            Self::prepare(principal, &[self]).await?;
            self.inputs(principal, is_retry).await
        }
    }

    /// Notes facts for the operations that follow.
    fn note(&self, outcome: &Self::Outcome);
}

/// The common state of a request's operations while they are executed.
#[derive(Default)]
struct Progress {
    /// The reason why no further operation begins.
    halted: OnceLock<Dependency>,
    /// Another attempt of the request has executed an operation, so that the inputs may be outdated.
    is_outdated: AtomicBool,
}

impl Caller {
    /// Executes operations, each in a transaction of its own, and returns the response to each: that of its change, or a
    /// problem document. After an error that is only temporary, such as throttling, no further operation begins; those
    /// that are left get an error of that kind. Only changes are stored: a repetition of the request executes the rest.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Unavailable`] if the table can't be reached at the beginning, and [`ApiError::Conflict`] if
    /// another request has the same idempotency key.
    pub async fn execute_each<O: Operation>(&self, operations: &[O]) -> Result<Executed, ApiError> {
        let mut responses = match &self.context.idempotency {
            Some(request) if self.begin(request).await? => self.store.previous_parts(request, operations.len()).await?,
            _ => vec![None; operations.len()],
        };
        let are_replayed = responses.iter().map(Option::is_some).collect();
        let is_left = |index: &usize| responses[*index].is_none();
        let left: Vec<usize> = (0..operations.len()).filter(is_left).collect();
        if left.is_empty() && !operations.is_empty() {
            self.notes.note_replay();
        }
        O::prepare(self, &left.iter().map(|index| &operations[*index]).collect::<Vec<_>>()).await?;
        let subjects: Vec<Vec<String>> = left.iter().map(|index| operations[*index].subjects()).collect();
        let progress = Progress::default();
        for wave in waves(&subjects) {
            let (left, progress) = (&left, &progress);
            let execute = |place: usize| async move {
                let index = left[place];
                (index, self.execute_part(index, &operations[index], progress).await)
            };
            let executed: Vec<(usize, StoredResponse)> =
                stream::iter(wave).map(execute).buffer_unordered(CONCURRENT_OPERATIONS).collect().await;
            for (index, response) in executed {
                responses[index] = Some(response);
            }
        }
        Ok(Executed { responses: responses.into_iter().flatten().collect(), are_replayed })
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

    /// An earlier attempt of the request has begun to execute its operations.
    #[must_use]
    pub fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    /// Another attempt of the request has begun to execute its operations since this one looked.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Unavailable`] if the table can't be reached.
    pub async fn has_begun_elsewhere(&self) -> Result<bool, ApiError> {
        let Some(request) = &self.context.idempotency else { return Ok(false) };
        let previous = self.store.previous_request(request).await?;
        Ok(matches!(previous, Some(PreviousRequest::Same(response)) if response.is_in_parts))
    }

    /// Stores that the request has begun. Returns whether it had begun before: then each part is executed once, by
    /// whichever attempt is faster.
    async fn begin(&self, request: &IdempotentRequest) -> Result<bool, ApiError> {
        if self.is_resumed {
            return Ok(true);
        }
        match self.store.store_response_alone(request, &StoredResponse::of_request_in_parts()).await {
            Ok(()) => Ok(false),
            // The layer around all routes looks up any other response.
            Err(error @ WriteError::AlreadyAnswered) if !self.has_begun_elsewhere().await? => Err(error.into()),
            Err(WriteError::AlreadyAnswered) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// Does nothing if the request is halted.
    async fn execute_part<O: Operation>(&self, index: usize, operation: &O, progress: &Progress) -> StoredResponse {
        let idempotency = self.context.idempotency.as_ref().map(|request| request.part(index));
        let context = ChangeContext { idempotency, ..self.context.clone() };
        let caller = self.with_context(context);
        if !has_time_for_operation() {
            let _ = progress.halted.set(Dependency::Service);
        }
        let is_outdated = progress.is_outdated.load(Ordering::Relaxed);
        let result = match progress.halted.get() {
            Some(dependency) => Err(ApiError::Unavailable(*dependency, "not executed".into())),
            None => {
                let executed = async {
                    let inputs = match is_outdated {
                        true => operation.inputs_alone(&caller, true).await?,
                        false => operation.inputs(&caller, false).await?,
                    };
                    caller.commit_operation(operation, inputs).await
                };
                match executed.await {
                    Ok(response) => Ok(response),
                    Err(error) => caller.settle(error, progress).await,
                }
            }
        };
        result.unwrap_or_else(|error| {
            if let ApiError::Unavailable(dependency, _) = &error {
                let _ = progress.halted.set(*dependency);
            }
            self.notes.problem(&error)
        })
    }

    /// # Errors
    ///
    /// As [`Principal::execute`].
    pub async fn execute_alone<O: Operation>(&self, operation: &O) -> Result<StoredResponse, ApiError> {
        self.commit_operation(operation, operation.inputs_alone(self, false).await?).await
    }

    async fn commit_operation<O: Operation>(&self, operation: &O, inputs: O::Inputs) -> Result<StoredResponse, ApiError> {
        let outcome = self.execute(operation, inputs).await?;
        operation.note(&outcome);
        Ok(operation.stored_response(&outcome)?)
    }

    /// Returns the stored response of a part that has failed, if it took effect before, or now, after a timeout. Otherwise its error.
    async fn settle(&self, error: ApiError, progress: &Progress) -> Result<StoredResponse, ApiError> {
        if let Some(cause) = error.source().map(error_chain) {
            tracing::error!(request_id = self.notes.request_id(), cause, "an operation of a request failed");
        }
        let Some(part) = &self.context.idempotency else { return Err(error) };
        match self.store.previous_request(part).await? {
            Some(PreviousRequest::Same(response)) => {
                progress.is_outdated.store(true, Ordering::Relaxed);
                Ok(*response)
            }
            _ => Err(error),
        }
    }

    /// Ignores the request's own parameter.
    #[must_use]
    pub fn with_dry_run(&self) -> Self {
        if self.store.is_dry_run() { self.without_idempotency_key() } else { self.with_new_dry_run() }
    }

    /// A dry run that knows nothing of the request's own.
    fn with_new_dry_run(&self) -> Self {
        let mut checker = self.without_idempotency_key();
        checker.principal.store = checker.principal.store.in_dry_run(DryRun::default());
        checker
    }
}
