//! The endpoints for assets, with their bodies, queries and views.

use crate::{changes, lookup};
use serde::Serialize;
use serde_json::{Map, Value, json};
use shared::auth::Caller;
use shared::auth::caller::{AssetsRead, AssetsWrite};
use shared::domain::assets::asset::{
    Asset, AssetChange, AssetDetails, AssetDetailsChange, AssetTag, CUSTOM_FIELD, CatalogNames, Status,
};
use shared::domain::assets::bound::{DayBound, DayBoundText, FieldBound, TimeBound, TimeBoundText};
use shared::domain::catalog::AssetKind;
use shared::domain::catalog::custom_fields::{CustomFields, CustomFieldsPatch};
use shared::domain::keys::api_key::Scope;
use shared::domain::record::{Patch, Stored};
use shared::domain::user::{Email, User};
use shared::domain::values::field_error::{FieldError, ValueError};
use shared::domain::values::id::{AssetId, AssetTypeId, ModelId, UserId};
use shared::domain::values::money::{Price, PriceNumber, PriceText};
use shared::domain::values::text::{Line, Location, Name, Notes, SearchText, SerialNumber};
use shared::domain::values::time::{Date, Timestamp};
use shared::fields::ASSET_FILTERS;
use shared::http::base_url::BaseUrl;
use shared::http::openapi::{
    AssetConflict, AssetDeletionConflict, ChangeErrors, DuplicateConflict, InputErrors, ResourceErrors, Schemas, query_parameter,
};
use shared::http::requests::body::JsonBody;
use shared::http::requests::params::{self, CodeFilter, FromParam, FromQuery, Limit, PageNumber, Params, Path, Query, Tag};
use shared::http::responses::{ApiError, Created, Json, Versioned, or_not_found};
use shared::store::{
    AssetBounds, AssetFilter, AssetSort, Assignee, BatchGet, BatchResult, CodedCondition, GroupBy, ManufacturerName, Page,
    PlaceFilter, Range, Statuses, StoreError, custom_column, wanted_field,
};
use utoipa::ToSchema;
use utoipa::openapi::Required;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn, ParameterStyle};
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Type};

/// List assets
///
/// Newest first by default. A list includes every write acknowledged before the request.
#[utoipa::path(get, path = "/assets", tag = "assets", responses(InputErrors))]
pub async fn list_assets(
    caller: Caller<AssetsRead>,
    base_url: BaseUrl,
    Query(query): Query<AssetQuery>,
) -> Result<Page<AssetView>, ApiError> {
    let (page, expand) = (params::page(query.page, query.limit), query.expand);
    let ids = match query.code {
        Some(Code(code)) => Some(lookup::assets_of_code(&caller.store, code, base_url.as_str()).await?),
        None => None,
    };
    let filter = AssetFilter { ids, sort: query.sort.unwrap_or_default(), ..query.filter.into() };
    let mut page = caller.store.list_assets(&filter, page).await?.map(|(asset, names)| AssetView::new(asset, names));
    let users = ExpandedUsers::read(&caller, page.items.iter().filter_map(|asset| asset.assigned_to), expand).await?;
    for asset in &mut page.items {
        asset.assigned_user = users.of(asset.assigned_to)?;
    }
    Ok(page)
}

/// Create an asset
///
/// Without an `asset_tag` in the body, the service generates a tag from the tenant's template.
#[utoipa::path(post, path = "/assets", tag = "assets", responses(InputErrors, DuplicateConflict))]
pub async fn create_asset(caller: Caller<AssetsWrite>, body: JsonBody<NewAsset>) -> Result<Created<AssetView>, ApiError> {
    let (body, errors) = body.parse_with_errors(&caller)?;
    Ok(changes::create(&caller, body, errors).await?.created())
}

/// Get an asset
///
/// With `as_of`, returns the asset as it was at that time, even if it has been deleted since.
#[utoipa::path(get, path = "/assets/{id}", tag = "assets", responses(ResourceErrors))]
pub async fn get_asset(
    caller: Caller<AssetsRead>,
    Query(query): Query<OneAssetQuery>,
    Path(id): Path<AssetId>,
) -> Result<Versioned<AssetView>, ApiError> {
    show(&caller, id, query).await
}

/// Get the asset with a tag
///
/// Finds an asset, for example after its label was scanned. Tags are case-insensitive. A browser without a key is redirected to
/// the inventory page.
#[utoipa::path(get, path = "/assets/by-tag/{tag}", tag = "assets", responses(ResourceErrors, (status = 302, description = "For `Accept: text/html` without a key: `Location` is the asset on the inventory page.")))]
pub async fn get_asset_by_tag(
    caller: Caller<AssetsRead>,
    Query(query): Query<OneAssetQuery>,
    Path(tag): Path<Tag>,
) -> Result<Versioned<AssetView>, ApiError> {
    let owners = caller.store.owners::<Asset>(&[Asset::unique_tag(&tag)]).await?;
    show(&caller, or_not_found(owners.into_values().next())?, query).await
}

async fn show(caller: &Caller<AssetsRead>, id: AssetId, query: OneAssetQuery) -> Result<Versioned<AssetView>, ApiError> {
    let store = &caller.store;
    let Some(at) = query.as_of else {
        let asset = or_not_found(store.get::<Asset>(id).await?)?;
        let users = ExpandedUsers::read(caller, asset.value.assigned_to, query.expand);
        let (mut view, users) = tokio::try_join!(changes::view(store, asset), users)?;
        view.data.assigned_user = users.of(view.data.assigned_to)?;
        return Ok(view);
    };
    params::check_past("as_of", at, store.now())?;
    if query.expand.is_some() {
        let detail = "can't be sent with as_of: it shows users as they are now";
        return Err(ApiError::Invalid(vec![FieldError::parameter("expand", detail)]));
    }
    let (asset, names) = or_not_found(store.asset_as_of(id, at).await?)?;
    Ok(Versioned { version: asset.tag_version(), data: AssetView::new(asset, names) })
}

/// Update an asset
///
/// Changes the given fields. Null clears a nullable field.
#[utoipa::path(patch, path = "/assets/{id}", tag = "assets", responses(ChangeErrors, AssetConflict))]
pub async fn update_asset(
    caller: Caller<AssetsWrite>,
    Path(id): Path<AssetId>,
    body: JsonBody<AssetPatch>,
) -> Result<Versioned<AssetView>, ApiError> {
    let (body, errors) = body.parse_with_errors(&caller)?;
    let changed = changes::change(&caller, id, body, errors).await?;
    changes::view(&caller.store, changed).await
}

/// Delete an asset
///
/// Removes the asset permanently; its history remains readable. Consider setting the status to `scrapped` instead.
#[utoipa::path(delete, path = "/assets/{id}", tag = "assets", responses(ChangeErrors, AssetDeletionConflict))]
pub async fn delete_asset(caller: Caller<AssetsWrite>, Path(id): Path<AssetId>) -> Result<Json<DeletedAsset>, ApiError> {
    changes::delete(&caller, id).await?;
    Ok(Json(DELETED))
}

const MAX_CUSTOM_FIELDS: usize = 5;
const CUSTOM_FIELDS: &str = "Filter by up to 5 custom fields: `custom_fields.<name>=<value>`, such as `custom_fields.ram_gb=16`. \
    Case-insensitive, compared with the whole exported cell. Separate several values by commas, or repeat the parameter. `none` \
    matches assets without the field; `\\,` stands for a comma and `\\none` for the word. `custom_fields_from.<name>` (this or more) \
    and `custom_fields_before.<name>` (less than this) match numbers or dates, as the bound is.";

/// Read-only in changes. A creation can set the first field.
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
    "status_changed_at",
    "created_at",
    "updated_at",
];

shared::body! {
    /// A new asset.
    pub struct NewAsset {
        /// Display name.
        required name: Name,
        /// Existing tag, if the asset has one. Case-insensitively unique. Default: generated from the tenant's template.
        nullable asset_tag: AssetTag,
        /// Asset type. Default: the model's.
        nullable asset_type_id: AssetTypeId,
        /// Initial status. Default `in_stock`.
        optional status: Status,
        /// Catalog model. Fills in `manufacturer` and `model`.
        nullable model_id: ModelId,
        /// Free text. If `model_id` is set, taken from the model instead.
        nullable manufacturer: Line,
        /// Free text. If `model_id` is set, taken from the model instead.
        nullable model: Line,
        group details: AssetDetailsChange,
        /// Internal notes.
        nullable notes: Notes,
        /// Custom field values, as the asset type's schema requires.
        nullable custom_fields: CustomFields,
        /// Individual custom fields to set after `custom_fields`. Null removes a field.
        optional custom_fields_patch: CustomFieldsPatch,
        /// Assigned user, who must be active.
        nullable assigned_to: UserId,
    }
    read_only: READ_ONLY.split_at(1).1, into: AssetChange { assigned_since: Patch::Absent, errors: Vec::new() }
}

shared::body! {
    /// Fields to change in an asset.
    pub struct AssetPatch {
        /// Display name.
        optional name: Name,
        /// Asset type.
        nullable asset_type_id: AssetTypeId,
        /// Asset status.
        optional status: Status,
        /// Catalog model. Fills in `manufacturer` and `model`.
        nullable model_id: ModelId,
        /// Free text. If `model_id` is set, taken from the model instead.
        nullable manufacturer: Line,
        /// Free text. If `model_id` is set, taken from the model instead.
        nullable model: Line,
        group details: AssetDetailsChange,
        /// Internal notes.
        nullable notes: Notes,
        /// All custom field values. Omitted values are removed.
        nullable custom_fields: CustomFields,
        /// Individual custom fields to set; the others stay. Null removes a field. Applied after `custom_fields`.
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
    /// Current name of the manufacturer in the catalog. Only with a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Name, required = false)]
    pub(crate) catalog_manufacturer_name: Option<Name>,
    /// Current name of the model in the catalog. Only with a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Name, required = false)]
    pub(crate) catalog_model_name: Option<Name>,
    /// Serial number.
    #[schema(required)]
    pub(crate) serial_number: Option<SerialNumber>,
    /// Location: levels separated by ` / `, largest first.
    #[schema(required)]
    pub(crate) location: Option<Location>,
    /// Date of purchase.
    #[schema(required)]
    pub(crate) purchase_date: Option<Date>,
    /// Purchase price, with the digits as sent.
    #[serde(serialize_with = "Price::serialize_number")]
    #[schema(required, value_type = Option<PriceNumber>)]
    pub(crate) purchase_price: Option<Price>,
    /// Last day of the warranty.
    #[schema(required)]
    pub(crate) warranty_until: Option<Date>,
    /// Assigned user.
    #[schema(required)]
    pub(crate) assigned_to: Option<UserId>,
    /// Assigned user, with `expand=assigned_to`. Null if no user is assigned, or if the user can't be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<AssignedUser>, required = false)]
    pub(crate) assigned_user: Option<Option<AssignedUser>>,
    /// First day of the assignment, if an import set it.
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
    /// Time of the last change of the status; otherwise, the time of creation.
    pub(crate) status_changed_at: Timestamp,
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
            status_changed_at,
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
            status_changed_at: status_changed_at.unwrap_or(stored.created_at),
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

/// A sort order.
#[derive(ToSchema)]
#[schema(value_type = String, pattern = "^-?(created_at|updated_at|name|asset_tag|status|location|purchase_date|purchase_price|warranty_until|last_seen_at|status_changed_at|custom_fields[.].+)$", examples("-name"))]
#[schema(as = AssetSort)]
pub struct SortText(());

/// Field to group assets by.
#[derive(ToSchema)]
#[schema(value_type = String, pattern = "^(purchase_month|warranty_month|status|asset_type|manufacturer|model|location|assigned_to|custom_fields[.].+)$", examples("location"))]
#[schema(as = AssetGroupBy)]
pub struct GroupByText(());

/// Number of location levels, 1 to 8.
#[derive(Debug, Clone, Copy, ToSchema)]
#[schema(value_type = u32, minimum = 1, maximum = 8)]
#[schema(as = LocationDepth)]
pub struct Depth(usize);

impl FromParam for Depth {
    fn from_param(text: &str) -> Result<Self, ValueError> {
        let depth = text.parse().ok().filter(|depth| (1..=8).contains(depth) && text.len() == 1);
        depth.map(Self).ok_or_else(|| ValueError::form("must be a whole number from 1 to 8"))
    }
}

impl Depth {
    pub(crate) fn get(depth: Option<Self>) -> usize {
        depth.map_or(1, |Self(depth)| depth)
    }
}

/// The name of a custom field, with its prefix.
#[derive(Debug)]
pub struct FieldName(String);

impl FromParam for FieldName {
    fn from_param(text: &str) -> Result<Self, ValueError> {
        custom_column(text).map(Self)
    }
}

#[derive(Debug)]
pub struct TextFilters {
    exact: Vec<(&'static str, String)>,
    custom_fields: Vec<CodedCondition>,
    custom_ranges: Vec<(String, Range<FieldBound>)>,
}

/// Parameters of custom fields: the prefix of their names, and the form in which errors show them.
const CUSTOM_FIELD_PARAMETERS: [(&str, &str); 3] = [
    (CUSTOM_FIELD, "custom_fields.<name>"),
    ("custom_fields_from.", "custom_fields_from.<name>"),
    ("custom_fields_before.", "custom_fields_before.<name>"),
];

/// What a request asks of one custom field.
#[derive(Default)]
struct AskedField {
    /// Each can have several values, separated by commas.
    values: Vec<String>,
    range: Range<FieldBound>,
}

impl AskedField {
    fn add(&mut self, prefix: &str, values: Vec<String>) -> Result<(), ValueError> {
        if prefix == CUSTOM_FIELD {
            self.values.extend(values);
            return Ok(());
        }
        let bound = if prefix == "custom_fields_from." { &mut self.range.from } else { &mut self.range.before };
        let ([value], None) = (values.as_slice(), *bound) else {
            return Err(ValueError::new("must not be sent more than once"));
        };
        *bound = Some(value.parse()?);
        Ok(())
    }
}

impl FromQuery for TextFilters {
    fn take(params: &mut Params) -> Self {
        let text = |(name, _): &(&'static str, _)| Some((*name, params.take::<SearchText>(name)?.into()));
        let exact = ASSET_FILTERS.iter().filter_map(text).collect();
        let mut fields: Vec<(String, AskedField)> = Vec::new();
        for (prefix, shown) in CUSTOM_FIELD_PARAMETERS {
            for (name, values) in params.take_prefixed(prefix, shown) {
                let added = custom_column(&name).and_then(|column| {
                    let (count, known) = (fields.len(), fields.iter().position(|(known, _)| *known == column));
                    if known.is_none() && count == MAX_CUSTOM_FIELDS {
                        return Err(format!("exceeds the limit of {MAX_CUSTOM_FIELDS} custom fields per request").into());
                    }
                    // The same field can be in several parameters, or in a different spelling.
                    if known.is_none() {
                        fields.push((column, AskedField::default()));
                    }
                    fields.get_mut(known.unwrap_or(count)).map_or(Ok(()), |(_, field)| field.add(prefix, values))
                });
                if let Err(error) = added {
                    params.refuse(&format!("{prefix}{name}"), error);
                }
            }
        }
        let (mut custom_fields, mut custom_ranges) = (Vec::new(), Vec::new());
        for (column, AskedField { values, range }) in fields {
            if range != Range::default() {
                custom_ranges.push((column.clone(), range));
            }
            if !values.is_empty() {
                custom_fields.push(wanted_field(column, &values));
            }
        }
        Self { exact, custom_fields, custom_ranges }
    }

    fn describe(schemas: &mut Schemas) -> Vec<Parameter> {
        let parameter = |(name, text): &(&str, &str)| query_parameter::<SearchText>(schemas, name, text);
        let mut parameters: Vec<Parameter> = ASSET_FILTERS.iter().map(parameter).collect();
        let text = ObjectBuilder::new().schema_type(Type::String);
        let fields = ObjectBuilder::new().additional_properties(Some(AdditionalProperties::RefOr(text.into())));
        let fields = fields.examples([json!({"custom_fields.ram_gb": "16", "custom_fields_before.audit": "today-1y"})]);
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
        /// Filter by the code of the asset type (exact match, case-insensitive).
        asset_type_code: CodeFilter as CodeFilter,
        /// Filter by kind: `physical` or `logical`.
        kind: AssetKind as AssetKind,
        /// Filter by assigned user. `none` matches assets that are not assigned.
        assigned_to: Assignee as Assignee,
        /// Filter by catalog model.
        model_id: ModelId as ModelId,
        /// Filter by the manufacturer's name (exact match, case-insensitive). With a model, the name in the catalog counts. `none`
        /// matches assets without a manufacturer; `\\none` stands for the word, and `\\,` for a comma.
        manufacturer: ManufacturerName as SearchText,
        /// Filter by location, case-insensitive: assets at this location or below it. `none` matches assets without a location.
        location: PlaceFilter as PlaceFilter,
        ..texts: TextFilters,
        /// Filter by date of purchase: this day or later.
        purchase_date_from: DayBound as DayBoundText,
        /// Filter by date of purchase: before this day.
        purchase_date_before: DayBound as DayBoundText,
        /// Filter by purchase price: this or more.
        purchase_price_min: Price as PriceText,
        /// Filter by purchase price: this or less.
        purchase_price_max: Price as PriceText,
        /// Filter by a warranty that ends on this day or later.
        warranty_from: DayBound as DayBoundText,
        /// Filter by a warranty that ends before this day.
        warranty_before: DayBound as DayBoundText,
        /// Filter by `created_at`: this time or later.
        created_from: TimeBound as TimeBoundText,
        /// Filter by `created_at`: before this time.
        created_before: TimeBound as TimeBoundText,
        /// Filter by `updated_at`: assets that were changed at this time or later.
        updated_since: TimeBound as TimeBoundText,
        /// Same as `updated_since`.
        updated_from: TimeBound as TimeBoundText,
        /// Filter by `updated_at`: before this time.
        updated_before: TimeBound as TimeBoundText,
        /// Filter by `last_seen_at`: this time or later.
        last_seen_from: TimeBound as TimeBoundText,
        /// Filter by `last_seen_at`: before this time, or never.
        last_seen_before: TimeBound as TimeBoundText,
        /// Filter by `status_changed_at`: this time or later.
        status_changed_from: TimeBound as TimeBoundText,
        /// Filter by `status_changed_at`: before this time.
        status_changed_before: TimeBound as TimeBoundText,
        /// Name of a custom field: the assets because of which lists can't filter, sort or group by it.
        unlisted_field: FieldName as SearchText,
    }
}

shared::query! {
    /// Assets to list.
    pub struct AssetQuery {
        /// Page number. Default 1.
        page: PageNumber as PageNumber,
        /// Items per page. Default 20, maximum 100.
        limit: Limit as Limit,
        /// What a scanner typed: the tag, serial number or ID of an asset, the URL of its label, or one of these with what
        /// scanners add. Matches the asset that `POST /assets/seen` finds by this `code`; several if they share a serial number.
        code: Code as Code,
        ..filter: AssetFilterQuery,
        /// `created_at`, `updated_at`, `name`, `asset_tag`, `status`, `location`, `purchase_date`, `purchase_price`,
        /// `warranty_until`, `last_seen_at`, `status_changed_at` or `custom_fields.<name>`, with a leading `-` for descending order. Numbers within
        /// text are compared as numbers, and assets without a value come last. Default `-created_at`.
        sort: AssetSort as SortText,
        /// Related data to include. `assigned_to` adds `assigned_user`, and needs the scope `users:read`.
        expand: Expand as Expand,
    }
}

shared::query! {
    /// Assets to count.
    pub struct StatsQuery {
        ..filter: AssetFilterQuery,
        /// `status`, `asset_type`, `manufacturer`, `model`, `location`, `assigned_to`, `purchase_month`, `warranty_month` or
        /// `custom_fields.<name>`: returns groups of assets by this field.
        group_by: GroupBy as GroupByText,
        /// Number of location levels for `group_by=location`. Default 1.
        depth: Depth as Depth,
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
            texts: TextFilters { exact, custom_fields, custom_ranges },
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
            status_changed_from,
            status_changed_before,
            unlisted_field,
        } = query;
        Self {
            q: q.map(String::from),
            status,
            asset_type_id,
            asset_type_code: asset_type_code.map(|CodeFilter(code)| code),
            kind,
            assigned_to,
            model_id,
            manufacturer,
            exact,
            values: location.map(CodedCondition::from).into_iter().chain(custom_fields).collect(),
            unlisted_field: unlisted_field.map(|FieldName(column)| column),
            bounds: AssetBounds {
                purchase_date: Range { from: purchase_date_from, before: purchase_date_before },
                warranty: Range { from: warranty_from, before: warranty_before },
                created: Range { from: created_from, before: created_before },
                updated: Range { from: updated_from, before: updated_before },
                updated_since,
                last_seen: Range { from: last_seen_from, before: last_seen_before },
                status_changed: Range { from: status_changed_from, before: status_changed_before },
                custom_fields: custom_ranges,
                min_price: purchase_price_min.map(Price::ten_thousandths),
                max_price: purchase_price_max.map(Price::ten_thousandths),
            },
            ids: None,
            sort: AssetSort::default(),
        }
    }
}

/// A scanned code.
#[derive(Debug, ToSchema)]
#[schema(value_type = String)]
#[schema(as = ScannedCode)]
pub struct Code(String);

impl FromParam for Code {
    fn from_param(text: &str) -> Result<Self, ValueError> {
        Ok(Self(text.to_owned()))
    }
}

shared::query! {
    /// How to show an asset.
    pub struct OneAssetQuery {
        /// Shows the asset as it was at this time, from its history.
        as_of: Timestamp as Timestamp,
        /// Related data to include. `assigned_to` adds `assigned_user`, and needs the scope `users:read`.
        expand: Expand as Expand,
    }
}

/// Related data to include.
#[derive(Debug, Clone, Copy, ToSchema)]
#[schema(rename_all = "snake_case")]
#[schema(as = ExpandedField)]
pub enum Expand {
    /// The assigned user.
    AssignedTo,
}

impl FromParam for Expand {
    fn from_param(text: &str) -> Result<Self, ValueError> {
        if text == "assigned_to" { Ok(Self::AssignedTo) } else { Err(ValueError::not_one_of(["assigned_to"])) }
    }
}

/// The user that an asset is assigned to.
#[derive(Debug, Serialize, ToSchema)]
pub struct AssignedUser {
    /// ID.
    id: UserId,
    /// Display name.
    display_name: Name,
    /// E-mail address.
    email: Email,
}

impl From<Stored<User>> for AssignedUser {
    fn from(stored: Stored<User>) -> Self {
        let User { id, display_name, email, .. } = stored.value;
        Self { id, display_name, email }
    }
}

pub(crate) struct ExpandedUsers(Option<BatchResult>);

impl ExpandedUsers {
    /// Reads the users in one round trip, if `expand` requests them.
    pub(crate) async fn read(
        caller: &Caller<AssetsRead>,
        ids: impl IntoIterator<Item = UserId>,
        expand: Option<Expand>,
    ) -> Result<Self, ApiError> {
        let Some(Expand::AssignedTo) = expand else { return Ok(Self(None)) };
        caller.verified().await?.check_scope(Scope::UsersRead)?;
        Ok(Self(Some(caller.store.batch_get_without_blobs(BatchGet::new().with_all::<User>(ids)).await?)))
    }

    /// Returns `Some(None)`, which is null in JSON, for a user that no longer exists or can't be read.
    pub(crate) fn of(&self, assigned_to: Option<UserId>) -> Result<Option<Option<AssignedUser>>, StoreError> {
        let Some(users) = &self.0 else { return Ok(None) };
        Ok(Some(users.get_readable(assigned_to)?.map(AssignedUser::from)))
    }
}
