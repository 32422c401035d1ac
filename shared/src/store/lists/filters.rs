//! Filters and sort orders of lists, and their text form in requests.

use crate::domain::assets::asset::{CUSTOM_FIELD, CellRange, Status};
use crate::domain::assets::bound::{DayBound, FieldBound, TimeBound, Today};
use crate::domain::catalog::custom_fields::field_name;
use crate::domain::catalog::{AssetKind, TypeCode};
use crate::domain::keys::api_key::Role;
use crate::domain::processes::instance::InstanceStatus;
use crate::domain::processes::process::{ProcessStatus, Slug};
use crate::domain::user::Email;
use crate::domain::values::field_error::ValueError;
use crate::domain::values::id::{AssetId, AssetTypeId, Id, ManufacturerId, ModelId, ProcessId, UserId};
use crate::domain::values::string_enum::string_enum;
use crate::domain::values::text::{Location, Name, SearchText, composed, fold, single_spaced};
use crate::domain::values::time::{Date, Timestamp};
use crate::fields::compared::compatible;
use crate::store::lists::list_index::{
    AssetColumns, AssetFacet, AssetVectors, CodedCondition, ColumnFilter, InstanceColumns, InstanceFacet, LOCATION, RowQuery,
    SearchTerms, SortBy, SortOrder, UNFIT_AFTER, UserColumns, UserFacet, narrow,
};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::num::NonZeroI64;
use std::str::FromStr;
use utoipa::openapi::schema::{AnyOfBuilder, ArrayBuilder, ObjectBuilder, Schema, Type};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};
use uuid::Uuid;

/// The text for no value, or no user.
const NONE: &str = "none";
/// The exported cell of an empty text.
const EMPTY_CELL: &str = "\"\"";
/// The name of the schema of [`NONE`] as an assignee.
const UNASSIGNED: &str = "Unassigned";

string_enum! {
    /// Fields to sort assets by. A leading `-` reverses the order.
    SortField {
        /// Time of creation.
        CreatedAt = "created_at",
        /// Time of the last change.
        UpdatedAt = "updated_at",
        /// Name, case-insensitive.
        Name = "name",
        /// Asset tag.
        AssetTag = "asset_tag",
        /// Status, alphabetically.
        Status = "status",
        /// Location.
        Location = "location",
        /// Date of purchase.
        PurchaseDate = "purchase_date",
        /// Purchase price.
        PurchasePrice = "purchase_price",
        /// Last day of the warranty.
        WarrantyUntil = "warranty_until",
        /// Time of the last scan.
        LastSeenAt = "last_seen_at",
        /// Time of the last change of the status.
        StatusChangedAt = "status_changed_at",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum SortKey {
    Field(SortField),
    /// The field's name, with its prefix.
    CustomField(String),
}

/// A sort order of assets: a field, with a leading `-` for descending. Assets without a value come last. Ties are sorted by ID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssetSort {
    field: SortKey,
    descending: bool,
}

impl Default for AssetSort {
    fn default() -> Self {
        Self { field: SortKey::Field(SortField::CreatedAt), descending: true }
    }
}

impl FromStr for AssetSort {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let (descending, field) = text.strip_prefix('-').map_or((false, text), |field| (true, field));
        if let Some(name) = field.strip_prefix(CUSTOM_FIELD) {
            return Ok(Self { field: SortKey::CustomField(custom_column(name)?), descending });
        }
        let hint = |error: ValueError| ValueError {
            text: format!("{error} or {CUSTOM_FIELD}<name>, optionally preceded by -"),
            ..error
        };
        Ok(Self { field: SortKey::Field(field.parse().map_err(hint)?), descending })
    }
}

/// Normalizes the name of a custom field, and adds its prefix.
///
/// # Errors
///
/// Returns an error if no custom field can have this name.
pub fn custom_column(name: &str) -> Result<String, ValueError> {
    let named = |error: ValueError| ValueError { text: format!("names a custom field that {error}"), ..error };
    let name = field_name(name).map_err(named)?;
    Ok(format!("{CUSTOM_FIELD}{name}"))
}

impl AssetSort {
    /// Returns the sort order; `None` for the default order of rows.
    fn order(&self) -> Option<SortOrder<AssetColumns>> {
        let field = match &self.field {
            SortKey::CustomField(name) => {
                return Some(SortOrder { sort_by: SortBy::Coded(name.clone()), descending: self.descending });
            }
            SortKey::Field(field) => field,
        };
        let sort_by: SortBy<AssetColumns> = match field {
            SortField::CreatedAt if self.descending => return None,
            SortField::CreatedAt => SortBy::CreatedAt,
            SortField::UpdatedAt => {
                SortBy::Number(|columns: &AssetVectors, row: usize| columns.updated_at.get(row).map(|at| at.millis()))
            }
            SortField::Name => SortBy::Searched(AssetColumns::NAME),
            SortField::AssetTag => SortBy::Exact(AssetColumns::compared("asset_tag")?),
            SortField::Status => SortBy::Facet(|facet: &AssetFacet| facet.status.map_or("", Status::as_str)),
            SortField::Location => SortBy::Coded(LOCATION.to_owned()),
            SortField::PurchaseDate => SortBy::Number(|columns: &AssetVectors, row: usize| {
                columns.purchase_date.get(row).copied()?.map(|date| i64::from(date.days()))
            }),
            SortField::WarrantyUntil => SortBy::Number(|columns: &AssetVectors, row: usize| {
                columns.warranty_until.get(row).copied()?.map(|date| i64::from(date.days()))
            }),
            SortField::PurchasePrice => SortBy::Number(|columns: &AssetVectors, row: usize| columns.price(row)?.try_into().ok()),
            SortField::LastSeenAt => {
                SortBy::Number(|columns: &AssetVectors, row: usize| columns.last_seen_at.get(row).copied()?.map(NonZeroI64::get))
            }
            SortField::StatusChangedAt => {
                SortBy::Number(|columns: &AssetVectors, row: usize| columns.status_changed_at.get(row).map(|at| at.millis()))
            }
        };
        Some(SortOrder { sort_by, descending: self.descending })
    }
}

/// A range of values. An asset without a value is in no range, unless the missing value means that something never happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range<T> {
    /// Inclusive.
    pub from: Option<T>,
    /// Exclusive.
    pub before: Option<T>,
}

impl<T> Default for Range<T> {
    fn default() -> Self {
        Self { from: None, before: None }
    }
}

impl<T: PartialOrd + Copy> Range<T> {
    fn is_set(&self) -> bool {
        self.from.is_some() || self.before.is_some()
    }

    fn contains(&self, value: T) -> bool {
        self.from.is_none_or(|from| value >= from) && self.before.is_none_or(|before| value < before)
    }
}

impl<T: Copy> Range<T> {
    fn map<V>(self, convert: impl Fn(T) -> V) -> Range<V> {
        Range { from: self.from.map(&convert), before: self.before.map(&convert) }
    }

    fn any(self, is: impl Fn(T) -> bool) -> bool {
        self.from.into_iter().chain(self.before).any(is)
    }
}

/// Ranges of several fields, all of which must match, as in a request.
#[derive(Debug, Clone, Default)]
pub struct AssetBounds {
    pub purchase_date: Range<DayBound>,
    pub warranty: Range<DayBound>,
    pub created: Range<TimeBound>,
    pub updated: Range<TimeBound>,
    /// A second lower bound for `updated`.
    pub updated_since: Option<TimeBound>,
    pub last_seen: Range<TimeBound>,
    pub status_changed: Range<TimeBound>,
    /// By custom field, named with its prefix.
    pub custom_fields: Vec<(String, Range<FieldBound>)>,
    /// Both price bounds are inclusive, in ten-thousandths.
    pub min_price: Option<u64>,
    pub max_price: Option<u64>,
}

impl AssetBounds {
    /// Whether the bounds depend on the time zone.
    fn need_time_zone(&self) -> bool {
        let Self { purchase_date, warranty, created, updated, updated_since, last_seen, status_changed, custom_fields, .. } =
            self;
        let times = [*created, *updated, *last_seen, *status_changed, Range { from: *updated_since, before: None }];
        [*purchase_date, *warranty].into_iter().any(|range| range.any(DayBound::is_relative))
            || times.into_iter().any(|range| range.any(TimeBound::is_day))
            || custom_fields.iter().any(|(_, range)| range.any(FieldBound::is_relative))
    }

    fn on(&self, today: &Today) -> AssetRanges {
        let day = |range: Range<DayBound>| range.map(|bound| bound.on(today));
        let time = |range: Range<TimeBound>| range.map(|bound| bound.on(today));
        let updated = time(self.updated);
        let cells = |range: Range<FieldBound>| {
            let Range { from, before } = range.map(|bound| bound.on(today));
            CellRange { from, before }
        };
        AssetRanges {
            purchase_date: day(self.purchase_date),
            warranty: day(self.warranty),
            created: time(self.created),
            updated: Range { from: updated.from.max(self.updated_since.map(|bound| bound.on(today))), ..updated },
            last_seen: time(self.last_seen),
            status_changed: time(self.status_changed),
            custom_fields: self.custom_fields.iter().map(|(column, range)| (column.clone(), cells(*range))).collect(),
            min_price: self.min_price,
            max_price: self.max_price,
        }
    }
}

/// The ranges of [`AssetBounds`] on a specific day.
#[derive(Debug, Clone, Default)]
pub struct AssetRanges {
    purchase_date: Range<Date>,
    warranty: Range<Date>,
    created: Range<Timestamp>,
    updated: Range<Timestamp>,
    /// An asset that was never seen counts as seen before any time.
    last_seen: Range<Timestamp>,
    status_changed: Range<Timestamp>,
    custom_fields: Vec<(String, CellRange)>,
    min_price: Option<u64>,
    max_price: Option<u64>,
}

impl AssetRanges {
    fn has_columns(&self) -> bool {
        let Self { purchase_date, warranty, updated, last_seen, status_changed, min_price, max_price, .. } = self;
        let has_times = updated.is_set() || last_seen.is_set() || status_changed.is_set();
        purchase_date.is_set() || warranty.is_set() || has_times || min_price.is_some() || max_price.is_some()
    }

    /// Unmarks rows with a value outside a range. Skips ranges that are not set, so that their fields are not read.
    fn narrow(&self, columns: &AssetVectors, matches: &mut [bool]) {
        let Self { purchase_date, warranty, updated, last_seen, status_changed, min_price, max_price, .. } = self;
        for (range, dates) in [(purchase_date, &columns.purchase_date), (warranty, &columns.warranty_until)] {
            if range.is_set() {
                narrow(matches, dates, |date| date.is_some_and(|date| range.contains(date)));
            }
        }
        if updated.is_set() {
            narrow(matches, &columns.updated_at, |at| updated.contains(*at));
        }
        if status_changed.is_set() {
            narrow(matches, &columns.status_changed_at, |at| status_changed.contains(*at));
        }
        if last_seen.is_set() {
            let was_seen = |at: NonZeroI64| last_seen.contains(Timestamp::from_millis(at.get()));
            narrow(matches, &columns.last_seen_at, |at| at.map_or(last_seen.from.is_none(), was_seen));
        }
        if min_price.is_some() || max_price.is_some() {
            let prices = min_price.unwrap_or(0)..=max_price.unwrap_or(u64::MAX);
            narrow(matches, &columns.price, |price| price.is_some_and(|price| prices.contains(&(price.get() - 1))));
        }
    }
}

/// What a filter needs besides the rows: the ranges on this day, and the catalog entries needed to evaluate its conditions on
/// kind, type code and manufacturer.
#[derive(Debug, Clone, Default)]
pub struct Resolved {
    pub ranges: AssetRanges,
    pub catalog: CatalogMatch,
}

/// The catalog entries needed to evaluate a filter's conditions on kind, type code and manufacturer.
#[derive(Debug, Clone, Default)]
pub struct CatalogMatch {
    logical_types: HashSet<Uuid>,
    types_with_code: HashSet<Uuid>,
    /// For each model, whether its manufacturer has the wanted name.
    manufacturers: HashMap<Uuid, bool>,
}

impl CatalogMatch {
    pub fn add_type(&mut self, id: Uuid, kind: Option<AssetKind>, code: Option<&str>, filter: &AssetFilter) {
        if kind == Some(AssetKind::Logical) {
            self.logical_types.insert(id);
        }
        if filter.asset_type_code.as_ref().is_some_and(|wanted| code == Some(wanted.as_str())) {
            self.types_with_code.insert(id);
        }
    }

    pub fn add_model(&mut self, id: Uuid, manufacturer: Option<&str>, filter: &AssetFilter) {
        if let (Some(ManufacturerName::Named(wanted)), Some(name)) = (&filter.manufacturer, manufacturer) {
            self.manufacturers.insert(id, fold(&single_spaced(name)) == fold(&single_spaced(wanted)));
        }
    }
}

/// The filter of an asset list. All conditions that are set must match.
#[derive(Debug, Clone, Default)]
pub struct AssetFilter {
    pub q: Option<String>,
    pub ids: Option<BTreeSet<AssetId>>,
    pub status: Option<Statuses>,
    pub asset_type_id: Option<AssetTypeId>,
    pub kind: Option<AssetKind>,
    pub assigned_to: Option<Assignee>,
    pub model_id: Option<ModelId>,
    /// Texts to match exactly, by field name.
    pub exact: Vec<(&'static str, String)>,
    pub asset_type_code: Option<TypeCode>,
    /// For an asset with a model, the manufacturer's name in the catalog counts.
    pub manufacturer: Option<ManufacturerName>,
    /// Locations and custom fields.
    pub values: Vec<CodedCondition>,
    /// A custom field, named with its prefix: assets because of which lists can't use the field.
    pub unlisted_field: Option<String>,
    pub bounds: AssetBounds,
    pub sort: AssetSort,
}

impl AssetFilter {
    /// Returns the coded columns that the request uses, each with its parameter.
    pub(in crate::store) fn columns(&self) -> impl Iterator<Item = (&str, &str)> {
        let sorted = if let SortKey::CustomField(name) = &self.sort.field { Some(("sort", name.as_str())) } else { None };
        let values = self.values.iter().map(|wanted| (wanted.column.as_str(), wanted.column.as_str()));
        let ranges = self.bounds.custom_fields.iter().map(|(column, _)| (column.as_str(), column.as_str()));
        values.chain(ranges).chain(sorted)
    }

    pub(in crate::store) fn needs_time_zone(&self) -> bool {
        self.bounds.need_time_zone()
    }

    pub(in crate::store) fn ranges_on(&self, today: &Today) -> AssetRanges {
        self.bounds.on(today)
    }

    /// Whether the filter has a condition on kind, type code or manufacturer.
    pub(in crate::store) fn needs_catalog(&self) -> bool {
        self.kind.is_some() || self.asset_type_code.is_some() || self.manufacturer.is_some()
    }

    pub(in crate::store) fn row_query(&self, resolved: Resolved) -> RowQuery<'_, AssetColumns> {
        let Resolved { ranges, catalog: CatalogMatch { logical_types, types_with_code, manufacturers } } = resolved;
        let has_manufacturer = move |facet: &AssetFacet| match &self.manufacturer {
            None => true,
            Some(ManufacturerName::Missing) => facet.model.is_none() && facet.manufacturer.is_none(),
            Some(ManufacturerName::Named(wanted)) => {
                let by_model = facet.model.and_then(|model| manufacturers.get(&model).copied());
                let wanted = fold(&single_spaced(wanted));
                by_model.unwrap_or_else(|| facet.manufacturer.as_deref().is_some_and(|name| fold(name) == wanted))
            }
        };
        let has_code = move |facet: &AssetFacet| {
            self.asset_type_code.is_none() || facet.asset_type.is_some_and(|id| types_with_code.contains(&id))
        };
        let (asset_type, model) = (self.asset_type_id.map(Id::uuid), self.model_id.map(Id::uuid));
        let assigned_to = self.assigned_to.map(|assignee| assignee.user().map(Id::uuid));
        let is_of_kind = move |kind: AssetKind, facet: &AssetFacet| {
            let is_logical = facet.asset_type.is_some_and(|id| logical_types.contains(&id));
            is_logical == (kind == AssetKind::Logical)
        };
        let facets = move |facet: &AssetFacet| {
            self.status.as_ref().is_none_or(|statuses| facet.status.is_some_and(|status| statuses.contains(status)))
                && asset_type.is_none_or(|id| facet.asset_type == Some(id))
                && model.is_none_or(|id| facet.model == Some(id))
                && self.kind.is_none_or(|kind| is_of_kind(kind, facet))
                && has_code(facet)
                && has_manufacturer(facet)
        };
        let in_range = |(column, range): &(String, CellRange)| {
            let range = Some(*range);
            CodedCondition { range, ..CodedCondition::on(column.clone()) }
        };
        let coded = self.values.iter().cloned().chain(ranges.custom_fields.iter().map(in_range)).collect();
        let created = (ranges.created.from, ranges.created.before);
        let has_columns = ranges.has_columns() || assigned_to.is_some();
        let columns = move |columns: &AssetVectors, matches: &mut [bool]| {
            if let Some(wanted) = assigned_to {
                narrow(matches, &columns.assigned_to, |user| *user == wanted);
            }
            ranges.narrow(columns, matches);
        };
        let has_ids = self.status.is_some() || asset_type.is_some() || model.is_some();
        let has_facets = has_ids || self.needs_catalog();
        let exact = self
            .exact
            .iter()
            .filter_map(|(field, text)| Some((AssetColumns::compared(field)?, AssetColumns::compared_text(field, text))));
        RowQuery {
            terms: SearchTerms::of(self.q.as_deref()),
            facets: if has_facets { Some(Box::new(facets)) } else { None },
            columns: if has_columns { Some(Box::new(columns)) } else { None },
            exact: exact.collect(),
            coded,
            either: self.unlisted_field.as_deref().map(unlisted).unwrap_or_default(),
            created,
            ids: self.ids.as_ref().map(|ids| ids.iter().map(|id| id.uuid()).collect()),
            order: self.sort.order(),
        }
    }
}

#[derive(Debug, Clone, Default)]
pub struct UserFilter {
    pub q: Option<String>,
    pub role: Option<Role>,
    pub is_active: Option<bool>,
    /// Looked up by the address's unique marker instead of in the list index.
    pub email: Option<Email>,
}

impl UserFilter {
    /// Returns all conditions except the e-mail address.
    pub(in crate::store) fn row_query(&self) -> RowQuery<'_, UserColumns> {
        let facets = |facet: &UserFacet| {
            self.role.is_none_or(|role| facet.role == Some(role))
                && self.is_active.is_none_or(|is_active| facet.is_active == is_active)
        };
        // The index has names and addresses in this form: see `UserColumns`.
        let terms = SearchTerms::of_folded(&self.q.as_deref().map(compatible).unwrap_or_default());
        RowQuery { terms, facets: Some(Box::new(facets)), ..RowQuery::default() }
    }
}

#[derive(Debug, Clone, Default)]
pub struct AssetTypeFilter {
    pub q: Option<String>,
    pub code: Option<TypeCode>,
}

#[derive(Debug, Clone, Default)]
pub struct ManufacturerFilter {
    pub q: Option<String>,
    pub name: Option<Name>,
}

#[derive(Debug, Clone, Default)]
pub struct ModelFilter {
    pub q: Option<String>,
    pub name: Option<Name>,
    pub manufacturer_id: Option<ManufacturerId>,
    pub asset_type_id: Option<AssetTypeId>,
}

#[derive(Debug, Clone, Default)]
pub struct ProcessFilter {
    pub status: Option<ProcessStatus>,
    pub slug: Option<Slug>,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct InstanceFilter {
    /// `None` matches all instances that are not cancelled.
    pub status: Option<InstanceStatus>,
    pub asset_id: Option<AssetId>,
    pub process_id: Option<ProcessId>,
}

impl InstanceFilter {
    pub(in crate::store) fn row_query(&self) -> RowQuery<'static, InstanceColumns> {
        let (status, asset, process) = (self.status, self.asset_id.map(Id::uuid), self.process_id.map(Id::uuid));
        let facets = move |facet: &InstanceFacet| {
            let has_status =
                status.map_or(facet.status != Some(InstanceStatus::Cancelled), |status| facet.status == Some(status));
            has_status && process.is_none_or(|id| facet.process == Some(id))
        };
        let is_of = |id: Uuid| -> ColumnFilter<'static, InstanceColumns> {
            Box::new(move |columns: &Vec<InstanceColumns>, matches: &mut [bool]| {
                narrow(matches, columns, |row| row.asset == Some(id));
            })
        };
        RowQuery { facets: Some(Box::new(facets)), columns: asset.map(is_of), ..RowQuery::default() }
    }
}

/// An asset must have one of these statuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statuses(Vec<Status>);

impl Statuses {
    #[must_use]
    pub fn contains(&self, status: Status) -> bool {
        self.0.contains(&status)
    }
}

impl FromStr for Statuses {
    type Err = ValueError;

    /// Parses comma-separated statuses.
    fn from_str(text: &str) -> Result<Self, ValueError> {
        let hint = |error: ValueError| ValueError { text: format!("{error}, or several of them, separated by commas"), ..error };
        text.split(',').map(|name| name.parse::<Status>().map_err(hint)).collect::<Result<_, _>>().map(Self)
    }
}

impl PartialSchema for Statuses {
    fn schema() -> RefOr<Schema> {
        ArrayBuilder::new().items(Status::schema()).min_items(Some(1)).into()
    }
}

impl ToSchema for Statuses {}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assignee {
    Nobody,
    User(UserId),
}

impl Assignee {
    /// Returns the user; `None` if the asset must be unassigned.
    #[must_use]
    pub fn user(self) -> Option<UserId> {
        match self {
            Self::Nobody => None,
            Self::User(id) => Some(id),
        }
    }
}

impl FromStr for Assignee {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        if text == NONE {
            return Ok(Self::Nobody);
        }
        let hint = |error: ValueError| ValueError { text: format!("{error}, or {NONE}"), ..error };
        text.parse().map(Self::User).map_err(hint)
    }
}

impl PartialSchema for Assignee {
    fn schema() -> RefOr<Schema> {
        AnyOfBuilder::new().item(Ref::from_schema_name(UserId::name())).item(Ref::from_schema_name(UNASSIGNED)).into()
    }
}

impl ToSchema for Assignee {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        let nobody = ObjectBuilder::new().schema_type(Type::String).enum_values(Some([NONE]));
        schemas.push((UNASSIGNED.to_owned(), nobody.description(Some("Matches assets that are not assigned.")).into()));
        schemas.push((UserId::name().into_owned(), UserId::schema()));
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlaceFilter {
    Nowhere,
    /// Assets at this location or below it.
    In(Location),
}

impl FromStr for PlaceFilter {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        if text == NONE { Ok(Self::Nowhere) } else { literal(text).parse().map(Self::In) }
    }
}

impl PartialSchema for PlaceFilter {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(Type::String).min_length(Some(1)).examples(["Berlin / 3rd floor", NONE]).into()
    }
}

impl ToSchema for PlaceFilter {}

impl From<PlaceFilter> for CodedCondition {
    fn from(place: PlaceFilter) -> Self {
        let (place, none) = match place {
            PlaceFilter::Nowhere => (None, true),
            PlaceFilter::In(place) => (Some(String::from(place)), false),
        };
        Self { place, none, ..Self::on(LOCATION.to_owned()) }
    }
}

/// Requires that a custom field, named with its prefix, has one of these values. Each entry of `values` can have several values,
/// separated by commas.
#[must_use]
pub fn wanted_field(column: String, values: &[String]) -> CodedCondition {
    let values: Vec<&str> = values.iter().flat_map(|value| split_values(value)).collect();
    let none = values.contains(&NONE);
    // The cell of an empty text has quotes; an empty cell has no value.
    let text = |value: &str| if value.is_empty() { EMPTY_CELL.to_owned() } else { literal(value) };
    let texts = values.into_iter().filter(|value| *value != NONE).map(text).collect();
    CodedCondition { texts, none, ..CodedCondition::on(column) }
}

/// Returns the conditions for assets because of which lists can't use a custom field, named with its prefix: one must match.
pub fn unlisted(column: &str) -> Vec<CodedCondition> {
    let name = column.strip_prefix(CUSTOM_FIELD).unwrap_or(column);
    let unfit = CodedCondition { unfit: true, ..CodedCondition::on(column.to_owned()) };
    let later = CodedCondition { sorted_before: Some(name.to_owned()), ..CodedCondition::on(UNFIT_AFTER.to_owned()) };
    vec![unfit, later]
}

/// The manufacturer that an asset must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ManufacturerName {
    Missing,
    /// Case-insensitive.
    Named(String),
}

impl FromStr for ManufacturerName {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let text: SearchText = text.parse()?;
        Ok(if &*text == NONE { Self::Missing } else { Self::Named(literal(&text)) })
    }
}

/// Splits at commas, except after a backslash.
fn split_values(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let is_end = |at: &usize| bytes.get(*at) == Some(&b',') && at.checked_sub(1).and_then(|at| bytes.get(at)) != Some(&b'\\');
    let (mut values, mut start) = (Vec::new(), 0);
    for end in (0..bytes.len()).filter(is_end) {
        values.extend(text.get(start..end));
        start = end + 1;
    }
    values.extend(text.get(start..));
    values
}

/// Unescapes a value: `\,` is a comma, `\none` is the word `none`, and `\\none` is `\none`. Also normalizes the text to NFC.
#[must_use]
pub fn literal(value: &str) -> String {
    let word = value.strip_prefix('\\').filter(|rest| rest.trim_start_matches('\\') == NONE);
    word.map_or_else(|| composed(&value.replace("\\,", ",")).into_owned(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_normalized_and_none_is_a_word_of_its_own() {
        let place = |text: &str| text.parse::<PlaceFilter>().map(CodedCondition::from);
        let of = |text: &str| place(text).ok().map(|wanted| (wanted.place, wanted.none));
        assert_eq!(of("Berlin/3"), Some((Some("Berlin / 3".to_owned()), false)));
        assert_eq!(of("none"), Some((None, true)));
        assert_eq!(of("\\none"), Some((Some("none".to_owned()), false)));
        assert_eq!(of("Berlin\\, Mitte"), Some((Some("Berlin, Mitte".to_owned()), false)));
        assert!(place("").is_err() && place("a//b").is_err());
    }

    #[test]
    fn values_of_custom_fields_are_separated_by_commas_and_by_parameters() {
        let wanted = |values: &[&str]| {
            let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
            let wanted = wanted_field("c".to_owned(), &values);
            (wanted.texts, wanted.none)
        };
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        for (values, expected, none) in [
            (&["a,b", "c"][..], &["a", "b", "c"][..], false),
            (&["none,a"], &["a"], true),
            (&["\\none"], &["none"], false),
            (&["a\\,b,c\\d"], &["a,b", "c\\d"], false),
            (&["a,"], &["a", "\"\""], false),
            (&["\\\\none"], &["\\none"], false),
            (&["a\\\\,b"], &["a\\,b"], false),
            (&["Bu\u{308}ro"], &["Büro"], false),
        ] {
            assert_eq!(wanted(values), (texts(expected), none), "{values:?}");
        }
    }

    #[test]
    fn a_custom_field_has_the_name_under_which_it_is_stored() {
        let longest = "x".repeat(255);
        for (name, stored) in
            [("Fa\u{308}rg", "Färg"), (" ram_gb ", "ram_gb"), ("a\u{a0} b", "a b"), (longest.as_str(), longest.as_str())]
        {
            assert_eq!(custom_column(name).as_deref(), Ok(format!("custom_fields.{stored}").as_str()), "{name}");
        }
        let sort = |text: &str| text.parse::<AssetSort>();
        assert_eq!(sort("-custom_fields.Fa\u{308}rg"), sort("-custom_fields.Färg"));
        for wrong in ["", " ", "a\u{200b}b", &"x".repeat(256)] {
            assert!(custom_column(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_list_of_statuses_has_no_gaps() {
        let statuses: Statuses = "in_use,returned,in_use".parse().expect("two statuses");
        assert!(statuses.contains(Status::InUse) && statuses.contains(Status::Returned) && !statuses.contains(Status::InStock));
        let error = |text: &str| text.parse::<Statuses>().expect_err(text).to_string();
        for wrong in ["", ",", "in_use,", ",in_use", "in_use,,returned", "in_use, returned", "lost"] {
            assert!(error(wrong).starts_with("must be one of in_stock, preparing, "), "{wrong}");
            assert!(error(wrong).ends_with("separated by commas"), "{wrong}");
        }
    }

    #[test]
    fn an_assignee_is_a_user_or_nobody() {
        let id = "01890a5d-ac96-774b-bcce-b302099a8057";
        assert_eq!("none".parse(), Ok(Assignee::Nobody));
        assert_eq!(id.parse::<Assignee>().map(Assignee::user), Ok(id.parse().ok()));
        for wrong in ["", "None", "null", "me"] {
            assert!(wrong.parse::<Assignee>().expect_err(wrong).to_string().ends_with(", or none"), "{wrong}");
        }
    }
}
