//! Exports: all matching records, in parts, as CSV or NDJSON.

use super::rows::CUSTOM_FIELD;
use crate::domain::assets::csv_cell;
use crate::domain::record::{Record, Stored};
use crate::domain::values::id::Id;
use crate::domain::values::json;
use crate::domain::values::string_enum::string_enum;
use crate::http::openapi::{Describe, Schemas, add_headers, add_response, query_parameter};
use crate::http::requests::params::{FromParam, FromQuery, Params};
use crate::http::responses::{ApiError, ApiResponse, Success};
use crate::store::{Chunk, StoreError};
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use fields::Column;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::{BTreeSet, HashMap};
use utoipa::openapi::path::{Operation, Parameter};
use utoipa::{PartialSchema, ToSchema};
use uuid::Uuid;

/// Maximum size of a response in bytes, after Lambda's JSON escapes. The next part of the export has the remaining rows.
const MAX_BYTES: usize = 4 * 1024 * 1024;
/// Maximum number of chunks of records read for a response, because few records may match a filter. The next part of the export
/// continues after these chunks.
pub const MAX_CHUNKS: usize = 16;
/// Maximum number of unreadable records named in a response, which omits any others.
const MAX_UNREADABLE: usize = 20;
/// The mark by which spreadsheets recognize UTF-8. Imports remove it.
const BYTE_ORDER_MARK: &str = "\u{feff}";
/// Response header with the IDs of unreadable records.
const UNREADABLE: HeaderName = HeaderName::from_static("x-unreadable");

string_enum! {
    /// The format of an export.
    ExportFormat {
        /// CSV (RFC 4180).
        Csv = "csv",
        /// One JSON object per line.
        Ndjson = "ndjson",
    }
}

crate::http::requests::params::from_param! { ExportFormat, }

/// The form of a part of an export.
#[derive(Debug, Clone, Copy)]
pub struct ExportForm {
    format: ExportFormat,
    /// Whether the part begins with a byte order mark.
    has_bom: bool,
}

/// The parameters of an export of records with the IDs `I` that match the filters `F`.
#[derive(Debug)]
pub struct ExportQuery<I, F> {
    pub form: ExportForm,
    /// ID of the record to continue after.
    pub after: Option<I>,
    pub filter: F,
}

impl<I: FromParam + ToSchema, F: FromQuery> FromQuery for ExportQuery<I, F> {
    fn take(params: &mut Params) -> Self {
        let format = params.take("format").unwrap_or(ExportFormat::Csv);
        let wants_bom = params.take("bom").unwrap_or(false);
        if wants_bom && format != ExportFormat::Csv {
            params.refuse("bom", "can only be sent with format=csv".into());
        }
        let after = params.take("after");
        // Only at the beginning of a file is it a mark.
        let form = ExportForm { format, has_bom: wants_bom && after.is_none() };
        Self { form, after, filter: F::take(params) }
    }

    fn describe(schemas: &mut Schemas) -> Vec<Parameter> {
        let bom = "`true` begins the first part in CSV with a byte order mark, by which spreadsheets recognize UTF-8.";
        let own = vec![
            query_parameter::<ExportFormat>(schemas, "format", "`csv` or `ndjson`. Default `csv`."),
            query_parameter::<bool>(schemas, "bom", bom),
            query_parameter::<I>(schemas, "after", "ID of the resource to continue after, from the header `Link`."),
        ];
        [own, F::describe(schemas)].concat()
    }
}

/// A record as exported: the fields that an import can set, with human-readable names. Its JSON members are the cells in CSV.
pub trait ExportRow: Serialize {
    const COLUMNS: &'static [Column];
    /// The file's name, without its extension.
    const FILE_NAME: &'static str;

    /// Returns the values of the additional columns `custom_fields.<name>`.
    fn custom_fields(&self) -> Option<&Map<String, Value>> {
        None
    }
}

pub struct Export<R> {
    form: ExportForm,
    rows: Vec<R>,
    custom_columns: BTreeSet<String>,
    bytes: usize,
    unreadable: Vec<Uuid>,
    path: &'static str,
    query: String,
    next: Option<Uuid>,
}

impl<R: ExportRow> Export<R> {
    /// Starts an empty export from the endpoint `path` with the parameters `query`.
    #[must_use]
    pub fn new(form: ExportForm, path: &'static str, query: &str) -> Self {
        let (custom_columns, query) = (BTreeSet::new(), query.to_owned());
        Self { form, rows: Vec::new(), custom_columns, bytes: 0, unreadable: Vec::new(), path, query, next: None }
    }

    /// Adds the records of a chunk that starts after `start`, each converted by `row`. Returns the ID after which to continue, or
    /// `None` if there are no more records or the response is full.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Internal`] if a row can't be serialized.
    pub fn add<T: Record>(
        &mut self,
        start: Option<T::Id>,
        chunk: Chunk<T>,
        row: impl Fn(Stored<T>) -> R,
    ) -> Result<Option<T::Id>, ApiError> {
        self.unreadable.extend(chunk.unreadable);
        self.unreadable.truncate(MAX_UNREADABLE);
        let mut last = start;
        for record in chunk.records {
            let id = record.value.id();
            if !self.push(row(record))? {
                self.next = last.map(Id::uuid);
                return Ok(None);
            }
            last = Some(id);
        }
        self.next = chunk.next.map(Id::uuid);
        Ok(chunk.next)
    }

    fn link(&self) -> Option<String> {
        let after = format!("after={}", self.next?);
        let others = self.query.split('&').filter(|pair| !pair.is_empty() && !pair.starts_with("after="));
        let query: Vec<&str> = others.chain([after.as_str()]).collect();
        Some(format!("<{}?{}>; rel=\"next\"", self.path, query.join("&")))
    }

    /// Adds a row. Returns `false` if the row doesn't fit in the response. The first row always fits.
    fn push(&mut self, row: R) -> Result<bool, ApiError> {
        let (bytes, new_columns) = match self.form.format {
            ExportFormat::Ndjson => (json::escaped_len(&line(&row)?), Vec::new()),
            ExportFormat::Csv => {
                let names = row.custom_fields().map(|fields| fields.keys().cloned().collect()).unwrap_or_default();
                let columns: BTreeSet<String> = names;
                let bytes = json::escaped_len(&csv_text(&columns, std::slice::from_ref(&row), false)?);
                (bytes, columns.difference(&self.custom_columns).cloned().collect())
            }
        };
        let columns = self.custom_columns.len() + new_columns.len();
        // Each new column takes space in the header row.
        let bytes = bytes + new_columns.iter().map(|name| 2 * name.len() + 16).sum::<usize>();
        // Each column adds at least a comma to every row.
        let total = self.bytes + bytes + (self.rows.len() + 1) * columns;
        if total > MAX_BYTES && !self.rows.is_empty() {
            return Ok(false);
        }
        self.bytes += bytes;
        self.custom_columns.extend(new_columns);
        self.rows.push(row);
        Ok(true)
    }
}

fn line(row: &impl Serialize) -> Result<Vec<u8>, ApiError> {
    let mut line = serde_json::to_vec(row).map_err(StoreError::broken)?;
    line.push(b'\n');
    Ok(line)
}

fn columns<R: ExportRow>() -> impl Iterator<Item = &'static str> {
    R::COLUMNS.iter().filter(|column| column.is_exported).map(|column| column.name)
}

/// Returns the text of a row's cells: strings unchanged, other values as JSON.
fn cells<R: ExportRow>(row: &R) -> Result<Vec<Option<String>>, ApiError> {
    let json = serde_json::to_string(row).map_err(StoreError::broken)?;
    let members: HashMap<&str, &RawValue> = serde_json::from_str(&json).map_err(StoreError::broken)?;
    let text = |json: &RawValue| match serde_json::from_str::<Option<String>>(json.get()) {
        Ok(text) => text,
        Err(_) => Some(json.get().to_owned()),
    };
    Ok(columns::<R>().map(|name| members.get(name).and_then(|json| text(json))).collect())
}

fn csv_text<R: ExportRow>(custom_columns: &BTreeSet<String>, rows: &[R], has_header: bool) -> Result<Vec<u8>, ApiError> {
    // RFC 4180 ends each row with CR LF.
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    let internal = |error: csv::Error| ApiError::from(StoreError::broken(error));
    if has_header {
        let custom = custom_columns.iter().map(|name| csv_cell::from_text(&format!("{CUSTOM_FIELD}{name}")).into_owned());
        let header = columns::<R>().map(str::to_owned).chain(custom);
        writer.write_record(header).map_err(internal)?;
    }
    for row in rows {
        let custom = custom_columns.iter().map(|name| row.custom_fields()?.get(name).map(csv_cell::value_text));
        let cells = cells(row)?.into_iter().chain(custom).map(|text| text.map(|text| csv_cell::from_text(&text).into_owned()));
        writer.write_record(cells.map(Option::unwrap_or_default)).map_err(internal)?;
    }
    writer.into_inner().map_err(|error| StoreError::broken(error.to_string()).into())
}

impl<R: ExportRow> Success for Export<R> {
    fn to_response(&self) -> Result<ApiResponse, ApiError> {
        let (content_type, extension, body) = match self.form.format {
            ExportFormat::Csv => {
                let mut text = csv_text(&self.custom_columns, &self.rows, true)?;
                if self.form.has_bom {
                    text.splice(..0, BYTE_ORDER_MARK.bytes());
                }
                ("text/csv; charset=utf-8", "csv", text)
            }
            ExportFormat::Ndjson => {
                let lines = self.rows.iter().map(line).collect::<Result<Vec<_>, _>>()?;
                ("application/x-ndjson", "ndjson", lines.concat())
            }
        };
        let value = |text: String| HeaderValue::try_from(text).map_err(StoreError::broken);
        let file = format!("attachment; filename=\"{}.{extension}\"", R::FILE_NAME);
        let mut response = ApiResponse::new(content_type, body)
            .with_header(header::CONTENT_DISPOSITION, value(file)?)
            .with_header(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if let Some(link) = self.link() {
            response = response.with_header(header::LINK, value(link)?);
        }
        if !self.unreadable.is_empty() {
            let ids: Vec<String> = self.unreadable.iter().map(Uuid::to_string).collect();
            response = response.with_header(UNREADABLE, value(ids.join(", "))?);
        }
        Ok(response)
    }
}

impl<R: ExportRow> IntoResponse for Export<R> {
    fn into_response(self) -> Response {
        self.to_response().into_response()
    }
}

impl<R: ExportRow> Describe for Export<R> {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        let description = "Part of the export. The header `Link` has the path of the next part.";
        add_response(operation, "200", description, ["text/csv", "application/x-ndjson"].map(|kind| (kind, String::schema())));
        add_headers(operation, "200", &["Content-Disposition", "Link", "X-Content-Type-Options", "X-Unreadable"]);
    }
}
