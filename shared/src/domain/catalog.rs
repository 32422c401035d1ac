//! The catalog: asset types, manufacturers and models.

use crate::domain::assets::custom_fields::FieldsSchema;
use crate::domain::record::{Kind, Patch, Record, Reference, Requirement, Unique, fields};
use crate::domain::values::field_error::{ValueError, text_form};
use crate::domain::values::hidden_characters::check_visible;
use crate::domain::values::id::{AssetTypeId, Id, ManufacturerId, ModelId};
use crate::domain::values::string_enum::string_enum;
use crate::domain::values::text::{Name, Notes, fold};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::str::FromStr;

string_enum! {
    /// Whether an asset is a physical item.
    AssetKind {
        /// Hardware.
        Physical = "physical",
        /// Software, licences, subscriptions.
        Logical = "logical",
    }
}

/// The short code of an asset type, used in tags: 2 to 8 of A-Z and 0-9.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, pattern = "^[A-Z0-9]{2,8}$", examples("LAP"))]
pub struct TypeCode(String);

impl TypeCode {
    /// Returns the code.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for TypeCode {
    type Err = ValueError;
    fn from_str(text: &str) -> Result<Self, ValueError> {
        let fits = (2..=8).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
        fits.then(|| Self(text.to_owned())).ok_or_else(|| ValueError::new("must be 2 to 8 of A-Z and 0-9"))
    }
}

text_form!(TypeCode, |code| code.0);

/// The URL of a manufacturer's website.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(transparent)]
#[schema(value_type = String, format = "uri", max_length = 2048)]
pub struct Website(String);

/// The maximum length of a URL.
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
        fits.then(|| Self(text.to_owned())).ok_or_else(|| ValueError::new("must be a URL that begins with https:// or http://"))
    }
}

/// The maximum number of asset types of a tenant. Lists read all of them.
pub const MAX_ASSET_TYPES: usize = 1_000;

/// An asset type, such as Laptop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AssetType {
    /// Identifier.
    pub id: AssetTypeId,
    /// Display name.
    pub name: Name,
    /// Short code for asset tags, unique in the tenant.
    pub code: TypeCode,
    /// Whether its assets are physical or logical.
    pub kind: AssetKind,
    /// The schema that the custom fields of its assets must match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_fields_schema: Option<FieldsSchema>,
}

/// A change to an asset type.
#[derive(Debug, Clone, Default)]
pub struct AssetTypeChange {
    /// The new name.
    pub name: Option<Name>,
    /// The new code. Existing tags keep the old one.
    pub code: Option<TypeCode>,
    /// The new kind.
    pub kind: Option<AssetKind>,
    /// The new schema. It applies to existing assets when they are next changed.
    pub custom_fields_schema: Patch<FieldsSchema>,
}

impl AssetType {
    /// Returns a code as a value that no two asset types have.
    #[must_use]
    pub fn unique_code(code: &TypeCode) -> Unique {
        Unique { field: "code", value: code.as_str().to_owned(), reserved_after_deletion: false }
    }

    /// Returns the asset type with `change` applied.
    #[must_use]
    pub fn changed(&self, change: &AssetTypeChange) -> Self {
        let AssetTypeChange { name, code, kind, custom_fields_schema } = change.clone();
        Self {
            id: self.id,
            name: name.unwrap_or_else(|| self.name.clone()),
            code: code.unwrap_or_else(|| self.code.clone()),
            kind: kind.unwrap_or(self.kind),
            custom_fields_schema: custom_fields_schema.or(self.custom_fields_schema.clone()),
        }
    }
}

impl Record for AssetType {
    const KIND: Kind = Kind::AssetType;
    type Id = AssetTypeId;

    fn id(&self) -> AssetTypeId {
        self.id
    }

    fn audit(&self) -> Map<String, Value> {
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

    fn required_by_references(&self) -> Option<Vec<Requirement>> {
        Some(Vec::new())
    }
}

/// A manufacturer of models.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manufacturer {
    /// Identifier.
    pub id: ManufacturerId,
    /// Display name, unique in the tenant without regard to case.
    pub name: Name,
    /// Its website.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub website: Option<Website>,
    /// Internal notes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<Notes>,
}

/// A change to a manufacturer.
#[derive(Debug, Clone, Default)]
pub struct ManufacturerChange {
    /// The new name. Assets keep the text that was filled in.
    pub name: Option<Name>,
    /// The new website.
    pub website: Patch<Website>,
    /// The new notes.
    pub notes: Patch<Notes>,
}

impl Manufacturer {
    /// Returns a name as a value that no two manufacturers have.
    #[must_use]
    pub fn unique_name(name: &str) -> Unique {
        Unique { field: "name", value: fold(name), reserved_after_deletion: false }
    }

    /// Returns the manufacturer with `change` applied.
    #[must_use]
    pub fn changed(&self, change: &ManufacturerChange) -> Self {
        let ManufacturerChange { name, website, notes } = change.clone();
        Self {
            id: self.id,
            name: name.unwrap_or_else(|| self.name.clone()),
            website: website.or(self.website.clone()),
            notes: notes.or(self.notes.clone()),
        }
    }
}

impl Record for Manufacturer {
    const KIND: Kind = Kind::Manufacturer;
    type Id = ManufacturerId;

    fn id(&self) -> ManufacturerId {
        self.id
    }

    fn audit(&self) -> Map<String, Value> {
        let Self { id: _, name, website, notes } = self;
        fields([("name", json!(name)), ("website", json!(website)), ("notes", json!(notes))])
    }

    fn unique(&self) -> Vec<Unique> {
        vec![Self::unique_name(&self.name)]
    }

    fn required_by_references(&self) -> Option<Vec<Requirement>> {
        Some(Vec::new())
    }
}

/// A product model, such as Latitude 7450.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// Identifier.
    pub id: ModelId,
    /// Display name.
    pub name: Name,
    /// Its manufacturer.
    pub manufacturer_id: ManufacturerId,
    /// The asset type of its assets.
    pub asset_type_id: AssetTypeId,
    /// Internal notes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<Notes>,
}

/// A change to a model.
#[derive(Debug, Clone, Default)]
pub struct ModelChange {
    /// The new name. Assets keep the text that was filled in.
    pub name: Option<Name>,
    /// The new manufacturer.
    pub manufacturer_id: Option<ManufacturerId>,
    /// The new asset type.
    pub asset_type_id: Option<AssetTypeId>,
    /// The new notes.
    pub notes: Patch<Notes>,
}

impl Model {
    /// Returns the model with `change` applied.
    #[must_use]
    pub fn changed(&self, change: &ModelChange) -> Self {
        let ModelChange { name, manufacturer_id, asset_type_id, notes } = change.clone();
        Self {
            id: self.id,
            name: name.unwrap_or_else(|| self.name.clone()),
            manufacturer_id: manufacturer_id.unwrap_or(self.manufacturer_id),
            asset_type_id: asset_type_id.unwrap_or(self.asset_type_id),
            notes: notes.or(self.notes.clone()),
        }
    }

    /// Returns what a model with this manufacturer and this type meets.
    pub(in crate::domain) fn requirements(
        manufacturer: Option<ManufacturerId>,
        asset_type: Option<AssetTypeId>,
    ) -> Vec<Requirement> {
        let manufacturer = manufacturer.map(|id| Requirement::text("manufacturer_id", id));
        let asset_type = asset_type.map(|id| Requirement::text("asset_type_id", id));
        manufacturer.into_iter().chain(asset_type).collect()
    }

    /// Returns whether `next` has another manufacturer or asset type, which the model's assets carry too.
    #[must_use]
    pub fn is_another_product(&self, next: &Self) -> bool {
        self.manufacturer_id != next.manufacturer_id || self.asset_type_id != next.asset_type_id
    }
}

impl Record for Model {
    const KIND: Kind = Kind::Model;
    type Id = ModelId;

    fn id(&self) -> ModelId {
        self.id
    }

    fn audit(&self) -> Map<String, Value> {
        let Self { id: _, name, manufacturer_id, asset_type_id, notes } = self;
        fields([
            ("name", json!(name)),
            ("manufacturer_id", json!(manufacturer_id)),
            ("asset_type_id", json!(asset_type_id)),
            ("notes", json!(notes)),
        ])
    }

    fn required_by_references(&self) -> Option<Vec<Requirement>> {
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
