//! An asset (interface 2.1). What may become of it: [`super::asset_change`].

use super::catalog::{AssetKind, AssetType, Manufacturer, Model};
use super::custom_fields::CustomFields;
use super::id::{AssetId, AssetTypeId, Id, InstanceId, ManufacturerId, ModelId, UserId, short};
use super::money::Price;
use super::record::{Kind, Record, Reference, Stored, Unique};
use super::scope::words;
use super::text::{Line, Name, Notes};
use super::time::Date;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

words! {
    /// Where an asset stands (interface 3.1).
    Status, "in_stock, preparing, in_use, in_service, returned, scrapped", {
        /// In Stock: where a new asset begins.
        InStock = "in_stock",
        /// Preparing.
        Preparing = "preparing",
        /// In Use.
        InUse = "in_use",
        /// In Service.
        InService = "in_service",
        /// Returned.
        Returned = "returned",
        /// Scrapped: gone, but its history stays.
        Scrapped = "scrapped",
    }
}

impl Status {
    /// Whether an asset that a process brings here is taken from whoever had it (contract 7).
    #[must_use]
    pub fn is_nobodys(self) -> bool {
        matches!(self, Self::InStock | Self::Returned | Self::Scrapped)
    }
}

/// What an asset shows of the catalog, as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogNames {
    /// Of its type.
    pub asset_type: Option<Name>,
    /// From its type; physical without one.
    pub kind: AssetKind,
    /// Of its model.
    pub model: Option<Name>,
    /// Of its model's manufacturer.
    pub manufacturer: Option<Name>,
}

impl CatalogNames {
    /// The names of what was found.
    #[must_use]
    pub fn of(
        asset_type: Option<&Stored<AssetType>>,
        model: Option<&Stored<Model>>,
        manufacturer: Option<&Stored<Manufacturer>>,
    ) -> Self {
        Self {
            asset_type: asset_type.map(|found| found.value.name.clone()),
            kind: asset_type.map_or(AssetKind::Physical, |found| found.value.kind),
            model: model.map(|found| found.value.name.clone()),
            manufacturer: manufacturer.map(|found| found.value.name.clone()),
        }
    }
}

/// An asset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Asset {
    /// Which one.
    pub id: AssetId,
    /// Given once, by the tenant's template; never changes.
    pub asset_tag: String,
    /// What it is called.
    pub name: Name,
    /// Where it stands.
    pub status: Status,
    /// What kind of thing it is; the model's type, when there is a model.
    #[serde(default, with = "short", skip_serializing_if = "Option::is_none")]
    pub asset_type_id: Option<AssetTypeId>,
    /// The product that it is an instance of.
    #[serde(default, with = "short", skip_serializing_if = "Option::is_none")]
    pub model_id: Option<ModelId>,
    /// The model's manufacturer, so that its name needs no read of the model first. A model in use keeps it.
    #[serde(default, with = "short", skip_serializing_if = "Option::is_none")]
    pub manufacturer_id: Option<ManufacturerId>,
    /// Free text, or the manufacturer's name when the model was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manufacturer: Option<Line>,
    /// Free text, or the model's name when it was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Line>,
    /// The maker's number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial_number: Option<Line>,
    /// When it was bought.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purchase_date: Option<Date>,
    /// What it cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purchase_price: Option<Price>,
    /// The last day of its warranty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warranty_until: Option<Date>,
    /// Who has it.
    #[serde(default, with = "short", skip_serializing_if = "Option::is_none")]
    pub assigned_to: Option<UserId>,
    /// For the tenant's own eyes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<Notes>,
    /// What the tenant adds.
    #[serde(default)]
    pub custom_fields: CustomFields,
    /// The process that runs on it; at most one.
    #[serde(default, with = "short", skip_serializing_if = "Option::is_none")]
    pub running_instance_id: Option<InstanceId>,
}

impl Record for Asset {
    const KIND: Kind = Kind::Asset;
    type Id = AssetId;

    fn id(&self) -> AssetId {
        self.id
    }

    fn audit(&self) -> Map<String, Value> {
        let fields = [
            ("asset_tag", json!(self.asset_tag)),
            ("name", json!(self.name)),
            ("status", json!(self.status)),
            ("asset_type_id", json!(self.asset_type_id)),
            ("model_id", json!(self.model_id)),
            ("manufacturer", json!(self.manufacturer)),
            ("model", json!(self.model)),
            ("serial_number", json!(self.serial_number)),
            ("purchase_date", json!(self.purchase_date)),
            // As text: the canonical form (RFC 8785 §3.2.2.3) would round a number to a double.
            ("purchase_price", json!(self.purchase_price)),
            ("warranty_until", json!(self.warranty_until)),
            ("assigned_to", json!(self.assigned_to)),
            ("notes", json!(self.notes)),
            ("custom_fields", Value::Object(self.custom_fields.as_map().clone())),
            ("running_instance_id", json!(self.running_instance_id)),
        ];
        fields.into_iter().map(|(field, value)| (field.to_owned(), value)).collect()
    }

    /// That a process runs on it is no change of the asset: a run that is cancelled leaves it as it was (contract 7).
    fn is_shown(field: &str) -> bool {
        field != "running_instance_id"
    }

    fn unique(&self) -> Vec<Unique> {
        vec![Unique { field: "asset_tag", value: self.asset_tag.clone(), kept: true }]
    }

    fn references(&self) -> Vec<Reference> {
        let reference = |field, kind, id: Option<uuid::Uuid>| id.map(|id| Reference::new(field, kind, id));
        // The model's manufacturer and type are the asset's too: a model that became another product since it was
        // read must not get an asset of the old one.
        let taken =
            [("manufacturer_id", self.manufacturer_id.map(Id::uuid)), ("asset_type_id", self.asset_type_id.map(Id::uuid))];
        let taken = taken.into_iter().filter_map(|(name, id)| Some((name, id?))).collect();
        let model = reference("model_id", Kind::Model, self.model_id.map(Id::uuid));
        [
            reference("asset_type_id", Kind::AssetType, self.asset_type_id.map(Id::uuid)),
            model.map(|model| Reference { taken, ..model }),
            reference("assigned_to", Kind::User, self.assigned_to.map(Id::uuid)),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}
