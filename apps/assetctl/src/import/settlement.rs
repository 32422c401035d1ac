//! The results of a chunk's rows.

use crate::import::changes::{Changes, FieldChange};
use crate::import::rows::RowError;
use serde::{Deserialize, Serialize};

/// The error that the next attempt may not have.
const UNAVAILABLE: &str = "UNAVAILABLE";

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub created: u64,
    pub updated: u64,
    /// Records that already were as the row says.
    pub unchanged: u64,
    /// Rows that were refused by the service, or can't be sent.
    pub refused: u64,
    /// Good rows that were left out because another one was refused.
    pub skipped: u64,
}

impl Counts {
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.created + self.updated + self.unchanged + self.refused + self.skipped
    }

    pub fn add(&mut self, other: &Self) {
        self.created += other.created;
        self.updated += other.updated;
        self.unchanged += other.unchanged;
        self.refused += other.refused;
        self.skipped += other.skipped;
    }
}

#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settlement {
    pub counts: Counts,
    /// The refused rows: the index among those that were sent, and the reasons.
    pub refused: Vec<(usize, Vec<RowError>)>,
    /// Likewise, the rows of which the service left out cells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped_cells: Vec<(usize, Vec<RowError>)>,
    /// Of a dry run.
    #[serde(default, skip_serializing_if = "Changes::is_empty")]
    pub changes: Changes,
}

/// The service's answer to an import.
#[derive(Debug, Deserialize)]
pub struct ImportResponse {
    data: Vec<RowResult>,
}

#[derive(Debug, Deserialize)]
struct RowResult {
    row: usize,
    outcome: Outcome,
    #[serde(default)]
    errors: Vec<RowError>,
    #[serde(default)]
    skipped_cells: Vec<RowError>,
    #[serde(default)]
    changes: Vec<FieldChange>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Created,
    Updated,
    Unchanged,
    Refused,
    Skipped,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    Settled(Settlement),
    /// This many rows must be tried again, with the same request.
    Unavailable(usize),
    /// The answer doesn't fit the request.
    Unexpected(String),
}

impl Verdict {
    /// The request had `sent` rows.
    #[must_use]
    pub fn of(response: ImportResponse, sent: usize) -> Self {
        let results = response.data.len();
        let is_in_order = response.data.iter().enumerate().all(|(index, result)| result.row == index + 1);
        if results != sent || !is_in_order {
            return Self::Unexpected(format!("the service answered for {results} rows instead of {sent}"));
        }
        let is_unavailable = |result: &&RowResult| result.errors.iter().any(|error| error.code.as_deref() == Some(UNAVAILABLE));
        match response.data.iter().filter(is_unavailable).count() {
            0 => Self::Settled(settle(response.data)),
            unavailable => Self::Unavailable(unavailable),
        }
    }
}

fn settle(results: Vec<RowResult>) -> Settlement {
    let mut settlement = Settlement::default();
    for result in results {
        let counts = &mut settlement.counts;
        let count = match result.outcome {
            Outcome::Created => &mut counts.created,
            Outcome::Updated => &mut counts.updated,
            Outcome::Unchanged => &mut counts.unchanged,
            Outcome::Refused => &mut counts.refused,
            Outcome::Skipped => &mut counts.skipped,
        };
        *count += 1;
        if result.outcome == Outcome::Refused {
            settlement.refused.push((result.row - 1, result.errors));
        }
        if !result.skipped_cells.is_empty() {
            settlement.skipped_cells.push((result.row - 1, result.skipped_cells));
        }
        result.changes.iter().for_each(|change| settlement.changes.add(change));
    }
    settlement
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn verdict(data: &Value, sent: usize) -> Verdict {
        Verdict::of(serde_json::from_value(json!({"data": data, "meta": {"rows": 3}})).unwrap(), sent)
    }

    #[test]
    fn settled_rows_are_counted() {
        let data = json!([
            {"row": 1, "outcome": "created", "id": "a"},
            {"row": 2, "outcome": "refused", "id": null, "errors": [{"column": "name", "detail": "is empty", "code": "VALIDATION_ERROR"}]},
            {"row": 3, "outcome": "unchanged", "id": "b", "errors": []},
        ]);
        let Verdict::Settled(settlement) = verdict(&data, 3) else { panic!("not settled") };
        assert_eq!(settlement.counts, Counts { created: 1, refused: 1, unchanged: 1, ..Counts::default() });
        assert_eq!((settlement.refused[0].0, settlement.refused[0].1[0].to_string().as_str()), (1, "name: is empty"));
    }

    #[test]
    fn temporary_errors_and_misfits_are_seen() {
        let temporary = json!([{"row": 1, "outcome": "refused", "errors": [{"detail": "busy", "code": "UNAVAILABLE"}]}]);
        assert_eq!(verdict(&temporary, 1), Verdict::Unavailable(1));
        assert!(matches!(verdict(&temporary, 2), Verdict::Unexpected(_)));
    }
}
