//! Suggestions how to import a file.

use super::import::ImportParameter;
use super::rows::{Format, is_other_than_utf8};
use crate::domain::import::Kind;
use crate::domain::import::suggestion::{Decided, ListKind, LookedUp, Sheet, SuggestedColumn, Suggestion, Survey};
use crate::http::responses::ApiError;
use serde::Serialize;
use utoipa::ToSchema;

/// How to import a file. People decide: nothing is stored, and an import itself never guesses.
#[derive(Debug, Serialize, ToSchema)]
pub struct ImportSuggestion {
    /// Parameters of the import, in order.
    parameters: Vec<ImportParameter>,
    /// Columns of the file. A column that nothing places has no field, and must be mapped or ignored.
    columns: Vec<SuggestedColumn>,
    /// What is doubtful, in words. Names parameters in backquotes.
    doubts: Vec<String>,
    /// What kind of list the file seems to be.
    list: ListKind,
    /// Number of rows in the text.
    rows: usize,
}

/// Looks at the beginning of a file.
///
/// # Errors
///
/// Returns [`ApiError::Malformed`] if the body isn't text.
pub fn survey(body: &[u8], format: Format, kind: Kind, given: Decided) -> Result<Survey, ApiError> {
    let body = body.strip_prefix("\u{feff}".as_bytes()).unwrap_or(body);
    if is_other_than_utf8(body, format) {
        let detail = "The body is not UTF-8 text. Save a workbook as CSV, and convert UTF-16 to UTF-8.";
        return Err(ApiError::Malformed(detail.to_owned()));
    }
    let text = String::from_utf8_lossy(body);
    let sheet = Sheet::read(kind, &text, format, &given.reading);
    Ok(Survey::of(kind, sheet, given))
}

/// Builds the response.
#[must_use]
pub fn suggestion(survey: Survey, known: &LookedUp) -> ImportSuggestion {
    let Suggestion { parameters, columns, doubts, list, rows } = survey.suggest(known);
    let parameters = parameters.into_iter().map(|(name, value)| ImportParameter { name: name.to_owned(), value }).collect();
    ImportSuggestion { parameters, columns, doubts, list, rows }
}
