//! Deduplicated blobs, which definitions, instances and asset types name by the hash of their text.

use super::TenantCheck;
use super::change::Change;
use crate::domain::catalog::custom_fields::FieldsSchema;
use crate::domain::history::event::Event;
use crate::domain::processes::process::{SYSTEM_PROCESSES, Steps};
use crate::domain::values::id::Id;
use crate::store::history::of_record::entry_of;
use crate::store::keys::{self, Item, Key};
use crate::store::table::deduplicated_blobs::{Blob, BlobKind, BlobName, blob_of, fill_in};
use crate::store::table::error::StoreError;
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::Value;
use uuid::Uuid;

impl TenantCheck<'_> {
    /// Reads all blobs. A tenant has about as many as definitions and asset types.
    pub(super) async fn scan_blobs(&mut self) -> Result<(), StoreError> {
        for (blob, prefix) in [(BlobKind::Steps, keys::STEPS), (BlobKind::Schema, keys::SCHEMAS)] {
            let mut pages = self.store.beginning(AttributeValue::S(prefix.to_owned())).into_paginator().send();
            while let Some(page) = pages.next().await {
                for item in page?.items.unwrap_or_default() {
                    self.scan_blob(blob, &item).await?;
                }
            }
        }
        Ok(())
    }

    async fn scan_blob(&mut self, blob: BlobKind, item: &Item) -> Result<(), StoreError> {
        let text = item.get(blob.attribute()).and_then(|text| text.as_s().ok()).cloned().unwrap_or_default();
        let name = (blob, blob.hash(&text));
        if Key::of(item).is_some_and(|key| key == self.store.blob_key(&name)) {
            self.blobs.insert(name, text);
            return Ok(());
        }
        let change = self.change().remove(item)?;
        let subject = format!("{} item {}", blob.noun(), Key::of(item).as_ref().map_or("", Key::sort));
        self.repair(subject, "its text has another hash", "removes it", change).await.map(drop)
    }

    /// A lost blob is made again from the history of the definition or asset type, which contains it; if that is lost too, it is
    /// missing in the item.
    pub(super) async fn with_blob(&mut self, item: Item) -> Result<Item, StoreError> {
        let Some(name) = blob_of(&item) else { return Ok(item) };
        if !self.blobs.contains_key(&name) {
            let owner = item.get("process_id").or(item.get("id")).and_then(|id| id.as_s().ok()?.parse().ok());
            let text = match owner {
                Some(owner) => self.lost_blob(owner, &name).await?,
                None => None,
            };
            if let Some(text) = text {
                let change = self.change().insert(self.store.blob_item(Blob { name: name.clone(), text: text.clone() }))?;
                let repair = "writes it again, as the history has it";
                if self.repair(format!("{} item {}", name.0.noun(), name.1), "it is lost", repair, change).await? {
                    self.blobs.insert(name, text);
                }
            }
        }
        Ok(self.with_known_blob(item))
    }

    pub(super) fn with_known_blob(&self, mut item: Item) -> Item {
        if let Some(name) = blob_of(&item)
            && let Some(text) = self.blobs.get(&name)
        {
            fill_in(&mut item, name.0, text);
        }
        item
    }

    /// Adds the blob of a record that is written, if its item is missing.
    pub(super) fn add_blob(&mut self, change: Change, blob: Option<Blob>) -> Result<Change, StoreError> {
        match blob {
            Some(blob) if !self.blobs.contains_key(&blob.name) => {
                self.blobs.insert(blob.name.clone(), blob.text.clone());
                change.insert(self.store.blob_item(blob))
            }
            _ => Ok(change),
        }
    }

    /// Looks for a blob in the events of its definition or asset type, and steps among the system processes.
    async fn lost_blob(&self, owner: Uuid, (blob, hash): &BlobName) -> Result<Option<String>, StoreError> {
        let mut candidates = Vec::new();
        for entry in self.entries(owner).await?.iter().filter_map(entry_of) {
            let Ok(event) = serde_json::from_str::<Event>(&entry.text) else { continue };
            let Some(change) = event.changes.get(blob.attribute()) else { continue };
            candidates.extend(["new", "old"].iter().filter_map(|side| blob_text(*blob, change.get(side)?)));
        }
        if *blob == BlobKind::Steps {
            let system = SYSTEM_PROCESSES.iter().filter_map(|it| it.process(Id::from_uuid(owner)).ok());
            candidates.extend(system.map(|process| String::from(process.steps)));
        }
        Ok(candidates.into_iter().find(|text| blob.hash(text) == *hash))
    }
}

/// `value` is the blob in the form of an event.
fn blob_text(blob: BlobKind, value: &Value) -> Option<String> {
    match blob {
        BlobKind::Steps => Steps::try_from(value.to_string()).ok().map(String::from),
        BlobKind::Schema => FieldsSchema::try_from(value.to_string()).ok().map(String::from),
    }
}
