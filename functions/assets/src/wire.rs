//! Bodies and views of assets.

use crate::expand::AssignedUser;
use serde::Serialize;
use serde_json::{Map, Value};
use shared::domain::assets::asset::{Asset, CatalogNames, Status};
use shared::domain::assets::asset_tag::AssetTag;
use shared::domain::assets::change::AssetChange;
use shared::domain::assets::details::{AssetDetails, AssetDetailsChange};
use shared::domain::assets::location::Location;
use shared::domain::catalog::AssetKind;
use shared::domain::catalog::custom_fields::{CustomFields, CustomFieldsPatch};
use shared::domain::record::{Patch, Stored};
use shared::domain::values::id::{AssetId, AssetTypeId, ModelId, UserId};
use shared::domain::values::money::{Price, PriceNumber};
use shared::domain::values::text::{Line, Name, Notes};
use shared::domain::values::time::{Date, Timestamp};
use utoipa::ToSchema;

/// Of an existing asset; of a new one, all but the first.
const READ_ONLY: &[&str] = &[
    "asset_tag",
    "id",
    "asset_type_name",
    "asset_kind",
    "catalog_manufacturer_name",
    "catalog_model_name",
    "assigned_user",
    "assigned_since",
    "last_seen_at",
    "created_at",
    "updated_at",
];

shared::body! {
    /// A new asset.
    pub struct NewAsset {
        /// Display name.
        required name: Name,
        /// Existing tag, if it has one. Case-insensitively unique. Default: generated from the tenant's template.
        nullable asset_tag: AssetTag,
        /// Asset type. Default: the model's.
        nullable asset_type_id: AssetTypeId,
        /// Initial status. Default `in_stock`.
        optional status: Status,
        /// Catalog model. Fills in the manufacturer and model texts.
        nullable model_id: ModelId,
        /// Free text, if `model_id` is not set.
        nullable manufacturer: Line,
        /// Free text, if `model_id` is not set.
        nullable model: Line,
        group details: AssetDetailsChange,
        /// Internal notes.
        nullable notes: Notes,
        /// Custom field values, as the asset type's schema requires.
        nullable custom_fields: CustomFields,
        /// Single custom fields to set after `custom_fields`. Null removes one.
        optional custom_fields_patch: CustomFieldsPatch,
        /// Assigned user, who must be active.
        nullable assigned_to: UserId,
    }
    read_only: READ_ONLY.split_at(1).1, into: AssetChange { assigned_since: Patch::Absent, errors: Vec::new() }
}

shared::body! {
    /// Fields of an asset to change.
    pub struct AssetPatch {
        /// Display name.
        optional name: Name,
        /// Asset type.
        nullable asset_type_id: AssetTypeId,
        /// Asset status.
        optional status: Status,
        /// Catalog model. Fills in the manufacturer and model texts.
        nullable model_id: ModelId,
        /// Free text, if no model is set.
        nullable manufacturer: Line,
        /// Free text, if no model is set.
        nullable model: Line,
        group details: AssetDetailsChange,
        /// Internal notes.
        nullable notes: Notes,
        /// All custom field values. Values that are missing from the object are removed.
        nullable custom_fields: CustomFields,
        /// Single custom fields to set; the others stay. Null removes one. With `custom_fields` in the body, that comes first.
        optional custom_fields_patch: CustomFieldsPatch,
        /// Assigned user, who must be active. Null ends the assignment.
        nullable assigned_to: UserId,
    }
    unchanged: READ_ONLY, into: AssetChange { asset_tag: Patch::Absent, assigned_since: Patch::Absent, errors: Vec::new() }
}

/// An asset.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Asset)]
pub struct AssetView {
    /// ID.
    pub(crate) id: AssetId,
    /// Asset tag. Never changes.
    pub(crate) asset_tag: String,
    /// Display name.
    pub(crate) name: Name,
    /// Status.
    pub(crate) status: Status,
    /// Asset type.
    #[schema(required)]
    pub(crate) asset_type_id: Option<AssetTypeId>,
    /// Name of the asset type.
    #[schema(required)]
    pub(crate) asset_type_name: Option<Name>,
    /// Kind of the asset type. `physical` for an asset without a type.
    pub(crate) asset_kind: AssetKind,
    /// Free text, or filled from the catalog model.
    #[schema(required)]
    pub(crate) manufacturer: Option<Line>,
    /// Free text, or filled from the catalog model.
    #[schema(required)]
    pub(crate) model: Option<Line>,
    /// Catalog model.
    #[schema(required)]
    pub(crate) model_id: Option<ModelId>,
    /// Present name of the manufacturer in the catalog. Only with a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Name, required = false)]
    pub(crate) catalog_manufacturer_name: Option<Name>,
    /// Present name of the model in the catalog. Only with a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Name, required = false)]
    pub(crate) catalog_model_name: Option<Name>,
    /// Serial number.
    #[schema(required)]
    pub(crate) serial_number: Option<Line>,
    /// Where it is: levels separated by ` / `, the largest first.
    #[schema(required)]
    pub(crate) location: Option<Location>,
    /// Date of purchase.
    #[schema(required)]
    pub(crate) purchase_date: Option<Date>,
    /// Purchase price, with the digits that were sent.
    #[serde(serialize_with = "Price::serialize_number")]
    #[schema(required, value_type = Option<PriceNumber>)]
    pub(crate) purchase_price: Option<Price>,
    /// Last day of the warranty.
    #[schema(required)]
    pub(crate) warranty_until: Option<Date>,
    /// Assigned user.
    #[schema(required)]
    pub(crate) assigned_to: Option<UserId>,
    /// Assigned user, with `expand=assigned_to`. Null if there is none, or if the user can't be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<AssignedUser>, required = false)]
    pub(crate) assigned_user: Option<Option<AssignedUser>>,
    /// Day from which the assignment counts, as an import claimed. Null if nothing was claimed.
    #[schema(required)]
    pub(crate) assigned_since: Option<Date>,
    /// Internal notes.
    #[schema(required)]
    pub(crate) notes: Option<Notes>,
    /// Custom field values.
    #[schema(value_type = CustomFields)]
    pub(crate) custom_fields: Map<String, Value>,
    /// Time of the last scan. Scans change neither `updated_at` nor the version that `If-Match` compares.
    #[schema(required)]
    pub(crate) last_seen_at: Option<Timestamp>,
    /// Time of creation.
    pub(crate) created_at: Timestamp,
    /// Time of the last change.
    pub(crate) updated_at: Timestamp,
}

impl AssetView {
    #[must_use]
    pub fn new(stored: Stored<Asset>, names: CatalogNames) -> Self {
        let Asset {
            id,
            asset_tag,
            name,
            status,
            asset_type_id,
            model_id,
            manufacturer_id: _,
            manufacturer,
            model,
            details: AssetDetails { serial_number, location, purchase_date, purchase_price, warranty_until },
            assigned_to,
            assigned_since,
            last_seen_at,
            scans: _,
            notes,
            custom_fields,
            running_instance_id: _,
        } = stored.value;
        Self {
            id,
            asset_tag,
            name,
            status,
            asset_type_id,
            asset_type_name: names.asset_type,
            asset_kind: names.kind,
            manufacturer,
            model,
            model_id,
            catalog_manufacturer_name: names.manufacturer,
            catalog_model_name: names.model,
            serial_number,
            location,
            purchase_date,
            purchase_price,
            warranty_until,
            assigned_to,
            assigned_user: None,
            assigned_since,
            notes,
            custom_fields: custom_fields.as_map().clone(),
            last_seen_at,
            created_at: stored.created_at,
            updated_at: stored.updated_at,
        }
    }
}

/// Confirms the deletion of an asset.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeletedAsset {
    /// Always `Asset deleted.`
    message: &'static str,
}

pub(crate) const DELETED: DeletedAsset = DeletedAsset { message: "Asset deleted." };
