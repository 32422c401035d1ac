//! Batches: several changes in one request.

use super::operations::{Operations, RawOperation};
use crate::domain::request::{StoredResponse, entity_tag};
use crate::domain::values::field_error::FieldError;
use crate::domain::values::json;
use crate::http::error::ApiError;
use crate::http::error::problem::Problem;
use crate::store::StoreError;
use serde::{Deserialize, Serialize};
use serde_json::json as json_value;
use serde_json::value::RawValue;
use utoipa::openapi::schema::{AnyOfBuilder, ObjectBuilder, Schema, SchemaType, Type};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

/// The size of all responses to the operations, as Lambda passes them on.
const MAX_BYTES: usize = 4 * 1024 * 1024;
/// The most operations of an atomic batch, which is one transaction.
const MAX_ATOMIC_OPERATIONS: usize = 20;

crate::body! {
    /// Several changes.
    pub struct Batch {
        /// The changes, 1 to 100; at most 20 if `atomic`.
        required operations: Operations,
        /// Whether all changes are made or none. Default false: each is made on its own.
        optional atomic: bool,
    }
    read_only: &[]
}

impl Batch {
    /// Returns the operations and whether they are atomic.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Invalid`] for an atomic batch with too many operations, or with two about the same record.
    pub fn into_operations(self) -> Result<(Vec<RawOperation>, bool), ApiError> {
        let (operations, is_atomic) = (self.operations.0, self.atomic == Some(true));
        if !is_atomic {
            return Ok((operations, false));
        }
        let mut errors = Vec::new();
        if operations.len() > MAX_ATOMIC_OPERATIONS {
            let detail = format!("must have at most {MAX_ATOMIC_OPERATIONS} operations if atomic is true");
            errors.push(FieldError::field("operations", detail));
        }
        for (index, operation) in operations.iter().enumerate() {
            let is_repeated = operations[..index].iter().any(|earlier| earlier.id == operation.id);
            if is_repeated && !operation.id.is_nil() {
                let detail = "is that of an earlier operation; an atomic batch changes a record once";
                errors.push(FieldError::within("operations", &format!("/{index}/id"), detail));
            }
        }
        if errors.is_empty() { Ok((operations, true)) } else { Err(ApiError::Invalid(errors)) }
    }
}

/// How many operations of a batch succeeded.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct BatchCounts {
    /// Operations that succeeded.
    succeeded: usize,
    /// Operations that failed.
    failed: usize,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct BatchEntry {
    index: usize,
    status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Box<RawValue>>,
}

const DATA: &str = "The record, as the single request returns it; only its `id` if the response would be larger than 4 MiB. Absent \
                    on failure.";
const ERROR: &str = "Why the operation failed; without `errors` if the response would be larger than 4 MiB. Absent on success.";

impl PartialSchema for BatchEntry {
    fn schema() -> RefOr<Schema> {
        let number = |text| ObjectBuilder::new().schema_type(Type::Integer).description(Some(text));
        let data = ObjectBuilder::new().schema_type(SchemaType::AnyValue);
        let error = AnyOfBuilder::new().item(Ref::from_schema_name(Problem::name()));
        ObjectBuilder::new()
            .description(Some("An operation, and its response."))
            .property("index", number("Position of the operation, from 0."))
            .property("status", number("HTTP status that the single request would have."))
            .property("etag", ObjectBuilder::new().schema_type(Type::String).description(Some("`ETag` of the record.")))
            .property("data", data.description(Some(DATA)))
            .property("error", error.description(Some(ERROR)))
            .required("index")
            .required("status")
            .into()
    }
}

impl ToSchema for BatchEntry {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((Problem::name().into_owned(), Problem::schema()));
        Problem::schemas(schemas);
    }
}

/// The result of a batch.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct BatchResult {
    /// The operations, in their order.
    data: Vec<BatchEntry>,
    /// How many of them took effect.
    meta: BatchCounts,
}

#[derive(Deserialize)]
struct Body {
    data: Option<Box<RawValue>>,
}

impl BatchResult {
    /// Once the responses are too large together, the others are shortened to the ID of a record, or an error without its list of
    /// fields. A dry run has no entity tags, since nothing has a version yet.
    pub(crate) fn new(responses: &[StoredResponse], is_dry_run: bool) -> Result<Self, ApiError> {
        let (mut entries, mut bytes) = (Vec::new(), 0);
        for (index, response) in responses.iter().enumerate() {
            let StoredResponse { status, version, body, .. } = response;
            bytes += json::escaped_len(body.as_bytes());
            let is_success = *status < 300;
            let shown = if bytes <= MAX_BYTES { Ok(body.clone()) } else { shortened(body, is_success) };
            let shown = shown.map_err(StoreError::broken)?;
            let data = if is_success { serde_json::from_str::<Body>(&shown).map_err(StoreError::broken)?.data } else { None };
            let error = if is_success { None } else { Some(RawValue::from_string(shown).map_err(StoreError::broken)?) };
            let etag = version.filter(|_| !is_dry_run).map(|version| entity_tag(version, body.as_bytes()));
            entries.push(BatchEntry { index, status: *status, etag, data, error });
        }
        let succeeded = entries.iter().filter(|entry| entry.error.is_none()).count();
        let meta = BatchCounts { succeeded, failed: entries.len() - succeeded };
        Ok(Self { data: entries, meta })
    }
}

/// Keeps the ID of a record, or an error without its list of fields.
fn shortened(body: &str, is_success: bool) -> Result<String, serde_json::Error> {
    let mut body = json::parse(body)?;
    if is_success {
        let id = body["data"]["id"].take();
        return serde_json::to_string(&json_value!({ "data": { "id": id } }));
    }
    if let Some(problem) = body.as_object_mut() {
        problem.remove("errors");
    }
    serde_json::to_string(&body)
}
