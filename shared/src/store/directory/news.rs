//! Events as a directory reads them.

use super::book::{Book, Wrong};
use crate::domain::event::Event;
use crate::domain::record::{Kind, Record};
use crate::domain::time::Timestamp;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use uuid::Uuid;

/// What an event says happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Created,
    Updated,
    Deleted,
}

/// One change of one thing.
#[derive(Debug, Clone)]
pub struct News {
    pub kind: Kind,
    verb: Verb,
    pub id: Uuid,
    pub version: u64,
    pub at: Timestamp,
    changes: serde_json::Map<String, Value>,
}

impl News {
    /// Reads a stored entry.
    ///
    /// # Errors
    ///
    /// It says something that this version does not know: whoever wrote it may mean anything by it.
    pub fn read(entry: &str) -> Result<Self, Wrong> {
        let event: Event = serde_json::from_str(entry).map_err(|_| Wrong)?;
        let (noun, verb) = event.kind.split_once('.').ok_or(Wrong)?;
        let verb = match verb {
            "created" => Verb::Created,
            "updated" => Verb::Updated,
            "deleted" => Verb::Deleted,
            _ => return Err(Wrong),
        };
        let kind = Kind::ALL.iter().copied().find(|kind| kind.noun() == noun).ok_or(Wrong)?;
        Ok(Self { kind, verb, id: event.entity_id, version: event.version, at: event.at, changes: event.changes })
    }

    /// Whether a field changed that counts as a change.
    pub fn shows<T: Record>(&self) -> bool {
        self.changes.keys().any(|field| T::is_shown(field))
    }

    /// The fields that changed, with what they hold now; a field that is neither text nor flag is left out.
    ///
    /// # Errors
    ///
    /// A change without a new value.
    pub fn fields(&self) -> impl Iterator<Item = Result<(&str, Option<&str>), Wrong>> {
        self.changes.iter().filter_map(|(field, change)| match change.get("new") {
            None => Some(Err(Wrong)),
            Some(Value::Null) => Some(Ok((field.as_str(), None))),
            Some(Value::String(text)) => Some(Ok((field.as_str(), Some(text.as_str())))),
            Some(Value::Bool(flag)) => Some(Ok((field.as_str(), Some(if *flag { "true" } else { "false" })))),
            Some(_) => None,
        })
    }
}

/// Things that are gone, with the moment of hearing so: an older event of theirs may be read again.
pub type Gone = HashMap<Uuid, Timestamp>;

/// Brings a book up to date. Events that it has seen change nothing, whatever order they come in.
///
/// # Errors
///
/// The events don't follow from what the book holds: it missed something.
pub fn apply<B: Book>(book: &mut B, news: Vec<News>, gone: &mut Gone, now: Timestamp) -> Result<(), Wrong> {
    let mut things: BTreeMap<(Kind, Uuid), Vec<News>> = BTreeMap::new();
    for one in news {
        if B::follows(one.kind) && !gone.contains_key(&one.id) {
            things.entry((one.kind, one.id)).or_default().push(one);
        }
    }
    for ((kind, id), mut news) in things {
        if news.iter().any(|one| one.verb == Verb::Deleted) {
            book.remove(kind, id);
            gone.insert(id, now);
            continue;
        }
        news.sort_by_key(|one| one.version);
        for one in news {
            let known = book.version(kind, id).unwrap_or(0);
            // Clocks differ: an event may be read before the one that it follows, but never without it.
            if one.version > known + 1 || (known == 0) != (one.verb == Verb::Created) && one.version > known {
                return Err(Wrong);
            }
            if one.version > known {
                book.change(&one)?;
            }
        }
    }
    Ok(())
}
