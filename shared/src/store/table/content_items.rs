//! Content items: large parts of records, beside them: the steps of process definitions and instances, and the schemas of
//! asset types.
//!
//! A definition can have 64 KB of steps, and each of its instances has the same ones; an asset type can have a schema of
//! 32 KB. As an attribute of the records, a write of any of them would cost by that size, and a list would read all of it.
//! Content is therefore an item of its own, `STEPS#<hash>` or `SCHEMA#<hash>`, which is written once and never changed or
//! deleted; records have its hash. Reads fill it in, from memory if possible. Lists read it only for their page.

use crate::domain::assets::custom_fields::schema_hash;
use crate::domain::record::Kind;
use crate::domain::values::hex;
use crate::domain::values::id::{EventId, Id};
use crate::domain::values::time::Timestamp;
use crate::store::PointReads;
use crate::store::keys::{Item, Key, TYPE};
use crate::store::lists::list_index::{Rereads, max_event_delay};
use crate::store::table::error::StoreError;
use crate::store::table::item::LAST_EVENT;
use crate::store::table::transaction::TransactionItem;
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A part of records that is stored in an item of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::store) enum Content {
    /// The steps of process definitions and instances.
    Steps,
    /// The schemas of asset types.
    Schema,
}

impl Content {
    pub(in crate::store) const ALL: [Self; 2] = [Self::Steps, Self::Schema];

    /// Returns what records of this kind have.
    fn of_kind(kind: Kind) -> Option<Self> {
        match kind {
            Kind::Process | Kind::Instance => Some(Self::Steps),
            Kind::AssetType => Some(Self::Schema),
            _ => None,
        }
    }

    /// Returns the attribute with the content: in its item, and in the item of a record once it is filled in.
    pub(in crate::store) fn attribute(self) -> &'static str {
        match self {
            Self::Steps => "steps",
            Self::Schema => "custom_fields_schema",
        }
    }

    /// Returns the attribute of a record that names its content.
    fn hash_attribute(self) -> &'static str {
        match self {
            Self::Steps => "steps_hash",
            Self::Schema => "custom_fields_schema_hash",
        }
    }

    /// Returns what the item is, for people who look at the table.
    pub(in crate::store) fn noun(self) -> &'static str {
        match self {
            Self::Steps => "steps",
            Self::Schema => "schema",
        }
    }

    /// Returns the hash that names this content.
    pub(in crate::store) fn hash(self, text: &str) -> String {
        match self {
            Self::Steps => hex::sha256(text),
            Self::Schema => schema_hash(text),
        }
    }

    /// Returns the hash of a record's content.
    fn hash_of(self, item: &Item) -> Option<&str> {
        item.get(self.hash_attribute())?.as_s().ok().map(String::as_str)
    }
}

/// The name of content: what it is, and its hash.
pub(in crate::store) type ContentName = (Content, String);

/// The content of a record that is being written, as JSON text.
pub(in crate::store) struct ContentText {
    pub(in crate::store) name: ContentName,
    pub(in crate::store) text: String,
}

/// Takes the content out of a record's attributes and puts its hash in its place.
pub(in crate::store) fn take_content(kind: Kind, attributes: &mut Item) -> Option<ContentText> {
    let content = Content::of_kind(kind)?;
    let AttributeValue::S(text) = attributes.remove(content.attribute())? else { return None };
    let hash = content.hash(&text);
    attributes.insert(content.hash_attribute().to_owned(), AttributeValue::S(hash.clone()));
    Some(ContentText { name: (content, hash), text })
}

/// Fills an empty list of steps in, and no schema, for code that needs the rest of a record only.
pub(in crate::store) fn without_content(mut item: Item) -> Item {
    if let Some((content, _)) = content_of(&item) {
        let empty = match content {
            Content::Steps => AttributeValue::S("[]".to_owned()),
            Content::Schema => AttributeValue::Null(true),
        };
        item.insert(content.attribute().to_owned(), empty);
    }
    item
}

/// Fills content in.
pub(in crate::store) fn fill_in(item: &mut Item, content: Content, text: &str) {
    item.insert(content.attribute().to_owned(), AttributeValue::S(text.to_owned()));
}

/// Returns the name of a record's content.
pub(in crate::store) fn content_of(item: &Item) -> Option<ContentName> {
    Content::ALL.into_iter().find_map(|content| Some((content, content.hash_of(item)?.to_owned())))
}

/// Returns whether a record has content that is not filled in.
pub(in crate::store) fn lacks_content(item: &Item) -> bool {
    // A hash that can't be read names content, too.
    Content::ALL.iter().any(|it| item.contains_key(it.hash_attribute()) && !item.contains_key(it.attribute()))
}

/// Returns when a record was last written, by the clock of its writer.
fn written_at(item: &Item) -> Option<Timestamp> {
    EventId::from_short(item.get(LAST_EVENT)?.as_s().ok()?).map(|event| event.timestamp())
}

impl PointReads {
    /// Returns the put of content; `None` if the tenant's table is known to have it.
    pub(in crate::store) fn content_put(&self, content: ContentText) -> Result<Option<TransactionItem>, StoreError> {
        if self.store.content.get(self.id, &content.name).is_some() {
            return Ok(None);
        }
        let attribute = content.name.0.attribute();
        self.store.put_content(self.content_item(content), attribute).map(Some)
    }

    /// Returns the item of content.
    pub(in crate::store) fn content_item(&self, ContentText { name, text }: ContentText) -> Item {
        let mut item = self.content_key(&name).item();
        item.insert(TYPE.to_owned(), AttributeValue::S(name.0.noun().to_owned()));
        fill_in(&mut item, name.0, &text);
        item
    }

    /// Returns the key of content.
    pub(in crate::store) fn content_key(&self, (content, hash): &ContentName) -> Key {
        match content {
            Content::Steps => self.keys.steps(hash),
            Content::Schema => self.keys.schema(hash),
        }
    }

    /// Fills in the content of those items that have its hash. An item whose content is lost stays without, so that it can't
    /// be read.
    pub(in crate::store) async fn fill_in_content(&self, items: &mut [Item]) -> Result<(), StoreError> {
        let mut names: BTreeMap<ContentName, Timestamp> = BTreeMap::new();
        for item in items.iter() {
            if let Some(name) = content_of(item) {
                let latest = names.entry(name).or_default();
                *latest = written_at(item).unwrap_or_default().max(*latest);
            }
        }
        let texts = self.content_texts(names).await?;
        for item in items {
            if let Some(name) = content_of(item)
                && let Some(text) = texts.get(&name)
            {
                fill_in(item, name.0, text);
            }
        }
        Ok(())
    }

    /// Returns the content with these names, as JSON text, except what is lost. What is not in memory takes a round trip,
    /// and up to 16 read units each, and so waits until the caller's key is verified.
    ///
    /// What names content may become visible before the content that the same transaction writes. So content is waited for
    /// if what names it was written lately; `names` has the times.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unsettled`] for content that may still become visible.
    pub(in crate::store) async fn content_texts(
        &self,
        names: BTreeMap<ContentName, Timestamp>,
    ) -> Result<BTreeMap<ContentName, Arc<str>>, StoreError> {
        let mut texts = BTreeMap::new();
        let mut missing = Vec::new();
        for (name, written_at) in names {
            match self.store.content.get(self.id, &name) {
                Some(text) => drop(texts.insert(name, text)),
                None => missing.push((name, written_at)),
            }
        }
        if !missing.is_empty() {
            self.verified.wait().await;
        }
        let mut rereads = Rereads::default();
        while !missing.is_empty() {
            let keys: Vec<Key> = missing.iter().map(|(name, _)| self.content_key(name)).collect();
            let mut found = self.items(&keys).await?;
            for ((name, _), key) in missing.iter().zip(&keys) {
                if let Some(AttributeValue::S(text)) = found.remove(key).and_then(|mut item| item.remove(name.0.attribute())) {
                    let text: Arc<str> = text.into();
                    // The table may never have what a dry run would write.
                    if self.dry_run.is_none() {
                        self.store.content.insert(self.id, name, Arc::clone(&text));
                    }
                    texts.insert(name.clone(), text);
                }
            }
            let now = self.store.now();
            missing.retain(|(name, written_at)| !texts.contains_key(name) && written_at.plus(max_event_delay()) >= now);
            if !missing.is_empty() && !rereads.pause(&self.store).await {
                return Err(StoreError::Unsettled("the content of a record"));
            }
        }
        Ok(texts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_definitions_instances_and_asset_types_have_content_items() {
        for content in Content::ALL {
            let item = || Item::from([(content.attribute().to_owned(), AttributeValue::S("[]".to_owned()))]);
            for kind in Kind::ALL {
                let mut attributes = item();
                let taken = take_content(*kind, &mut attributes);
                assert_eq!(taken.is_some(), Content::of_kind(*kind) == Some(content), "{kind:?}");
                assert_eq!(attributes == item(), taken.is_none(), "{kind:?}");
                assert_eq!(lacks_content(&attributes), taken.is_some(), "{kind:?}");
                assert_eq!(content_of(&attributes), taken.map(|taken| taken.name), "{kind:?}");
            }
        }
    }

    #[test]
    fn the_order_of_members_does_not_change_the_hash_of_a_schema() {
        let hash = |text| Content::Schema.hash(text);
        assert_eq!(hash(r#"{"a":1,"b":2}"#), hash(r#"{"b":2,"a":1}"#));
        assert_ne!(hash(r#"{"a":1,"b":2}"#), hash(r#"{"a":2,"b":1}"#));
    }
}
