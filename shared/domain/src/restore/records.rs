//! The tenant, its people, keys, assets and catalog.

use super::{Fields, Origin, Restore, RestoreError};
use crate::assets::asset::Asset;
use crate::catalog::custom_fields::{CustomFields, FieldsSchema};
use crate::catalog::{AssetType, Manufacturer, Model};
use crate::keys::api_key::ApiKey;
use crate::receipts::key::ReceiptKeys;
use crate::signing::link::Link;
use crate::tenants::tenant::Tenant;
use crate::user::User;
use crate::values::id::{
    ApiKeyId, AssetId, AssetTypeId, LinkId, ManufacturerId, ModelId, ReceiptKeysId, TenantId, UserId, WebhookId,
};
use crate::values::time::Timestamp;
use crate::webhooks::Webhook;

impl Restore for Tenant {
    fn from_fields(id: TenantId, fields: &Fields<'_>, _: &Origin<'_, Self>) -> Result<Self, RestoreError> {
        Ok(Self {
            id,
            name: fields.get("name")?,
            asset_tag_prefix: fields.get("asset_tag_prefix")?,
            asset_tag_template: fields.get("asset_tag_template")?,
            status_transitions: fields.get("status_transitions")?,
            time_zone: fields.get("time_zone")?,
            locale: fields.get("locale")?,
            label_url_template: fields.get("label_url_template")?,
        })
    }
}

impl Restore for User {
    fn from_fields(id: UserId, fields: &Fields<'_>, _: &Origin<'_, Self>) -> Result<Self, RestoreError> {
        Ok(Self {
            id,
            email: fields.get("email")?,
            display_name: fields.get("display_name")?,
            role: fields.get("role")?,
            is_active: fields.get("is_active")?,
            erased_at: fields.get("erased_at")?,
        })
    }
}

/// The hash of a secret is in no event, so a key comes back only if its secret did not change.
impl Restore for ApiKey {
    fn from_fields(id: ApiKeyId, fields: &Fields<'_>, origin: &Origin<'_, Self>) -> Result<Self, RestoreError> {
        let not_shown = RestoreError::NotShown("its secret");
        let old = origin.old.ok_or(not_shown.clone())?;
        let rotated_at: Option<Timestamp> = fields.get("rotated_at")?;
        let replaced_until: Option<Timestamp> = fields.get("replaced_until")?;
        if rotated_at != old.rotated_at || replaced_until != old.previous_secret.as_ref().map(|previous| previous.until) {
            return Err(not_shown);
        }
        Ok(Self {
            id,
            name: fields.get("name")?,
            scopes: fields.get("scopes")?,
            user_id: fields.get("user_id")?,
            hash: old.hash.clone(),
            previous_secret: old.previous_secret.clone(),
            expires_at: fields.get("expires_at")?,
            last_used_at: old.last_used_at,
            rate_limit_per_minute: fields.get("rate_limit_per_minute")?,
            created_by: old.created_by,
            rotated_at,
            first_minute: old.first_minute.clone(),
        })
    }
}

/// The hash of a link's secret is in no event, nor is the signer's address. Neither ever changes.
impl Restore for Link {
    fn from_fields(id: LinkId, fields: &Fields<'_>, origin: &Origin<'_, Self>) -> Result<Self, RestoreError> {
        let old = origin.old.ok_or(RestoreError::NotShown("its secret"))?;
        Ok(Self {
            id,
            expires_at: fields.get("expires_at")?,
            opened_at: fields.get("opened_at")?,
            used_at: fields.get("used_at")?,
            revoked_at: fields.get("revoked_at")?,
            ..old.clone()
        })
    }
}

/// A webhook's secret is in no event, nor is the query of its address, so a webhook comes back only if they did not change.
impl Restore for Webhook {
    fn from_fields(id: WebhookId, fields: &Fields<'_>, origin: &Origin<'_, Self>) -> Result<Self, RestoreError> {
        let not_shown = RestoreError::NotShown("its secret");
        let old = origin.old.ok_or(not_shown.clone())?;
        let rotated_at: Option<Timestamp> = fields.get("rotated_at")?;
        let previous_until: Option<Timestamp> = fields.get("previous_secret_until")?;
        if rotated_at != old.rotated_at || previous_until != old.previous_secret.as_ref().map(|previous| previous.until) {
            return Err(not_shown);
        }
        let url = match fields.get::<String>("url")? {
            url if url == old.url.without_query() => old.url.clone(),
            url if url.contains('?') => return Err(RestoreError::NotShown("its whole address")),
            _ => fields.get("url")?,
        };
        Ok(Self {
            id,
            url,
            description: fields.get("description")?,
            events: fields.get("events")?,
            is_active: fields.get("is_active")?,
            disabled_reason: fields.get("disabled_reason")?,
            rotated_at,
            ..old.clone()
        })
    }
}

/// Signing keys are in no event. Each of their changes replaces one.
impl Restore for ReceiptKeys {
    fn from_fields(_: ReceiptKeysId, _: &Fields<'_>, _: &Origin<'_, Self>) -> Result<Self, RestoreError> {
        Err(RestoreError::NotShown("the signing key"))
    }
}

impl Restore for Asset {
    fn from_fields(id: AssetId, fields: &Fields<'_>, origin: &Origin<'_, Self>) -> Result<Self, RestoreError> {
        let model_id: Option<ModelId> = fields.get("model_id")?;
        // A model in use can't change its manufacturer.
        let manufacturer_id = match (model_id, origin.old) {
            (None, _) => None,
            (_, Some(old)) if old.model_id == model_id => old.manufacturer_id,
            (Some(_), _) => Some(origin.model.ok_or(RestoreError::NotShown("the manufacturer of its model"))?.manufacturer_id),
        };
        let custom_fields = fields.parse("custom_fields", |text| CustomFields::try_from(text.to_owned()).ok())?;
        Ok(Self {
            id,
            asset_tag: fields.get("asset_tag")?,
            name: fields.get("name")?,
            status: fields.get("status")?,
            asset_type_id: fields.get("asset_type_id")?,
            model_id,
            manufacturer_id,
            manufacturer: fields.get("manufacturer")?,
            model: fields.get("model")?,
            details: fields.all()?,
            assigned_to: fields.get("assigned_to")?,
            assigned_since: fields.get("assigned_since")?,
            last_seen_at: fields.get("last_seen_at")?,
            scans: origin.scans.or(origin.old.map(|old| old.scans)).unwrap_or_default(),
            notes: fields.get("notes")?,
            custom_fields: custom_fields.unwrap_or_default(),
            running_instance_id: fields.get("running_instance_id")?,
        })
    }
}

impl Restore for AssetType {
    fn from_fields(id: AssetTypeId, fields: &Fields<'_>, _: &Origin<'_, Self>) -> Result<Self, RestoreError> {
        Ok(Self {
            id,
            name: fields.get("name")?,
            code: fields.get("code")?,
            kind: fields.get("kind")?,
            custom_fields_schema: fields.parse("custom_fields_schema", |text| FieldsSchema::try_from(text.to_owned()).ok())?,
        })
    }
}

impl Restore for Manufacturer {
    fn from_fields(id: ManufacturerId, fields: &Fields<'_>, _: &Origin<'_, Self>) -> Result<Self, RestoreError> {
        Ok(Self { id, name: fields.get("name")?, website: fields.get("website")?, notes: fields.get("notes")? })
    }
}

impl Restore for Model {
    fn from_fields(id: ModelId, fields: &Fields<'_>, _: &Origin<'_, Self>) -> Result<Self, RestoreError> {
        Ok(Self {
            id,
            name: fields.get("name")?,
            manufacturer_id: fields.get("manufacturer_id")?,
            asset_type_id: fields.get("asset_type_id")?,
            notes: fields.get("notes")?,
        })
    }
}
