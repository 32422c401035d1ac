//! Query parameters of assets.

use crate::expand::Expand;
use shared::domain::catalog::AssetKind;
use shared::domain::values::id::{AssetTypeId, ModelId};
use shared::domain::values::text::SearchText;
use shared::domain::values::time::{Date, Timestamp};
use shared::fields::ASSET_FILTERS;
use shared::http::openapi::describe::{Schemas, query_parameter};
use shared::http::requests::params::{FromQuery, Limit, PageNumber, Params};
use shared::store::{AssetFilter, AssetSort, Assignee, Statuses};
use utoipa::ToSchema;
use utoipa::openapi::path::Parameter;

/// A sort order.
#[derive(ToSchema)]
#[schema(value_type = String, pattern = "^-?(created_at|updated_at|name|asset_tag|status)$", examples("-name"))]
#[schema(as = AssetSort)]
pub struct SortText(());

/// The texts that must be equal, by the names of their fields.
#[derive(Debug)]
pub struct ExactFilters(Vec<(&'static str, String)>);

impl FromQuery for ExactFilters {
    fn take(params: &mut Params) -> Self {
        let text = |(name, _): &(&'static str, _)| Some((*name, params.take::<SearchText>(name)?.into()));
        Self(ASSET_FILTERS.iter().filter_map(text).collect())
    }

    fn describe(schemas: &mut Schemas) -> Vec<Parameter> {
        let parameter = |(name, text): &(&str, &str)| query_parameter::<SearchText>(schemas, name, text);
        ASSET_FILTERS.iter().map(parameter).collect()
    }
}

shared::query! {
    /// Assets to list or to export.
    pub struct AssetFilterQuery {
        /// Search text. Every word must occur in the name, asset tag or serial number.
        q: SearchText as SearchText,
        /// Filter by status: one, or several separated by commas.
        status: Statuses as Statuses,
        /// Filter by asset type.
        asset_type_id: AssetTypeId as AssetTypeId,
        /// Filter by kind: `physical` or `logical`.
        kind: AssetKind as AssetKind,
        /// Filter by assigned user. `none` for assets that are not assigned.
        assigned_to: Assignee as Assignee,
        /// Filter by catalog model.
        model_id: ModelId as ModelId,
        ..exact: ExactFilters,
        /// Filter by a warranty that ends before this day.
        warranty_before: Date as Date,
        /// Filter by `updated_at`: assets that were changed at this time or later.
        updated_since: Timestamp as Timestamp,
    }
}

shared::query! {
    /// Assets to list.
    pub struct AssetQuery {
        /// Page number. Default 1.
        page: PageNumber as PageNumber,
        /// Items per page. Default 20, maximum 100.
        limit: Limit as Limit,
        ..filter: AssetFilterQuery,
        /// `created_at`, `updated_at`, `name`, `asset_tag` or `status`, with a leading `-` for descending order. Default
        /// `-created_at`.
        sort: AssetSort as SortText,
        /// What to add to each asset. `assigned_to` adds `assigned_user`, and needs the scope `users:read`.
        expand: Expand as Expand,
    }
}

impl From<AssetFilterQuery> for AssetFilter {
    fn from(query: AssetFilterQuery) -> Self {
        Self {
            q: query.q.map(String::from),
            status: query.status,
            asset_type_id: query.asset_type_id,
            kind: query.kind,
            assigned_to: query.assigned_to,
            model_id: query.model_id,
            exact: query.exact.0,
            warranty_before: query.warranty_before,
            updated_since: query.updated_since,
            sort: AssetSort::default(),
        }
    }
}

shared::query! {
    /// How to show an asset.
    pub struct OneAssetQuery {
        /// Shows the asset as it was at this time, from its history.
        as_of: Timestamp as Timestamp,
        /// What to add. `assigned_to` adds `assigned_user`, and needs the scope `users:read`.
        expand: Expand as Expand,
    }
}
