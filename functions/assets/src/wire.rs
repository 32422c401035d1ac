//! Bodies and views of assets.

use crate::expand::AssignedUser;
use serde::Serialize;
use serde_json::{Map, Value};
use shared::domain::assets::asset::{Asset, CatalogNames, Status};
use shared::domain::assets::change::AssetChange;
use shared::domain::catalog::AssetKind;
use shared::domain::catalog::custom_fields::CustomFields;
use shared::domain::record::Stored;
use shared::domain::values::id::{AssetId, AssetTypeId, ModelId, UserId};
use shared::domain::values::money::{Price, PriceNumber};
use shared::domain::values::text::{Line, Name, Notes};
use shared::domain::values::time::{Date, Timestamp};
use utoipa::ToSchema;

const READ_ONLY: &[&str] = &[
    "id",
    "asset_tag",
    "asset_type_name",
    "asset_kind",
    "catalog_manufacturer_name",
    "catalog_model_name",
    "assigned_user",
    "created_at",
    "updated_at",
];

shared::body! {
    /// A new asset.
    pub struct NewAsset {
        /// Display name.
        required name: Name,
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
        /// Serial number.
        nullable serial_number: Line,
        /// Date of purchase, `YYYY-MM-DD`.
        nullable purchase_date: Date,
        /// Purchase price, a number or its decimal text. Every digit is kept.
        nullable purchase_price: Price,
        /// Last day of the warranty, `YYYY-MM-DD`.
        nullable warranty_until: Date,
        /// Internal notes.
        nullable notes: Notes,
        /// Custom field values, as the asset type's schema requires.
        nullable custom_fields: CustomFields,
        /// Assigned user, who must be active.
        nullable assigned_to: UserId,
    }
    read_only: READ_ONLY, into: AssetChange { errors: Vec::new() }
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
        /// Serial number.
        nullable serial_number: Line,
        /// Date of purchase, `YYYY-MM-DD`.
        nullable purchase_date: Date,
        /// Purchase price, a number or its decimal text. Every digit is kept.
        nullable purchase_price: Price,
        /// Last day of the warranty, `YYYY-MM-DD`.
        nullable warranty_until: Date,
        /// Internal notes.
        nullable notes: Notes,
        /// All custom field values. Values that are missing from the object are removed.
        nullable custom_fields: CustomFields,
        /// Assigned user, who must be active. Null ends the assignment.
        nullable assigned_to: UserId,
    }
    unchanged: READ_ONLY, into: AssetChange { errors: Vec::new() }
}

/// An asset.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Asset)]
pub struct AssetView {
    /// ID.
    id: AssetId,
    /// Asset tag, generated from the tenant's template. Never changes.
    asset_tag: String,
    /// Display name.
    name: Name,
    /// Status.
    status: Status,
    /// Asset type.
    #[schema(required)]
    asset_type_id: Option<AssetTypeId>,
    /// Name of the asset type.
    #[schema(required)]
    asset_type_name: Option<Name>,
    /// Kind of the asset type. `physical` for an asset without a type.
    asset_kind: AssetKind,
    /// Free text, or filled from the catalog model.
    #[schema(required)]
    manufacturer: Option<Line>,
    /// Free text, or filled from the catalog model.
    #[schema(required)]
    model: Option<Line>,
    /// Catalog model.
    #[schema(required)]
    model_id: Option<ModelId>,
    /// Present name of the manufacturer in the catalog. Only with a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Name, required = false)]
    catalog_manufacturer_name: Option<Name>,
    /// Present name of the model in the catalog. Only with a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Name, required = false)]
    catalog_model_name: Option<Name>,
    /// Serial number.
    #[schema(required)]
    serial_number: Option<Line>,
    /// Date of purchase.
    #[schema(required)]
    purchase_date: Option<Date>,
    /// Purchase price, with the digits that were sent.
    #[serde(serialize_with = "Price::serialize_number")]
    #[schema(required, value_type = Option<PriceNumber>, inline)]
    purchase_price: Option<Price>,
    /// Last day of the warranty.
    #[schema(required)]
    warranty_until: Option<Date>,
    /// Assigned user.
    #[schema(required)]
    pub(crate) assigned_to: Option<UserId>,
    /// Assigned user, with `expand=assigned_to`. Null if there is none, or if the user can't be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<AssignedUser>, required = false)]
    pub(crate) assigned_user: Option<Option<AssignedUser>>,
    /// Internal notes.
    #[schema(required)]
    notes: Option<Notes>,
    /// Custom field values.
    #[schema(value_type = CustomFields)]
    custom_fields: Map<String, Value>,
    /// Time of creation.
    created_at: Timestamp,
    /// Time of the last change.
    updated_at: Timestamp,
}

impl AssetView {
    #[must_use]
    pub fn new(stored: Stored<Asset>, names: CatalogNames) -> Self {
        let asset = stored.value;
        Self {
            id: asset.id,
            asset_tag: asset.asset_tag,
            name: asset.name,
            status: asset.status,
            asset_type_id: asset.asset_type_id,
            asset_kind: names.kind,
            asset_type_name: names.asset_type,
            manufacturer: asset.manufacturer,
            model: asset.model,
            model_id: asset.model_id,
            catalog_manufacturer_name: names.manufacturer,
            catalog_model_name: names.model,
            serial_number: asset.serial_number,
            purchase_date: asset.purchase_date,
            purchase_price: asset.purchase_price,
            warranty_until: asset.warranty_until,
            assigned_to: asset.assigned_to,
            assigned_user: None,
            notes: asset.notes,
            custom_fields: asset.custom_fields.as_map().clone(),
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
