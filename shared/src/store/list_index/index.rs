//! What a directory of some kind holds, and how events change it.

use super::change_event::ChangeEvent;
use super::segment::Row;
use super::sorted_rows::SortedRows;
use crate::domain::id::{EventId, Id};
use crate::domain::record::{Kind, Record};
use crate::domain::time::Timestamp;
use crate::store::item::{UPDATED_AT, VERSION};
use crate::store::keys::{self, Item, Key};
use aws_sdk_dynamodb::types::AttributeValue;
use uuid::Uuid;

/// A directory is not, or can't be, what the table is: load it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the directory and what is to be added to it do not fit")]
pub struct Inconsistent;

/// Everything that lists of one kind are made from.
pub trait ListIndex: Default + Send + 'static {
    /// What it lists.
    type Entity: Record;
    /// Kinds whose names it shows and that are few: read from the table itself.
    const BESIDE: &'static [Kind];

    /// Takes an item of the index or, for a kind beside, of the table.
    ///
    /// # Errors
    ///
    /// An item that this version does not understand.
    fn take(&mut self, kind: Kind, item: &Item) -> Result<(), Inconsistent>;

    /// The version of a thing that it holds.
    fn version(&self, kind: Kind, id: Uuid) -> Option<u64>;

    /// Adds a thing, or brings it to its next version.
    ///
    /// # Errors
    ///
    /// A value that this version does not understand.
    fn change(&mut self, news: &ChangeEvent) -> Result<(), Inconsistent>;

    /// Takes a thing out.
    fn remove(&mut self, kind: Kind, id: Uuid);

    /// Gives back what loading took too much.
    fn shrink(&mut self);

    /// What it takes of memory, in bytes.
    fn bytes(&self) -> usize;

    /// How many things it lists.
    fn len(&self) -> usize;

    /// Whether it must hear of changes of this kind.
    fn follows(kind: Kind) -> bool {
        kind == Self::Entity::KIND || Self::BESIDE.contains(&kind)
    }
}

/// The fixed columns of a kind, and where its fields go.
pub trait Columns: Clone + Default + Send + 'static {
    /// Of what.
    type Of: Record;
    /// How many texts are searched, and how many are compared.
    const TEXTS: (usize, usize);

    /// Puts a field's value where it belongs, if lists need it.
    ///
    /// # Errors
    ///
    /// A value that this version does not understand.
    fn set(card: &mut Row<Self>, field: &str, value: Option<&str>) -> Result<(), Inconsistent>;

    /// Notes when the thing was last changed, where lists sort by it.
    fn touch(&mut self, _at: Timestamp) {}
}

/// A thing of which nothing is known yet.
fn blank<F: Columns>(id: Uuid) -> Row<F> {
    let (searched, exact) = F::TEXTS;
    Row { id, version: 0, facts: F::default(), searched: vec![String::new(); searched], exact: vec![String::new(); exact] }
}

/// An id in either of its forms.
pub fn id_of(text: &str) -> Result<Uuid, Inconsistent> {
    let short = || EventId::from_short(text).map(Id::uuid);
    Uuid::try_parse(text).ok().or_else(short).ok_or(Inconsistent)
}

/// A word, a date or whatever else has a text form.
pub fn read<T: std::str::FromStr>(text: &str) -> Result<T, Inconsistent> {
    text.parse().map_err(|_| Inconsistent)
}

/// The thing that an item of its kind is of, and its version.
pub fn head(kind: Kind, item: &Item) -> Result<(Uuid, u64), Inconsistent> {
    let id = Key::of(item).and_then(|key| keys::record_id(kind, &key)).ok_or(Inconsistent)?;
    let version = item.get(VERSION).and_then(|version| version.as_n().ok()).ok_or(Inconsistent)?;
    Ok((id, read(version)?))
}

/// The attributes that are texts or flags.
pub fn texts(item: &Item) -> impl Iterator<Item = (&str, &str)> {
    item.iter().filter_map(|(name, value)| match value {
        AttributeValue::S(text) => Some((name.as_str(), text.as_str())),
        AttributeValue::Bool(flag) => Some((name.as_str(), if *flag { "true" } else { "false" })),
        _ => None,
    })
}

/// Reads an item of the index or of the table.
///
/// # Errors
///
/// An item that this version does not understand.
pub fn card<F: Columns>(item: &Item) -> Result<Row<F>, Inconsistent> {
    let (id, version) = head(F::Of::KIND, item)?;
    let mut card = Row { version, ..blank::<F>(id) };
    for (name, text) in texts(item) {
        if name == UPDATED_AT {
            card.facts.touch(read(text)?);
        } else {
            F::set(&mut card, name, Some(text))?;
        }
    }
    Ok(card)
}

impl<F: Columns> ListIndex for SortedRows<F> {
    type Entity = F::Of;
    const BESIDE: &'static [Kind] = &[];

    fn take(&mut self, _: Kind, item: &Item) -> Result<(), Inconsistent> {
        self.put(card(item)?);
        Ok(())
    }

    fn version(&self, _: Kind, id: Uuid) -> Option<u64> {
        self.find(id).map(|view| view.version)
    }

    fn change(&mut self, news: &ChangeEvent) -> Result<(), Inconsistent> {
        let mut card = self.get(news.id).unwrap_or_else(|| blank(news.id));
        for field in news.fields() {
            let (field, value) = field?;
            F::set(&mut card, field, value)?;
        }
        card.version = news.version;
        if news.shows::<F::Of>() {
            card.facts.touch(news.at);
        }
        self.put(card);
        Ok(())
    }

    fn remove(&mut self, _: Kind, id: Uuid) {
        SortedRows::remove(self, id);
    }

    fn shrink(&mut self) {
        SortedRows::shrink(self);
    }

    fn bytes(&self) -> usize {
        SortedRows::bytes(self)
    }

    fn len(&self) -> usize {
        SortedRows::len(self)
    }
}
