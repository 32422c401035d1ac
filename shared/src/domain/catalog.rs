//! The catalog: what kinds of thing a tenant owns (contract 5).

use super::custom_fields::FieldsSchema;
use super::field_error::{ValueError, text_form};
use super::id::{AssetTypeId, Id, ManufacturerId, ModelId};
use super::record::{Kind, Patch, Record, Reference, Unique};
use super::scope::words;
use super::text::{Name, Notes, fold};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::str::FromStr;

words! {
    /// Whether one can touch the asset.
    AssetKind, "physical, logical", {
        /// Hardware.
        Physical = "physical",
        /// Software, licences, subscriptions.
        Logical = "logical",
    }
}

/// The short code of a type, for tags: 2 to 8 of A-Z and 0-9.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, pattern = "^[A-Z0-9]{2,8}$", examples("LAP"))]
pub struct TypeCode(String);

impl TypeCode {
    /// The code.
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

/// The address of a manufacturer's site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, format = "uri", max_length = 2048)]
pub struct Website(String);

impl FromStr for Website {
    type Err = ValueError;
    fn from_str(text: &str) -> Result<Self, ValueError> {
        let text = text.trim();
        let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        let fits = text.len() <= 2048
            && host.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
            && !text.chars().any(|c| c.is_control() || c.is_whitespace());
        fits.then(|| Self(text.to_owned()))
            .ok_or_else(|| ValueError::new("must be an address that begins with https:// or http://"))
    }
}

text_form!(Website, |website| website.0);

/// A type of asset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AssetType {
    /// Which one.
    pub id: AssetTypeId,
    /// Such as Laptop.
    pub name: Name,
    /// Unique in the tenant.
    pub code: TypeCode,
    /// Physical or logical.
    pub kind: AssetKind,
    /// What the custom fields of its assets must look like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_fields_schema: Option<FieldsSchema>,
}

/// What a PATCH of a type changes.
#[derive(Debug, Clone, Default)]
pub struct AssetTypeChange {
    /// The new name.
    pub name: Option<Name>,
    /// The new code; tags already given keep the old one.
    pub code: Option<TypeCode>,
    /// The new kind.
    pub kind: Option<AssetKind>,
    /// The new schema; assets are checked by it at their next change.
    pub custom_fields_schema: Patch<FieldsSchema>,
}

impl AssetType {
    /// The type as `change` makes it.
    #[must_use]
    pub fn changed(&self, change: &AssetTypeChange) -> Self {
        let change = change.clone();
        Self {
            id: self.id,
            name: change.name.unwrap_or_else(|| self.name.clone()),
            code: change.code.unwrap_or_else(|| self.code.clone()),
            kind: change.kind.unwrap_or(self.kind),
            custom_fields_schema: change.custom_fields_schema.or(self.custom_fields_schema.clone()),
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
        Map::from_iter([
            ("name".to_owned(), json!(self.name)),
            ("code".to_owned(), json!(self.code)),
            ("kind".to_owned(), json!(self.kind)),
            ("custom_fields_schema".to_owned(), json!(self.custom_fields_schema.as_ref().map(FieldsSchema::as_value))),
        ])
    }

    fn unique(&self) -> Vec<Unique> {
        vec![Unique { field: "code", value: self.code.as_str().to_owned(), kept: false }]
    }
}

/// Who makes things.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manufacturer {
    /// Which one.
    pub id: ManufacturerId,
    /// Unique in the tenant, without regard to case.
    pub name: Name,
    /// Where to find them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub website: Option<Website>,
    /// For the tenant's own eyes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<Notes>,
}

/// What a PATCH of a manufacturer changes.
#[derive(Debug, Clone, Default)]
pub struct ManufacturerChange {
    /// The new name; assets keep the text that was filled in.
    pub name: Option<Name>,
    /// The new address.
    pub website: Patch<Website>,
    /// The new notes.
    pub notes: Patch<Notes>,
}

impl Manufacturer {
    /// The manufacturer as `change` makes it.
    #[must_use]
    pub fn changed(&self, change: &ManufacturerChange) -> Self {
        let change = change.clone();
        Self {
            id: self.id,
            name: change.name.unwrap_or_else(|| self.name.clone()),
            website: change.website.or(self.website.clone()),
            notes: change.notes.or(self.notes.clone()),
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
        Map::from_iter([
            ("name".to_owned(), json!(self.name)),
            ("website".to_owned(), json!(self.website)),
            ("notes".to_owned(), json!(self.notes)),
        ])
    }

    fn unique(&self) -> Vec<Unique> {
        vec![Unique { field: "name", value: fold(&self.name), kept: false }]
    }
}

/// A product that assets can be instances of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// Which one.
    pub id: ModelId,
    /// Such as Latitude 7450.
    pub name: Name,
    /// Who makes it.
    pub manufacturer_id: ManufacturerId,
    /// What it is.
    pub asset_type_id: AssetTypeId,
    /// For the tenant's own eyes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<Notes>,
}

/// What a PATCH of a model changes.
#[derive(Debug, Clone, Default)]
pub struct ModelChange {
    /// The new name; assets keep the text that was filled in.
    pub name: Option<Name>,
    /// Another manufacturer.
    pub manufacturer_id: Option<ManufacturerId>,
    /// Another type.
    pub asset_type_id: Option<AssetTypeId>,
    /// The new notes.
    pub notes: Patch<Notes>,
}

impl Model {
    /// The model as `change` makes it.
    #[must_use]
    pub fn changed(&self, change: &ModelChange) -> Self {
        let change = change.clone();
        Self {
            id: self.id,
            name: change.name.unwrap_or_else(|| self.name.clone()),
            manufacturer_id: change.manufacturer_id.unwrap_or(self.manufacturer_id),
            asset_type_id: change.asset_type_id.unwrap_or(self.asset_type_id),
            notes: change.notes.or(self.notes.clone()),
        }
    }

    /// Whether `next` would be another product: its assets carry the old manufacturer and type.
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
        Map::from_iter([
            ("name".to_owned(), json!(self.name)),
            ("manufacturer_id".to_owned(), json!(self.manufacturer_id)),
            ("asset_type_id".to_owned(), json!(self.asset_type_id)),
            ("notes".to_owned(), json!(self.notes)),
        ])
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
