//! Bodies and views of assets.

use crate::asset_view::asset_view;
use crate::expand::AssignedUser;
use serde::Serialize;
use serde_json::{Map, Value};
use shared::domain::assets::asset::{Asset, CatalogNames, Status};
use shared::domain::assets::asset_tag::AssetTag;
use shared::domain::assets::change::AssetChange;
use shared::domain::assets::details::AssetDetailsChange;
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
    read_only: READ_ONLY.split_at(1).1, into: AssetChange { errors: Vec::new() }
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
    unchanged: READ_ONLY, into: AssetChange { asset_tag: Patch::Absent, errors: Vec::new() }
}

asset_view! {
    /// An asset.
    #[derive(Debug, Serialize, ToSchema)]
    #[schema(as = Asset)]
    pub struct AssetView {
        /// ID.
        id: AssetId = asset.id,
        /// Asset tag. Never changes.
        asset_tag: String = asset.asset_tag,
        /// Display name.
        name: Name = asset.name,
        /// Status.
        status: Status = asset.status,
        /// Asset type.
        #[schema(required)]
        asset_type_id: Option<AssetTypeId> = asset.asset_type_id,
        /// Name of the asset type.
        #[schema(required)]
        asset_type_name: Option<Name> = names.asset_type,
        /// Kind of the asset type. `physical` for an asset without a type.
        asset_kind: AssetKind = names.kind,
        /// Free text, or filled from the catalog model.
        #[schema(required)]
        manufacturer: Option<Line> = asset.manufacturer,
        /// Free text, or filled from the catalog model.
        #[schema(required)]
        model: Option<Line> = asset.model,
        /// Catalog model.
        #[schema(required)]
        model_id: Option<ModelId> = asset.model_id,
        /// Present name of the manufacturer in the catalog. Only with a model.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Name, required = false)]
        catalog_manufacturer_name: Option<Name> = names.manufacturer,
        /// Present name of the model in the catalog. Only with a model.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Name, required = false)]
        catalog_model_name: Option<Name> = names.model,
        ..asset.details,
        /// Assigned user.
        #[schema(required)]
        assigned_to: Option<UserId> = asset.assigned_to,
        /// Assigned user, with `expand=assigned_to`. Null if there is none, or if the user can't be read.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<AssignedUser>, required = false)]
        assigned_user: Option<Option<AssignedUser>> = None,
        /// Internal notes.
        #[schema(required)]
        notes: Option<Notes> = asset.notes,
        /// Custom field values.
        #[schema(value_type = CustomFields)]
        custom_fields: Map<String, Value> = asset.custom_fields.as_map().clone(),
        /// Time of creation.
        created_at: Timestamp = stored.created_at,
        /// Time of the last change.
        updated_at: Timestamp = stored.updated_at,
    }

    #[must_use]
    pub fn new(stored: Stored<Asset>, names: CatalogNames) -> Self {
        let asset = stored.value;
    }
}

/// Confirms the deletion of an asset.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeletedAsset {
    /// Always `Asset deleted.`
    message: &'static str,
}

pub(crate) const DELETED: DeletedAsset = DeletedAsset { message: "Asset deleted." };
