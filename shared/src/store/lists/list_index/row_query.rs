//! Queries of a list index: filter, search, sort, count, and cut out a page.

use super::row::{RowRef, SortKey};
use super::search_terms::SearchTerms;
use super::sorted_rows::{RowPosition, SortedRows};
use crate::domain::values::time::Timestamp;
use crate::store::lists::page::PageRequest;
use std::borrow::Cow;
use std::cmp::Ordering;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SortValue<'a> {
    Time(Timestamp),
    Text(Cow<'a, str>),
}

impl SortValue<'_> {
    /// Without the reference to the row.
    pub fn into_owned(self) -> SortValue<'static> {
        match self {
            Self::Time(at) => SortValue::Time(at),
            Self::Text(text) => SortValue::Text(text.into_owned().into()),
        }
    }
}

pub type SortBy<C> = for<'a> fn(&RowRef<'a, C>) -> SortValue<'a>;

/// An order other than the default.
#[derive(Debug, Clone, Copy)]
pub struct SortOrder<C> {
    pub sort_by: SortBy<C>,
    pub descending: bool,
}

impl<C> SortOrder<C> {
    pub fn value<'a>(&self, row: &RowRef<'a, C>) -> SortValue<'a> {
        (self.sort_by)(row)
    }

    /// Compares two rows by their values, then by id.
    pub fn compare(&self, a: (&SortValue<'_>, SortKey), b: (&SortValue<'_>, SortKey)) -> Ordering {
        let order = if self.descending { b.0.cmp(a.0) } else { a.0.cmp(b.0) };
        order.then_with(|| a.1.id().cmp(&b.1.id()))
    }
}

pub type ColumnFilter<'q, C> = Box<dyn Fn(&C) -> bool + Send + Sync + 'q>;

/// The conditions and the order of a list. A row matches if all conditions hold.
pub struct RowQuery<'q, C> {
    /// Words that the searched texts must contain.
    pub terms: SearchTerms,
    /// `None` if every row passes.
    pub filter: Option<ColumnFilter<'q, C>>,
    /// Exact texts that must have this value, by their column.
    pub exact: Vec<(usize, String)>,
    /// `None` for the default, newest first.
    pub order: Option<SortOrder<C>>,
}

impl<C> Default for RowQuery<'_, C> {
    fn default() -> Self {
        Self { terms: SearchTerms::default(), filter: None, exact: Vec::new(), order: None }
    }
}

impl<C> RowQuery<'_, C> {
    /// Visits every matching row, in the default order.
    pub fn scan(&self, rows: &SortedRows<C>, mut visit: impl FnMut(RowPosition)) {
        let filter = |columns: &C| self.filter.as_ref().is_none_or(|filter| filter(columns));
        rows.scan(&self.terms, filter, |position| {
            let is_equal = |row: &RowRef<'_, C>| self.exact.iter().all(|(column, text)| row.exact_text(*column) == Some(text));
            if self.exact.is_empty() || rows.row(position).is_some_and(|row| is_equal(&row)) {
                visit(position);
            }
        });
    }

    /// The number of matching rows, and those of the page.
    pub fn select<'r>(&self, rows: &'r SortedRows<C>, page: PageRequest) -> (usize, Vec<RowRef<'r, C>>) {
        let (skip, limit) = (page.skip(), page.limit as usize);
        let mut total = 0;
        let positions = match &self.order {
            None if self.filter.is_none() && self.exact.is_empty() && self.terms.is_empty() => {
                total = rows.len();
                rows.slice(skip, limit)
            }
            None => {
                let mut positions = Vec::new();
                self.scan(rows, |position| {
                    if total >= skip && positions.len() < limit {
                        positions.push(position);
                    }
                    total += 1;
                });
                positions
            }
            Some(order) => {
                let mut positions = Vec::new();
                self.scan(rows, |position| positions.push(position));
                total = positions.len();
                rows.sorted_slice(positions, skip, limit, |a, b| {
                    order.compare((&order.value(a), a.sort_key), (&order.value(b), b.sort_key))
                })
            }
        };
        (total, positions.into_iter().filter_map(|position| rows.row(position)).collect())
    }
}
