//! The names, for people, of the records that events are about.

use crate::domain::history::event::Event;
use crate::domain::record::Kind;
use crate::store::TenantStore;
use crate::store::history::history_head::HistoryHead;
use crate::store::history::of_record::entry_of;
use crate::store::keys::{Item, Key};
use crate::store::table::error::StoreError;
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use uuid::Uuid;

/// The names of a record for people: the present ones or, if it was deleted, the last ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordNames {
    /// Of an instance, the asset's name; of a movement, its number.
    pub name: Option<String>,
    pub tag: Option<String>,
}

/// The fields of a record's name and tag.
const fn fields(kind: Kind) -> (Option<&'static str>, Option<&'static str>) {
    match kind {
        Kind::Asset => (Some("name"), Some("asset_tag")),
        Kind::Instance => (Some("asset_name"), Some("asset_tag")),
        Kind::User => (Some("display_name"), None),
        Kind::Movement => (Some("number"), None),
        Kind::Tenant | Kind::ApiKey | Kind::AssetType | Kind::Manufacturer | Kind::Model | Kind::Process => (Some("name"), None),
        Kind::ReceiptKeys | Kind::Link | Kind::Webhook => (None, None),
    }
}

impl RecordNames {
    fn of(kind: Kind, text: impl Fn(&str) -> Option<String>) -> Self {
        let (name, tag) = fields(kind);
        Self { name: name.and_then(&text), tag: tag.and_then(&text) }
    }

    fn of_item(kind: Kind, item: &Item) -> Self {
        Self::of(kind, |field| item.get(field)?.as_s().ok().cloned())
    }

    fn of_deleted(kind: Kind, changes: &Map<String, Value>) -> Self {
        Self::of(kind, |field| Some(changes.get(field)?["old"].as_str()?.to_owned()))
    }
}

impl TenantStore {
    /// Takes one round trip, and two more if some were deleted. Records that exist nowhere have none.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time.
    pub async fn record_names(&self, records: HashSet<(Kind, Uuid)>) -> Result<HashMap<(Kind, Uuid), RecordNames>, StoreError> {
        let of_record = |(kind, id): (Kind, Uuid)| (self.keys.record(kind, id), (kind, id));
        let keys: HashMap<Key, (Kind, Uuid)> = records.into_iter().map(of_record).collect();
        let items = self.items_by_record(keys.clone()).await?;
        let mut names: HashMap<_, _> =
            items.into_iter().map(|(record, item)| (record, RecordNames::of_item(record.0, &item))).collect();
        let missing = keys.into_values().filter(|record| !names.contains_key(record));
        let tombstones = missing.map(|(kind, id)| (self.keys.tombstone(kind, id), (kind, id))).collect();
        let mut deletions = HashMap::new();
        for (record, tombstone) in self.items_by_record(tombstones).await? {
            // A damaged one says nothing; the feed is not to fail for a name.
            deletions.extend(HistoryHead::of(&tombstone).ok().map(|head| (self.keys.event(head.last_event), record)));
        }
        for (record, item) in self.items_by_record(deletions).await? {
            let event = entry_of(&item).and_then(|entry| serde_json::from_str::<Event>(&entry.text).ok());
            names.extend(event.map(|event| (record, RecordNames::of_deleted(record.0, &event.changes))));
        }
        Ok(names)
    }

    /// Reads the items of these keys, each of which is about a record.
    async fn items_by_record(&self, keys: HashMap<Key, (Kind, Uuid)>) -> Result<Vec<((Kind, Uuid), Item)>, StoreError> {
        let items = self.items(&keys.keys().cloned().collect::<Vec<_>>()).await?;
        Ok(items.into_iter().filter_map(|(key, item)| Some((*keys.get(&key)?, item))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_sdk_dynamodb::types::AttributeValue;
    use serde_json::json;

    #[test]
    fn a_deletion_says_what_the_record_was_called() {
        let Value::Object(changes) = json!({"name": {"old": "a", "new": null}, "asset_tag": {"old": "T-1", "new": null}}) else {
            unreachable!()
        };
        let names = RecordNames { name: Some("a".to_owned()), tag: Some("T-1".to_owned()) };
        assert_eq!(RecordNames::of_deleted(Kind::Asset, &changes), names);
        assert_eq!(RecordNames::of_deleted(Kind::Process, &changes), RecordNames { tag: None, ..names });
        assert_eq!(RecordNames::of_deleted(Kind::User, &Map::new()), RecordNames::default());
    }

    #[test]
    fn an_item_says_what_the_record_is_called() {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let item = Item::from([("asset_name".to_owned(), text("a")), ("asset_tag".to_owned(), text("T-1"))]);
        let names = RecordNames { name: Some("a".to_owned()), tag: Some("T-1".to_owned()) };
        assert_eq!(RecordNames::of_item(Kind::Instance, &item), names);
        assert_eq!(RecordNames::of_item(Kind::ReceiptKeys, &item), RecordNames::default());
    }
}
