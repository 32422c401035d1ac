//! Batches: the request and the response for several changes in one transaction.

use crate::domain::record::{ExpectedVersions, StoredResponse, entity_tag};
use crate::domain::values::field_error::{FieldError, ValueError};
use crate::domain::values::id::{AssetId, Id};
use crate::domain::values::string_enum::string_enum;
use crate::http::requests::body::{Fields, FromBody, FromJson};
use crate::http::responses::ApiError;
use crate::store::StoreError;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
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
    /// Builds the response from one response per operation. A dry run returns no entity tags, because it assigns no versions.
    pub(crate) fn new(responses: &[StoredResponse], is_dry_run: bool) -> Result<Self, ApiError> {
        let mut entries = Vec::new();
        for (index, StoredResponse { status, tagged, body, .. }) in responses.iter().enumerate() {
            let SingleResponse { data } = serde_json::from_str(body).map_err(StoreError::broken)?;
            let etag = tagged.filter(|_| !is_dry_run).map(|version| entity_tag(version, body.as_bytes()));
            entries.push(BatchEntry { index, status: *status, etag, data });
        }
        Ok(Self { data: entries })
    }
}
