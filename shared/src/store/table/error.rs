//! Errors of reads and writes.

use crate::domain::record::Kind;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use std::error::Error;
use uuid::Uuid;

type Cause = Box<dyn Error + Send + Sync>;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// DynamoDB throttled, timed out or had conflicts, after all retries. A later attempt may succeed.
    #[error("DynamoDB is unavailable")]
    Unavailable(#[source] Cause),
    /// A retry doesn't help: a permission is missing, an item is invalid, or the service has a bug.
    #[error("DynamoDB rejected the request, or the data is invalid")]
    Internal(#[source] Cause),
    /// A record is damaged, or was written by an unknown version of the service.
    #[error(transparent)]
    Unreadable(#[from] UnreadableRecord),
    /// The unit of work took too long to decide, so it isn't committed.
    #[error("the deadline of the unit of work has passed")]
    TooLate,
    /// A change is not fully visible yet.
    #[error("a change is not fully visible yet: {0}")]
    Unsettled(&'static str),
    /// A list index is still loading. After this many seconds, a request probably has enough time to load the rest.
    #[error("a list index is still loading")]
    NotLoaded(u64),
    /// A list index exceeds its memory budget. It is loaded again after this many seconds.
    #[error("a list index exceeds the memory budget")]
    ListTooLarge(u64),
    /// The tenant's custom fields don't fit in the memory budget of a list index.
    #[error("custom fields exceed the memory budget of the list index")]
    FieldsLeftOut,
    /// Lists can't filter or sort by the custom field that this parameter names, because of its value in some asset.
    #[error("lists can't filter or sort by the custom field in {0}, because of its value in some asset")]
    UnfitField(String),
    /// The index of a history lacks entries. It may have them after this many seconds.
    #[error("the latest entries of a history can't be read yet; try again")]
    HistoryBehind(u64),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the {} {} can't be read", .kind.noun(), .id.map(|id| id.to_string()).unwrap_or_default())]
pub struct UnreadableRecord {
    pub kind: Kind,
    /// From its key.
    pub id: Option<Uuid>,
    /// Can quote the record's data, so it is for the operator only.
    pub cause: String,
}

/// The cause of a [`StoreError::Unavailable`] that is due to throttling.
#[derive(Debug, thiserror::Error)]
#[error("DynamoDB throttles")]
struct Throttling(#[source] Cause);

impl StoreError {
    /// For data in an impossible state.
    pub fn broken(cause: impl Into<Cause>) -> Self {
        Self::Internal(cause.into())
    }

    /// Turns an unreadable record into `None`.
    ///
    /// # Errors
    ///
    /// Returns every other error.
    pub fn tolerate_unreadable<T>(read: Result<Option<T>, Self>) -> Result<Option<T>, Self> {
        match read {
            Err(Self::Unreadable(_)) => Ok(None),
            read => read,
        }
    }

    /// The ID of an unreadable record; `None` if its key has no ID.
    ///
    /// # Errors
    ///
    /// Returns every other error.
    pub(in crate::store) fn unreadable_id(self) -> Result<Option<Uuid>, Self> {
        match self {
            Self::Unreadable(record) => Ok(record.id),
            other => Err(other),
        }
    }

    pub(in crate::store) fn is_throttling(&self) -> bool {
        matches!(self, Self::Unavailable(cause) if cause.is::<Throttling>())
    }
}

const THROTTLING_CODES: [&str; 5] = [
    "ThrottlingException",
    "ThrottlingError",
    "ProvisionedThroughputExceededException",
    "ProvisionedThroughputExceeded",
    "RequestLimitExceeded",
];

/// Other retryable error codes, besides HTTP 5xx. Source: "Error handling with DynamoDB" in the AWS guide.
const RETRYABLE_CODES: [&str; 3] = ["InternalServerError", "TransactionInProgressException", "TransactionConflictException"];

/// `code` is from an error or from a cancellation reason.
pub(in crate::store) fn is_retryable(code: &str) -> bool {
    RETRYABLE_CODES.contains(&code) || THROTTLING_CODES.contains(&code)
}

/// Returns the output of a write, or `None` if its condition failed.
///
/// # Errors
///
/// Returns any other error of the write.
pub(in crate::store) fn unless_condition_failed<T, E>(written: Result<T, SdkError<E>>) -> Result<Option<T>, StoreError>
where
    E: Error + ProvideErrorMetadata + Send + Sync + 'static,
{
    match written {
        Err(error) if error.code() == Some("ConditionalCheckFailedException") => Ok(None),
        written => Ok(Some(written?)),
    }
}

impl<E> From<SdkError<E>> for StoreError
where
    E: Error + ProvideErrorMetadata + Send + Sync + 'static,
{
    fn from(error: SdkError<E>) -> Self {
        let retryable = match &error {
            SdkError::TimeoutError(_) | SdkError::DispatchFailure(_) | SdkError::ResponseError(_) => true,
            SdkError::ServiceError(response) => {
                response.raw().status().is_server_error() || response.err().code().is_some_and(is_retryable)
            }
            _ => false,
        };
        let is_throttling = error.code().is_some_and(|code| THROTTLING_CODES.contains(&code));
        if is_throttling {
            return Self::Unavailable(Throttling(error.into()).into());
        }
        if retryable { Self::Unavailable(error.into()) } else { Self::Internal(error.into()) }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The record was changed or deleted after it was read: read it again and decide again.
    #[error("the record has changed since it was read")]
    Stale,
    /// Another record has the same value in this field. The record is known if it still exists.
    #[error("another record has the same {0}")]
    Duplicate(&'static str, Option<(Kind, Uuid)>),
    /// The record that this field refers to is gone or can't be referenced: read it again and decide again.
    #[error("the record that {0} refers to does not exist or can't be referenced")]
    MissingReference(&'static str),
    /// A response is already stored under the request's idempotency key.
    #[error("a response is already stored under the idempotency key")]
    AlreadyAnswered,
    /// The same request is in progress.
    #[error("the same request is in progress")]
    InProgress,
    /// The response is too long to be stored under the idempotency key.
    #[error("the response is too long to be stored")]
    ResponseTooLong,
    /// The record's version is not one that the request expects.
    #[error("the precondition failed")]
    PreconditionFailed,
    /// This many other records refer to the record.
    #[error("the record is referenced by {0} others")]
    InUse(u64),
    #[error("the changes don't fit into one transaction")]
    TooLarge,
    #[error(transparent)]
    Store(#[from] StoreError),
}
