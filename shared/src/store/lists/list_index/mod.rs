//! The list index: a column-wise copy, in memory, of the fields of a tenant's assets, users, process instances and movements that
//! lists need. Lists are filtered, searched, sorted and counted here; the table remains the source of truth.
//!
//! - *Columns*: of each record a row has fixed-size values ([`Columns`]), texts to search and texts to compare. The
//!   records of a page are then read from the table.
//! - *Facets*: values that many rows share, such as the status, are stored once with the number of their rows. Totals and
//!   statistics by them take no look at the rows.
//! - *Coded columns*: places, models and custom fields are texts that many rows share. Each is stored once, and rows have its
//!   number. If custom fields exceed the memory, they alone are left out.
//! - *Segments*: rows are sorted newest first, in segments of at most 256, column by column, with all their texts in one
//!   string. A search skips segments that lack three letters of a word, and scans the others' memory in sequence. A change
//!   moves a few kilobytes, however many rows there are.
//! - *Change feed*: an index is loaded from the secondary index `list_index`. Before each list, the events since the last
//!   one are read consistently from the table and applied (`apply_events`).
//! - *Versions*: each event says which version of the record it made. An event that is applied twice changes nothing,
//!   and an event that was missed is noticed.
//! - *Torn reads*: reads see the items of a transaction one by one. Events that don't follow from the index, and records
//!   that contradict it, are read again for as long as a transaction may take to become visible as a whole.
//! - *Inconsistency*: an index that is contradicted for longer is discarded and loaded again. If that doesn't help, lists
//!   read the records themselves for a while, if there are few.
//! - *Memory*: an index that exceeds the budget is refused at once for a while, and lists with it.
//!
//! docs/adr/0008-list-index.md has the reasons, the delays that are allowed for, and the costs.

mod applied_events;
mod apply_events;
mod asset_columns;
mod asset_index;
mod blocks;
mod cache;
mod change_event;
mod columns;
mod index;
mod load;
mod open_instances;
mod other_columns;
mod partial_index;
mod records;
mod refresh;
mod refresh_error;
mod rows;
mod snapshot_writer;
mod snapshots;

pub(in crate::store) use asset_columns::{AssetColumns, AssetFacet, LOCATION, MODEL};
pub(in crate::store) use asset_index::{AssetIndex, summed};
pub(in crate::store) use cache::ListIndexCache;
pub(in crate::store) use change_event::ChangeEvent;
pub(in crate::store) use columns::row_from_item;
pub(in crate::store) use index::ListIndex;
pub(in crate::store) use open_instances::OpenInstances;
pub(in crate::store) use other_columns::{InstanceColumns, InstanceFacet, MovementColumns, UserColumns, UserFacet};
pub(in crate::store) use refresh::Freshness;
pub use rows::Wanted;
pub(in crate::store) use rows::{Columns, Filter, RowQuery, SearchTerms, SortBy, SortOrder, SortedRows};
pub use snapshot_writer::{MAX_SNAPSHOT_TIME, SnapshotReport};
pub(in crate::store) use snapshots::pace::Pace;
