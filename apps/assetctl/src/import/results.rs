//! What became of the rows of a request.

use crate::error::{CliError, Result};
use crate::import::changes::FieldChange;
use crate::import::rows::RowError;
use serde::Deserialize;

/// Errors that the next attempt may not have: the service is busy, or another run of the command sends the row just now.
const TEMPORARY: [&str; 2] = ["UNAVAILABLE", "REQUEST_IN_PROGRESS"];

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    pub created: u64,
    pub updated: u64,
    /// Records that already were as the row says.
    pub unchanged: u64,
    /// Rows that were refused by the service, or can't be sent.
    pub refused: u64,
    /// Good rows that were left out because another one was refused.
    pub skipped: u64,
    /// Rows that an earlier run of the same command imported.
    pub already: u64,
}

impl Counts {
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.created + self.updated + self.unchanged + self.refused + self.skipped + self.already
    }

    pub fn add(&mut self, result: &RowResult) {
        *match result.outcome {
            _ if result.replayed => &mut self.already,
            Outcome::Created => &mut self.created,
            Outcome::Updated => &mut self.updated,
            Outcome::Unchanged => &mut self.unchanged,
            Outcome::Refused => &mut self.refused,
            Outcome::Skipped => &mut self.skipped,
        } += 1;
    }
}

#[derive(Debug, Deserialize)]
pub struct RowResult {
    row: usize,
    pub outcome: Outcome,
    /// An earlier request with the same idempotency key imported it.
    #[serde(default)]
    pub replayed: bool,
    #[serde(default)]
    pub errors: Vec<RowError>,
    #[serde(default)]
    pub skipped_cells: Vec<RowError>,
    /// In a dry run.
    #[serde(default)]
    pub changes: Vec<FieldChange>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Created,
    Updated,
    Unchanged,
    Refused,
    Skipped,
}

/// The service's answer to an import.
#[derive(Debug, Deserialize)]
struct ImportResponse {
    data: Vec<RowResult>,
}

#[derive(Debug)]
pub enum Results {
    Settled(Vec<RowResult>),
    /// This many rows must be tried again, with the same request.
    Unavailable(usize),
}

/// Reads the answer to a request that had `sent` rows.
///
/// # Errors
///
/// Returns [`CliError::Failed`] if it doesn't fit the request.
pub fn results(body: &[u8], sent: usize) -> Result<Results> {
    let ImportResponse { data } = serde_json::from_slice(body)
        .map_err(|error| CliError::Failed(format!("can't read the service's answer; check --base-url: {error}")))?;
    let is_in_order = data.iter().enumerate().all(|(index, result)| result.row == index + 1);
    if data.len() != sent || !is_in_order {
        return Err(CliError::Failed(format!("the service answered for {} rows instead of {sent}", data.len())));
    }
    let is_temporary = |error: &RowError| error.code.as_deref().is_some_and(|code| TEMPORARY.contains(&code));
    let is_unavailable = |result: &&RowResult| result.errors.iter().any(is_temporary);
    Ok(match data.iter().filter(is_unavailable).count() {
        0 => Results::Settled(data),
        unavailable => Results::Unavailable(unavailable),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(data: &Value, sent: usize) -> Result<Results> {
        results(json!({"data": data, "meta": {"rows": 3}}).to_string().as_bytes(), sent)
    }

    #[test]
    fn settled_rows_are_counted() {
        let data = json!([
            {"row": 1, "outcome": "created", "id": "a"},
            {"row": 2, "outcome": "refused", "id": null, "errors": [{"column": "name", "detail": "is empty", "code": "VALIDATION_ERROR"}]},
            {"row": 3, "outcome": "unchanged", "id": "b", "errors": []},
            {"row": 4, "outcome": "created", "id": "c", "replayed": true},
        ]);
        let Ok(Results::Settled(rows)) = read(&data, 4) else { panic!("not settled") };
        let mut counts = Counts::default();
        rows.iter().for_each(|row| counts.add(row));
        assert_eq!(counts, Counts { created: 1, refused: 1, unchanged: 1, already: 1, ..Counts::default() });
        assert_eq!(rows[1].errors[0].to_string(), "name: is empty");
    }

    #[test]
    fn temporary_errors_and_misfits_are_seen() {
        let refused = |code: &str| json!([{"row": 1, "outcome": "refused", "errors": [{"detail": "busy", "code": code}]}]);
        for code in TEMPORARY {
            assert!(matches!(read(&refused(code), 1), Ok(Results::Unavailable(1))), "{code}");
        }
        assert!(matches!(read(&refused("CONFLICT"), 1), Ok(Results::Settled(_))));
        assert!(read(&refused("CONFLICT"), 2).is_err() && results(b"<html>", 1).is_err());
    }
}
