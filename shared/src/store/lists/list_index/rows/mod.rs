//! The rows of a list index: sorted, searchable and counted.

mod coded;
mod facets;
#[cfg(test)]
mod properties;
mod row;
mod segment;
mod sorted_rows;

pub use coded::Wanted;
pub(super) use facets::Facet;
pub use row::{ColumnFilter, Columns, Row, RowQuery, rows_of};
pub(super) use row::{TextColumns, exact, set_cell};
pub(super) use segment::replace;
pub use segment::{ColumnVectors, SearchTerms, narrow};
pub use sorted_rows::{SortBy, SortOrder, SortedRows};
