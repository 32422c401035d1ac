//! The values of rows from a record's fields.

use super::change_event::Inconsistent;
use super::rows::{Columns, Row, TextColumns};
use crate::domain::record::{Kind, Record};
use crate::domain::values::id::{EventId, Id};
use crate::store::keys::{self, Item, Key};
use crate::store::table::item::{UPDATED_AT, VERSION};
use aws_sdk_dynamodb::types::AttributeValue;
use uuid::Uuid;

pub(super) fn empty_row<C: Columns>(id: Uuid) -> Row<C> {
    let TextColumns { searched, exact } = C::TEXT_COLUMNS;
    Row {
        id,
        version: 0,
        facet: C::Facet::default(),
        columns: C::default(),
        searched: vec![String::new(); searched],
        exact: vec![String::new(); exact],
        coded: Vec::new(),
    }
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
