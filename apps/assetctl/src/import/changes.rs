//! The fields that a dry run would change, summed up.

use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The fields that are summed up: a file can name a new custom field in each row.
const MAX_FIELDS: usize = 1_000;

/// One change of a row, as the service says it.
#[derive(Debug, Deserialize)]
pub struct FieldChange {
    field: String,
    old: Value,
    new: Value,
}

/// The changes of all rows, by field.
#[derive(Debug, Default)]
pub struct Changes(BTreeMap<String, Change>);

/// The changes of a field.
#[derive(Debug, Default)]
pub struct Change {
    pub rows: u64,
    /// The first old and new value.
    pub example: (String, String),
    /// Rows in which only leading zeros differ.
    pub zeros: u64,
    pub example_of_zeros: (String, String),
}

impl Changes {
    pub fn add(&mut self, change: &FieldChange) {
        let FieldChange { field, old, new } = change;
        if self.0.len() >= MAX_FIELDS && !self.0.contains_key(field) {
            return;
        }
        let (sum, example) = (self.0.entry(field.clone()).or_default(), (text(old), text(new)));
        sum.rows += 1;
        if differ_in_zeros(&example.0, &example.1) {
            sum.zeros += 1;
            if sum.zeros == 1 {
                sum.example_of_zeros.clone_from(&example);
            }
        }
        if sum.rows == 1 {
            sum.example = example;
        }
    }

    /// Those that most rows have come first.
    #[must_use]
    pub fn most_frequent(&self) -> Vec<(&str, &Change)> {
        let mut changes: Vec<_> = self.0.iter().map(|(field, change)| (field.as_str(), change)).collect();
        changes.sort_by_key(|(_, change)| std::cmp::Reverse(change.rows));
        changes
    }

    #[must_use]
    pub fn as_json(&self) -> Value {
        let change = |(field, change): (&str, &Change)| {
            let (old, new) = &change.example;
            json!({"field": field, "rows": change.rows, "old": old, "new": new, "only_leading_zeros": change.zeros})
        };
        self.most_frequent().into_iter().map(change).collect()
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::String(text) if text.is_empty() => "an empty text".to_owned(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

fn differ_in_zeros(old: &str, new: &str) -> bool {
    let bare = |text: &str| text.trim_start_matches('0').to_owned();
    old != new && !bare(old).is_empty() && bare(old) == bare(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_counted_by_field_and_lost_zeros_apart() {
        let mut all = Changes::default();
        for (field, old, new) in [
            ("custom_fields.cost_center", json!("4711"), json!("4712")),
            ("custom_fields.cost_center", json!("0815"), json!("815")),
            ("custom_fields.cost_center", json!("007"), json!("7")),
            ("assigned_to", json!(null), json!("a")),
            ("purchase_price", json!(0), json!(1.5)),
        ] {
            all.add(&FieldChange { field: field.into(), old, new });
        }
        let expected = json!([
            {"field": "custom_fields.cost_center", "rows": 3, "old": "4711", "new": "4712", "only_leading_zeros": 2},
            {"field": "assigned_to", "rows": 1, "old": "nothing", "new": "a", "only_leading_zeros": 0},
            {"field": "purchase_price", "rows": 1, "old": "0", "new": "1.5", "only_leading_zeros": 0},
        ]);
        assert_eq!(all.as_json(), expected);
        assert_eq!(all.most_frequent()[0].1.example_of_zeros, ("0815".into(), "815".into()));
    }
}
