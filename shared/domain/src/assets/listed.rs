//! Values of assets that only lists need: location, model, dates, and the custom fields that lists can filter and sort by.
//!
//! The secondary index `list_index` has room for only a few attributes, and custom fields can take up to 32 KiB, so all of these
//! are stored in one text.

use crate::assets::asset::Asset;
use crate::assets::csv_cell;
use crate::values::natural_order::natural_cmp_folded;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Prefix of custom fields in column and parameter names.
pub const CUSTOM_FIELD: &str = "custom_fields.";
/// Maximum number of custom fields per asset in lists: the first ones by name.
pub const MAX_FIELDS: usize = 20;
/// Maximum length of a custom field in lists, in characters.
pub const MAX_CELL_CHARS: usize = 200;
/// Maximum number of unfit field names stored per asset, to reject requests about these fields.
const MAX_UNFIT_NAMES: usize = 20;

/// A custom field's value in lists.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// A JSON number, as a double like stored numbers. Compared by value, and sorted before texts.
    Number(f64),
    Text(Box<str>),
    /// A value that lists can't use: not a scalar, too long, or beyond [`MAX_FIELDS`].
    Unfit,
}

impl Cell {
    /// `None` for null.
    #[must_use]
    pub fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Null => None,
            // Adding zero turns -0 into 0, as in the history.
            Value::Number(number) => Some(number.as_f64().map_or(Self::Unfit, |number| Self::Number(number + 0.0))),
            Value::Array(_) | Value::Object(_) => Some(Self::Unfit),
            Value::Bool(_) | Value::String(_) => {
                let text = csv_cell::value_text(value);
                let is_long = text.chars().nth(MAX_CELL_CHARS).is_some();
                Some(if is_long { Self::Unfit } else { Self::Text(text.into()) })
            }
        }
    }

    /// The value as exported; numbers in their shortest form.
    #[must_use]
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        match self {
            Self::Number(number) => shortest(*number).into(),
            Self::Text(text) => (&**text).into(),
            Self::Unfit => "".into(),
        }
    }

    /// Numbers by value, then texts in case-insensitive natural order.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => a.total_cmp(b),
            (Self::Text(a), Self::Text(b)) => natural_cmp_folded(a, b),
            (a, b) => a.rank().cmp(&b.rank()),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Number(_) => 0,
            Self::Text(_) => 1,
            Self::Unfit => 2,
        }
    }
}

/// Formats a number as in RFC 8785 §3.2.2.3: 1.0 is `1`.
fn shortest(number: f64) -> String {
    serde_json_canonicalizer::to_string(&number).unwrap_or_else(|_| number.to_string())
}

/// Parses a text as a JSON number and returns the number's shortest form.
#[must_use]
pub fn number_text(text: &str) -> Option<String> {
    let number: serde_json::Number = text.parse().ok()?;
    number.as_f64().map(|number| shortest(number + 0.0))
}

/// The custom fields of an asset in lists.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ListedCustomFields {
    /// Sorted by name. Unfit fields have a value, but lists can't filter or sort by it.
    pub cells: Vec<(String, Cell)>,
    /// Set if there are too many fields: any field with a later name can also be unfit.
    pub unfit_after: Option<String>,
}

impl ListedCustomFields {
    #[must_use]
    pub fn of(fields: &Map<String, Value>) -> Self {
        let by_name: BTreeMap<&String, Cell> = fields.iter().filter_map(|(name, value)| Some((name, Cell::of(value)?))).collect();
        let (mut listed, mut fitting, mut unfit) = (Self::default(), 0, 0);
        for (name, cell) in by_name {
            let fits = cell != Cell::Unfit && fitting < MAX_FIELDS;
            if !fits && unfit == MAX_UNFIT_NAMES {
                if listed.unfit_after.is_none() {
                    listed.unfit_after = listed.cells.last().map(|(last, _)| last.clone());
                }
                continue;
            }
            *(if fits { &mut fitting } else { &mut unfit }) += 1;
            listed.cells.push((name.clone(), if fits { cell } else { Cell::Unfit }));
        }
        listed
    }
}

/// Values of an asset that only lists need.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ListedFields {
    /// Texts by field: `location`, `model`, `purchase_date`, `last_seen_at`.
    pub texts: Vec<(&'static str, String)>,
    pub custom_fields: ListedCustomFields,
}

/// Stored as JSON. Names are short because every asset repeats them.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ListedText {
    #[serde(rename = "l", default, skip_serializing_if = "Option::is_none")]
    location: Option<String>,
    #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    purchase_date: Option<String>,
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    last_seen_at: Option<String>,
    #[serde(rename = "f", default, skip_serializing_if = "BTreeMap::is_empty")]
    custom_fields: BTreeMap<String, Scalar>,
    #[serde(rename = "u", default, skip_serializing_if = "Vec::is_empty")]
    unfit: Vec<String>,
    #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
    unfit_after: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Scalar {
    Number(f64),
    Text(Box<str>),
}

impl ListedFields {
    #[must_use]
    pub fn of(asset: &Asset) -> Self {
        let text = |field, value: Option<String>| value.map(|value| (field, value));
        let texts = [
            text("location", asset.details.location.as_deref().map(str::to_owned)),
            text("model", asset.model.as_deref().map(str::to_owned)),
            text("purchase_date", asset.details.purchase_date.map(String::from)),
            text("last_seen_at", asset.last_seen_at.map(String::from)),
        ];
        let custom_fields = ListedCustomFields::of(asset.custom_fields.as_map());
        Self { texts: texts.into_iter().flatten().collect(), custom_fields }
    }

    /// Returns the stored text; `None` if there are no values.
    #[must_use]
    pub fn into_text(self) -> Option<String> {
        let Self { texts, custom_fields: ListedCustomFields { cells, unfit_after } } = self;
        if texts.is_empty() && cells.is_empty() {
            return None;
        }
        let mut text = ListedText { unfit_after, ..ListedText::default() };
        for (field, value) in texts {
            match field {
                "location" => text.location = Some(value),
                "model" => text.model = Some(value),
                "purchase_date" => text.purchase_date = Some(value),
                _ => text.last_seen_at = Some(value),
            }
        }
        for (name, cell) in cells {
            match cell {
                Cell::Number(number) => drop(text.custom_fields.insert(name, Scalar::Number(number))),
                Cell::Text(value) => drop(text.custom_fields.insert(name, Scalar::Text(value))),
                Cell::Unfit => text.unfit.push(name),
            }
        }
        serde_json::to_string(&text).ok()
    }

    /// Parses a stored text; `None` if it is invalid.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        let ListedText { location, model, purchase_date, last_seen_at, custom_fields, unfit, unfit_after } =
            serde_json::from_str(text).ok()?;
        let texts = [("location", location), ("model", model), ("purchase_date", purchase_date), ("last_seen_at", last_seen_at)];
        let cell = |scalar| match scalar {
            Scalar::Number(number) => Cell::Number(number),
            Scalar::Text(text) => Cell::Text(text),
        };
        let fitting = custom_fields.into_iter().map(|(name, scalar)| (name, cell(scalar)));
        let mut cells: Vec<_> = fitting.chain(unfit.into_iter().map(|name| (name, Cell::Unfit))).collect();
        cells.sort_by(|(a, _), (b, _)| a.cmp(b));
        let texts = texts.into_iter().filter_map(|(field, value)| Some((field, value?))).collect();
        Some(Self { texts, custom_fields: ListedCustomFields { cells, unfit_after } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(value: Value) -> ListedCustomFields {
        ListedCustomFields::of(value.as_object().expect("an object"))
    }

    fn names(listed: &ListedCustomFields, is_fit: bool) -> Vec<&str> {
        listed.cells.iter().filter(|(_, cell)| (*cell != Cell::Unfit) == is_fit).map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn scalars_are_known_by_their_exported_cell_and_others_are_unfit() {
        let listed =
            of(json!({"c": true, "a": 1.0, "b": "", "n": null, "l": [1], "o": {}, "t": "x".repeat(201), "x": "y".repeat(200)}));
        assert_eq!((names(&listed, true), names(&listed, false)), (vec!["a", "b", "c", "x"], vec!["l", "o", "t"]));
        let texts: Vec<_> = listed.cells.iter().take(3).map(|(_, cell)| cell.text().into_owned()).collect();
        assert_eq!(texts, ["1", "\"\"", "true"]);
        assert_eq!(listed.unfit_after, None);
    }

    #[test]
    fn the_first_twenty_by_name_are_known_and_no_other_is_forgotten() {
        let fields = |count| Value::Object((0..count).map(|n| (format!("f{n:03}"), json!(n))).collect());
        let listed = of(fields(30));
        assert_eq!((names(&listed, true).len(), names(&listed, false).len()), (20, 10));
        assert_eq!(names(&listed, false).first(), Some(&"f020"));
        let many = of(fields(500));
        assert_eq!((names(&many, false).len(), many.unfit_after.as_deref()), (20, Some("f039")));
        // The names of the rest are not stored: they can be long.
        assert!(
            ListedFields { custom_fields: many, ..ListedFields::default() }.into_text().is_some_and(|text| text.len() < 1_000)
        );
    }

    #[test]
    fn the_text_is_read_as_it_was_written() {
        let custom_fields = of(json!({"a": 1.5, "b": "ß\"", "c": [1], "d": 9_007_199_254_740_992_u64, "e": -0.0}));
        let listed = ListedFields { texts: vec![("location", "A / B".into()), ("last_seen_at", "x".into())], custom_fields };
        let text = listed.clone().into_text().expect("a text");
        assert_eq!(ListedFields::from_text(&text), Some(listed));
        assert_eq!((ListedFields::default().into_text(), ListedFields::from_text("[")), (None, None));
    }

    /// Histories store numbers in the form of RFC 8785, records as sent.
    #[test]
    fn other_forms_of_a_number_are_the_same_cell() {
        for (sent, stored) in [("1.0", "1"), ("1e3", "1000"), ("0.10", "0.1"), ("1E-7", "1e-7")] {
            let cell = |text: &str| Cell::of(&serde_json::from_str(text).expect(text));
            assert_eq!(cell(sent), cell(stored), "{sent}");
            assert_eq!(number_text(sent).as_deref(), Some(stored));
            assert_eq!(cell(sent).map(|cell| cell.text().into_owned()).as_deref(), Some(stored));
        }
        assert_eq!((number_text("0815"), number_text("x"), number_text("")), (None, None, None));
    }

    #[test]
    fn numbers_sort_by_value_and_before_texts() {
        let values = [json!(-1), json!(2), json!(10.5), json!("1"), json!("Room 9"), json!("room 10"), json!([])];
        let cells: Vec<Cell> = values.iter().filter_map(Cell::of).collect();
        assert!(cells.is_sorted_by(|a, b| a.compare(b) == Ordering::Less), "{cells:?}");
    }
}
