//! The rows of a list index: in order, searchable, and counted.

mod coded;
mod facets;
mod first_rows;
mod order;
#[cfg(test)]
mod properties;
mod row;
mod row_query;
mod search_terms;
mod segment;
mod sorted_rows;
mod texts;
mod trigrams;

pub use coded::Wanted;
pub(super) use facets::Facet;
pub use order::{SortBy, SortOrder};
pub use row::{Columns, Row};
pub(super) use row::{TextColumns, exact, set_cell};
pub use row_query::{Filter, RowQuery};
pub use search_terms::SearchTerms;
pub use sorted_rows::SortedRows;
