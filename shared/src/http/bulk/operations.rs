//! Batches: the request and the response for several changes in one transaction.

use crate::domain::record::{ExpectedVersions, StoredResponse, entity_tag};
use crate::domain::values::field_error::{FieldError, ValueError};
use crate::domain::values::id::{AssetId, Id};
use crate::domain::values::string_enum::string_enum;
use crate::http::requests::body::{Fields, FromBody, FromJson};
use crate::http::responses::{ApiError, ConflictCode};
use crate::store::StoreError;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use std::collections::HashMap;
use utoipa::openapi::schema::{AdditionalProperties, ArrayBuilder, ObjectBuilder, Schema, Type};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};
use uuid::Uuid;

/// Maximum number of operations in a batch, which is one transaction of at most 100 items.
const MAX_OPERATIONS: usize = 20;

const BATCH_OPERATION: &str = "BatchOperation";

crate::body! {
    /// Several changes, made together or not at all.
    pub struct Batch {
        /// 1 to 20 changes, each to a different record.
        required operations: Operations,
    }
    read_only: &[]
}

impl Batch {
    /// Returns the operations, and the errors besides those in their bodies, each with the position of its operation. Two
    /// operations on the same record are an error.
    #[must_use]
    pub fn into_operations(self) -> (Vec<RawOperation>, Vec<(usize, FieldError)>) {
        let mut operations = self.operations.0;
        let mut errors = Vec::new();
        for (index, operation) in operations.iter().enumerate() {
            errors.extend(operation.errors.iter().map(|error| (index, error.clone().at_operation(index))));
            let is_repeated = operations[..index].iter().any(|earlier| earlier.id == operation.id);
            if is_repeated && !operation.id.is_nil() {
                let detail = "is also in an earlier operation; a batch can change a record only once";
                errors.push((index, FieldError::within("operations", &format!("/{index}/id"), detail)));
            }
        }
        for (index, _) in &errors {
            operations.get_mut(*index).into_iter().for_each(|operation| operation.is_faulty = true);
        }
        (operations, errors)
    }
}

string_enum! {
    /// What an operation does.
    OperationKind {
        /// Same as POST.
        Create = "create",
        /// Same as PATCH.
        Update = "update",
        /// Same as DELETE.
        Delete = "delete",
    }
}

/// An operation whose body is not parsed yet.
#[derive(Debug, Clone, Default)]
pub struct RawOperation {
    /// `None` if it is invalid.
    pub kind: Option<OperationKind>,
    /// ID of the record; nil for a creation.
    pub id: Uuid,
    pub if_match: Option<ExpectedVersions>,
    /// Whether there are errors besides those in the body.
    pub is_faulty: bool,
    errors: Vec<FieldError>,
    body: Option<Box<RawValue>>,
}

#[derive(Debug, Clone)]
pub struct Operations(pub Vec<RawOperation>);

impl RawOperation {
    /// Parses the body of the operation.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Invalid`] if a required field is missing or invalid. Without errors if there is no body.
    pub fn read<B: FromBody>(&self) -> Result<(B, Vec<FieldError>), ApiError> {
        let Some(body) = &self.body else { return Err(ApiError::Invalid(Vec::new())) };
        match B::read(body.get().as_bytes())? {
            (Some(body), errors) => Ok((body, errors)),
            (None, errors) => Err(ApiError::Invalid(errors)),
        }
    }

    fn parse(text: &str) -> Self {
        let mut fields = match Fields::parse(text.as_bytes()) {
            Ok(fields) => fields,
            Err(ApiError::Invalid(errors)) => return Self { errors, ..Self::default() },
            Err(error) => return Self { errors: vec![FieldError::whole(error.to_string())], ..Self::default() },
        };
        let kind = fields.required::<OperationKind>("op");
        let id = fields.optional::<AssetId>("id").map(Id::uuid);
        let if_match = fields.optional::<ExpectedVersions>("if_match");
        let body = fields.take("body");
        let mut errors = fields.finish(&[]);
        let has_bad_id = errors.iter().any(|error| error.is_about("id"));
        let mut error = |name: &str, reason: ValueError| errors.push(FieldError::field(name, reason));
        match (kind, id.is_some()) {
            (Some(OperationKind::Create), true) => error("id", "must not be sent with create: the service assigns it".into()),
            (Some(OperationKind::Update | OperationKind::Delete), false) if !has_bad_id => error("id", ValueError::required()),
            _ => {}
        }
        match (kind, body.is_some()) {
            (Some(OperationKind::Create | OperationKind::Update), false) => error("body", ValueError::required()),
            (Some(OperationKind::Delete), true) => error("body", "must not be sent with delete".into()),
            _ => {}
        }
        if kind == Some(OperationKind::Create) && if_match.is_some() {
            error("if_match", "must not be sent with create".into());
        }
        let body = body.map(ToOwned::to_owned);
        let id = id.filter(|_| kind != Some(OperationKind::Create));
        Self { kind, id: id.unwrap_or_default(), if_match, is_faulty: false, errors, body }
    }
}

impl FromJson for OperationKind {
    fn from_json(text: &str) -> Result<Self, ValueError> {
        // Any other JSON type gets the error of an unknown kind, which lists the known kinds.
        serde_json::from_str::<String>(text).unwrap_or_default().parse()
    }
}

impl FromJson for Operations {
    fn from_json(text: &str) -> Result<Self, ValueError> {
        Self::from_json_with_locations(text).map_err(|_| ValueError::form("must be a list of operations"))
    }

    fn from_json_with_locations(text: &str) -> Result<Self, Vec<(String, ValueError)>> {
        let bounds = || vec![(String::new(), ValueError::form(format!("must be a list of 1 to {MAX_OPERATIONS} operations")))];
        let entries: Vec<&RawValue> = serde_json::from_str(text).map_err(|_| bounds())?;
        if !(1..=MAX_OPERATIONS).contains(&entries.len()) {
            return Err(bounds());
        }
        Ok(Self(entries.into_iter().map(|entry| RawOperation::parse(entry.get())).collect()))
    }
}

impl PartialSchema for Operations {
    fn schema() -> RefOr<Schema> {
        let operation = Ref::from_schema_name(BATCH_OPERATION);
        ArrayBuilder::new().items(operation).min_items(Some(1)).max_items(Some(MAX_OPERATIONS)).into()
    }
}

impl ToSchema for Operations {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((BATCH_OPERATION.to_owned(), RawOperation::schema()));
    }
}

impl PartialSchema for RawOperation {
    fn schema() -> RefOr<Schema> {
        let text = || ObjectBuilder::new().schema_type(Type::String);
        let operation = ObjectBuilder::new()
            .description(Some("One operation in a batch."))
            .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)))
            .property("op", text().enum_values(Some(["create", "update", "delete"])).description(Some("Kind of change.")))
            .property("id", text().description(Some("ID of the record to update or delete.")))
            .property("if_match", text().description(Some("Like the header `If-Match`: the `ETag` that the record must have.")))
            .property("body", ObjectBuilder::new().description(Some("Same as the body of the single request.")))
            .required("op");
        operation.into()
    }
}

/// The result of an operation.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct BatchEntry {
    /// Position of the operation, from 0.
    index: usize,
    /// HTTP status, as for the single request.
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
    /// Results in the order of the operations.
    data: Vec<BatchEntry>,
}

#[derive(Deserialize)]
struct SingleResponse {
    data: Box<RawValue>,
}

impl BatchResult {
    /// Returns the response to store for retries of the request.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Internal`] if the response can't be serialized.
    pub fn to_stored(&self) -> Result<StoredResponse, StoreError> {
        Ok(StoredResponse::new(200, serde_json::to_string(self).map_err(StoreError::broken)?))
    }

    /// Builds the response from one response per operation. A dry run returns no entity tags, because it assigns no versions.
    fn new(responses: &[StoredResponse], is_dry_run: bool) -> Result<Self, ApiError> {
        let mut entries = Vec::new();
        for (index, StoredResponse { status, tagged, body, .. }) in responses.iter().enumerate() {
            let SingleResponse { data } = serde_json::from_str(body).map_err(StoreError::broken)?;
            let etag = tagged.filter(|_| !is_dry_run).map(|version| entity_tag(version, body.as_bytes()));
            entries.push(BatchEntry { index, status: *status, etag, data });
        }
        Ok(Self { data: entries })
    }
}

/// The results of a batch's operations while it is decided: a response for each, or all errors.
#[derive(Default)]
pub struct OperationResults {
    responses: Vec<StoredResponse>,
    errors: OperationErrors,
    /// The unique values that operations set, with the position of the first operation that sets each.
    values: HashMap<(&'static str, String), usize>,
}

impl OperationResults {
    /// Starts with errors in the request besides those in the operations' bodies, each with the position of its operation.
    #[must_use]
    pub fn with_faults(faults: &[(usize, FieldError)]) -> Self {
        let errors = OperationErrors { all: faults.to_vec(), has_fields: !faults.is_empty(), first_other: None };
        Self { errors, ..Self::default() }
    }

    /// Adds the unique value that an operation sets. It is an error if an earlier operation sets the same.
    pub fn add_unique(&mut self, index: usize, unique: Option<(&'static str, String)>) {
        let Some((field, value)) = unique else { return };
        let earlier = *self.values.entry((field, value)).or_insert(index);
        if earlier < index {
            let detail = format!("Operation {earlier} of the request has the same {field}.");
            self.errors.add(index, ApiError::conflict(ConflictCode::Duplicate, detail, json!({ "field": field })));
        }
    }

    /// Adds the response or the error of an operation.
    pub fn add(&mut self, index: usize, result: Result<StoredResponse, ApiError>) {
        match result {
            Ok(response) => self.responses.push(response),
            Err(error) => self.errors.add(index, error),
        }
    }

    /// Returns the response to the batch.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Invalid`] with the errors of all operations if a field is invalid; otherwise
    /// [`ApiError::InOperations`].
    pub fn finish(self, is_dry_run: bool) -> Result<BatchResult, ApiError> {
        self.errors.check()?;
        BatchResult::new(&self.responses, is_dry_run)
    }
}

/// Returns the error for a batch that doesn't fit in one transaction.
#[must_use]
pub fn too_many_operations() -> ApiError {
    let detail = "don't fit in one transaction; send fewer operations at once";
    ApiError::Invalid(vec![FieldError::field("operations", detail)])
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
