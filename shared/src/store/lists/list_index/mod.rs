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
    AssetColumns, AssetFacet, AssetIndex, InstanceColumns, InstanceFacet, LOCATION, MODEL, MovementColumns, UserColumns,
    UserFacet, row_from_item, summed,
};
pub(in crate::store) use load::OpenInstances;
pub(in crate::store) use refresh::{Freshness, ListIndexCache};
pub use rows::Wanted;
pub(in crate::store) use rows::{Columns, Filter, RowQuery, SearchTerms, SortBy, SortOrder, SortedRows};
pub use snapshot_writer::{MAX_SNAPSHOT_TIME, SnapshotReport};
pub(in crate::store) use snapshots::load::Pace;
use uuid::Uuid;

/// An in-memory index for lists of one kind.
pub trait ListIndex: Default + Send + 'static {
    type Entity: Record;
    /// The sections of the secondary index with their rows.
    const SECTIONS: &'static [Section];
    const HAS_SNAPSHOTS: bool = true;
    /// The index removes records that go on existing. Their later events don't concern it.
    const DROPS_ENDED: bool = false;
    /// Other kinds of record whose fields lists show. There are few of each, so they are read from the table itself.
    const JOINED_KINDS: &'static [Kind];

    /// The item is of the secondary index or, for a joined kind, of the table.
    ///
    /// # Errors
    ///
    /// Returns [`Inconsistent`] when this version of the service can't read the item.
    fn load_item(&mut self, kind: Kind, item: &Item) -> Result<(), Inconsistent>;

    /// `None` if the index does not have the record.
    fn version(&self, kind: Kind, id: Uuid) -> Option<u64>;

    /// Adds the event's record, or brings it to its next version.
    ///
    /// # Errors
    ///
    /// Returns [`Inconsistent`] when this version of the service can't read one of the new values.
    fn apply_change(&mut self, event: &ChangeEvent) -> Result<(), Inconsistent>;

    fn remove(&mut self, kind: Kind, id: Uuid);

    /// Frees the memory that loading reserved and does not need.
    fn shrink_to_fit(&mut self);

    fn bytes(&self) -> usize;

    fn len(&self) -> usize;

    fn encode(&self, encoder: &mut Encoder);

    /// From a snapshot; `None` if [`ListIndex::encode`] can't have written it.
    ///
    /// Without `with_optional`, what can be left out is, and the rest of the snapshot is not read.
    fn decode(decoder: &mut Decoder<'_>, with_optional: bool) -> Option<Self>;

    /// How much of [`ListIndex::bytes`] can be left out.
    fn optional_bytes(&self) -> usize {
        0
    }

    /// Frees the memory of what only some lists need, for good. Returns whether there was any.
    fn leave_out(&mut self) -> bool {
        false
    }

    /// The index does not have the event's record any more, and never will again.
    fn is_removed_by(event: &ChangeEvent) -> bool {
        event.is_deletion()
    }

    /// Changes of this kind must be applied to the index.
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
        // A record that moves to another section while they are read may be found in both.
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
