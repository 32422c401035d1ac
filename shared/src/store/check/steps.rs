//! Steps items, which definitions and instances name by the hash of their text.

use super::TenantCheck;
use super::change::Change;
use crate::domain::event::Event;
use crate::domain::hex;
use crate::domain::process::{SYSTEM_PROCESSES, Steps};
use crate::store::error::StoreError;
use crate::store::history::entry_of;
use crate::store::keys::{self, Item, Key};
use crate::store::steps_items::{STEPS, StepsText, hash_of};
use aws_sdk_dynamodb::types::AttributeValue;
use uuid::Uuid;

impl TenantCheck<'_> {
    /// Reads all steps. A tenant has about as many as definitions.
    pub(super) async fn scan_steps(&mut self) -> Result<(), StoreError> {
        let mut pages = self.store.beginning(AttributeValue::S(keys::STEPS.to_owned())).into_paginator().send();
        while let Some(page) = pages.next().await {
            for item in page?.items.unwrap_or_default() {
                let text = item.get(STEPS).and_then(|text| text.as_s().ok()).cloned().unwrap_or_default();
                let hash = hex::sha256(&text);
                if Key::of(&item).is_some_and(|key| key == self.store.keys.steps(&hash)) {
                    self.steps.insert(hash, text);
                } else {
                    let change = self.change().remove(&item)?;
                    let subject = format!("steps item {}", Key::of(&item).as_ref().map_or("", Key::sort));
                    self.repair(subject, "its text has another hash", "removes it", change).await?;
                }
            }
        }
        Ok(())
    }

    /// Returns a record's item with its steps. Steps whose item is lost are made again from the history of the
    /// definition, which contains them; if that is lost too, they are missing in the item.
    pub(super) async fn with_steps(&mut self, mut item: Item) -> Result<Item, StoreError> {
        let Some(hash) = hash_of(&item).map(str::to_owned) else { return Ok(item) };
        if !self.steps.contains_key(&hash) {
            let process = item.get("process_id").or(item.get("id")).and_then(|id| id.as_s().ok()?.parse().ok());
            let text = match process {
                Some(process) => self.lost_steps(process, &hash).await?,
                None => None,
            };
            if let Some(text) = text {
                let steps = StepsText { hash: hash.clone(), text: text.clone() };
                let change = self.change().insert(self.store.steps_item(steps))?;
                let repair = "writes it again, as the history of the process definition has it";
                if self.repair(format!("steps item {hash}"), "it is lost", repair, change).await? {
                    self.steps.insert(hash.clone(), text);
                }
            }
        }
        if let Some(text) = self.steps.get(&hash) {
            item.insert(STEPS.to_owned(), AttributeValue::S(text.clone()));
        }
        Ok(item)
    }

    /// Returns a record's item with the steps that are known.
    pub(super) fn with_known_steps(&self, mut item: Item) -> Item {
        if let Some(text) = hash_of(&item).and_then(|hash| self.steps.get(hash)) {
            item.insert(STEPS.to_owned(), AttributeValue::S(text.clone()));
        }
        item
    }

    /// Adds the steps of a record that is written, if their item is missing.
    pub(super) fn add_steps(&mut self, change: Change, steps: Option<StepsText>) -> Result<Change, StoreError> {
        match steps {
            Some(steps) if !self.steps.contains_key(&steps.hash) => {
                self.steps.insert(steps.hash.clone(), steps.text.clone());
                change.insert(self.store.steps_item(steps))
            }
            _ => Ok(change),
        }
    }

    /// Looks for the steps with this hash in the events of a process definition, and among the system processes.
    async fn lost_steps(&self, process: Uuid, hash: &str) -> Result<Option<String>, StoreError> {
        let mut candidates = Vec::new();
        for entry in self.entries(process).await?.iter().filter_map(entry_of) {
            let Ok(event) = serde_json::from_str::<Event>(&entry.text) else { continue };
            let Some(change) = event.changes.get("steps") else { continue };
            candidates.extend(["new", "old"].iter().filter_map(|side| Steps::from_json(&change.get(side)?.to_string()).ok()));
        }
        let system =
            SYSTEM_PROCESSES.iter().filter_map(|it| Some(it.process(crate::domain::id::Id::from_uuid(process)).ok()?.steps));
        Ok(candidates.into_iter().chain(system).map(String::from).find(|text| hex::sha256(text) == hash))
    }
}
