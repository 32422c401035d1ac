//! What lists can be asked for: pages, filters, orders.

use super::list_index::{AssetColumns, InstanceColumns, RowPosition, RowRef, SearchTerms, SortKey, SortedRows, UserColumns};
use crate::domain::asset::Status;
use crate::domain::catalog::AssetKind;
use crate::domain::id::{AssetId, AssetTypeId, Id, ManufacturerId, ModelId, ProcessId, UserId};
use crate::domain::instance::InstanceStatus;
use crate::domain::process::ProcessStatus;
use crate::domain::scope::Role;
use crate::domain::string_enum::string_enum;
use crate::domain::time::{Date, Timestamp};
use std::borrow::Cow;
use std::cmp::Ordering;
use uuid::Uuid;

/// Which part of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRequest {
    /// From 1.
    pub number: u32,
    /// How many things a page has, 1 to 100.
    pub limit: u32,
}

impl PageRequest {
    /// How many things come before it.
    pub(super) fn skip(self) -> usize {
        (self.number as usize).saturating_sub(1).saturating_mul(self.limit as usize)
    }
}

/// One page of a list.
#[derive(Debug, Clone)]
pub struct Page<T> {
    /// The page's things, in the list's order.
    pub items: Vec<T>,
    /// How many things all pages have.
    pub total: usize,
    /// Which page.
    pub request: PageRequest,
}

impl<T> Page<T> {
    /// Returns the page with `view` of each item.
    pub fn map<V>(self, view: impl FnMut(T) -> V) -> Page<V> {
        Page { items: self.items.into_iter().map(view).collect(), total: self.total, request: self.request }
    }
}

string_enum! {
    /// What assets can be sorted by; `-` before it turns the order round.
    SortField {
        /// When it was made.
        CreatedAt = "created_at",
        /// When it was last changed.
        UpdatedAt = "updated_at",
        /// Its name, without regard to case.
        Name = "name",
        /// Its tag.
        AssetTag = "asset_tag",
        /// Its status, by the letters of the word.
        Status = "status",
    }
}

/// An order of assets. Equal ones stand by id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AssetSort {
    field: SortField,
    descending: bool,
}

impl Default for AssetSort {
    /// Newest first.
    fn default() -> Self {
        Self { field: SortField::CreatedAt, descending: true }
    }
}

impl std::str::FromStr for AssetSort {
    type Err = crate::domain::field_error::ValueError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (descending, field) = text.strip_prefix('-').map_or((false, text), |field| (true, field));
        let field = field.parse().map_err(|error: Self::Err| Self::Err::new(format!("{error}, optionally preceded by -")))?;
        Ok(Self { field, descending })
    }
}

/// What a thing is sorted by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SortValue<'a> {
    Time(Timestamp),
    Text(Cow<'a, str>),
}

impl SortValue<'_> {
    /// The rank on its own.
    pub(super) fn into_owned(self) -> SortValue<'static> {
        match self {
            Self::Time(at) => SortValue::Time(at),
            Self::Text(text) => SortValue::Text(text.into_owned().into()),
        }
    }
}

/// An order other than the one in which rows stand.
#[derive(Debug, Clone, Copy)]
pub(super) struct SortOrder<F> {
    rank: for<'a> fn(&RowRef<'a, F>) -> SortValue<'a>,
    descending: bool,
}

impl<F> SortOrder<F> {
    pub(super) fn rank<'a>(&self, view: &RowRef<'a, F>) -> SortValue<'a> {
        (self.rank)(view)
    }

    /// Compares two ranks; equal ones stand by id.
    pub(super) fn compare(&self, a: (&SortValue<'_>, SortKey), b: (&SortValue<'_>, SortKey)) -> Ordering {
        let order = if self.descending { b.0.cmp(a.0) } else { a.0.cmp(b.0) };
        order.then_with(|| a.1.id().cmp(&b.1.id()))
    }
}

/// A test of a row's facts.
type Test<'w, F> = Box<dyn Fn(&F) -> bool + Send + Sync + 'w>;

/// Everything that a list asks of the rows of a kind.
pub(super) struct RowQuery<'w, F> {
    pub(super) words: SearchTerms,
    /// A test of the facts; `None` when every row passes.
    pub(super) keeps: Option<Test<'w, F>>,
    /// Texts that must be just so, by their place.
    pub(super) exact: Vec<(usize, String)>,
    /// `None`: as rows stand, newest first.
    pub(super) order: Option<SortOrder<F>>,
}

impl<F> Default for RowQuery<'_, F> {
    fn default() -> Self {
        Self { words: SearchTerms::default(), keeps: None, exact: Vec::new(), order: None }
    }
}

impl<F> RowQuery<'_, F> {
    /// Visits every row that is wanted, as rows stand.
    pub(super) fn scan(&self, shelf: &SortedRows<F>, mut visit: impl FnMut(RowPosition)) {
        let keeps = |facts: &F| self.keeps.as_ref().is_none_or(|keeps| keeps(facts));
        shelf.scan(&self.words, keeps, |spot| {
            let has = |view: &RowRef<'_, F>| self.exact.iter().all(|(place, text)| view.exact(*place) == text);
            if self.exact.is_empty() || shelf.view(spot).is_some_and(|view| has(&view)) {
                visit(spot);
            }
        });
    }

    /// How many rows are wanted, and those of the page.
    pub(super) fn choose<'s>(&self, shelf: &'s SortedRows<F>, page: PageRequest) -> (usize, Vec<RowRef<'s, F>>) {
        let (skip, limit) = (page.skip(), page.limit as usize);
        let mut total = 0;
        let spots = match &self.order {
            None if self.keeps.is_none() && self.exact.is_empty() && self.words.is_empty() => {
                total = shelf.len();
                shelf.window(skip, limit)
            }
            None => {
                let mut spots = Vec::new();
                self.scan(shelf, |spot| {
                    if total >= skip && spots.len() < limit {
                        spots.push(spot);
                    }
                    total += 1;
                });
                spots
            }
            Some(order) => {
                let mut spots = Vec::new();
                self.scan(shelf, |spot| spots.push(spot));
                total = spots.len();
                shelf.page(spots, skip, limit, |a, b| order.compare((&order.rank(a), a.place), (&order.rank(b), b.place)))
            }
        };
        (total, spots.into_iter().filter_map(|spot| shelf.view(spot)).collect())
    }
}

/// Which assets a list has. Everything that is set must hold.
#[derive(Debug, Clone, Default)]
#[expect(missing_docs, reason = "the query parameters of GET /assets")]
pub struct AssetFilter {
    pub q: Option<String>,
    pub status: Option<Status>,
    pub asset_type_id: Option<AssetTypeId>,
    pub kind: Option<AssetKind>,
    pub assigned_to: Option<UserId>,
    pub model_id: Option<ModelId>,
    pub asset_tag: Option<String>,
    pub serial_number: Option<String>,
    pub warranty_before: Option<Date>,
    pub sort: AssetSort,
}

impl AssetFilter {
    /// The filter as a wish; `logical` are the types of that kind, sorted.
    pub(super) fn wish(&self, logical: Vec<Uuid>) -> RowQuery<'_, AssetColumns> {
        let (asset_type, model) = (self.asset_type_id.map(Id::uuid), self.model_id.map(Id::uuid));
        let (user, needs_serial) = (self.assigned_to.map(Id::uuid), self.serial_number.is_some());
        let is_kind = move |wanted: AssetKind, facts: &AssetColumns| {
            let is_logical = facts.asset_type.is_some_and(|id| logical.binary_search(&id).is_ok());
            is_logical == (wanted == AssetKind::Logical)
        };
        let keeps = move |facts: &AssetColumns| {
            self.status.is_none_or(|wanted| facts.status == Some(wanted))
                && asset_type.is_none_or(|wanted| facts.asset_type == Some(wanted))
                && model.is_none_or(|wanted| facts.model == Some(wanted))
                && user.is_none_or(|wanted| facts.assigned_to == Some(wanted))
                && (!needs_serial || facts.has_serial)
                && self.warranty_before.is_none_or(|day| facts.warranty_until.is_some_and(|until| until < day))
                && self.kind.is_none_or(|wanted| is_kind(wanted, facts))
        };
        let asks = self.status.is_some()
            || self.kind.is_some()
            || self.warranty_before.is_some()
            || needs_serial
            || [asset_type, model, user].iter().any(Option::is_some);
        let exact = [(AssetColumns::TAG, &self.asset_tag), (AssetColumns::SERIAL, &self.serial_number)];
        RowQuery {
            words: SearchTerms::of(self.q.as_deref()),
            keeps: if asks { Some(Box::new(keeps)) } else { None },
            exact: exact.into_iter().filter_map(|(place, text)| Some((place, text.clone()?))).collect(),
            order: self.sort.order(),
        }
    }
}

impl AssetSort {
    fn order(self) -> Option<SortOrder<AssetColumns>> {
        let rank: for<'a> fn(&RowRef<'a, AssetColumns>) -> SortValue<'a> = match self.field {
            SortField::CreatedAt if self.descending => return None,
            SortField::CreatedAt => |view| SortValue::Time(view.place.made_at()),
            SortField::UpdatedAt => |view| SortValue::Time(view.facts.updated_at),
            SortField::Name => |view| SortValue::Text(view.searched(AssetColumns::NAME).into()),
            SortField::AssetTag => |view| SortValue::Text(view.exact(AssetColumns::TAG).into()),
            SortField::Status => |view| SortValue::Text(view.facts.status.map_or("", Status::as_str).into()),
        };
        Some(SortOrder { rank, descending: self.descending })
    }
}

/// Which users a list has.
#[derive(Debug, Clone, Default)]
#[expect(missing_docs, reason = "the query parameters of GET /users")]
pub struct UserFilter {
    pub q: Option<String>,
    pub role: Option<Role>,
    pub is_active: Option<bool>,
}

impl UserFilter {
    pub(super) fn wish(&self) -> RowQuery<'_, UserColumns> {
        let keeps = |facts: &UserColumns| {
            self.role.is_none_or(|wanted| facts.role == Some(wanted))
                && self.is_active.is_none_or(|wanted| facts.is_active == wanted)
        };
        let asks = self.role.is_some() || self.is_active.is_some();
        let words = SearchTerms::of(self.q.as_deref());
        RowQuery { words, keeps: if asks { Some(Box::new(keeps)) } else { None }, ..RowQuery::default() }
    }
}

/// Which models a list has.
#[derive(Debug, Clone, Default)]
#[expect(missing_docs, reason = "the query parameters of GET /catalog/models")]
pub struct ModelFilter {
    pub q: Option<String>,
    pub manufacturer_id: Option<ManufacturerId>,
    pub asset_type_id: Option<AssetTypeId>,
}

/// Which definitions a list has.
#[derive(Debug, Clone, Copy, Default)]
#[expect(missing_docs, reason = "the query parameters of GET /processes")]
pub struct ProcessFilter {
    pub status: Option<ProcessStatus>,
}

/// Which runs a list has.
#[derive(Debug, Clone, Copy, Default)]
#[expect(missing_docs, reason = "the query parameters of GET /processes/instances")]
pub struct InstanceFilter {
    /// `None`: all but cancelled ones (contract 7).
    pub status: Option<InstanceStatus>,
    pub asset_id: Option<AssetId>,
    pub process_id: Option<ProcessId>,
}

impl InstanceFilter {
    pub(super) fn wish(&self) -> RowQuery<'static, InstanceColumns> {
        let (status, asset, process) = (self.status, self.asset_id.map(Id::uuid), self.process_id.map(Id::uuid));
        let keeps = move |facts: &InstanceColumns| {
            let shown = status.map_or(facts.status != Some(InstanceStatus::Cancelled), |wanted| facts.status == Some(wanted));
            shown
                && asset.is_none_or(|wanted| facts.asset == Some(wanted))
                && process.is_none_or(|wanted| facts.process == Some(wanted))
        };
        RowQuery { keeps: Some(Box::new(keeps)), ..RowQuery::default() }
    }
}
