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
    /// A record is damaged, or was written by a version of the service that this one does not know.
    #[error(transparent)]
    Unreadable(#[from] UnreadableRecord),
    /// The unit of work took so long to decide that it is not committed any more.
    #[error("the deadline of the unit of work has passed")]
    TooLate,
    /// A change is not visible as a whole yet.
    #[error("a change is not visible as a whole yet: {0}")]
    Unsettled(&'static str),
    /// A list index is being loaded. After this many seconds, a request probably has time enough to load the rest.
    #[error("a list index is being loaded")]
    NotLoaded(u64),
    /// A list index exceeds the memory for it. After this many seconds it is tried again.
    #[error("a list index exceeds the memory budget")]
    ListTooLarge(u64),
    /// The memory for a list index does not suffice for the tenant's custom fields.
    #[error("custom fields exceed the memory budget of the list index")]
    FieldsLeftOut,
    /// Lists can't be asked about the custom field that this parameter names: some asset has a value of it that they don't know.
    #[error("an asset has a value of the custom field in {0} that lists don't know")]
    UnfitField(String),
    /// The index of a history lacks entries. After this many seconds it may have them.
    #[error("the latest entries of a history can't be read yet; try again")]
    HistoryBehind(u64),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the {} {} can't be read", .kind.noun(), .id.map(|id| id.to_string()).unwrap_or_default())]
pub struct UnreadableRecord {
    pub kind: Kind,
    /// From its key.
    pub id: Option<Uuid>,
    /// May quote its data, so it is for the operator only.
    pub cause: String,
}

/// The cause of a [`StoreError::Unavailable`] because of throttling.
#[derive(Debug, thiserror::Error)]
#[error("DynamoDB throttles")]
struct Throttling(#[source] Cause);

impl StoreError {
    /// For data in an impossible state.
    pub fn broken(cause: impl Into<Cause>) -> Self {
        Self::Internal(cause.into())
    }

    /// Replaces a record that can't be read by `None`.
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

    /// `None` if the record's key has no id.
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

/// Other error codes that can be retried, besides HTTP 5xx. Source: "Error handling with DynamoDB" in the AWS guide.
const RETRYABLE_CODES: [&str; 3] = ["InternalServerError", "TransactionInProgressException", "TransactionConflictException"];

/// `code` is of an error, or of a cancellation reason.
pub(in crate::store) fn is_retryable(code: &str) -> bool {
    RETRYABLE_CODES.contains(&code) || THROTTLING_CODES.contains(&code)
}

/// `None` if the condition of a write failed, else its output.
///
/// # Errors
///
/// As a read of the table.
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
    /// Another record has the same value in this field; it is named if it still exists.
    #[error("another record has the same {0}")]
    Duplicate(&'static str, Option<(Kind, Uuid)>),
    /// The record that this field refers to is gone or can't be referenced: read it again and decide again.
    #[error("the record that {0} refers to does not exist or can't be referenced")]
    MissingReference(&'static str),
    /// A response is already stored under the request's idempotency key.
    #[error("a response is already stored under the idempotency key")]
    AlreadyAnswered,
    /// The same request is being answered.
    #[error("the same request is in progress")]
    InProgress,
    /// The response is too long to be stored under the idempotency key.
    #[error("the response is too long to be stored")]
    ResponseTooLong,
    /// The record is not at a version that the request expects.
    #[error("the precondition failed")]
    PreconditionFailed,
    /// The record is referenced by this many others.
    #[error("the record is referenced by {0} others")]
    InUse(u64),
    #[error("the changes don't fit into one transaction")]
    TooLarge,
    #[error(transparent)]
    Store(#[from] StoreError),
}
