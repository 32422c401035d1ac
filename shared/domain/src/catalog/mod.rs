//! The catalog: asset types, manufacturers and models.

pub mod custom_fields;

use crate::catalog::custom_fields::FieldsSchema;
use crate::record::{Kind, Record, Reference, Requirement, Unique, fields, record_change};
use crate::values::field_error::{ValueError, text_form};
use crate::values::id::{AssetTypeId, Id, ManufacturerId, ModelId};
use crate::values::string_enum::string_enum;
use crate::values::text::{Name, Notes, check_visible, fold};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::str::FromStr;

string_enum! {
    /// Whether an asset is a physical item.
    AssetKind {
        Physical = "physical",
        /// Software, licences, subscriptions.
        Logical = "logical",
    }
}

/// Short code of an asset type, used in tags: 2 to 8 characters from A-Z and 0-9.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, pattern = "^[A-Z0-9]{2,8}$", examples("LAP"))]
pub struct TypeCode(String);

impl TypeCode {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for TypeCode {
    type Err = ValueError;
    fn from_str(text: &str) -> Result<Self, ValueError> {
        let fits = (2..=8).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
        fits.then(|| Self(text.to_owned())).ok_or_else(|| ValueError::form("must be 2 to 8 characters from A-Z and 0-9"))
    }
}

text_form!(TypeCode, |code| code.0);

/// The URL of a manufacturer's website.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(transparent)]
#[schema(value_type = String, format = "uri", max_length = 2048)]
pub struct Website(String);

const MAX_WEBSITE_BYTES: usize = 2_048;

impl FromStr for Website {
    type Err = ValueError;
    fn from_str(text: &str) -> Result<Self, ValueError> {
        let text = text.trim();
        check_visible(text)?;
        let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        if text.len() > MAX_WEBSITE_BYTES {
            return Err(ValueError::new(format!("must have at most {MAX_WEBSITE_BYTES} bytes; this has {}", text.len())));
        }
        let fits = host.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
            && !text.chars().any(|c| c.is_control() || c.is_whitespace());
        fits.then(|| Self(text.to_owned())).ok_or_else(|| ValueError::form("must be a URL that starts with https:// or http://"))
    }
}

/// Maximum number of asset types per tenant, because lists read all of them.
pub const MAX_ASSET_TYPES: usize = 1_000;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AssetType {
    pub id: AssetTypeId,
    pub name: Name,
    /// Unique in the tenant.
    pub code: TypeCode,
    pub kind: AssetKind,
    /// The schema for the custom fields of the type's assets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_fields_schema: Option<FieldsSchema>,
}

record_change! {
    AssetTypeChange of pub AssetType::changed {
        set name: Name,
        set code: TypeCode,
        set kind: AssetKind,
        set_or_clear custom_fields_schema: FieldsSchema,
    }
}

impl AssetType {
    pub fn unique_code(code: &TypeCode) -> Unique {
        Unique { field: "code", value: code.as_str().to_owned(), reserved_after_deletion: false }
    }
}

impl Record for AssetType {
    const KIND: Kind = Kind::AssetType;
    type Id = AssetTypeId;

    fn id(&self) -> AssetTypeId {
        self.id
    }

    fn history_fields(&self) -> Map<String, Value> {
        let Self { id: _, name, code, kind, custom_fields_schema } = self;
        fields([
            ("name", json!(name)),
            ("code", json!(code)),
            ("kind", json!(kind)),
            ("custom_fields_schema", json!(custom_fields_schema.as_ref().map(FieldsSchema::as_value))),
        ])
    }

    fn unique(&self) -> Vec<Unique> {
        vec![Self::unique_code(&self.code)]
    }

    fn referenceable_attributes(&self) -> Option<Vec<Requirement>> {
        Some(Vec::new())
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manufacturer {
    pub id: ManufacturerId,
    /// Unique in the tenant, ignoring case.
    pub name: Name,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub website: Option<Website>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<Notes>,
}

record_change! {
    ManufacturerChange of pub Manufacturer::changed {
        set name: Name,
        set_or_clear website: Website,
        set_or_clear notes: Notes,
    }
}

impl Manufacturer {
    pub fn unique_name(name: &str) -> Unique {
        Unique { field: "name", value: fold(name), reserved_after_deletion: false }
    }
}

impl Record for Manufacturer {
    const KIND: Kind = Kind::Manufacturer;
    const PERSONAL_FIELDS: &'static [&'static str] = &["notes"];
    type Id = ManufacturerId;

    fn id(&self) -> ManufacturerId {
        self.id
    }

    fn history_fields(&self) -> Map<String, Value> {
        let Self { id: _, name, website, notes } = self;
        fields([("name", json!(name)), ("website", json!(website)), ("notes", json!(notes))])
    }

    fn unique(&self) -> Vec<Unique> {
        vec![Self::unique_name(&self.name)]
    }

    fn referenceable_attributes(&self) -> Option<Vec<Requirement>> {
        Some(Vec::new())
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Model {
    pub id: ModelId,
    pub name: Name,
    pub manufacturer_id: ManufacturerId,
    pub asset_type_id: AssetTypeId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<Notes>,
}

record_change! {
    ModelChange of pub Model::changed {
        set name: Name,
        set manufacturer_id: ManufacturerId,
        set asset_type_id: AssetTypeId,
        set_or_clear notes: Notes,
    }
}

impl Model {
    /// Returns the manufacturer and the type that a referenced model must have.
    pub(crate) fn requirements(manufacturer: Option<ManufacturerId>, asset_type: Option<AssetTypeId>) -> Vec<Requirement> {
        let manufacturer = manufacturer.map(|id| Requirement::text("manufacturer_id", id));
        let asset_type = asset_type.map(|id| Requirement::text("asset_type_id", id));
        manufacturer.into_iter().chain(asset_type).collect()
    }

    /// Whether the manufacturer or asset type differs. The model's assets have copies of both.
    pub fn is_another_product(&self, next: &Self) -> bool {
        self.manufacturer_id != next.manufacturer_id || self.asset_type_id != next.asset_type_id
    }
}

impl Record for Model {
    const KIND: Kind = Kind::Model;
    const PERSONAL_FIELDS: &'static [&'static str] = &["notes"];
    type Id = ModelId;

    fn id(&self) -> ModelId {
        self.id
    }

    fn history_fields(&self) -> Map<String, Value> {
        let Self { id: _, name, manufacturer_id, asset_type_id, notes } = self;
        fields([
            ("name", json!(name)),
            ("manufacturer_id", json!(manufacturer_id)),
            ("asset_type_id", json!(asset_type_id)),
            ("notes", json!(notes)),
        ])
    }

    fn referenceable_attributes(&self) -> Option<Vec<Requirement>> {
        Some(Self::requirements(Some(self.manufacturer_id), Some(self.asset_type_id)))
    }

    fn references(&self) -> Vec<Reference> {
        vec![
            Reference::new("manufacturer_id", Kind::Manufacturer, self.manufacturer_id.uuid()),
            Reference::new("asset_type_id", Kind::AssetType, self.asset_type_id.uuid()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_addresses_have_a_form() {
        assert!("LAP".parse::<TypeCode>().is_ok() && "4K".parse::<TypeCode>().is_ok());
        for wrong in ["L", "lap", "LAPTOPXXX", "L-P", ""] {
            assert!(wrong.parse::<TypeCode>().is_err(), "{wrong}");
        }
        assert!("https://example.com/x?y".parse::<Website>().is_ok());
        for wrong in ["example.com", "javascript:alert(1)", "https://", "https:///x", "https://a b"] {
            assert!(wrong.parse::<Website>().is_err(), "{wrong}");
        }
    }
}
