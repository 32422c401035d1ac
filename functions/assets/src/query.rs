//! Query parameters of assets.

use crate::expand::Expand;
use shared::domain::assets::listed::CUSTOM_FIELD;
use shared::domain::catalog::{AssetKind, TypeCode};
use shared::domain::values::field_error::ValueError;
use shared::domain::values::id::{AssetTypeId, ModelId};
use shared::domain::values::money::{Price, PriceText};
use shared::domain::values::text::SearchText;
use shared::domain::values::time::{Date, Timestamp};
use shared::fields::ASSET_FILTERS;
use shared::http::openapi::describe::{Schemas, query_parameter};
use shared::http::requests::params::{FromParam, FromQuery, Limit, PageNumber, Params};
use shared::store::{
    AssetFilter, AssetRanges, AssetSort, Assignee, GroupBy, PlaceFilter, Range, Statuses, Wanted, check_field_name, literal,
    wanted_field,
};
use utoipa::ToSchema;
use utoipa::openapi::Required;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn, ParameterStyle};
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Type};

const MAX_CUSTOM_FIELDS: usize = 5;
const CUSTOM_FIELDS: &str = "Filter by custom fields: `custom_fields.<name>=<value>`, at most 5 names. Without regard to case, against the \
    exported cell; numbers have any form. Several values are separated by commas or sent one by one, `none` is for assets without \
    the field, `\\,` a comma and `\\none` the word.";

/// A sort order.
#[derive(ToSchema)]
#[schema(value_type = String, pattern = "^-?(created_at|updated_at|name|asset_tag|status|location|purchase_date|purchase_price|warranty_until|last_seen_at|custom_fields[.].+)$", examples("-name"))]
#[schema(as = AssetSort)]
pub struct SortText(());

/// A value by which assets are grouped.
#[derive(ToSchema)]
#[schema(value_type = String, pattern = "^(status|asset_type|manufacturer|model|location|assigned_to|custom_fields[.].+)$", examples("location"))]
#[schema(as = AssetGroupBy)]
pub struct GroupByText(());

/// The number of levels of a place, 1 to 8.
#[derive(Debug, Clone, Copy, ToSchema)]
#[schema(value_type = u32, minimum = 1, maximum = 8)]
#[schema(as = LocationDepth)]
pub struct Depth(usize);

impl FromParam for Depth {
    fn from_param(text: &str) -> Result<Self, ValueError> {
        let depth = text.parse().ok().filter(|depth| (1..=8).contains(depth) && text.len() == 1);
        depth.map(Self).ok_or_else(|| ValueError::new("must be a whole number from 1 to 8"))
    }
}

/// The texts that must be equal, by the names of their fields, and the custom fields.
#[derive(Debug)]
pub struct TextFilters {
    exact: Vec<(&'static str, String)>,
    custom_fields: Vec<Wanted>,
}

impl FromQuery for TextFilters {
    fn take(params: &mut Params) -> Self {
        let text = |(name, _): &(&'static str, _)| Some((*name, params.take::<SearchText>(name)?.into()));
        let exact = ASSET_FILTERS.iter().filter_map(text).collect();
        let mut custom_fields = Vec::new();
        for (index, (name, values)) in params.take_prefixed(CUSTOM_FIELD, "custom_fields.<name>").into_iter().enumerate() {
            let parameter = format!("{CUSTOM_FIELD}{name}");
            match check_field_name(&name) {
                Err(error) => params.refuse(&parameter, error.to_string()),
                Ok(()) if index >= MAX_CUSTOM_FIELDS => {
                    params.refuse(&parameter, format!("must be one of at most {MAX_CUSTOM_FIELDS} custom fields"));
                }
                Ok(()) => custom_fields.push(wanted_field(parameter, &values)),
            }
        }
        Self { exact, custom_fields }
    }

    fn describe(schemas: &mut Schemas) -> Vec<Parameter> {
        let parameter = |(name, text): &(&str, &str)| query_parameter::<SearchText>(schemas, name, text);
        let mut parameters: Vec<Parameter> = ASSET_FILTERS.iter().map(parameter).collect();
        let text = ObjectBuilder::new().schema_type(Type::String);
        let fields = ObjectBuilder::new().additional_properties(Some(AdditionalProperties::RefOr(text.into())));
        let custom_fields = ParameterBuilder::new().name("custom_fields").parameter_in(ParameterIn::Query);
        let custom_fields = custom_fields.required(Required::False).description(Some(CUSTOM_FIELDS));
        parameters.push(custom_fields.style(Some(ParameterStyle::Form)).explode(Some(true)).schema(Some(fields)).build());
        parameters
    }
}

shared::query! {
    /// Assets to list, to export or to count.
    pub struct AssetFilterQuery {
        /// Search text. Every word must occur in the name, asset tag or serial number.
        q: SearchText as SearchText,
        /// Filter by status: one, or several separated by commas.
        status: Statuses as Statuses,
        /// Filter by asset type.
        asset_type_id: AssetTypeId as AssetTypeId,
        /// Filter by the code of the asset type.
        asset_type_code: TypeCode as TypeCode,
        /// Filter by kind: `physical` or `logical`.
        kind: AssetKind as AssetKind,
        /// Filter by assigned user. `none` for assets that are not assigned.
        assigned_to: Assignee as Assignee,
        /// Filter by catalog model.
        model_id: ModelId as ModelId,
        /// Filter by manufacturer, exactly and without regard to case: the catalog's for assets with a model, else the text.
        manufacturer: SearchText as SearchText,
        /// Filter by place: assets there and below, without regard to case. `none` for assets without a location.
        location: PlaceFilter as PlaceFilter,
        ..texts: TextFilters,
        /// Filter by date of purchase: this day or later.
        purchase_date_from: Date as Date,
        /// Filter by date of purchase: before this day.
        purchase_date_before: Date as Date,
        /// Filter by purchase price: this or more.
        purchase_price_min: Price as PriceText,
        /// Filter by purchase price: this or less.
        purchase_price_max: Price as PriceText,
        /// Filter by a warranty that ends on this day or later.
        warranty_from: Date as Date,
        /// Filter by a warranty that ends before this day.
        warranty_before: Date as Date,
        /// Filter by `created_at`: this time or later.
        created_from: Timestamp as Timestamp,
        /// Filter by `created_at`: before this time.
        created_before: Timestamp as Timestamp,
        /// Filter by `updated_at`: assets that were changed at this time or later.
        updated_since: Timestamp as Timestamp,
        /// As `updated_since`.
        updated_from: Timestamp as Timestamp,
        /// Filter by `updated_at`: before this time.
        updated_before: Timestamp as Timestamp,
        /// Filter by `last_seen_at`: this time or later.
        last_seen_from: Timestamp as Timestamp,
        /// Filter by `last_seen_at`: before this time, or never.
        last_seen_before: Timestamp as Timestamp,
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
        /// `created_at`, `updated_at`, `name`, `asset_tag`, `status`, `location`, `purchase_date`, `purchase_price`,
        /// `warranty_until`, `last_seen_at` or `custom_fields.<name>`, with a leading `-` for descending order. Numbers in texts
        /// compare as numbers, and assets without a value come last. Default `-created_at`.
        sort: AssetSort as SortText,
        /// What to add to each asset. `assigned_to` adds `assigned_user`, and needs the scope `users:read`.
        expand: Expand as Expand,
    }
}

shared::query! {
    /// Assets to count.
    pub struct StatsQuery {
        ..filter: AssetFilterQuery,
        /// `status`, `asset_type`, `manufacturer`, `model`, `location`, `assigned_to` or `custom_fields.<name>`: responds with the
        /// assets by this value.
        group_by: GroupBy as GroupByText,
        /// Levels of places in groups by location. Default 1.
        depth: Depth as Depth,
    }
}

impl Depth {
    pub(crate) fn get(depth: Option<Self>) -> usize {
        depth.map_or(1, |Self(depth)| depth)
    }
}

impl From<AssetFilterQuery> for AssetFilter {
    fn from(query: AssetFilterQuery) -> Self {
        let AssetFilterQuery {
            q,
            status,
            asset_type_id,
            asset_type_code,
            kind,
            assigned_to,
            model_id,
            manufacturer,
            location,
            texts: TextFilters { exact, custom_fields },
            purchase_date_from,
            purchase_date_before,
            purchase_price_min,
            purchase_price_max,
            warranty_from,
            warranty_before,
            created_from,
            created_before,
            updated_since,
            updated_from,
            updated_before,
            last_seen_from,
            last_seen_before,
        } = query;
        Self {
            q: q.map(String::from),
            status,
            asset_type_id,
            asset_type_code,
            kind,
            assigned_to,
            model_id,
            manufacturer: manufacturer.map(|text| literal(&text)),
            exact,
            values: location.map(Wanted::from).into_iter().chain(custom_fields).collect(),
            ranges: AssetRanges {
                purchase_date: Range { from: purchase_date_from, before: purchase_date_before },
                warranty: Range { from: warranty_from, before: warranty_before },
                created: Range { from: created_from, before: created_before },
                updated: Range { from: updated_since.max(updated_from), before: updated_before },
                last_seen: Range { from: last_seen_from, before: last_seen_before },
                min_price: purchase_price_min.map(Price::ten_thousandths),
                max_price: purchase_price_max.map(Price::ten_thousandths),
            },
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
