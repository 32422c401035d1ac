//! The list index: an in-memory, columnar copy of the fields that lists of a tenant's assets, users, process instances and
//! movements need. Lists are filtered, searched, sorted and counted here; the table remains the source of truth.
//!
//! - *Columns*: each record has a row with fixed-size values ([`Columns`]), texts to search and texts to compare. Only the
//!   records of a page are then read from the table.
//! - *Facets*: values that many rows share, such as the status, are stored once, with a row count. Totals and statistics by facet
//!   don't read the rows.
//! - *Coded columns*: locations, models and custom fields are dictionary-encoded: each text is stored once, and rows have its
//!   number. If custom fields exceed the memory budget, only they are dropped.
//! - *Segments*: rows are sorted newest first, in segments of at most 256, column by column, with all their texts in one string.
//!   A search skips segments that lack a trigram of a word, and scans the others sequentially. A change moves a few kilobytes,
//!   however many rows there are.
//! - *Change feed*: an index is loaded from the secondary index `list_index`. Before each list, the events since the last list
//!   are read consistently from the table and applied (`apply_events`).
//! - *Versions*: each event has the version of the record that it creates. So applying events is idempotent, and a missed event
//!   is detected.
//! - *Torn reads*: reads see the items of a transaction one by one. Events that don't continue from the index, and records that
//!   contradict it, are read again for as long as a transaction can take to become fully visible.
//! - *Inconsistency*: if a contradiction lasts longer, the index is discarded and loaded again. If that doesn't help, lists read
//!   the records themselves for a while, unless there are too many.
//! - *Memory*: an index that exceeds the budget is refused for a while, and so are its lists.
//!
//! docs/adr/0008-list-index.md has the reasons, the tolerated delays and the costs.

mod blocks;
mod change_event;
mod columns;
mod load;
mod refresh;
mod rows;
mod snapshot_writer;
mod snapshots;

use crate::domain::record::{Kind, Record};
use crate::store::keys::{Item, Section};
use blocks::{Decoder, Encoder};
pub(in crate::store) use change_event::ChangeEvent;
use change_event::Inconsistent;
use columns::empty_row;
pub(in crate::store) use columns::{
    AssetColumns, AssetFacet, AssetIndex, AssetVectors, InstanceColumns, InstanceFacet, LOCATION, MODEL, MovementColumns,
    UserColumns, UserFacet, row_from_item, summed,
};
pub(in crate::store) use load::OpenInstances;
pub(in crate::store) use refresh::{Freshness, ListIndexCache};
pub use rows::Wanted;
pub(in crate::store) use rows::{
    ColumnFilter, ColumnVectors, Columns, RowQuery, SearchTerms, SortBy, SortOrder, SortedRows, narrow, rows_of,
};
pub(in crate::store) use snapshot_writer::Pace;
pub use snapshot_writer::{MAX_SNAPSHOT_TIME, SnapshotReport};
use uuid::Uuid;

/// An in-memory index for lists of one kind.
pub trait ListIndex: Default + Send + 'static {
    type Entity: Record;
    /// The sections of the secondary index that the rows are in.
    const SECTIONS: &'static [Section];
    const HAS_SNAPSHOTS: bool = true;
    /// Whether the index removes records that still exist, and ignores their later events.
    const DROPS_ENDED: bool = false;
    /// Other kinds of records whose fields lists show. There are few of each, so they are read from the table itself.
    const JOINED_KINDS: &'static [Kind];

    /// Adds an item from the secondary index or, for a joined kind, from the table.
    ///
    /// # Errors
    ///
    /// Returns [`Inconsistent`] when this version of the service can't read the item.
    fn load_item(&mut self, kind: Kind, item: &Item) -> Result<(), Inconsistent>;

    /// `None` if the index doesn't have the record.
    fn version(&self, kind: Kind, id: Uuid) -> Option<u64>;

    /// Adds the event's record, or updates it to its next version.
    ///
    /// # Errors
    ///
    /// Returns [`Inconsistent`] when this version of the service can't read one of the new values.
    fn apply_change(&mut self, event: &ChangeEvent) -> Result<(), Inconsistent>;

    fn remove(&mut self, kind: Kind, id: Uuid);

    /// Frees unused memory that loading reserved.
    fn shrink_to_fit(&mut self);

    fn bytes(&self) -> usize;

    fn len(&self) -> usize;

    fn encode(&self, encoder: &mut Encoder);

    /// Reads an index from a snapshot; `None` if [`ListIndex::encode`] can't have written it.
    ///
    /// Without `with_optional`, omits optional parts, and doesn't read the rest of the snapshot.
    fn decode(decoder: &mut Decoder<'_>, with_optional: bool) -> Option<Self>;

    /// The part of [`ListIndex::bytes`] that is optional.
    fn optional_bytes(&self) -> usize {
        0
    }

    /// Permanently drops optional parts, which only some lists need. Returns whether there were any.
    fn leave_out(&mut self) -> bool {
        false
    }

    /// Whether the event removes its record from the index forever.
    fn is_removed_by(event: &ChangeEvent) -> bool {
        event.is_deletion()
    }

    /// Whether changes of this kind must be applied to the index.
    fn follows(kind: Kind) -> bool {
        kind == Self::Entity::KIND || Self::JOINED_KINDS.contains(&kind)
    }
}

impl<C: Columns> ListIndex for SortedRows<C> {
    type Entity = C::Record;
    const SECTIONS: &'static [Section] = C::SECTIONS;
    const JOINED_KINDS: &'static [Kind] = &[];

    fn load_item(&mut self, _: Kind, item: &Item) -> Result<(), Inconsistent> {
        let row = row_from_item::<C>(item)?;
        // A record that moves between sections while they are read may be found in both.
        if C::SECTIONS.len() == 1 || self.find(row.id).is_none_or(|present| present.version < row.version) {
            self.upsert(row);
        }
        Ok(())
    }

    fn version(&self, _: Kind, id: Uuid) -> Option<u64> {
        self.find(id).map(|row| row.version)
    }

    fn apply_change(&mut self, event: &ChangeEvent) -> Result<(), Inconsistent> {
        let mut row = self.get(event.record_id).unwrap_or_else(|| empty_row(event.record_id));
        for field in event.new_values()? {
            let (field, value) = field?;
            C::set_field(&mut row, field, value)?;
        }
        if let Some(fields) = event.new_object("custom_fields") {
            C::set_custom_fields(&mut row, fields);
        }
        row.version = event.version;
        if event.changes_shown_field::<C::Record>() {
            row.columns.set_updated_at(event.at);
        }
        self.upsert(row);
        Ok(())
    }

    fn remove(&mut self, _: Kind, id: Uuid) {
        SortedRows::remove(self, id);
    }

    fn shrink_to_fit(&mut self) {
        SortedRows::shrink_to_fit(self);
    }

    fn bytes(&self) -> usize {
        SortedRows::bytes(self)
    }

    fn len(&self) -> usize {
        SortedRows::len(self)
    }

    fn encode(&self, encoder: &mut Encoder) {
        SortedRows::encode(self, encoder);
    }

    fn decode(decoder: &mut Decoder<'_>, with_optional: bool) -> Option<Self> {
        SortedRows::decode(decoder, with_optional)
    }

    fn optional_bytes(&self) -> usize {
        SortedRows::optional_bytes(self)
    }

    fn leave_out(&mut self) -> bool {
        SortedRows::leave_out(self)
    }
}
