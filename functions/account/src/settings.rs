//! The endpoints of a tenant's settings.

use serde::Serialize;
use shared::auth::Caller;
use shared::auth::caller::{SettingsRead, SettingsWrite};
use shared::domain::assets::asset::Transitions;
use shared::domain::assets::label::LabelUrlTemplate;
use shared::domain::record::Stored;
use shared::domain::tenants::tenant::{Locale, NumberRange, TagPrefix, TagTemplate, Tenant, TenantChange, fullest};
use shared::domain::tenants::time_zone::TimeZone;
use shared::domain::values::text::Name;
use shared::http::openapi::{ChangeConflict, InputErrors, SettingsErrors};
use shared::http::requests::body::JsonBody;
use shared::http::responses::{ApiError, Versioned};
use shared::store::Reader;
use utoipa::ToSchema;

const MAX_SHOWN_RANGES: usize = 100;

shared::body! {
    /// Settings to change.
    pub struct SettingsPatch {
        /// Name of the organization.
        optional name: Name,
        /// Text that replaces `{PREFIX}` in new asset tags.
        optional asset_tag_prefix: TagPrefix,
        /// Template for new asset tags.
        optional asset_tag_template: TagTemplate,
        /// Permitted status changes. Null permits all.
        nullable status_transitions: Transitions,
        /// IANA time zone for pages such as receipts.
        optional time_zone: TimeZone,
        /// BCP 47 language tag for dates on pages such as receipts.
        optional locale: Locale,
        /// URL in the QR codes of labels. Null for just the asset tag.
        nullable label_url_template: LabelUrlTemplate,
    }
    unchanged: &["number_ranges", "number_range_count"], into: TenantChange
}

/// A range of asset tag numbers.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = NumberRange)]
pub struct NumberRangeView {
    /// Pattern of the tags, with `{N}` in place of the number.
    #[schema(examples("AST-{N}"))]
    pattern: String,
    /// Highest number in use.
    last_number: u64,
    /// Numbers available before tags get an additional digit.
    capacity: u64,
    /// `last_number` divided by `capacity`. Above 1 once tags have an additional digit.
    fill_level: f64,
}

impl From<NumberRange> for NumberRangeView {
    fn from(range: NumberRange) -> Self {
        let capacity = range.capacity();
        Self { last_number: range.last_number, capacity, fill_level: range.fill_level(), pattern: range.pattern }
    }
}

/// A tenant's settings.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Settings)]
pub struct SettingsView {
    /// Name of the organization.
    name: Name,
    asset_tag_prefix: TagPrefix,
    asset_tag_template: TagTemplate,
    /// Permitted status changes. Null permits all.
    #[schema(required)]
    status_transitions: Option<Transitions>,
    /// IANA time zone for pages such as receipts.
    time_zone: TimeZone,
    /// BCP 47 language tag for dates on pages such as receipts.
    locale: Locale,
    /// URL in the QR codes of labels. Null for just the asset tag.
    #[schema(required)]
    label_url_template: Option<LabelUrlTemplate>,
    /// Number ranges in use, sorted by pattern. Only the 100 fullest if there are more.
    number_ranges: Vec<NumberRangeView>,
    /// Number of ranges in use, counted up to 10000.
    number_range_count: usize,
}

impl SettingsView {
    fn new(stored: Stored<Tenant>, ranges: Vec<NumberRange>) -> Self {
        let Tenant {
            id: _,
            name,
            asset_tag_prefix,
            asset_tag_template,
            status_transitions,
            time_zone,
            locale,
            label_url_template,
        } = stored.value;
        let number_range_count = ranges.len();
        let number_ranges = fullest(ranges, MAX_SHOWN_RANGES).into_iter().map(NumberRangeView::from).collect();
        Self {
            name,
            asset_tag_prefix,
            asset_tag_template,
            status_transitions,
            time_zone,
            locale,
            label_url_template,
            number_ranges,
            number_range_count,
        }
    }
}

async fn read(store: &Reader) -> Result<(Stored<Tenant>, Vec<NumberRange>), ApiError> {
    let (tenant, ranges) = tokio::try_join!(store.get::<Tenant>(store.id()), store.number_ranges())?;
    let tenant = tenant.ok_or_else(|| ApiError::Internal("the key's tenant has no record".into()))?;
    Ok((tenant, ranges))
}

/// Get the settings
///
/// Includes the number ranges of asset tags, and how full they are.
#[utoipa::path(get, path = "/settings", tag = "settings", responses(InputErrors))]
pub async fn get_settings(caller: Caller<SettingsRead>) -> Result<Versioned<SettingsView>, ApiError> {
    let (tenant, ranges) = read(&caller.store).await?;
    Ok(Versioned { version: tenant.tag_version(), data: SettingsView::new(tenant, ranges) })
}

/// Update the settings
///
/// Changes the given fields. Existing asset tags stay the same.
#[utoipa::path(patch, path = "/settings", tag = "settings", responses(SettingsErrors, ChangeConflict))]
pub async fn update_settings(
    caller: Caller<SettingsWrite>,
    body: JsonBody<SettingsPatch>,
) -> Result<Versioned<SettingsView>, ApiError> {
    let (tenant, ranges) = read(&caller.store).await?;
    let (body, errors) = body.parse_with_errors(&caller)?;
    body.unchanged.check(&SettingsView::new(tenant.clone(), ranges.clone()), errors)?;
    let change = TenantChange::from(body);
    let tenant = caller.verified().await?.update(tenant, |old| Ok(old.changed(&change))).await?;
    Ok(Versioned { version: tenant.tag_version(), data: SettingsView::new(tenant, ranges) })
}
