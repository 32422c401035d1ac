//! The responses to errors of the store, of key encryption, of the queue and of process instances.

use super::{ApiError, Conflict, ConflictCode, Dependency};
use crate::domain::assets::listed::{MAX_CELL_CHARS, MAX_FIELDS};
use crate::domain::keys::grant::GrantError;
use crate::domain::processes::instance::ProcessError;
use crate::domain::values::field_error::FieldError;
use crate::key_encryption::KeyEncryptionError;
use crate::queue::QueueError;
use crate::store::{CommitFailure, KeyError, StoreError, WriteError};
use serde_json::{Map, Value, json};

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(_) => Self::Unavailable(Dependency::Table, error.into()),
            StoreError::NotLoaded(seconds) => Self::Unavailable(Dependency::ListIndex(seconds), error.into()),
            StoreError::ListTooLarge(seconds) => Self::Unavailable(Dependency::ListMemory(seconds), error.into()),
            StoreError::FieldsLeftOut => Self::Unavailable(Dependency::FieldMemory, error.into()),
            StoreError::UnfitField(field) => Self::Invalid(vec![unfit_field(&field)]),
            StoreError::HistoryBehind(seconds) => Self::Unavailable(Dependency::History(seconds), error.into()),
            StoreError::TooLate => Self::timed_out(error),
            StoreError::Unsettled(_) => Self::Unavailable(Dependency::Change, error.into()),
            StoreError::Unreadable(record) => Self::Unreadable(record),
            StoreError::Internal(_) => Self::Internal(error.into()),
        }
    }
}

/// For a request about a custom field, by its parameter.
fn unfit_field(parameter: &str) -> FieldError {
    let detail = format!(
        "can't be asked about: an asset has a value of it that is no text, number or boolean of at most {MAX_CELL_CHARS} \
         characters, or is beyond its first {MAX_FIELDS} custom fields by name"
    );
    FieldError::parameter(parameter, detail)
}

impl From<GrantError> for ApiError {
    fn from(error: GrantError) -> Self {
        match error {
            GrantError::Scope(scope) => Self::Forbidden(scope),
            error => Self::NotGrantable(error),
        }
    }
}

impl From<KeyEncryptionError> for ApiError {
    fn from(error: KeyEncryptionError) -> Self {
        match error {
            KeyEncryptionError::Unavailable(_) => Self::Unavailable(Dependency::KeyEncryption, error.into()),
            KeyEncryptionError::Rejected(_) => Self::Internal(error.into()),
        }
    }
}

impl From<QueueError> for ApiError {
    fn from(error: QueueError) -> Self {
        Self::Unavailable(Dependency::Queue, error.into())
    }
}

impl From<&ProcessError> for ConflictCode {
    /// All but [`ProcessError::Invalid`], which is no conflict.
    fn from(error: &ProcessError) -> Self {
        match error {
            ProcessError::Invalid(_) => Self::Conflict,
            ProcessError::Inactive => Self::ProcessInactive,
            ProcessError::Running(..) => Self::ProcessRunning,
            ProcessError::WrongStatus { .. } => Self::WrongAssetStatus,
            ProcessError::Closed(_) => Self::InstanceClosed,
            ProcessError::Moved(_) => Self::StepMoved,
            ProcessError::Submitted(_) => Self::StepSubmitted,
        }
    }
}

impl From<KeyError> for ApiError {
    fn from(error: KeyError) -> Self {
        match error {
            KeyError::Encryption(error) => error.into(),
            KeyError::Write(error) => error.into(),
        }
    }
}

impl From<WriteError> for ApiError {
    /// For a write that is not attempted again.
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Stale | WriteError::MissingReference(_) => Self::conflict(
                ConflictCode::Conflict,
                "Others changed the same resource at the same time. Read it again and decide again.",
                Value::Null,
            ),
            WriteError::Duplicate(field, owner) => {
                let mut context = Map::from_iter([("field".to_owned(), json!(field))]);
                context.extend(owner.map(|(kind, id)| (format!("{}_id", kind.noun()), json!(id))));
                let detail = format!("Another resource already has this {field}.");
                Self::Conflict(Conflict { code: ConflictCode::Duplicate, detail, context })
            }
            WriteError::InUse(count) => Self::conflict(
                ConflictCode::InUse,
                format!("{count} other {} to it.", if count == 1 { "resource refers" } else { "resources refer" }),
                json!({ "count": count }),
            ),
            WriteError::TooLarge => Self::conflict(
                ConflictCode::Conflict,
                "The change exceeds what one transaction can hold. Change fewer resources at once.",
                Value::Null,
            ),
            // The layer around all routes looks for the stored response before it sends this.
            WriteError::AlreadyAnswered | WriteError::InProgress => Self::conflict(
                ConflictCode::RequestInProgress,
                "The same request is in progress. Send it again in a moment to get its response.",
                Value::Null,
            ),
            WriteError::ResponseTooLong => Self::idempotency_key("must not be sent: the response would be too long to store"),
            WriteError::PreconditionFailed => Self::PreconditionFailed,
            WriteError::Store(error) => error.into(),
        }
    }
}

impl From<ApiError> for CommitFailure<ApiError> {
    fn from(error: ApiError) -> Self {
        Self::Failed(error)
    }
}

impl From<StoreError> for CommitFailure<ApiError> {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.into())
    }
}
