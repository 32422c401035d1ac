//! The orders of lists.

use super::coded::CodedColumns;
use super::row::Columns;
use crate::domain::assets::listed::Cell;
use crate::domain::values::natural_order::natural_cmp;
use crate::domain::values::time::Timestamp;
use std::cmp::Ordering;

#[derive(Debug, Clone)]
pub enum SortValue<'a> {
    Time(Timestamp),
    Number(i64),
    /// Runs of digits in it compare as numbers.
    Text(&'a str),
    Cell(&'a Cell),
    /// Comes last, also in descending order.
    Missing,
}

#[derive(Debug)]
pub enum SortBy<C: Columns> {
    CreatedAt,
    Time(fn(&C) -> Timestamp),
    Number(fn(&C) -> Option<i64>),
    Facet(fn(&C::Facet) -> &'static str),
    /// By one of the searched texts.
    Searched(usize),
    /// By one of the exact texts.
    Exact(usize),
    /// By the coded column of this name.
    Coded(String),
}

/// An order other than the default.
#[derive(Debug)]
pub struct SortOrder<C: Columns> {
    pub sort_by: SortBy<C>,
    pub descending: bool,
}

/// An order of certain rows.
#[derive(Debug)]
pub struct RowOrder<'q, C: Columns> {
    pub(super) sort_by: &'q SortBy<C>,
    pub(super) descending: bool,
    /// The number of the coded column, if the rows have it.
    pub(super) column: Option<u32>,
}

impl<C: Columns> SortOrder<C> {
    pub fn of_rows(&self, coded: &CodedColumns) -> RowOrder<'_, C> {
        let column = if let SortBy::Coded(name) = &self.sort_by { coded.column(name) } else { None };
        RowOrder { sort_by: &self.sort_by, descending: self.descending, column }
    }
}

impl<C: Columns> RowOrder<'_, C> {
    pub fn compare_values(&self, a: &SortValue<'_>, b: &SortValue<'_>) -> Ordering {
        let ascending = match (a, b) {
            (SortValue::Missing, SortValue::Missing) => return Ordering::Equal,
            (SortValue::Missing, _) => return Ordering::Greater,
            (_, SortValue::Missing) => return Ordering::Less,
            (SortValue::Time(a), SortValue::Time(b)) => a.cmp(b),
            (SortValue::Number(a), SortValue::Number(b)) => a.cmp(b),
            (SortValue::Text(a), SortValue::Text(b)) => natural_cmp(a, b),
            (SortValue::Cell(a), SortValue::Cell(b)) => a.compare(b),
            // All values of an order are of one kind.
            _ => Ordering::Equal,
        };
        if self.descending { ascending.reverse() } else { ascending }
    }
}
