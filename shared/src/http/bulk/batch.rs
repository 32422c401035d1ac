//! Batches: several changes in one transaction.

use super::operations::{Operations, RawOperation};
use crate::domain::request::{StoredResponse, entity_tag};
use crate::domain::values::field_error::FieldError;
use crate::http::error::ApiError;
use crate::store::StoreError;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

crate::body! {
    /// Several changes: all are made, or none.
    pub struct Batch {
        /// The changes, 1 to 20, each of another record.
        required operations: Operations,
    }
    read_only: &[]
}

impl Batch {
    /// # Errors
    ///
    /// Returns [`ApiError::Invalid`] if two operations are about the same record.
    pub fn into_operations(self) -> Result<Vec<RawOperation>, ApiError> {
        let operations = self.operations.0;
        let mut errors = Vec::new();
        for (index, operation) in operations.iter().enumerate() {
            let is_repeated = operations[..index].iter().any(|earlier| earlier.id == operation.id);
            if is_repeated && !operation.id.is_nil() {
                let detail = "is in an earlier operation too; a batch changes a record once";
                errors.push(FieldError::within("operations", &format!("/{index}/id"), detail));
            }
        }
        if errors.is_empty() { Ok(operations) } else { Err(ApiError::Invalid(errors)) }
    }
}

/// An operation, and its response.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct BatchEntry {
    /// Position of the operation, from 0.
    index: usize,
    /// HTTP status of the single request.
    status: u16,
    /// `ETag` of the record.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    etag: Option<String>,
    /// The record, as the single request returns it.
    #[schema(value_type = Value)]
    data: Box<RawValue>,
}

/// The result of a batch.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct BatchResult {
    /// The operations, in their order.
    data: Vec<BatchEntry>,
}

#[derive(Deserialize)]
struct Body {
    data: Box<RawValue>,
}

impl BatchResult {
    /// Of the responses to all operations. A dry run has no entity tags, since nothing has a version yet.
    pub(crate) fn new(responses: &[StoredResponse], is_dry_run: bool) -> Result<Self, ApiError> {
        let mut entries = Vec::new();
        for (index, StoredResponse { status, version, body, .. }) in responses.iter().enumerate() {
            let Body { data } = serde_json::from_str(body).map_err(StoreError::broken)?;
            let etag = version.filter(|_| !is_dry_run).map(|version| entity_tag(version, body.as_bytes()));
            entries.push(BatchEntry { index, status: *status, etag, data });
        }
        Ok(Self { data: entries })
    }
}
