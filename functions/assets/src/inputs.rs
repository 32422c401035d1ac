//! The inputs of the decision about an asset, and its errors.

use serde_json::json;
use shared::auth::Principal;
use shared::domain::assets::asset::Asset;
use shared::domain::assets::change::{AssetChangeError, AssetReferences};
use shared::domain::assets::tag::TagRange;
use shared::domain::assets::transitions::Transitions;
use shared::domain::catalog::custom_fields::BudgetSpent;
use shared::domain::record::{Record, Stored};
use shared::domain::tenants::tenant::Tenant;
use shared::domain::values::id::{AssetId, Id, InstanceId};
use shared::domain::values::time::Timestamp;
use shared::http::error::{ApiError, ConflictCode, Dependency};
use shared::store::WriteError;

/// After this many taken tags in a row, each step to the next number is twice as long as the one before. Tags of an older
/// template are then passed in a few more steps, at the price of a gap.
const SINGLE_STEPS: u32 = 8;
/// With so many doublings, a step exceeds the number of any tenant's tags.
const MAX_DOUBLINGS: u32 = 40;

pub(crate) struct AssetInputs {
    /// `None` for a creation.
    pub(crate) asset: Option<Stored<Asset>>,
    /// The tenant's settings, where the change depends on them.
    pub(crate) tenant: Option<Stored<Tenant>>,
    pub(crate) references: AssetReferences,
}

impl AssetInputs {
    pub(crate) fn tag_range(&self, principal: &Principal) -> Result<TagRange, ApiError> {
        let tenant = self.tenant.as_ref().map(|stored| &stored.value);
        let tenant = tenant.ok_or_else(|| ApiError::Internal("a key of a tenant without a record".into()))?;
        let type_code = self.references.asset_type.as_ref().map(|stored| stored.value.code.as_str());
        Ok(tenant.asset_tag_template.range(&tenant.asset_tag_prefix, type_code, principal.context.at))
    }

    /// `None` if the tenant permits all changes of status.
    pub(crate) fn transitions(&self) -> Option<&Transitions> {
        self.tenant.as_ref().and_then(|tenant| tenant.value.status_transitions.as_ref())
    }
}

/// The next tag that no asset has or had, and that no other operation of the request brings.
pub(crate) async fn free_tag(
    principal: &Principal,
    range: &TagRange,
    draft: &Asset,
    is_brought: impl Fn(&str) -> bool,
) -> Result<String, ApiError> {
    for step in 0..SINGLE_STEPS + MAX_DOUBLINGS {
        let number = principal.store.next_number(range, 1 << step.saturating_sub(SINGLE_STEPS)).await?;
        let asset = Asset { asset_tag: range.tag(number), ..draft.clone() };
        let mut is_taken = is_brought(&asset.asset_tag);
        for unique in asset.unique() {
            is_taken |= principal.store.is_taken(Asset::KIND, &unique).await?;
        }
        if !is_taken {
            return Ok(asset.asset_tag);
        }
    }
    Err(ApiError::Unavailable(Dependency::AssetTags, "every tag that was tried is taken".into()))
}

pub(crate) fn change_error(error: AssetChangeError) -> ApiError {
    match error {
        AssetChangeError::Invalid(errors) => ApiError::Invalid(errors),
        AssetChangeError::Transition { from, to, ref allowed } => ApiError::conflict(
            ConflictCode::TransitionNotAllowed,
            format!("The tenant's settings do not permit changing the status from {from} to {to}."),
            json!({ "allowed": allowed }),
        ),
        AssetChangeError::Running(instance) => process_running(instance),
        AssetChangeError::Schema(BudgetSpent) => ApiError::SchemaBudgetSpent,
    }
}

/// For a change of an asset while a process instance is in progress on it.
pub(crate) fn process_running(instance: InstanceId) -> ApiError {
    ApiError::conflict(
        ConflictCode::ProcessRunning,
        "A process instance is in progress on the asset. Complete or cancel it first.",
        json!({ "instance_id": instance }),
    )
}

/// For a tag that another asset has, or had.
pub(crate) async fn taken_tag(principal: &Principal, owner: AssetId) -> Result<ApiError, ApiError> {
    let deletions = principal.store.deletions::<Asset>(std::iter::once(owner)).await?;
    let Some(at) = deletions.get(&owner.uuid()) else {
        return Ok(WriteError::Duplicate("asset_tag", Some((Asset::KIND, owner.uuid()))).into());
    };
    let context = json!({"field": "asset_tag", "asset_id": owner, "deleted_at": at});
    Ok(ApiError::conflict(ConflictCode::Duplicate, format!("This asset_tag {}.", tag_of_deleted(*at)), context))
}

/// The error of a tag that no asset has any more.
pub(crate) fn tag_of_deleted(at: Timestamp) -> String {
    format!("is the tag of an asset that was deleted on {}, and a tag is never given twice", at.date())
}

/// For an ambiguous serial number.
pub(crate) fn several_assets(assets: &[Stored<Asset>]) -> ApiError {
    let ids: Vec<AssetId> = assets.iter().map(|asset| asset.value.id).collect();
    let detail = format!("{} assets have this serial number. Change one of them by its ID.", ids.len());
    ApiError::conflict(ConflictCode::Duplicate, detail, json!({"field": "serial_number", "asset_ids": ids}))
}
