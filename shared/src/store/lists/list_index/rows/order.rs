//! The orders of lists.

use super::row::{Columns, SortKey};
use crate::domain::values::time::Timestamp;
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

    /// Compares two rows by their values, then by id.
    pub fn compare(&self, a: (&SortValue<'_>, SortKey), b: (&SortValue<'_>, SortKey)) -> Ordering {
        self.compare_values(a.0, b.0).then_with(|| a.1.id().cmp(&b.1.id()))
    }
}
