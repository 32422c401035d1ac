//! Rows that name what they update by a value: refused if they name it ambiguously, or not at all.

use super::rows::Row;
use crate::domain::values::field_error::FieldError;
use fields::same_value;
use std::collections::HashMap;

/// The column by which rows name what they update.
pub struct MatchColumn {
    pub name: &'static str,
    /// The form in which values are compared.
    pub compared: fn(&str) -> String,
    /// Rows without a value create something.
    pub create_unmatched: bool,
}

impl MatchColumn {
    /// Adds an error to each row that has the same value as another one, or one that is no text, and to each without a value,
    /// unless it may create something.
    pub fn check(&self, rows: &mut [Row]) {
        let value = |row: &Row| row.text(self.name).map(|text| (self.compared)(text.trim())).filter(|value| !value.is_empty());
        let values: Vec<Option<String>> = rows.iter().map(value).collect();
        let mut numbers: HashMap<&str, Vec<u64>> = HashMap::new();
        for (number, value) in (1..).zip(&values) {
            numbers.entry(value.as_deref().unwrap_or_default()).or_default().push(number);
        }
        for ((number, row), value) in (1..).zip(rows).zip(&values) {
            let error = match value.as_deref().map(|value| numbers.get(value).map_or(&[][..], Vec::as_slice)) {
                None if row.is_no_text(self.name) => Some("must be a string".to_owned()),
                None if self.create_unmatched => None,
                None => Some(
                    "is empty, so the row names nothing to update; with create_unmatched=true, it creates a record".to_owned(),
                ),
                Some([_]) => None,
                Some(all) => Some(same_value(all, number)),
            };
            row.errors.extend(error.map(|detail| FieldError::column(self.name, detail)));
        }
    }
}
