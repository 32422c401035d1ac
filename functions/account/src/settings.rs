//! What a tenant decides for itself (contract 5).

use serde::Serialize;
use shared::auth::UnverifiedRequest;
use shared::domain::asset_tag::{TagPrefix, TagTemplate};
use shared::domain::record::Stored;
use shared::domain::scope::Scope;
use shared::domain::tenant::{NumberRange, Tenant, TenantChange, Transitions};
use shared::domain::text::Name;
use shared::http::Answer;
use shared::http::error::ApiError;
use shared::http::openapi::{ListErrors, PatchErrors};
use shared::http::response::{self, Data};
use shared::store::TenantStore;
use utoipa::ToSchema;

shared::body! {
    /// The settings to change.
    pub struct SettingsPatch {
        /// What the tenant is called.
        optional name: Name,
        /// What `{PREFIX}` stands for in tags.
        optional asset_tag_prefix: TagPrefix,
        /// How tags look: text, `{PREFIX}`, `{TYPE_CODE}`, `{YYYY}`, `{YY}`, `{MM}` and one run of 3 to 12 `N`.
        optional asset_tag_template: TagTemplate,
        /// From status to the statuses that a PATCH may move an asset to; null: any.
        nullable status_transitions: Transitions,
    }
    read_only: &["number_ranges"]
}

impl From<SettingsPatch> for TenantChange {
    fn from(patch: SettingsPatch) -> Self {
        let SettingsPatch { name, asset_tag_prefix, asset_tag_template, status_transitions } = patch;
        Self { name, asset_tag_prefix, asset_tag_template, status_transitions }
    }
}

/// How far the numbers of one kind of tag have come.
#[derive(Debug, Serialize, ToSchema)]
pub struct NumberRangeView {
    /// The tag with `{N}` for its number.
    #[schema(examples("AST-{N}"))]
    pattern: String,
    /// The number given last.
    last_number: u64,
    /// How many numbers there are before tags take a digit more.
    capacity: u64,
    /// `last_number` per `capacity`; above 1 once tags have taken a digit more.
    fill_level: f64,
}

impl From<NumberRange> for NumberRangeView {
    fn from(range: NumberRange) -> Self {
        let capacity = range.capacity();
        let fill_level = range.last_number as f64 / capacity.max(1) as f64;
        Self { last_number: range.last_number, capacity, fill_level, pattern: range.pattern }
    }
}

/// The settings.
#[derive(Debug, Serialize, ToSchema)]
pub struct SettingsView {
    /// What the tenant is called.
    name: Name,
    /// What `{PREFIX}` stands for in tags.
    asset_tag_prefix: TagPrefix,
    /// How tags look.
    asset_tag_template: TagTemplate,
    /// From status to the statuses that a PATCH may move an asset to; null: any.
    #[schema(required)]
    status_transitions: Option<Transitions>,
    /// The number ranges in use.
    number_ranges: Vec<NumberRangeView>,
}

impl SettingsView {
    fn new(stored: Stored<Tenant>, ranges: Vec<NumberRange>) -> Self {
        let Tenant { name, asset_tag_prefix, asset_tag_template, status_transitions, .. } = stored.value;
        let number_ranges = ranges.into_iter().map(NumberRangeView::from).collect();
        Self { name, asset_tag_prefix, asset_tag_template, status_transitions, number_ranges }
    }
}

/// The tenant's item and its number ranges, together.
async fn read(store: TenantStore) -> Result<(Stored<Tenant>, Vec<NumberRange>), ApiError> {
    let (tenant, ranges) = tokio::try_join!(store.get::<Tenant>(store.id()), store.number_ranges())?;
    let tenant = tenant.ok_or_else(|| ApiError::Internal("a key of a tenant that is not there".into()))?;
    Ok((tenant, ranges))
}

/// Gets the settings.
#[utoipa::path(get, path = "/settings", tag = "settings", security(("api_key" = ["settings:read"])),
    responses((status = 200, description = "The settings", body = Data<SettingsView>), ListErrors))]
pub async fn get_settings(request: UnverifiedRequest) -> Answer {
    let (_, (tenant, ranges)) = request.enter(Scope::SettingsRead, read).await?;
    response::record(tenant.version, SettingsView::new(tenant, ranges))
}

/// Changes the settings: the fields that are sent. Tags already given stay.
#[utoipa::path(patch, path = "/settings", tag = "settings", request_body = SettingsPatch,
    security(("api_key" = ["settings:write"])),
    responses((status = 200, description = "The settings as they are now", body = Data<SettingsView>), PatchErrors))]
pub async fn update_settings(request: UnverifiedRequest) -> Answer {
    let (caller, (change, (tenant, ranges))) = request
        .enter(Scope::SettingsWrite, async |store| {
            let change: TenantChange = request.body::<SettingsPatch>()?.into();
            Ok((change, read(store).await?))
        })
        .await?;
    let tenant = caller.update(tenant, |old| Ok((old.changed(&change), false))).await?;
    response::record(tenant.version, SettingsView::new(tenant, ranges))
}
