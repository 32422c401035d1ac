//! Rows that name what they update by a value: refused if they name it ambiguously, or not at all.

use super::rows::Row;
use crate::domain::values::field_error::FieldError;
use std::collections::HashMap;

/// The rows that an error names.
const MAX_NAMED_ROWS: usize = 5;

/// The column by which rows name what they update.
pub struct MatchColumn {
    pub name: &'static str,
    /// The form in which values are compared.
    pub compared: fn(&str) -> String,
    /// Rows without a value create something.
    pub create_unmatched: bool,
}

impl MatchColumn {
    /// Adds an error to each row that has the same value as another one, and to each without a value, unless it may create
    /// something.
    pub fn check(&self, rows: &mut [Row]) {
        let value = |row: &Row| row.text(self.name).map(|text| (self.compared)(text.trim())).filter(|value| !value.is_empty());
        let values: Vec<Option<String>> = rows.iter().map(value).collect();
        let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
        for (place, value) in values.iter().enumerate() {
            places.entry(value.as_deref().unwrap_or_default()).or_default().push(place);
        }
        for (place, (row, value)) in rows.iter_mut().zip(&values).enumerate() {
            let error = match value.as_deref().map(|value| places.get(value).map_or(&[][..], Vec::as_slice)) {
                None if self.create_unmatched => None,
                None => Some(
                    "is empty, so the row names nothing to update; with create_unmatched=true, it creates a record".to_owned(),
                ),
                Some([_]) => None,
                Some(all) => Some(format!("has the same value in {}", named(all, place))),
            };
            row.errors.extend(error.map(|detail| FieldError::column(self.name, detail)));
        }
    }
}

/// The other rows, by their numbers from 1.
fn named(all: &[usize], own: usize) -> String {
    let others = all.iter().filter(|place| **place != own).map(|place| (place + 1).to_string());
    let (shown, more) = (others.take(MAX_NAMED_ROWS).collect::<Vec<_>>().join(", "), all.len() - 1);
    match more {
        1 => format!("row {shown}"),
        more if more <= MAX_NAMED_ROWS => format!("rows {shown}"),
        more => format!("rows {shown} and {} more", more - MAX_NAMED_ROWS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_the_same_value_name_one_another() {
        assert_eq!(named(&[0, 4], 4), "row 1");
        assert_eq!(named(&[0, 1, 6], 1), "rows 1, 7");
        assert_eq!(named(&[0, 1, 2, 3, 4, 5, 6, 7], 0), "rows 2, 3, 4, 5, 6 and 2 more");
    }
}
