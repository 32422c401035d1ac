//! What lists are made from: a copy of a tenant's directory in memory, brought up to date by the events that were
//! written since (docs/adr/0008). A cache: the table stays the only truth.

mod asset_index;
mod cache;
mod change_event;
mod index;
mod other_columns;
mod refresh;
mod search_terms;
mod segment;
mod sorted_rows;

pub(super) use asset_index::{AssetColumns, AssetIndex};
pub(super) use cache::Cache;
pub(super) use index::{Columns, ListIndex, card};
pub(super) use other_columns::{InstanceColumns, MovementColumns, UserColumns};
pub(super) use refresh::{LAG, ObservedVersion, late};
pub(super) use search_terms::SearchTerms;
pub(super) use segment::{RowRef, SortKey};
pub(super) use sorted_rows::{RowPosition, SortedRows};
