//! What can go wrong with the table.

use crate::domain::record::Kind;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use std::error::Error;
use uuid::Uuid;

type Cause = Box<dyn Error + Send + Sync>;

/// Why a read or a write did not happen.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Throttled, timed out or in conflict, after retries. Trying again later can help.
    #[error("the table did not answer in time")]
    Unavailable(#[source] Cause),
    /// Anything else: a missing permission, a broken item, our own mistake.
    #[error("the table refused or holds what it should not")]
    Internal(#[source] Cause),
}

impl StoreError {
    /// An item that can't be read as what it should be.
    pub fn broken(cause: impl Into<Cause>) -> Self {
        Self::Internal(cause.into())
    }
}

/// Error codes that mean "later", beside HTTP 5xx. Source: "Error handling with DynamoDB" in the AWS guide.
const LATER: [&str; 8] = [
    "ThrottlingException",
    "ThrottlingError",
    "ProvisionedThroughputExceededException",
    "ProvisionedThroughputExceeded",
    "RequestLimitExceeded",
    "InternalServerError",
    "TransactionInProgressException",
    "TransactionConflictException",
];

/// Whether an error code, or the code of a cancellation reason, means "later".
pub(super) fn means_later(code: &str) -> bool {
    LATER.contains(&code)
}

impl<E> From<SdkError<E>> for StoreError
where
    E: Error + ProvideErrorMetadata + Send + Sync + 'static,
{
    fn from(error: SdkError<E>) -> Self {
        let later = match &error {
            SdkError::TimeoutError(_) | SdkError::DispatchFailure(_) | SdkError::ResponseError(_) => true,
            SdkError::ServiceError(answer) => {
                answer.raw().status().is_server_error() || answer.err().code().is_some_and(means_later)
            }
            _ => false,
        };
        if later { Self::Unavailable(error.into()) } else { Self::Internal(error.into()) }
    }
}

/// Why a write of a record did not happen.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Somebody changed or deleted the thing since it was read: read again, decide again.
    #[error("changed since it was read")]
    Stale,
    /// Another thing already has the value of this field: which one, if it is still there to be named.
    #[error("the value of {0} is taken")]
    Duplicate(&'static str, Option<(Kind, Uuid)>),
    /// What this field points to is gone or can't be pointed to: read again, decide again.
    #[error("what {0} points to is gone")]
    MissingReference(&'static str),
    /// The same request was answered before, or under its key another.
    #[error("the request was answered before")]
    AlreadyAnswered,
    /// The same request is being answered.
    #[error("the request is being answered")]
    InProgress,
    /// The answer is too long to be kept for when the request comes again.
    #[error("the answer is too long to be kept")]
    ResponseTooLong,
    /// The thing does not have a version that the request expects.
    #[error("not the version that was expected")]
    Unexpected,
    /// So many other things point to the thing.
    #[error("{0} things point to it")]
    InUse(u64),
    /// It is more than one transaction can hold.
    #[error("too large for one transaction")]
    TooLarge,
    /// The table.
    #[error(transparent)]
    Store(#[from] StoreError),
}
