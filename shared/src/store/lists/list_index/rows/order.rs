//! The orders of lists.

use super::row::Columns;
use crate::domain::values::time::Timestamp;
use std::borrow::Cow;
use std::cmp::Ordering;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SortValue<'a> {
    Time(Timestamp),
    Text(Cow<'a, str>),
}

#[derive(Debug)]
pub enum SortBy<C: Columns> {
    CreatedAt,
    Time(fn(&C) -> Timestamp),
    Facet(fn(&C::Facet) -> &'static str),
    /// By one of the searched texts.
    Searched(usize),
    /// By one of the exact texts.
    Exact(usize),
}

/// An order other than the default.
#[derive(Debug)]
pub struct SortOrder<C: Columns> {
    pub sort_by: SortBy<C>,
    pub descending: bool,
}

impl<C: Columns> SortOrder<C> {
    pub fn compare_values(&self, a: &SortValue<'_>, b: &SortValue<'_>) -> Ordering {
        if self.descending { b.cmp(a) } else { a.cmp(b) }
    }
}
