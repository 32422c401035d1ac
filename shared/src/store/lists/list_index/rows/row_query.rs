//! Queries of a list index: filter, search, sort, count, and cut out a page.

use super::coded::{Selected, Wanted, is_selected};
use super::first_rows::FirstRows;
use super::order::SortOrder;
use super::row::{Columns, RowRef, nth_exact};
use super::search_terms::SearchTerms;
use super::segment::Segment;
use super::sorted_rows::{RowPosition, SortedRows};
use crate::domain::values::time::Timestamp;
use crate::store::lists::page::PageRequest;
use std::ops::ControlFlow;

pub type Filter<'q, T> = Box<dyn Fn(&T) -> bool + Send + Sync + 'q>;

/// The conditions and the order of a list. A row matches if all conditions hold.
pub struct RowQuery<'q, C: Columns> {
    /// Words that the searched texts must contain.
    pub terms: SearchTerms,
    /// `None` if every facet passes.
    pub facets: Option<Filter<'q, C::Facet>>,
    /// `None` if every row passes.
    pub columns: Option<Filter<'q, C>>,
    /// Exact texts that must have this value, by their column.
    pub exact: Vec<(usize, String)>,
    /// Values in coded columns.
    pub coded: Vec<Wanted>,
    /// Inclusive and exclusive bounds of the time of creation.
    pub created: (Option<Timestamp>, Option<Timestamp>),
    /// `None` for the default, newest first.
    pub order: Option<SortOrder<C>>,
}

/// The conditions of a query on the values of certain rows.
struct Selection {
    /// Whether each facet passes, by number; `None` if all pass.
    facets: Option<Vec<bool>>,
    coded: Vec<Selected>,
}

impl<C: Columns> Default for RowQuery<'_, C> {
    fn default() -> Self {
        Self {
            terms: SearchTerms::default(),
            facets: None,
            columns: None,
            exact: Vec::new(),
            coded: Vec::new(),
            created: (None, None),
            order: None,
        }
    }
}

impl<C: Columns> RowQuery<'_, C> {
    /// Every row matches.
    pub fn is_everything(&self) -> bool {
        self.facets.is_none() && self.is_of_facets()
    }

    /// Whether a row matches depends on its facet alone.
    fn is_of_facets(&self) -> bool {
        let has_values = !self.exact.is_empty() || !self.coded.is_empty() || self.created != (None, None);
        self.terms.is_empty() && self.columns.is_none() && !has_values
    }

    /// Visits every matching row, in the default order, until `visit` breaks.
    pub fn scan(&self, rows: &SortedRows<C>, mut visit: impl FnMut(RowPosition) -> ControlFlow<()>) {
        let selection = self.selection(rows);
        let mut segments = rows.segments().iter().enumerate();
        let _ = segments.try_for_each(|(at, segment)| self.scan_segment((at, segment), &selection, &mut visit));
    }

    fn selection(&self, rows: &SortedRows<C>) -> Selection {
        Selection {
            facets: self.facets.as_ref().map(|filter| rows.facets().select(filter).0),
            coded: self.coded.iter().map(|wanted| rows.coded().select(wanted)).collect(),
        }
    }

    fn scan_segment(
        &self,
        (at, segment): (usize, &Segment<C>),
        Selection { facets, coded }: &Selection,
        mut visit: impl FnMut(RowPosition) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let columns: Option<Vec<_>> = coded.iter().map(|selected| selected.in_segment(segment)).collect();
        let Some(coded) = columns.filter(|_| segment.may_have(&self.terms)) else { return ControlFlow::Continue(()) };
        let facets = facets.as_deref();
        let has_facet = |row: usize| {
            let facet = || segment.facets.get(row).map(|facet| *facet as usize);
            facets.is_none_or(|facets| facet().and_then(|facet| facets.get(facet)) == Some(&true))
        };
        let has_columns = |row| self.columns.as_ref().is_none_or(|filter| segment.columns.get(row).is_some_and(filter));
        let has_texts = |row| self.exact.iter().all(|(column, text)| nth_exact(segment.exact.get(row), *column) == Some(text));
        let has_values = |row| coded.iter().all(|column| is_selected(*column, row));
        let (from, before) = self.created;
        let is_created = |row: usize| {
            let created_at = || segment.keys.get(row).map(|key| key.created_at());
            from.is_none_or(|from| created_at() >= Some(from)) && before.is_none_or(|before| created_at() < Some(before))
        };
        segment.search(&self.terms, |row| {
            let is_match = has_facet(row) && has_values(row) && is_created(row) && has_columns(row) && has_texts(row);
            if is_match { visit(RowPosition::new(at, row)) } else { ControlFlow::Continue(()) }
        })
    }

    /// The number of matching rows, if that reads no rows.
    fn known_total(&self, rows: &SortedRows<C>) -> Option<usize> {
        self.is_of_facets().then(|| self.facets.as_ref().map_or(rows.len(), |filter| rows.facets().select(filter).1))
    }

    /// The number of matching rows, and those of the page.
    pub fn select<'r>(&self, rows: &'r SortedRows<C>, page: PageRequest) -> (usize, Vec<RowRef<'r, C>>) {
        let (skip, limit) = (page.skip(), page.limit as usize);
        let known_total = self.known_total(rows);
        let (total, positions) = match &self.order {
            _ if known_total.is_some_and(|total| total <= skip) => (0, Vec::new()),
            None if known_total == Some(rows.len()) => (0, rows.slice(skip, limit)),
            None => self.first_in_order(rows, skip, limit, known_total.is_some()),
            Some(order) => {
                let order = &order.of_rows(rows.coded());
                let mut first = FirstRows::new(rows, order, skip.saturating_add(limit));
                let (mut total, selection) = (0, self.selection(rows));
                // Matching rows that must be counted may be in any segment, or in few.
                let all = || rows.segments().iter().enumerate().collect();
                for (at, segment) in known_total.map_or_else(all, |_| rows.segments_by(order)) {
                    let mut is_wanted = known_total.map(|_| first.may_take_from(at));
                    if is_wanted == Some(false) {
                        continue;
                    }
                    let _ = self.scan_segment((at, segment), &selection, |position| {
                        total += 1;
                        if *is_wanted.get_or_insert_with(|| first.may_take_from(at)) {
                            first.offer(position);
                        }
                        ControlFlow::Continue(())
                    });
                }
                (total, first.finish(skip))
            }
        };
        let rows = positions.into_iter().filter_map(|position| rows.row(position)).collect();
        (known_total.unwrap_or(total), rows)
    }

    /// `limit` matching rows after the first `skip`, and the number of all, unless the caller knows it: then the scan ends with
    /// the page.
    fn first_in_order(&self, rows: &SortedRows<C>, skip: usize, limit: usize, is_total_known: bool) -> (usize, Vec<RowPosition>) {
        let (mut total, mut positions) = (0, Vec::new());
        self.scan(rows, |position| {
            if total >= skip && positions.len() < limit {
                positions.push(position);
            }
            total += 1;
            if is_total_known && positions.len() == limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        (total, positions)
    }
}
