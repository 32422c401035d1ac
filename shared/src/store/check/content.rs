//! Content items, which definitions, instances and asset types name by the hash of their text.

use super::TenantCheck;
use super::change::Change;
use crate::domain::assets::custom_fields::FieldsSchema;
use crate::domain::history::event::Event;
use crate::domain::processes::process::{SYSTEM_PROCESSES, Steps};
use crate::domain::values::id::Id;
use crate::store::history::of_record::entry_of;
use crate::store::keys::{self, Item, Key};
use crate::store::table::content_items::{Content, ContentName, ContentText, content_of, fill_in};
use crate::store::table::error::StoreError;
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::Value;
use uuid::Uuid;

impl TenantCheck<'_> {
    /// Reads all content. A tenant has about as much as definitions and asset types.
    pub(super) async fn scan_content(&mut self) -> Result<(), StoreError> {
        for (content, prefix) in [(Content::Steps, keys::STEPS), (Content::Schema, keys::SCHEMAS)] {
            let mut pages = self.store.beginning(AttributeValue::S(prefix.to_owned())).into_paginator().send();
            while let Some(page) = pages.next().await {
                for item in page?.items.unwrap_or_default() {
                    self.scan_content_item(content, &item).await?;
                }
            }
        }
        Ok(())
    }

    async fn scan_content_item(&mut self, content: Content, item: &Item) -> Result<(), StoreError> {
        let text = item.get(content.attribute()).and_then(|text| text.as_s().ok()).cloned().unwrap_or_default();
        let name = (content, content.hash(&text));
        if Key::of(item).is_some_and(|key| key == self.store.content_key(&name)) {
            self.content.insert(name, text);
            return Ok(());
        }
        let change = self.change().remove(item)?;
        let subject = format!("{} item {}", content.noun(), Key::of(item).as_ref().map_or("", Key::sort));
        self.repair(subject, "its text has another hash", "removes it", change).await.map(drop)
    }

    /// Returns a record's item with its content. Content whose item is lost is made again from the history of the
    /// definition or asset type, which contains it; if that is lost too, it is missing in the item.
    pub(super) async fn with_content(&mut self, item: Item) -> Result<Item, StoreError> {
        let Some(name) = content_of(&item) else { return Ok(item) };
        if !self.content.contains_key(&name) {
            let owner = item.get("process_id").or(item.get("id")).and_then(|id| id.as_s().ok()?.parse().ok());
            let text = match owner {
                Some(owner) => self.lost_content(owner, &name).await?,
                None => None,
            };
            if let Some(text) = text {
                let change =
                    self.change().insert(self.store.content_item(ContentText { name: name.clone(), text: text.clone() }))?;
                let repair = "writes it again, as the history has it";
                if self.repair(format!("{} item {}", name.0.noun(), name.1), "it is lost", repair, change).await? {
                    self.content.insert(name, text);
                }
            }
        }
        Ok(self.with_known_content(item))
    }

    /// Returns a record's item with the content that is known.
    pub(super) fn with_known_content(&self, mut item: Item) -> Item {
        if let Some(name) = content_of(&item)
            && let Some(text) = self.content.get(&name)
        {
            fill_in(&mut item, name.0, text);
        }
        item
    }

    /// Adds the content of a record that is written, if its item is missing.
    pub(super) fn add_content(&mut self, change: Change, content: Option<ContentText>) -> Result<Change, StoreError> {
        match content {
            Some(content) if !self.content.contains_key(&content.name) => {
                self.content.insert(content.name.clone(), content.text.clone());
                change.insert(self.store.content_item(content))
            }
            _ => Ok(change),
        }
    }

    /// Looks for content in the events of its definition or asset type, and steps among the system processes.
    async fn lost_content(&self, owner: Uuid, (content, hash): &ContentName) -> Result<Option<String>, StoreError> {
        let mut candidates = Vec::new();
        for entry in self.entries(owner).await?.iter().filter_map(entry_of) {
            let Ok(event) = serde_json::from_str::<Event>(&entry.text) else { continue };
            let Some(change) = event.changes.get(content.attribute()) else { continue };
            candidates.extend(["new", "old"].iter().filter_map(|side| content_text(*content, change.get(side)?)));
        }
        if *content == Content::Steps {
            let system = SYSTEM_PROCESSES.iter().filter_map(|it| it.process(Id::from_uuid(owner)).ok());
            candidates.extend(system.map(|process| String::from(process.steps)));
        }
        Ok(candidates.into_iter().find(|text| content.hash(text) == *hash))
    }
}

/// Returns content as its item has it, given as an event has it.
fn content_text(content: Content, value: &Value) -> Option<String> {
    match content {
        Content::Steps => Steps::from_json(&value.to_string()).ok().map(String::from),
        Content::Schema => FieldsSchema::try_from(value.to_string()).ok().map(String::from),
    }
}
