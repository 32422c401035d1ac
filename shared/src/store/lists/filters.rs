//! Filters and orders of lists.

use crate::domain::assets::asset::Status;
use crate::domain::catalog::{AssetKind, TypeCode};
use crate::domain::keys::scope::Role;
use crate::domain::processes::instance::InstanceStatus;
use crate::domain::processes::process::{ProcessStatus, Slug};
use crate::domain::user::Email;
use crate::domain::values::id::{AssetId, AssetTypeId, Id, ManufacturerId, ModelId, ProcessId};
use crate::domain::values::string_enum::string_enum;
use crate::domain::values::text::Name;
use crate::domain::values::time::{Date, Timestamp};
use crate::store::lists::filter_values::{Assignee, Statuses};
use crate::store::lists::list_index::{
    AssetColumns, AssetFacet, Filter, InstanceColumns, InstanceFacet, RowQuery, SearchTerms, SortBy, SortOrder, UserColumns,
    UserFacet,
};
use uuid::Uuid;

string_enum! {
    /// The fields by which assets are sorted; `-` before one reverses the order.
    SortField {
        /// When it was created.
        CreatedAt = "created_at",
        /// When it was last changed.
        UpdatedAt = "updated_at",
        /// Its name, without regard to case.
        Name = "name",
        /// Its tag.
        AssetTag = "asset_tag",
        /// Its status, alphabetically.
        Status = "status",
    }
}

/// An order of assets: a field, with `-` before it for descending. Equal assets are sorted by id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AssetSort {
    field: SortField,
    descending: bool,
}

impl Default for AssetSort {
    fn default() -> Self {
        Self { field: SortField::CreatedAt, descending: true }
    }
}

impl std::str::FromStr for AssetSort {
    type Err = crate::domain::values::field_error::ValueError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (descending, field) = text.strip_prefix('-').map_or((false, text), |field| (true, field));
        let field = field.parse().map_err(|error: Self::Err| Self::Err::new(format!("{error}, optionally preceded by -")))?;
        Ok(Self { field, descending })
    }
}

impl AssetSort {
    /// `None` for the default order of rows.
    fn order(self) -> Option<SortOrder<AssetColumns>> {
        let sort_by = match self.field {
            SortField::CreatedAt if self.descending => return None,
            SortField::CreatedAt => SortBy::CreatedAt,
            SortField::UpdatedAt => SortBy::Time(|columns: &AssetColumns| columns.updated_at),
            SortField::Name => SortBy::Searched(AssetColumns::NAME),
            SortField::AssetTag => SortBy::Exact(AssetColumns::compared("asset_tag")?),
            SortField::Status => SortBy::Facet(|facet: &AssetFacet| facet.status.map_or("", Status::as_str)),
        };
        Some(SortOrder { sort_by, descending: self.descending })
    }
}

/// Everything that is set must match.
#[derive(Debug, Clone, Default)]
pub struct AssetFilter {
    pub q: Option<String>,
    pub status: Option<Statuses>,
    pub asset_type_id: Option<AssetTypeId>,
    pub kind: Option<AssetKind>,
    pub assigned_to: Option<Assignee>,
    pub model_id: Option<ModelId>,
    /// Texts that are compared exactly, by the names of their fields.
    pub exact: Vec<(&'static str, String)>,
    pub warranty_before: Option<Date>,
    pub updated_since: Option<Timestamp>,
    pub sort: AssetSort,
}

impl AssetFilter {
    /// `logical_types` are the ids of the asset types of kind `logical`, sorted.
    pub(in crate::store) fn row_query(&self, logical_types: Vec<Uuid>) -> RowQuery<'_, AssetColumns> {
        let (asset_type, model) = (self.asset_type_id.map(Id::uuid), self.model_id.map(Id::uuid));
        let assigned_to = self.assigned_to.map(|assignee| assignee.user().map(Id::uuid));
        let is_of_kind = move |kind: AssetKind, facet: &AssetFacet| {
            let is_logical = facet.asset_type.is_some_and(|id| logical_types.binary_search(&id).is_ok());
            is_logical == (kind == AssetKind::Logical)
        };
        let facets = move |facet: &AssetFacet| {
            self.status.as_ref().is_none_or(|statuses| facet.status.is_some_and(|status| statuses.contains(status)))
                && asset_type.is_none_or(|id| facet.asset_type == Some(id))
                && model.is_none_or(|id| facet.model == Some(id))
                && self.kind.is_none_or(|kind| is_of_kind(kind, facet))
        };
        let columns = move |columns: &AssetColumns| {
            assigned_to.is_none_or(|user| columns.assigned_to == user)
                && self.warranty_before.is_none_or(|day| columns.warranty_until.is_some_and(|until| until < day))
                && self.updated_since.is_none_or(|since| columns.updated_at >= since)
        };
        let has_facets = self.status.is_some() || self.kind.is_some() || asset_type.is_some() || model.is_some();
        let has_columns = self.warranty_before.is_some() || self.updated_since.is_some() || assigned_to.is_some();
        let exact = self
            .exact
            .iter()
            .filter_map(|(field, text)| Some((AssetColumns::compared(field)?, AssetColumns::compared_text(field, text))));
        RowQuery {
            terms: SearchTerms::of(self.q.as_deref()),
            facets: if has_facets { Some(Box::new(facets)) } else { None },
            columns: if has_columns { Some(Box::new(columns)) } else { None },
            exact: exact.collect(),
            order: self.sort.order(),
        }
    }
}

#[derive(Debug, Clone, Default)]
pub struct UserFilter {
    pub q: Option<String>,
    pub role: Option<Role>,
    pub is_active: Option<bool>,
    /// Compared as for uniqueness, by its marker: the list index does not know it.
    pub email: Option<Email>,
}

impl UserFilter {
    /// Without the address.
    pub(in crate::store) fn row_query(&self) -> RowQuery<'_, UserColumns> {
        let facets = |facet: &UserFacet| {
            self.role.is_none_or(|role| facet.role == Some(role))
                && self.is_active.is_none_or(|is_active| facet.is_active == is_active)
        };
        let terms = SearchTerms::of(self.q.as_deref());
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
    /// `None` matches all but cancelled instances.
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
        let columns = asset.map(|id| Box::new(move |columns: &InstanceColumns| columns.asset == Some(id)) as Filter<'_, _>);
        RowQuery { facets: Some(Box::new(facets)), columns, ..RowQuery::default() }
    }
}
