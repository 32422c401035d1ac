//! The effect of an operation, and its asset.

use crate::inputs::AssetInputs;
use serde_json::{Map, Value};
use shared::domain::assets::asset::Asset;
use shared::domain::assets::change::AssetChange;
use shared::domain::assets::csv_cell;
use shared::domain::catalog::custom_fields::{CustomFields, FieldsSchema, composed_value};
use shared::domain::record::Patch;
use shared::domain::values::field_error::FieldError;
use shared::domain::values::id::AssetId;
use shared::fields::serial_number::{SHORTENED, is_shortened};
use shared::http::bulk::rows::{CUSTOM_FIELD, CustomCell};
use shared::http::requests::body::ReadOnlyFields;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    New,
    Id(AssetId),
    /// The only asset with this serial number, given by its key, or a new one.
    Serial(String),
}

impl Target {
    pub(crate) fn serial(&self) -> Option<&str> {
        if let Self::Serial(serial) = self { Some(serial) } else { None }
    }
}

pub(crate) enum Action {
    Write(Box<AssetWrite>),
    Delete,
    /// No effect: the request has these errors.
    Refuse(Vec<FieldError>),
}

impl Action {
    pub(crate) fn set(change: impl Into<AssetChange>, unchanged: ReadOnlyFields, errors: Vec<FieldError>) -> Self {
        let change = AssetChange { errors, ..change.into() };
        Self::Write(Box::new(AssetWrite { change, unchanged, ..AssetWrite::default() }))
    }
}

#[derive(Default)]
pub(crate) struct AssetWrite {
    /// With single custom fields, it sets custom fields, so that the asset type is read.
    pub(crate) change: AssetChange,
    pub(crate) custom_fields: Vec<(String, CustomCell)>,
    pub(crate) unchanged: ReadOnlyFields,
    /// From a file, of which a spreadsheet may have shortened the numbers.
    pub(crate) is_imported: bool,
    /// Fields that are set by a name in another column, with this column.
    pub(crate) named_columns: Vec<(&'static str, &'static str)>,
}

impl AssetWrite {
    /// Single custom fields are set beside those that the asset has.
    pub(crate) fn with_custom_fields(&self, current: Option<&Asset>, inputs: &AssetInputs) -> AssetChange {
        let mut change = self.change.clone();
        if self.is_imported {
            change.errors.extend(self.shortened_numbers(current));
        }
        if self.custom_fields.is_empty() {
            return change;
        }
        let schema = inputs.references.asset_type.as_ref().and_then(|stored| stored.value.custom_fields_schema.as_ref());
        let present = current.map(|asset| asset.custom_fields.as_map().clone()).unwrap_or_default();
        let fields = Value::Object(merged(present, &self.custom_fields, schema, &mut change.errors));
        match CustomFields::from_json(&fields.to_string()) {
            Ok(fields) => change.custom_fields = Patch::Value(fields),
            Err(error) => change.errors.push(FieldError::field("custom_fields", error.to_string())),
        }
        change
    }

    /// The errors of a serial number and a tag that a spreadsheet has shortened. The asset may have them nevertheless.
    fn shortened_numbers(&self, current: Option<&Asset>) -> Vec<FieldError> {
        let serial = self.change.details.serial_number.value().map(|serial| &**serial);
        let tag = self.change.asset_tag.value().map(|tag| &**tag);
        [
            ("serial_number", serial, current.and_then(|asset| asset.details.serial_number.as_deref())),
            ("asset_tag", tag, current.map(|asset| asset.asset_tag.as_str())),
        ]
        .into_iter()
        .filter(|(_, text, present)| text.is_some_and(is_shortened) && text != present)
        .map(|(field, ..)| FieldError::field(field, SHORTENED))
        .collect()
    }
}

fn merged(
    mut fields: Map<String, Value>,
    cells: &[(String, CustomCell)],
    schema: Option<&FieldsSchema>,
    errors: &mut Vec<FieldError>,
) -> Map<String, Value> {
    for (name, cell) in cells {
        let value = match cell {
            CustomCell::Clear => {
                fields.shift_remove(name);
                continue;
            }
            // An exported cell of the present value means this value, also if the schema is newer.
            CustomCell::Text(text) if fields.get(name).is_some_and(|present| csv_cell::value_text(present) == *text) => continue,
            CustomCell::Text(text) if is_shortened(text) && csv_cell::is_integer(name, schema) => {
                errors.push(FieldError::column(&format!("{CUSTOM_FIELD}{name}"), SHORTENED));
                continue;
            }
            CustomCell::Text(text) => csv_cell::to_value(text, name, schema),
            CustomCell::Value(value) => value.clone(),
        };
        match composed_value(value) {
            Ok(value) => drop(fields.insert(name.clone(), value)),
            Err((_, error)) => errors.push(FieldError::column(&format!("{CUSTOM_FIELD}{name}"), error)),
        }
    }
    fields
}
