//! A row of a file, on its way to the service.

pub mod csv_rows;
pub mod decode;
pub mod encoding;
pub mod ndjson_rows;
pub mod records;

use ndjson_rows::Members;
use serde::{Deserialize, Serialize};
use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowError {
    /// As in the file; `None` for the whole row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    pub detail: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

impl RowError {
    pub fn of_row(detail: impl Into<String>) -> Self {
        Self { column: None, detail: detail.into(), code: None }
    }

    pub fn of_column(column: &str, detail: impl Into<String>) -> Self {
        Self { column: Some(column.to_owned()), detail: detail.into(), code: None }
    }
}

impl fmt::Display for RowError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.column {
            Some(column) => write!(formatter, "{column}: {}", self.detail),
            None => formatter.write_str(&self.detail),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Original {
    /// The cells of a CSV row; perhaps fewer or more than the header, as its error.
    Cells(csv::StringRecord),
    Line(String),
}

impl Original {
    /// The text in a column, without white space around it; of NDJSON, a member that is no text as it is written.
    #[must_use]
    pub fn text(&self, names: &[String], column: &str) -> Option<String> {
        let text = match self {
            Self::Cells(cells) => cells.get(names.iter().position(|name| name == column)?)?.to_owned(),
            Self::Line(line) => {
                let Members(members) = serde_json::from_str(line).ok()?;
                let (_, value) = members.into_iter().find(|(name, _)| name.trim() == column)?;
                serde_json::from_str(value.get()).unwrap_or_else(|_| value.get().to_owned())
            }
        };
        Some(text.trim().to_owned())
    }
}

/// The service refuses it as a date and as a number.
pub const REFUSED: &str = "?";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sendable {
    /// A line of CSV or NDJSON.
    pub bytes: Vec<u8>,
    /// Hashes of the values by which it could touch the same record as another row.
    pub keys: Vec<u64>,
    /// The column by which it names what it updates, with the hash of its value.
    pub matched: Option<(String, u64)>,
    /// The errors of cells that are left out.
    pub skipped: Vec<RowError>,
    /// The errors of cells for which [`REFUSED`] is sent, so that the service tells whatever else is wrong with the row.
    pub bad: Vec<RowError>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Counts data rows from 1.
    pub number: u64,
    pub line: u64,
    pub original: Original,
    /// The row as it is sent, or its errors.
    pub sendable: Result<Sendable, Vec<RowError>>,
}
