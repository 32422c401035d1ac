//! Imports: options, body and the result of each row. Also rejects rows that update no record, or the same record as another row.

use super::rows::{CUSTOM_FIELD, File, Format, Row, parse};
use crate::domain::import::parameters::{Delimiter, PARAMETERS, Reading};
use crate::domain::import::prices::Decimal;
use crate::domain::import::{Kind, compared};
use crate::domain::record::StoredResponse;
use crate::domain::values::field_error::{ErrorCode, FieldError, ValueError};
use crate::domain::values::string_enum::string_enum;
use crate::http::openapi::{Describe, Schemas, add_schema, query_parameter, repeated_parameter, schema_or_reference};
use crate::http::requests::body::{FromBody, FromJson, Unread, VerifiedSender};
use crate::http::requests::params::{FromQuery, Params};
use crate::http::responses::ApiError;
use crate::store::StoreError;
use fields::same_value;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use utoipa::openapi::path::{Operation, Parameter};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::Schema;
use utoipa::openapi::{Content, RefOr, Required};
use utoipa::{PartialSchema, ToSchema};
use uuid::Uuid;

/// Maximum number of errors listed per row, so that the response for 200 rows is not too large for Lambda. Further errors are
/// only counted.
const MAX_ROW_ERRORS: usize = 20;
/// Longer old and new values are truncated.
const MAX_SHOWN_CHARS: usize = 100;
/// Maximum size of the changes listed per row, in bytes, so that the response for 200 rows is not too large for Lambda. Further
/// changes are only counted.
const MAX_CHANGES_BYTES: usize = 8 * 1024;

/// Fields, and the columns that give their values in other words.
const ALIASES: [(&str, &str); 5] = [
    ("assigned_to", "assigned_to_email"),
    ("assigned_to", "assigned_to_name"),
    ("asset_type_id", "asset_type_code"),
    ("model_id", "model_name"),
    ("model_id", "manufacturer_name"),
];

/// Members of a problem document that a row's error doesn't repeat in `extra`.
const OWN_MEMBERS: [&str; 9] = ["type", "title", "status", "detail", "code", "error", "request_id", "errors", "fields"];

string_enum! {
    /// What happens to valid rows if another row is refused.
    OnError {
        /// Valid rows are written.
        Skip = "skip",
        /// Valid rows are not written: all rows are checked before the first write.
        Abort = "abort",
    }
}

/// A body of rows: CSV, NDJSON, or JSON with a text and the parameters.
pub type RowsBody = Unread<InRows>;

pub struct InRows;

crate::body! {
    /// A file, with the parameters that would be too long for a URL.
    pub struct ImportText {
        /// Parameters, as in the query.
        required parameters: ParameterList,
        /// Rows as CSV, or as NDJSON.
        required text: String,
    }
    read_only: &[]
}

/// Maximum length of a query, in bytes: API Gateway accepts no longer URLs.
const MAX_QUERY: usize = 8_000;
/// Maximum number of parameters in a body.
const MAX_PARAMETERS: usize = 5_000;

/// Parameters in a body.
#[derive(Debug)]
pub struct ParameterList(Vec<ImportParameter>);

/// A parameter of an import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportParameter {
    /// Name of the parameter.
    pub name: String,
    /// Value, not percent-encoded.
    pub value: String,
}

impl PartialSchema for ParameterList {
    fn schema() -> RefOr<Schema> {
        Vec::<ImportParameter>::schema()
    }
}

impl ToSchema for ParameterList {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((ImportParameter::name().into_owned(), ImportParameter::schema()));
    }
}

impl FromJson for ParameterList {
    fn from_json(text: &str) -> Result<Self, ValueError> {
        let list: Vec<ImportParameter> = serde_json::from_str(text)
            .map_err(|_| ValueError::form("must be a list of objects with a name and a value, both strings"))?;
        if list.len() > MAX_PARAMETERS {
            return Err(ValueError::limited(
                ErrorCode::TooManyItems,
                MAX_PARAMETERS,
                format!("must have at most {MAX_PARAMETERS} items"),
            ));
        }
        Ok(Self(list))
    }
}

/// The text of a body, and its parameters: those of the query or, in JSON, those of the body.
pub struct Received<'a, Q> {
    pub bytes: Cow<'a, [u8]>,
    pub format: Format,
    pub query: Q,
}

impl RowsBody {
    /// Returns the text and the parameters, for a verified sender.
    ///
    /// # Errors
    ///
    /// Returns any error of `JsonBody::parse_with_errors`, but also accepts the content types `text/csv` and
    /// `application/x-ndjson`; and [`ApiError::Invalid`] for parameters in the query as well as in the body.
    pub fn read<Q: FromQuery>(&self, _: &impl VerifiedSender, query: Q) -> Result<Received<'_, Q>, ApiError> {
        let (bytes, media_type) = self.received.whole_body("A body is required: CSV or NDJSON.")?;
        let format = match media_type.to_ascii_lowercase().as_str() {
            "text/csv" => Format::Csv,
            "application/x-ndjson" => Format::Ndjson,
            "application/json" => return self.read_json(bytes),
            _ => return Err(ApiError::UnsupportedMediaType("text/csv, application/x-ndjson or application/json")),
        };
        let charset =
            self.received.content_type.as_deref().and_then(|kind| {
                kind.to_ascii_lowercase().split_once("charset=").map(|(_, name)| name.trim_matches('"').to_owned())
            });
        if charset.is_some_and(|name| !name.starts_with("utf-8") && !name.starts_with("us-ascii")) {
            return Err(ApiError::UnsupportedMediaType("text/csv; charset=utf-8"));
        }
        if self.received.query.len() > MAX_QUERY {
            let reason = format!("the parameters have more than {MAX_QUERY} bytes; send them in a JSON body, with the text");
            return Err(ApiError::Invalid(vec![FieldError::parameter("map", reason)]));
        }
        Ok(Received { bytes: Cow::Borrowed(bytes), format, query })
    }

    fn read_json<Q: FromQuery>(&self, bytes: &[u8]) -> Result<Received<'_, Q>, ApiError> {
        let (body, errors) = ImportText::read(bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes))?;
        let Some(ImportText { parameters, text }) = body.filter(|_| errors.is_empty()) else {
            return Err(ApiError::Invalid(errors));
        };
        self.received.params()?.refuse_all("must be in the body, with the others")?;
        let pairs = parameters.0.into_iter().map(|parameter| (parameter.name, parameter.value));
        let query = Q::from_params(Params::of(pairs))?;
        let is_csv = !text.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '[']);
        let format = if is_csv { Format::Csv } else { Format::Ndjson };
        Ok(Received { bytes: Cow::Owned(text.into_bytes()), format, query })
    }
}

impl Describe for RowsBody {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        add_schema::<ImportText>(schemas);
        let body = ["text/csv", "application/x-ndjson"]
            .into_iter()
            .fold(RequestBodyBuilder::new(), |body, kind| body.content(kind, Content::new(Some(String::schema()))));
        let body = body.content("application/json", Content::new(Some(schema_or_reference::<ImportText>())));
        operation.request_body = Some(RefOr::T(body.required(Some(Required::True)).build()));
    }
}

impl FromQuery for Reading {
    fn take(params: &mut Params) -> Self {
        let mut reading = Self::default();
        for (name, _) in PARAMETERS {
            for value in params.take_values(name) {
                if let Err(error) = reading.add(name, &value) {
                    params.refuse(name, error);
                }
            }
        }
        reading
    }

    fn describe(schemas: &mut Schemas) -> Vec<Parameter> {
        let parameter = |(name, description): (&str, &str)| match name {
            "decimal" => query_parameter::<Decimal>(schemas, name, description),
            "delimiter" => query_parameter::<Delimiter>(schemas, name, description),
            "header_line" => query_parameter::<HeaderLine>(schemas, name, description),
            _ => repeated_parameter(name, description),
        };
        PARAMETERS.into_iter().map(parameter).collect()
    }
}

/// Number of a line, from 1.
#[derive(Debug, Clone, Copy, ToSchema)]
#[schema(value_type = u32, minimum = 1, maximum = 1_000)]
pub struct HeaderLine(pub u32);

string_enum! {
    /// Field that identifies the asset to update.
    AssetMatch {
        /// None: each row creates an asset.
        None = "none",
        /// ID.
        Id = "id",
        /// Asset tag.
        AssetTag = "asset_tag",
        /// Serial number.
        SerialNumber = "serial_number",
    }
}

string_enum! {
    /// Field that identifies the user to update.
    UserMatch {
        /// None: each row creates a user.
        None = "none",
        /// ID.
        Id = "id",
        /// E-mail address.
        Email = "email",
    }
}

impl AssetMatch {
    /// Returns the field; `None` if no asset is updated.
    #[must_use]
    pub fn field(self) -> Option<&'static str> {
        (self != Self::None).then(|| self.as_str())
    }
}

impl UserMatch {
    /// Returns the field; `None` if no user is updated.
    #[must_use]
    pub fn field(self) -> Option<&'static str> {
        (self != Self::None).then(|| self.as_str())
    }
}

crate::http::requests::params::from_param! { AssetMatch, OnError, UserMatch, }

string_enum! {
    /// Result of a row.
    RowResult {
        /// A record was created.
        Created = "created",
        /// A record was changed.
        Updated = "updated",
        /// The record already had the row's values.
        Unchanged = "unchanged",
        /// The row has errors.
        Refused = "refused",
        /// The row is valid, but another row was refused, and `on_error` is `abort`.
        Skipped = "skipped",
    }
}

/// An error in a row.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct RowError {
    /// Field; absent if the error concerns the whole row.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    column: Option<String>,
    /// Heading of the file's column that is this field. Absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    heading: Option<String>,
    /// What is wrong.
    detail: String,
    /// Kind of error, as in a problem document. `UNAVAILABLE`, `CONFLICT` and `REQUEST_IN_PROGRESS` are temporary: send the
    /// request again, with the same `Idempotency-Key`.
    code: String,
    /// Additional members, as in a problem document, such as the ID of the conflicting record.
    #[serde(flatten)]
    #[schema(additional_properties, value_type = Object)]
    extra: Map<String, Value>,
}

/// A field that a row changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FieldChange {
    /// Field name; for a custom field, `custom_fields.<name>`.
    field: String,
    /// Current value. A long value is truncated with an ellipsis.
    old: Value,
    /// New value. A long value is truncated with an ellipsis.
    new: Value,
}

/// The changes of a row, as listed in a dry run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RowChanges {
    listed: Vec<FieldChange>,
    more: usize,
}

impl RowChanges {
    /// Converts the changes of a record, each with the old and the new value of a field.
    #[must_use]
    pub fn of(changes: Map<String, Value>) -> Self {
        let (mut listed, mut more, mut length) = (Vec::new(), 0, 0);
        for FieldChange { field, old, new } in changes.into_iter().flat_map(|(field, change)| single_changes(field, change)) {
            let change = FieldChange { field, old: shown(old), new: shown(new) };
            length += change.field.len() + change.old.to_string().len() + change.new.to_string().len();
            if length > MAX_CHANGES_BYTES {
                more += 1;
            } else {
                listed.push(change);
            }
        }
        Self { listed, more }
    }
}

/// Splits a change to custom fields into one change per custom field.
fn single_changes(field: String, change: Value) -> Vec<FieldChange> {
    let (old, new) = sides(change);
    if field != "custom_fields" {
        return vec![FieldChange { field, old, new }];
    }
    let fields = |value: Value| if let Value::Object(fields) = value { fields } else { Map::new() };
    let changes = crate::domain::record::changes(&fields(old), &fields(new)).into_iter();
    let single = |(name, change): (String, Value)| {
        let (old, new) = sides(change);
        FieldChange { field: format!("{CUSTOM_FIELD}{name}"), old, new }
    };
    changes.map(single).collect()
}

fn sides(mut change: Value) -> (Value, Value) {
    let mut side = |name: &str| change.get_mut(name).map(Value::take).unwrap_or_default();
    (side("old"), side("new"))
}

/// Truncates a long value.
fn shown(value: Value) -> Value {
    let cut = |text: &str| {
        let (end, _) = text.char_indices().nth(MAX_SHOWN_CHARS)?;
        Some(format!("{}…", text.get(..end).unwrap_or_default()))
    };
    let beginning = if let Value::String(text) = &value { cut(text) } else { cut(&value.to_string()) };
    beginning.map_or(value, Value::from)
}

/// A row and its result.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct RowOutcome {
    /// Row number, from 1, without the header row.
    row: usize,
    /// Result of the row.
    outcome: RowResult,
    /// ID of the record; null if there is none.
    #[schema(required)]
    id: Option<Uuid>,
    /// Normalized value that identifies the record. Only in a dry run with `match`; absent if the row has none. Rows with the same
    /// value in different requests are for the same record.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    match_key: Option<String>,
    /// Whether an earlier attempt at the request wrote the row. Absent if false.
    #[serde(skip_serializing_if = "is_false")]
    #[schema(required = false)]
    replayed: bool,
    /// Errors in the row. Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    errors: Vec<RowError>,
    /// Fields that an update changes. Only in a dry run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    changes: Vec<FieldChange>,
    /// Number of changes missing from `changes`, if there are very many. Absent if 0.
    #[serde(skip_serializing_if = "is_zero")]
    #[schema(required = false)]
    more_changes: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_false(flag: &bool) -> bool {
    !flag
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Number of rows per result.
#[derive(Debug, Clone, Copy, Default, Serialize, ToSchema)]
pub struct RowCounts {
    /// All rows.
    rows: usize,
    /// Rows that created a record.
    created: usize,
    /// Rows that changed a record.
    updated: usize,
    /// Rows whose record already had the row's values.
    unchanged: usize,
    /// Rows with errors.
    refused: usize,
    /// Valid rows that were not written, because another row was refused.
    skipped: usize,
}

/// Responses in the order of the request's rows.
pub struct Executed {
    pub responses: Vec<StoredResponse>,
    /// For each response, whether it is from an earlier attempt at the request.
    pub are_replayed: Vec<bool>,
}

/// The result of an import.
#[derive(Debug, Serialize, ToSchema)]
pub struct ImportResult {
    /// Results in the order of the rows.
    data: Vec<RowOutcome>,
    /// Number of rows per result.
    meta: RowCounts,
}

/// Builds the response of a written row, stored for retries of the request. The response has `changes` only in a dry run.
///
/// # Errors
///
/// Returns [`StoreError::Internal`] if the response can't be serialized.
pub fn row_response(outcome: RowResult, id: Uuid, changes: Option<&RowChanges>) -> Result<StoredResponse, StoreError> {
    let row = RowResponse { outcome, id, changes: changes.cloned() };
    Ok(StoredResponse::new(200, serde_json::to_string(&row).map_err(StoreError::broken)?))
}

#[derive(Serialize, Deserialize)]
struct RowResponse {
    outcome: RowResult,
    id: Uuid,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    changes: Option<RowChanges>,
}

impl RowOutcome {
    fn new(index: usize, response: &StoredResponse, replayed: bool) -> Result<Self, ApiError> {
        let empty = Self {
            row: index + 1,
            outcome: RowResult::Refused,
            id: None,
            match_key: None,
            replayed,
            errors: Vec::new(),
            changes: Vec::new(),
            more_changes: 0,
        };
        if response.status < 300 {
            let row: RowResponse = serde_json::from_str(&response.body).map_err(StoreError::broken)?;
            let RowResponse { outcome, id, changes } = row;
            let changes = changes.unwrap_or_default();
            let changed = Self { changes: changes.listed, more_changes: changes.more, ..empty };
            return Ok(Self { outcome, id: Some(id), ..changed });
        }
        let problem = crate::domain::values::json::parse(&response.body).map_err(StoreError::broken)?;
        let text = |value: &Value, name: &str| value[name].as_str().map(str::to_owned);
        let code = text(&problem, "code").unwrap_or_default();
        let members = problem.as_object().cloned().unwrap_or_default().into_iter();
        let extra: Map<String, Value> = members.filter(|(name, _)| !OWN_MEMBERS.contains(&name.as_str())).collect();
        let error = |error: &Value| RowError {
            // A conflict names the field with the duplicate value.
            column: text(error, "column").or_else(|| text(error, "pointer")).or_else(|| text(error, "field")),
            heading: None,
            detail: text(error, "detail").unwrap_or_default(),
            code: code.clone(),
            extra: extra.clone(),
        };
        let all = problem["errors"].as_array().map_or(std::slice::from_ref(&problem), Vec::as_slice);
        let mut errors: Vec<RowError> = match problem["fields"].as_array() {
            // The fields that a running process holds, each with an error of its own.
            Some(fields) => {
                let column = |field: &Value| field.as_str().map(str::to_owned);
                fields.iter().map(|field| RowError { column: column(field), ..error(&problem) }).collect()
            }
            None => all.iter().map(error).collect(),
        };
        // The value that a row is matched by is also a field, so it can have the same error twice.
        let mut seen = HashSet::new();
        errors.retain(|error| seen.insert((error.column.clone(), error.detail.clone())));
        if errors.len() > MAX_ROW_ERRORS {
            let detail = format!("There are {} more errors.", errors.len() - MAX_ROW_ERRORS);
            errors.truncate(MAX_ROW_ERRORS);
            errors.push(RowError { column: None, heading: None, detail, code, extra: Map::new() });
        }
        Ok(Self { errors, ..empty })
    }
}

impl ImportResult {
    /// Adds the headings of the file to the errors and, in a dry run, the values by which rows are matched.
    #[must_use]
    pub fn with_names(mut self, file: &ImportedFile, is_dry_run: bool) -> Self {
        let ImportedFile { file, matched } = file;
        for (outcome, row) in self.data.iter_mut().zip(&file.rows) {
            outcome.match_key = matched.as_ref().filter(|_| is_dry_run).and_then(|matched| matched.key(row));
            for error in &mut outcome.errors {
                let Some(field) = &error.column else { continue };
                // A field can be given by another one, as a user is by an address.
                let given = ALIASES.iter().filter(|(known, _)| known == field).map(|(_, alias)| (*alias).to_owned());
                let given = std::iter::once(field.clone()).chain(given).find(|field| file.headings.contains_key(field));
                error.heading = given.as_ref().and_then(|field| file.headings.get(field)).cloned();
                error.column = given.or_else(|| error.column.take());
            }
        }
        self
    }

    /// Removes IDs from errors if only the real request would assign them.
    pub(crate) fn without_placeholders(mut self, is_placeholder: impl Fn(&str) -> bool) -> Self {
        for error in self.data.iter_mut().flat_map(|row| &mut row.errors) {
            error.extra.retain(|_, value| !value.as_str().is_some_and(&is_placeholder));
        }
        self
    }

    /// Builds the response from [`row_response`]s and problem documents. `skips_good_rows` means that valid rows were not
    /// written.
    pub(crate) fn new(executed: &Executed, skips_good_rows: bool) -> Result<Self, ApiError> {
        let parts = executed.responses.iter().zip(&executed.are_replayed).enumerate();
        let outcomes = parts.map(|(index, (response, replayed))| RowOutcome::new(index, response, *replayed));
        let mut data = outcomes.collect::<Result<Vec<_>, _>>()?;
        if skips_good_rows {
            let good = data.iter_mut().filter(|row| row.outcome != RowResult::Refused);
            good.for_each(|row| {
                *row = RowOutcome { outcome: RowResult::Skipped, id: None, changes: Vec::new(), more_changes: 0, ..row.clone() }
            });
        }
        let count = |outcome| data.iter().filter(|row| row.outcome == outcome).count();
        let meta = RowCounts {
            rows: data.len(),
            created: count(RowResult::Created),
            updated: count(RowResult::Updated),
            unchanged: count(RowResult::Unchanged),
            refused: count(RowResult::Refused),
            skipped: count(RowResult::Skipped),
        };
        Ok(Self { data, meta })
    }
}

/// The rows of an import, and how they are matched.
pub struct ImportedFile {
    pub file: File,
    matched: Option<MatchColumn>,
}

impl ImportedFile {
    /// Reads the rows of a body. Rows that update no record, or the same one as another row, have an error.
    ///
    /// # Errors
    ///
    /// Same as [`parse`].
    pub fn read(
        (bytes, format): (&[u8], Format),
        kind: Kind,
        reading: &Reading,
        matched: Option<&'static str>,
        create_unmatched: Option<bool>,
    ) -> Result<Self, ApiError> {
        let mut file = parse(bytes, format, kind, reading, matched)?;
        let matched = matched.map(|name| MatchColumn { name, create_unmatched: create_unmatched.unwrap_or_default() });
        if let Some(matched) = &matched {
            matched.check(&mut file.rows);
        }
        Ok(Self { file, matched })
    }
}

/// The field that identifies the record a row updates.
struct MatchColumn {
    name: &'static str,
    /// Whether rows without a value create a record.
    create_unmatched: bool,
}

impl MatchColumn {
    /// Returns the row's value in the form in which values are compared.
    fn key(&self, row: &Row) -> Option<String> {
        row.text(self.name).map(|text| compared(self.name, text.trim())).filter(|value| !value.is_empty())
    }

    /// Adds an error to each row with the same value as another row, with a value that isn't a string or, unless
    /// `create_unmatched` is set, without a value.
    fn check(&self, rows: &mut [Row]) {
        let values: Vec<Option<String>> = rows.iter().map(|row| self.key(row)).collect();
        let mut numbers: HashMap<&str, Vec<u64>> = HashMap::new();
        for (number, value) in (1..).zip(&values) {
            numbers.entry(value.as_deref().unwrap_or_default()).or_default().push(number);
        }
        for ((number, row), value) in (1..).zip(rows).zip(&values) {
            let is_refused = row.errors.iter().any(|error| error.is_about(self.name));
            let error = match value.as_deref().map(|value| numbers.get(value).map_or(&[][..], Vec::as_slice)) {
                None if row.is_no_text(self.name) => Some("must be a string".to_owned()),
                None if self.create_unmatched || is_refused => None,
                None => Some("is empty, so the row updates nothing; with create_unmatched=true, it creates a record".to_owned()),
                Some([_]) => None,
                Some(all) => Some(same_value(all, number)),
            };
            row.errors.extend(error.map(|detail| FieldError::column(self.name, detail)));
        }
    }
}
