//! The fields that a dry run would change, summed up.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The fields that are summed up: a file can name a new custom field in each row.
const MAX_FIELDS: usize = 1_000;

/// One change of a row, as the service says it.
#[derive(Debug, Clone, Deserialize)]
pub struct FieldChange {
    field: String,
    old: Value,
    new: Value,
}

/// The changes of all rows, by field.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Changes(BTreeMap<String, Change>);

/// The changes of a field.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub rows: u64,
    /// The first old and new value.
    pub example: (String, String),
    /// Rows in which only leading zeros differ.
    pub zeros: u64,
    pub example_of_zeros: (String, String),
}

impl Changes {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn add(&mut self, change: &FieldChange) {
        let example = (text(&change.old), text(&change.new));
        let differs_in_zeros = differ_in_zeros(&example.0, &example.1);
        let zeros = if differs_in_zeros { example.clone() } else { Default::default() };
        self.add_change(&change.field, &Change { rows: 1, example, zeros: differs_in_zeros.into(), example_of_zeros: zeros });
    }

    pub fn add_all(&mut self, other: &Self) {
        other.0.iter().for_each(|(field, change)| self.add_change(field, change));
    }

    fn add_change(&mut self, field: &str, change: &Change) {
        if self.0.len() >= MAX_FIELDS && !self.0.contains_key(field) {
            return;
        }
        let sum = self.0.entry(field.to_owned()).or_default();
        if sum.rows == 0 {
            sum.example.clone_from(&change.example);
        }
        if sum.zeros == 0 {
            sum.example_of_zeros.clone_from(&change.example_of_zeros);
        }
        sum.rows += change.rows;
        sum.zeros += change.zeros;
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
        let mut chunks = [Changes::default(), Changes::default()];
        for (chunk, field, old, new) in [
            (0, "custom_fields.cost_center", json!("4711"), json!("4712")),
            (0, "custom_fields.cost_center", json!("0815"), json!("815")),
            (1, "custom_fields.cost_center", json!("007"), json!("7")),
            (1, "assigned_to", json!(null), json!("a")),
            (1, "purchase_price", json!(0), json!(1.5)),
        ] {
            chunks[chunk].add(&FieldChange { field: field.into(), old, new });
        }
        let mut all = Changes::default();
        chunks.iter().for_each(|chunk| all.add_all(chunk));
        let expected = json!([
            {"field": "custom_fields.cost_center", "rows": 3, "old": "4711", "new": "4712", "only_leading_zeros": 2},
            {"field": "assigned_to", "rows": 1, "old": "nothing", "new": "a", "only_leading_zeros": 0},
            {"field": "purchase_price", "rows": 1, "old": "0", "new": "1.5", "only_leading_zeros": 0},
        ]);
        assert_eq!(all.as_json(), expected);
        assert_eq!(all.most_frequent()[0].1.example_of_zeros, ("0815".into(), "815".into()));
    }
}
