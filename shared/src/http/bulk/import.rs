//! Imports: the options of a request, and the result of each row.

use crate::domain::request::StoredResponse;
use crate::domain::values::string_enum::string_enum;
use crate::http::error::{ApiError, is_temporary};
use crate::store::StoreError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use uuid::Uuid;

/// The listed errors of a row, so that the response to 200 rows is not too large for Lambda.
const MAX_ROW_ERRORS: usize = 20;

string_enum! {
    /// What happens to good rows if another one is refused.
    OnError {
        /// They are written.
        Skip = "skip",
        /// They are not: all rows are checked before the first is written.
        Abort = "abort",
    }
}

string_enum! {
    /// By which field a row names the asset that it updates.
    AssetMatch {
        /// By none: each row creates an asset.
        None = "none",
        /// By the ID.
        Id = "id",
        /// By the asset tag.
        AssetTag = "asset_tag",
        /// By the serial number.
        SerialNumber = "serial_number",
    }
}

string_enum! {
    /// By which field a row names the user that it updates.
    UserMatch {
        /// By none: each row creates a user.
        None = "none",
        /// By the ID.
        Id = "id",
        /// By the e-mail address.
        Email = "email",
    }
}

crate::http::requests::params::from_param! { AssetMatch, OnError, UserMatch, }

string_enum! {
    /// What became of a row.
    RowResult {
        /// A record was created.
        Created = "created",
        /// A record was changed.
        Updated = "updated",
        /// The record was already as the row says.
        Unchanged = "unchanged",
        /// The row has errors.
        Refused = "refused",
        /// The row is good, but another one was refused, and `on_error` is `abort`.
        Skipped = "skipped",
    }
}

/// Something that is wrong with a row.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct RowError {
    /// The column; absent if the error is about the row as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    column: Option<String>,
    /// What is wrong.
    detail: String,
    /// The kind of error, as in a problem document. `UNAVAILABLE`, `CONFLICT` and `REQUEST_IN_PROGRESS` are temporary: send
    /// the request again, with the same `Idempotency-Key`.
    code: String,
    /// Further members, as in a problem document: the IDs of what is in the way.
    #[serde(flatten)]
    #[schema(additional_properties, value_type = Object)]
    extra: Map<String, Value>,
}

/// The members of a problem document that a row's error does not repeat.
const OWN_MEMBERS: [&str; 8] = ["type", "title", "status", "detail", "code", "error", "request_id", "errors"];

/// A row, and what became of it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct RowOutcome {
    /// Number of the row, from 1. The header row does not count.
    row: usize,
    /// What became of it.
    outcome: RowResult,
    /// ID of the record; null if there is none.
    #[schema(required)]
    id: Option<Uuid>,
    /// What is wrong with the row. Absent if nothing is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    errors: Vec<RowError>,
}

/// How many rows had which outcome.
#[derive(Debug, Clone, Copy, Default, Serialize, ToSchema)]
pub struct RowCounts {
    /// Number of all rows.
    rows: usize,
    /// Rows that created a record.
    created: usize,
    /// Rows that changed a record.
    updated: usize,
    /// Rows whose record was already as they say.
    unchanged: usize,
    /// Rows with errors.
    refused: usize,
    /// Good rows that were not written because another was refused.
    skipped: usize,
}

/// The result of an import.
#[derive(Debug, Serialize, ToSchema)]
pub struct ImportResult {
    /// The rows, in their order.
    data: Vec<RowOutcome>,
    /// How many rows had which outcome.
    meta: RowCounts,
}

/// For a written row, stored for a repetition of the request.
///
/// # Errors
///
/// Returns [`StoreError::Internal`] if it can't be serialized.
pub fn row_response(outcome: RowResult, id: Uuid) -> Result<StoredResponse, StoreError> {
    let body = serde_json::to_string(&json!({"outcome": outcome, "id": id})).map_err(StoreError::broken)?;
    Ok(StoredResponse::new(200, body))
}

#[derive(Deserialize)]
struct RowResponse {
    outcome: RowResult,
    id: Uuid,
}

impl RowOutcome {
    fn new(index: usize, response: &StoredResponse) -> Result<Self, ApiError> {
        let row = index + 1;
        if response.status < 300 {
            let RowResponse { outcome, id } = serde_json::from_str(&response.body).map_err(StoreError::broken)?;
            return Ok(Self { row, outcome, id: Some(id), errors: Vec::new() });
        }
        let problem = crate::domain::values::json::parse(&response.body).map_err(StoreError::broken)?;
        let text = |value: &Value, name: &str| value[name].as_str().map(str::to_owned);
        let code = text(&problem, "code").unwrap_or_default();
        let members = problem.as_object().cloned().unwrap_or_default().into_iter();
        let extra: Map<String, Value> = members.filter(|(name, _)| !OWN_MEMBERS.contains(&name.as_str())).collect();
        let error = |error: &Value| RowError {
            column: text(error, "column").or_else(|| text(error, "pointer")),
            detail: text(error, "detail").unwrap_or_default(),
            code: code.clone(),
            extra: extra.clone(),
        };
        let all = problem["errors"].as_array().map_or(std::slice::from_ref(&problem), Vec::as_slice);
        let mut errors: Vec<RowError> = all.iter().take(MAX_ROW_ERRORS).map(error).collect();
        if all.len() > MAX_ROW_ERRORS {
            let detail = format!("There are {} more errors.", all.len() - MAX_ROW_ERRORS);
            errors.push(RowError { column: None, detail, code, extra: Map::new() });
        }
        Ok(Self { row, outcome: RowResult::Refused, id: None, errors })
    }
}

impl ImportResult {
    /// No row was left out for a reason that is only temporary.
    pub(crate) fn is_final(&self) -> bool {
        self.data.iter().flat_map(|row| &row.errors).all(|error| !is_temporary(&error.code))
    }

    /// Leaves out IDs in errors that only the real request would have assigned.
    pub(crate) fn without_placeholders(mut self, is_placeholder: impl Fn(&str) -> bool) -> Self {
        for error in self.data.iter_mut().flat_map(|row| &mut row.errors) {
            error.extra.retain(|_, value| !value.as_str().is_some_and(&is_placeholder));
        }
        self
    }

    /// With `skips_good_rows`, the good rows were not written.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Internal`] for a response that is none of [`row_response`] and no problem document.
    pub(crate) fn new(responses: &[StoredResponse], skips_good_rows: bool) -> Result<Self, ApiError> {
        let outcomes = responses.iter().enumerate().map(|(index, response)| RowOutcome::new(index, response));
        let mut data = outcomes.collect::<Result<Vec<_>, _>>()?;
        if skips_good_rows {
            let good = data.iter_mut().filter(|row| row.outcome != RowResult::Refused);
            good.for_each(|row| *row = RowOutcome { outcome: RowResult::Skipped, id: None, ..row.clone() });
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
