//! The reasons of refused rows, each once.

use crate::import::chunks::ChunkRow;
use crate::import::rows::RowError;
use crate::import::way_out::{Help, SAME_VALUE};
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};
use std::fmt;

/// The different reasons that are counted.
const MAX_REASONS: usize = 1_000;
/// Fewer rows than these can be wrong one by one.
const MANY: u64 = 3;
/// The options of a reason.
const MAX_OPTIONS: usize = 20;

/// A reason, the first row that has it, and what helps.
#[derive(Debug, Clone)]
pub struct Reason {
    pub rows: u64,
    pub row: u64,
    pub line: u64,
    error: RowError,
    way_out: String,
    if_most: Option<String>,
    /// To be added, all of them.
    options: BTreeSet<String>,
    /// A row is counted once, even if several of its cells have the reason.
    last_row: u64,
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rows, row, line, error, .. } = self;
        match rows {
            1 => write!(formatter, "row {row}, line {line}: {error}"),
            rows => write!(formatter, "{rows} rows: {error}, for example row {row}, line {line}"),
        }
    }
}

impl Reason {
    #[must_use]
    pub fn as_json(&self) -> Value {
        let RowError { column, detail, code } = &self.error;
        let way_out = self.way_out();
        json!({
            "rows": self.rows, "row": self.row, "line": self.line, "column": column, "detail": detail, "code": code, "way_out": way_out
        })
    }

    #[must_use]
    pub fn way_out(&self) -> String {
        std::iter::once(&self.way_out).chain(&self.options).map(String::as_str).collect::<Vec<_>>().join(" ")
    }
}

#[derive(Debug, Default)]
pub struct Reasons {
    found: Vec<Reason>,
    places: HashMap<String, usize>,
    left_out: u64,
}

impl Reasons {
    pub fn add(&mut self, row: &ChunkRow, error: &RowError, help: Help) {
        let Help { text: way_out, option, if_most } = help;
        let key = format!("{:?} {} {way_out}", error.column, general(&error.detail));
        if let Some(reason) = self.places.get(&key).and_then(|place| self.found.get_mut(*place)) {
            reason.rows += u64::from(reason.last_row != row.number);
            reason.last_row = row.number;
            reason.options.extend(option.filter(|_| reason.options.len() < MAX_OPTIONS));
        } else if self.found.len() < MAX_REASONS {
            self.places.insert(key, self.found.len());
            let (row, line) = (row.number, row.line);
            self.found.push(Reason {
                rows: 1,
                row,
                line,
                error: error.clone(),
                way_out,
                if_most,
                options: option.into_iter().collect(),
                last_row: row,
            });
        } else {
            self.left_out += 1;
        }
    }

    /// If most of the rows have the same error, something else helps. `rows`: the number of all rows.
    pub fn compare(&mut self, rows: u64) {
        for reason in self.found.iter_mut().filter(|reason| reason.rows >= MANY && reason.rows * 2 > rows) {
            if let Some(way_out) = reason.if_most.take() {
                reason.way_out = way_out;
            }
        }
    }

    /// Those that most rows have come first, and otherwise the file's order decides.
    #[must_use]
    pub fn most_frequent(&self) -> Vec<Reason> {
        let mut reasons = self.found.clone();
        reasons.sort_by_key(|reason| std::cmp::Reverse(reason.rows));
        reasons
    }

    /// Errors that are not among the counted reasons.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }
}

/// Without the cell's text at the beginning, and without the other rows.
fn general(detail: &str) -> &str {
    if detail.starts_with(SAME_VALUE) {
        return SAME_VALUE;
    }
    detail.strip_prefix('"').and_then(|rest| rest.split_once("\" ")).map_or(detail, |(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::rows::Original;

    fn reasons(errors: &[(u64, &str, &str)]) -> Vec<String> {
        let mut reasons = Reasons::default();
        for (number, detail, way_out) in errors {
            let original = Original::Line(String::new());
            let row = ChunkRow { number: *number, line: number + 1, original, errors: Vec::new(), skipped: Vec::new() };
            reasons.add(&row, &RowError::of_column("X", *detail), (*way_out).to_owned().into());
        }
        reasons.most_frequent().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn equal_reasons_are_told_once_and_frequent_ones_first() {
        let found = reasons(&[
            (1, "is empty", "a"),
            (2, "\"31.02.2024\" is not a date", "b"),
            (3, "\"soon\" is not a date", "b"),
            (3, "\"soon\" is not a date", "b"),
            (4, "has the same value in row 5", "c"),
            (5, "has the same value in row 4", "c"),
            (6, "must be one of in_stock", "--map-value X:Lager=in_stock"),
            (7, "must be one of in_stock", "--map-value X:Frei=in_stock"),
        ]);
        assert_eq!(
            found,
            [
                "2 rows: X: \"31.02.2024\" is not a date, for example row 2, line 3",
                "2 rows: X: has the same value in row 5, for example row 4, line 5",
                "row 1, line 2: X: is empty",
                "row 6, line 7: X: must be one of in_stock",
                "row 7, line 8: X: must be one of in_stock",
            ]
        );
    }
}
