//! The columns of a list index, and their values from a record's fields.

use super::blocks::{Decoder, Encoder};
use super::change_event::Inconsistent;
use super::row::Row;
use crate::domain::record::{Kind, Record};
use crate::domain::values::id::{EventId, Id};
use crate::domain::values::time::Timestamp;
use crate::store::keys::{self, Item, Key, Section};
use crate::store::table::item::{UPDATED_AT, VERSION};
use aws_sdk_dynamodb::types::AttributeValue;
use uuid::Uuid;

#[derive(Debug, Clone, Copy)]
pub struct TextColumns {
    /// Searched without regard to case.
    pub searched: usize,
    /// Compared exactly.
    pub exact: usize,
}

/// The fixed-size values of a row, and the mapping of a record's fields to the row.
pub trait Columns: Clone + Default + Send + 'static {
    type Record: Record;
    /// The sections of the secondary index with these rows.
    const SECTIONS: &'static [Section];
    const TEXT_COLUMNS: TextColumns;

    /// Fields that lists don't need are ignored.
    ///
    /// # Errors
    ///
    /// Returns [`Inconsistent`] when this version of the service can't read the value.
    fn set_field(row: &mut Row<Self>, field: &str, value: Option<&str>) -> Result<(), Inconsistent>;

    /// Sets the time of the last change, if lists sort by it.
    fn set_updated_at(&mut self, _at: Timestamp) {}

    fn encode(&self, encoder: &mut Encoder);

    /// From a snapshot; `None` if [`Columns::encode`] can't have written it.
    fn decode(decoder: &mut Decoder<'_>) -> Option<Self>;
}

pub(super) fn empty_row<C: Columns>(id: Uuid) -> Row<C> {
    let TextColumns { searched, exact } = C::TEXT_COLUMNS;
    Row { id, version: 0, columns: C::default(), searched: vec![String::new(); searched], exact: vec![String::new(); exact] }
}

/// In its long or its short form.
pub fn parse_id(text: &str) -> Result<Uuid, Inconsistent> {
    let short = || EventId::from_short(text).map(Id::uuid);
    Uuid::try_parse(text).ok().or_else(short).ok_or(Inconsistent)
}

pub fn parse<T: std::str::FromStr>(text: &str) -> Result<T, Inconsistent> {
    text.parse().map_err(|_| Inconsistent)
}

pub fn id_and_version(kind: Kind, item: &Item) -> Result<(Uuid, u64), Inconsistent> {
    let id = Key::of(item).and_then(|key| keys::record_id(kind, &key)).ok_or(Inconsistent)?;
    let version = item.get(VERSION).and_then(|version| version.as_n().ok()).ok_or(Inconsistent)?;
    Ok((id, parse(version)?))
}

/// Texts and Booleans by name.
pub fn text_attributes(item: &Item) -> impl Iterator<Item = (&str, &str)> {
    item.iter().filter_map(|(name, value)| match value {
        AttributeValue::S(text) => Some((name.as_str(), text.as_str())),
        AttributeValue::Bool(flag) => Some((name.as_str(), if *flag { "true" } else { "false" })),
        _ => None,
    })
}

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
