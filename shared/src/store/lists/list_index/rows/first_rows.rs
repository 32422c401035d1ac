//! The first rows in an order. Of a million rows, a page needs few, so most are compared once and forgotten.

use super::order::{RowOrder, SortValue};
use super::row::Columns;
use super::sorted_rows::{RowPosition, SortedRows};
use std::cmp::Ordering;

type Candidate<'r> = (SortValue<'r>, RowPosition);

/// Keeps the first `limit`, in an order, of the rows that are offered.
pub struct FirstRows<'r, C: Columns> {
    rows: &'r SortedRows<C>,
    order: &'r RowOrder<'r, C>,
    limit: usize,
    /// At most twice the limit. Those behind the limit were offered since the last selection.
    candidates: Vec<Candidate<'r>>,
    /// After a selection, the candidate at the limit is the last one in the order: later rows that come after it are forgotten.
    is_selected: bool,
}

impl<'r, C: Columns> FirstRows<'r, C> {
    pub fn new(rows: &'r SortedRows<C>, order: &'r RowOrder<'r, C>, limit: usize) -> Self {
        Self { rows, order, limit, candidates: Vec::new(), is_selected: false }
    }

    /// False only if no row of the segment comes before the last one.
    pub fn may_take_from(&self, segment: usize) -> bool {
        let last = self.last().filter(|_| self.is_selected);
        let first = || self.rows.first_value(segment, self.order);
        last.is_none_or(|(last, _)| first().is_none_or(|first| self.order.compare_values(&first, last) != Ordering::Greater))
    }

    pub fn offer(&mut self, position: RowPosition) {
        let Some(value) = self.rows.sort_value(position, self.order) else { return };
        let candidate = (value, position);
        if self.is_selected
            && self.last().is_some_and(|last| compare(self.rows, self.order, &candidate, last) == Ordering::Greater)
        {
            return;
        }
        self.candidates.push(candidate);
        if self.candidates.len() >= self.limit.saturating_mul(2) {
            self.select();
        }
    }

    fn last(&self) -> Option<&Candidate<'r>> {
        self.candidates.get(self.limit.checked_sub(1)?)
    }

    /// Forgets the candidates that are not among the first.
    fn select(&mut self) {
        let (rows, order) = (self.rows, self.order);
        if let Some(last) = self.limit.checked_sub(1).filter(|last| *last < self.candidates.len()) {
            self.candidates.select_nth_unstable_by(last, |a, b| compare(rows, order, a, b));
            self.is_selected = true;
        }
        self.candidates.truncate(self.limit);
    }

    /// In the order, without the first `skip`.
    pub fn finish(mut self, skip: usize) -> Vec<RowPosition> {
        self.select();
        let (rows, order) = (self.rows, self.order);
        if skip >= self.candidates.len() {
            return Vec::new();
        }
        let (_, first, rest) = self.candidates.select_nth_unstable_by(skip, |a, b| compare(rows, order, a, b));
        rest.sort_unstable_by(|a, b| compare(rows, order, a, b));
        std::iter::once(&*first).chain(&*rest).map(|(_, position)| *position).collect()
    }
}

fn compare<C: Columns>(rows: &SortedRows<C>, order: &RowOrder<'_, C>, a: &Candidate<'_>, b: &Candidate<'_>) -> Ordering {
    let id = |position| rows.sort_key(position).map(|key| key.id());
    order.compare_values(&a.0, &b.0).then_with(|| id(a.1).cmp(&id(b.1)))
}
