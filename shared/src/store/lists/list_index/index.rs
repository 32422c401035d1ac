//! The list index of one kind: its contents, and its changes by items and events.

use super::blocks::{Decoder, Encoder};
use super::change_event::{ChangeEvent, Inconsistent};
use super::columns::{empty_row, row_from_item};
use super::rows::{Columns, SortedRows};
use crate::domain::record::{Kind, Record};
use crate::store::keys::{Item, Section};
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

    /// The part of [`ListIndex::bytes`] that can be left out.
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
