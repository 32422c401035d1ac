//! What a list index of one kind contains, and how items and events change it.

use super::change_event::ChangeEvent;
use super::row::Row;
use super::snapshot_blocks::{Decoder, Encoder};
use super::snapshot_rows::{decode_rows, encode_rows};
use super::sorted_rows::SortedRows;
use crate::domain::record::{Kind, Record};
use crate::domain::values::id::{EventId, Id};
use crate::domain::values::time::Timestamp;
use crate::store::keys::{self, Item, Key, Section};
use crate::store::table::item::{UPDATED_AT, VERSION};
use aws_sdk_dynamodb::types::AttributeValue;
use uuid::Uuid;

/// The index contradicts the table or the change feed, or one of them has something that this version of the service
/// can't read. The index must be loaded again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the list index is inconsistent with the table")]
pub struct Inconsistent;

/// An in-memory index that lists of one kind are made from.
pub trait ListIndex: Default + Send + 'static {
    /// The records that it lists.
    type Entity: Record;
    /// The sections of the secondary index that have their rows.
    const SECTIONS: &'static [Section];
    /// Whether snapshots of it are worth their cost.
    const HAS_SNAPSHOTS: bool = true;
    /// Whether it removes records that go on existing. Later events of those don't concern it.
    const LISTS_SOME_FOR_A_TIME: bool = false;
    /// Other kinds of record whose fields lists show. There are few of each, so they are read from the table itself.
    const JOINED_KINDS: &'static [Kind];

    /// Adds a record from an item: of the secondary index or, for a joined kind, of the table.
    ///
    /// # Errors
    ///
    /// Returns [`Inconsistent`] when this version of the service can't read the item.
    fn load_item(&mut self, kind: Kind, item: &Item) -> Result<(), Inconsistent>;

    /// Returns the version of a record in the index; `None` if the index does not have the record.
    fn version(&self, kind: Kind, id: Uuid) -> Option<u64>;

    /// Adds the event's record, or brings it to its next version.
    ///
    /// # Errors
    ///
    /// Returns [`Inconsistent`] when this version of the service can't read one of the new values.
    fn apply_change(&mut self, event: &ChangeEvent) -> Result<(), Inconsistent>;

    /// Removes a record.
    fn remove(&mut self, kind: Kind, id: Uuid);

    /// Returns the memory that loading reserved and does not need.
    fn shrink_to_fit(&mut self);

    /// Returns how many bytes of memory the index uses.
    fn bytes(&self) -> usize;

    /// Returns the number of records that it lists.
    fn len(&self) -> usize;

    /// Writes the index into a snapshot.
    fn encode(&self, encoder: &mut Encoder);

    /// Reads an index from a snapshot; `None` if it can't be one that [`ListIndex::encode`] wrote.
    fn decode(decoder: &mut Decoder<'_>) -> Option<Self>;

    /// Whether the index does not have the event's record any more, and never will again.
    fn is_removed_by(event: &ChangeEvent) -> bool {
        event.is_deletion()
    }

    /// Whether changes of this kind must be applied to the index.
    fn follows(kind: Kind) -> bool {
        kind == Self::Entity::KIND || Self::JOINED_KINDS.contains(&kind)
    }
}

/// How many texts a row has.
#[derive(Debug, Clone, Copy)]
pub struct TextColumns {
    /// Texts that are searched, without regard to case.
    pub searched: usize,
    /// Texts that are compared exactly.
    pub exact: usize,
}

/// The fixed-size values of a row, and the mapping of a record's fields to the row.
pub trait Columns: Clone + Default + Send + 'static {
    /// The records that rows are of.
    type Record: Record;
    /// The sections of the secondary index that have their rows.
    const SECTIONS: &'static [Section];
    /// How many texts a row has.
    const TEXT_COLUMNS: TextColumns;

    /// Sets a field of the row. Fields that lists don't need are ignored.
    ///
    /// # Errors
    ///
    /// Returns [`Inconsistent`] when this version of the service can't read the value.
    fn set_field(row: &mut Row<Self>, field: &str, value: Option<&str>) -> Result<(), Inconsistent>;

    /// Sets the time of the last change, if lists sort by it.
    fn set_updated_at(&mut self, _at: Timestamp) {}

    /// Writes the fixed-size values into a snapshot.
    fn encode(&self, encoder: &mut Encoder);

    /// Reads the fixed-size values from a snapshot; `None` if they can't be what [`Columns::encode`] wrote.
    fn decode(decoder: &mut Decoder<'_>) -> Option<Self>;
}

fn empty_row<C: Columns>(id: Uuid) -> Row<C> {
    let TextColumns { searched, exact } = C::TEXT_COLUMNS;
    Row { id, version: 0, columns: C::default(), searched: vec![String::new(); searched], exact: vec![String::new(); exact] }
}

/// Parses an id in its long or its short form.
pub fn parse_id(text: &str) -> Result<Uuid, Inconsistent> {
    let short = || EventId::from_short(text).map(Id::uuid);
    Uuid::try_parse(text).ok().or_else(short).ok_or(Inconsistent)
}

/// Parses any other value.
pub fn parse<T: std::str::FromStr>(text: &str) -> Result<T, Inconsistent> {
    text.parse().map_err(|_| Inconsistent)
}

/// Returns the id and the version of the record that an item is of.
pub fn id_and_version(kind: Kind, item: &Item) -> Result<(Uuid, u64), Inconsistent> {
    let id = Key::of(item).and_then(|key| keys::record_id(kind, &key)).ok_or(Inconsistent)?;
    let version = item.get(VERSION).and_then(|version| version.as_n().ok()).ok_or(Inconsistent)?;
    Ok((id, parse(version)?))
}

/// Returns the attributes that are texts or Booleans, by name.
pub fn text_attributes(item: &Item) -> impl Iterator<Item = (&str, &str)> {
    item.iter().filter_map(|(name, value)| match value {
        AttributeValue::S(text) => Some((name.as_str(), text.as_str())),
        AttributeValue::Bool(flag) => Some((name.as_str(), if *flag { "true" } else { "false" })),
        _ => None,
    })
}

/// Reads a row from an item of the secondary index or of the table.
///
/// # Errors
///
/// Returns [`Inconsistent`] when this version of the service can't read the item.
pub fn row_from_item<C: Columns>(item: &Item) -> Result<Row<C>, Inconsistent> {
    let (id, version) = id_and_version(C::Record::KIND, item)?;
    let mut row = Row { version, ..empty_row::<C>(id) };
    for (name, text) in text_attributes(item) {
        if name == UPDATED_AT {
            row.columns.set_updated_at(parse(text)?);
        } else {
            C::set_field(&mut row, name, Some(text))?;
        }
    }
    Ok(row)
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
        for field in event.new_values() {
            let (field, value) = field?;
            C::set_field(&mut row, field, value)?;
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
        encode_rows(self, encoder);
    }

    fn decode(decoder: &mut Decoder<'_>) -> Option<Self> {
        decode_rows(decoder)
    }
}
