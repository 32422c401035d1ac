//! Assets, their statuses and the status transitions that a tenant permits. [`super::change`] has the rules for changing assets.

use crate::assets::listed::ListedFields;
use crate::assets::seen::Location;
use crate::catalog::custom_fields::CustomFields;
use crate::catalog::{AssetKind, AssetType, Manufacturer, Model};
use crate::record::{Kind, Record, Reference, Stored, Unique, fields, record_change};
use crate::user::User;
use crate::values::field_error::ValueError;
use crate::values::id::{AssetId, AssetTypeId, Id, InstanceId, ManufacturerId, ModelId, UserId, short};
use crate::values::json::parse_strict;
use crate::values::money::Price;
use crate::values::string_enum::string_enum;
use crate::values::text::{Line, Name, Notes};
use crate::values::time::{Date, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

string_enum! {
    /// The status of an asset.
    #[schema(as = AssetStatus)]
    Status {
        /// In stock. The default status of a new asset.
        InStock = "in_stock",
        /// Being prepared for use.
        Preparing = "preparing",
        /// In use.
        InUse = "in_use",
        /// Being serviced or repaired.
        InService = "in_service",
        /// Returned by its user.
        Returned = "returned",
        /// Scrapped. The asset and its history are kept.
        Scrapped = "scrapped",
    }
}

impl Status {
    /// Whether a process that ends with this status clears the asset's assignment.
    #[must_use]
    pub fn clears_assignment(self) -> bool {
        matches!(self, Self::InStock | Self::Returned | Self::Scrapped)
    }
}

/// Current catalog names, as shown with an asset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogNames {
    pub asset_type: Option<Name>,
    /// The kind of its asset type; physical without a type.
    pub kind: AssetKind,
    pub model: Option<Name>,
    /// The name of its model's manufacturer.
    pub manufacturer: Option<Name>,
}

impl CatalogNames {
    #[must_use]
    pub fn of(
        asset_type: Option<&Stored<AssetType>>,
        model: Option<&Stored<Model>>,
        manufacturer: Option<&Stored<Manufacturer>>,
    ) -> Self {
        Self {
            asset_type: asset_type.map(|stored| stored.value.name.clone()),
            kind: asset_type.map_or(AssetKind::Physical, |stored| stored.value.kind),
            model: model.map(|stored| stored.value.name.clone()),
            manufacturer: manufacturer.map(|stored| stored.value.name.clone()),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Asset {
    pub id: AssetId,
    /// Generated from the tenant's template, unless the client chose one. Never changes.
    pub asset_tag: String,
    pub name: Name,
    pub status: Status,
    /// With a model, this is the model's type.
    #[serde(default, with = "short", skip_serializing_if = "Option::is_none")]
    pub asset_type_id: Option<AssetTypeId>,
    #[serde(default, with = "short", skip_serializing_if = "Option::is_none")]
    pub model_id: Option<ModelId>,
    /// The model's manufacturer, copied here to read its name without reading the model first. Can't go stale: the manufacturer
    /// of a model in use can't change.
    #[serde(default, with = "short", skip_serializing_if = "Option::is_none")]
    pub manufacturer_id: Option<ManufacturerId>,
    /// Free text, or the manufacturer's name at the time the model was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manufacturer: Option<Line>,
    /// Free text, or the model's name at the time it was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Line>,
    #[serde(flatten)]
    pub details: AssetDetails,
    #[serde(default, with = "short", skip_serializing_if = "Option::is_none")]
    pub assigned_to: Option<UserId>,
    /// First day of the assignment, as claimed by an import. The history starts later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assigned_since: Option<Date>,
    /// Time of the last scan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seen_at: Option<Timestamp>,
    /// Number of versions that only record a scan. `If-Match` ignores them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub scans: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<Notes>,
    pub custom_fields: CustomFields,
    #[serde(default, with = "short", skip_serializing_if = "Option::is_none")]
    pub running_instance_id: Option<InstanceId>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Asset {
    /// Tags are case-insensitive.
    #[must_use]
    pub fn unique_tag(tag: &str) -> Unique {
        Unique { field: "asset_tag", value: tag.to_ascii_uppercase(), reserved_after_deletion: true }
    }

    /// Assigns the asset. If the user changes, drops `assigned_since`, which was about the previous assignment.
    pub fn reassign(&mut self, user: Option<UserId>) {
        if self.assigned_to != user {
            (self.assigned_to, self.assigned_since) = (user, None);
        }
    }

    /// The asset copies the model's manufacturer and type, so the link must fail if either changed after the model was read.
    fn model_reference(&self, id: ModelId) -> Reference {
        let copied = Model::requirements(self.manufacturer_id, self.asset_type_id);
        copied.into_iter().fold(Reference::new("model_id", Kind::Model, id.uuid()), Reference::requiring)
    }
}

impl Record for Asset {
    const KIND: Kind = Kind::Asset;
    const PERSONAL_FIELDS: &'static [&'static str] = &["notes"];
    type Id = AssetId;

    fn id(&self) -> AssetId {
        self.id
    }

    fn history_fields(&self) -> Map<String, Value> {
        let Self {
            id: _,
            asset_tag,
            name,
            status,
            asset_type_id,
            model_id,
            manufacturer_id: _,
            manufacturer,
            model,
            details,
            assigned_to,
            assigned_since,
            last_seen_at,
            scans: _,
            notes,
            custom_fields,
            running_instance_id,
        } = self;
        let before = fields([
            ("asset_tag", json!(asset_tag)),
            ("name", json!(name)),
            ("status", json!(status)),
            ("asset_type_id", json!(asset_type_id)),
            ("model_id", json!(model_id)),
            ("manufacturer", json!(manufacturer)),
            ("model", json!(model)),
        ]);
        let after = fields([
            ("assigned_to", json!(assigned_to)),
            ("assigned_since", json!(assigned_since)),
            ("last_seen_at", json!(last_seen_at)),
            ("notes", json!(notes)),
            ("custom_fields", Value::Object(custom_fields.as_map().clone())),
            ("running_instance_id", json!(running_instance_id)),
        ]);
        let details = details.history_fields().map(|(field, value)| (field.to_owned(), value));
        before.into_iter().chain(details).chain(after).collect()
    }

    /// Scans, and starting or cancelling a process instance, don't change `updated_at`.
    fn is_shown(field: &str) -> bool {
        !matches!(field, "running_instance_id" | "last_seen_at")
    }

    fn uncounted_versions(&self) -> u64 {
        self.scans
    }

    fn listed(&self) -> Option<String> {
        ListedFields::of(self).into_text()
    }

    fn unique(&self) -> Vec<Unique> {
        vec![Self::unique_tag(&self.asset_tag)]
    }

    fn references(&self) -> Vec<Reference> {
        let asset_type = self.asset_type_id.map(|id| Reference::new("asset_type_id", Kind::AssetType, id.uuid()));
        let user = self.assigned_to.map(|id| User::reference("assigned_to", id));
        [asset_type, self.model_id.map(|id| self.model_reference(id)), user].into_iter().flatten().collect()
    }
}

/// Statuses that an asset can change to by PATCH. A status without an entry can change to any other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(transparent)]
pub struct Transitions(BTreeMap<Status, BTreeSet<Status>>);

impl Transitions {
    /// The permitted next statuses; `None` permits all.
    #[must_use]
    pub fn from(&self, status: Status) -> Option<&BTreeSet<Status>> {
        self.0.get(&status)
    }

    /// Parses an object that maps a status to a list of statuses.
    ///
    /// # Errors
    ///
    /// Returns a [`ValueError`] when the text is anything else.
    pub fn from_json(text: &str) -> Result<Self, ValueError> {
        serde_json::from_value(parse_strict(text, 2)?).map(Self).map_err(|_| {
            let statuses = Status::ALL.iter().map(|status| status.as_str()).collect::<Vec<_>>().join(", ");
            ValueError::new(format!(
                "must be null or an object that maps an asset status to the list of statuses it can change to, each one of {statuses}"
            ))
        })
    }
}

/// Fields without special rules.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssetDetails {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial_number: Option<Line>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purchase_date: Option<Date>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purchase_price: Option<Price>,
    /// The last day of the warranty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warranty_until: Option<Date>,
}

record_change! {
    AssetDetailsChange of AssetDetails::with {
        set_or_clear serial_number: Line,
        set_or_clear location: Location,
        set_or_clear purchase_date: Date,
        set_or_clear purchase_price: Price,
        set_or_clear warranty_until: Date,
    }
}

impl AssetDetailsChange {
    /// Drops fields that already have these values.
    #[must_use]
    pub fn unless(self, present: &AssetDetails) -> Self {
        let Self { serial_number, location, purchase_date, purchase_price, warranty_until } = self;
        Self {
            serial_number: serial_number.unless(present.serial_number.as_ref()),
            location: location.unless(present.location.as_ref()),
            purchase_date: purchase_date.unless(present.purchase_date.as_ref()),
            purchase_price: purchase_price.unless(present.purchase_price.as_ref()),
            warranty_until: warranty_until.unless(present.warranty_until.as_ref()),
        }
    }
}

impl AssetDetails {
    fn history_fields(&self) -> impl Iterator<Item = (&'static str, Value)> {
        let Self { serial_number, location, purchase_date, purchase_price, warranty_until } = self;
        [
            ("serial_number", json!(serial_number)),
            ("location", json!(location)),
            ("purchase_date", json!(purchase_date)),
            // As text: canonical JSON (RFC 8785 §3.2.2.3) would round a number to a double.
            ("purchase_price", json!(purchase_price)),
            ("warranty_until", json!(warranty_until)),
        ]
        .into_iter()
    }
}
