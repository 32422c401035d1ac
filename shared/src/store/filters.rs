//! What lists can be asked for: pages, filters, orders.

use super::directory::{AssetFacts, Place, RunFacts, Shelf, Spot, UserFacts, View, Words};
use crate::domain::asset::Status;
use crate::domain::catalog::AssetKind;
use crate::domain::id::{AssetId, AssetTypeId, Id, ManufacturerId, ModelId, ProcessId, UserId};
use crate::domain::instance::InstanceStatus;
use crate::domain::process::ProcessStatus;
use crate::domain::scope::{Role, words};
use crate::domain::time::{Date, Timestamp};
use std::borrow::Cow;
use std::cmp::Ordering;
use uuid::Uuid;

/// Which part of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// From 1.
    pub number: u32,
    /// How many things a page has, 1 to 100.
    pub limit: u32,
}

impl Page {
    /// How many things come before it.
    pub(super) fn skip(self) -> usize {
        (self.number as usize).saturating_sub(1).saturating_mul(self.limit as usize)
    }
}

/// One page of a list.
#[derive(Debug, Clone)]
pub struct Listed<T> {
    /// The page's things, in the list's order.
    pub items: Vec<T>,
    /// How many things all pages have.
    pub total: usize,
    /// Which page.
    pub page: Page,
}

words! {
    /// What assets can be sorted by; `-` before it turns the order round.
    SortField, "created_at, updated_at, name, asset_tag, status, each perhaps with - before it", {
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
    type Err = crate::domain::refusal::Refusal;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (descending, field) = text.strip_prefix('-').map_or((false, text), |field| (true, field));
        Ok(Self { field: field.parse()?, descending })
    }
}

/// What a thing is sorted by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank<'a> {
    Time(Timestamp),
    Text(Cow<'a, str>),
}

impl Rank<'_> {
    /// The rank on its own.
    pub(super) fn into_owned(self) -> Rank<'static> {
        match self {
            Self::Time(at) => Rank::Time(at),
            Self::Text(text) => Rank::Text(text.into_owned().into()),
        }
    }
}

/// An order other than the one in which rows stand.
#[derive(Debug, Clone, Copy)]
pub(super) struct Order<F> {
    rank: for<'a> fn(&View<'a, F>) -> Rank<'a>,
    descending: bool,
}

impl<F> Order<F> {
    pub(super) fn rank<'a>(&self, view: &View<'a, F>) -> Rank<'a> {
        (self.rank)(view)
    }

    /// Compares two ranks; equal ones stand by id.
    pub(super) fn compare(&self, a: (&Rank<'_>, Place), b: (&Rank<'_>, Place)) -> Ordering {
        let order = if self.descending { b.0.cmp(a.0) } else { a.0.cmp(b.0) };
        order.then_with(|| a.1.id().cmp(&b.1.id()))
    }
}

/// A test of a row's facts.
type Test<'w, F> = Box<dyn Fn(&F) -> bool + Send + Sync + 'w>;

/// Everything that a list asks of the rows of a kind.
pub(super) struct Wish<'w, F> {
    pub(super) words: Words,
    /// A test of the facts; `None` when every row passes.
    pub(super) keeps: Option<Test<'w, F>>,
    /// Texts that must be just so, by their place.
    pub(super) exact: Vec<(usize, String)>,
    /// `None`: as rows stand, newest first.
    pub(super) order: Option<Order<F>>,
}

impl<F> Default for Wish<'_, F> {
    fn default() -> Self {
        Self { words: Words::default(), keeps: None, exact: Vec::new(), order: None }
    }
}

impl<F> Wish<'_, F> {
    /// Visits every row that is wanted, as rows stand.
    pub(super) fn scan(&self, shelf: &Shelf<F>, mut visit: impl FnMut(Spot)) {
        let keeps = |facts: &F| self.keeps.as_ref().is_none_or(|keeps| keeps(facts));
        shelf.scan(&self.words, keeps, |spot| {
            let has = |view: &View<'_, F>| self.exact.iter().all(|(place, text)| view.exact(*place) == text);
            if self.exact.is_empty() || shelf.view(spot).is_some_and(|view| has(&view)) {
                visit(spot);
            }
        });
    }

    /// How many rows are wanted, and those of the page.
    pub(super) fn choose<'s>(&self, shelf: &'s Shelf<F>, page: Page) -> (usize, Vec<View<'s, F>>) {
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
    pub(super) fn wish(&self, logical: Vec<Uuid>) -> Wish<'_, AssetFacts> {
        let (asset_type, model) = (self.asset_type_id.map(Id::uuid), self.model_id.map(Id::uuid));
        let (user, needs_serial) = (self.assigned_to.map(Id::uuid), self.serial_number.is_some());
        let is_kind = move |wanted: AssetKind, facts: &AssetFacts| {
            let is_logical = facts.asset_type.is_some_and(|id| logical.binary_search(&id).is_ok());
            is_logical == (wanted == AssetKind::Logical)
        };
        let keeps = move |facts: &AssetFacts| {
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
        let exact = [(AssetFacts::TAG, &self.asset_tag), (AssetFacts::SERIAL, &self.serial_number)];
        Wish {
            words: Words::of(self.q.as_deref()),
            keeps: if asks { Some(Box::new(keeps)) } else { None },
            exact: exact.into_iter().filter_map(|(place, text)| Some((place, text.clone()?))).collect(),
            order: self.sort.order(),
        }
    }
}

impl AssetSort {
    fn order(self) -> Option<Order<AssetFacts>> {
        let rank: for<'a> fn(&View<'a, AssetFacts>) -> Rank<'a> = match self.field {
            SortField::CreatedAt if self.descending => return None,
            SortField::CreatedAt => |view| Rank::Time(view.place.made_at()),
            SortField::UpdatedAt => |view| Rank::Time(view.facts.updated_at),
            SortField::Name => |view| Rank::Text(view.searched(AssetFacts::NAME).into()),
            SortField::AssetTag => |view| Rank::Text(view.exact(AssetFacts::TAG).into()),
            SortField::Status => |view| Rank::Text(view.facts.status.map_or("", Status::as_str).into()),
        };
        Some(Order { rank, descending: self.descending })
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
    pub(super) fn wish(&self) -> Wish<'_, UserFacts> {
        let keeps = |facts: &UserFacts| {
            self.role.is_none_or(|wanted| facts.role == Some(wanted))
                && self.is_active.is_none_or(|wanted| facts.is_active == wanted)
        };
        let asks = self.role.is_some() || self.is_active.is_some();
        let words = Words::of(self.q.as_deref());
        Wish { words, keeps: if asks { Some(Box::new(keeps)) } else { None }, ..Wish::default() }
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
    pub(super) fn wish(&self) -> Wish<'static, RunFacts> {
        let (status, asset, process) = (self.status, self.asset_id.map(Id::uuid), self.process_id.map(Id::uuid));
        let keeps = move |facts: &RunFacts| {
            let shown = status.map_or(facts.status != Some(InstanceStatus::Cancelled), |wanted| facts.status == Some(wanted));
            shown
                && asset.is_none_or(|wanted| facts.asset == Some(wanted))
                && process.is_none_or(|wanted| facts.process == Some(wanted))
        };
        Wish { keeps: Some(Box::new(keeps)), ..Wish::default() }
    }
}
