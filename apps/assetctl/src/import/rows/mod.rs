//! A row of a file, on its way to the service.

pub mod csv_rows;
pub mod decode;
pub mod encoding;
pub mod ndjson_rows;
pub mod records;
pub mod sniff;
pub mod source;

use serde::{Deserialize, Serialize};
use std::fmt;

/// What is wrong with a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowError {
    /// The column by its name in the file; the whole row without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// What is wrong.
    pub detail: String,
    /// The service's code for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

impl RowError {
    /// Returns an error of the whole row.
    pub fn of_row(detail: impl Into<String>) -> Self {
        Self { column: None, detail: detail.into(), code: None }
    }

    /// Returns an error of one cell.
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

/// A row as the file has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Original {
    /// The cells of a CSV row; fewer or more than the header if that is what is wrong with it.
    Cells(csv::StringRecord),
    /// A line of NDJSON.
    Line(String),
}

/// A row that can be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sendable {
    /// The row as it is sent: a line of CSV or NDJSON.
    pub bytes: Vec<u8>,
    /// Hashes of the values by which it could touch the same thing as another row.
    pub keys: Vec<u64>,
}

/// A row and what became of it so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Counts data rows from 1.
    pub number: u64,
    /// The line on which it begins.
    pub line: u64,
    /// The row as the file has it.
    pub original: Original,
    /// The row as it is sent, or why it can't be.
    pub sendable: Result<Sendable, Vec<RowError>>,
}
