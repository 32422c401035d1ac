//! Erasing a person, part by part. Each part can be repeated.

use super::held::Held;
use super::pass::PartAbout;
use crate::domain::assets::asset::Asset;
use crate::domain::history::chain::HistoryEntry;
use crate::domain::history::event::Event;
use crate::domain::keys::api_key::ApiKey;
use crate::domain::people::{Erase, Erasure, actor_pointers};
use crate::domain::processes::instance::{ImageName, Instance};
use crate::domain::processes::movement::Movement;
use crate::domain::record::{Kind, Stored};
use crate::domain::signing::link::Link;
use crate::domain::user::User;
use crate::domain::values::id::{Id, UserId};
use crate::store::keys::TYPE;
use crate::store::table::backoff::pause;
use crate::store::table::error::{StoreError, WriteError};
use crate::store::{ChangeContext, TenantStore, UnitOfWork};
use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::Value;
use std::collections::BTreeSet;
use std::ops::AddAssign;
use uuid::Uuid;

/// Attempts to change a record that others change meanwhile.
const MAX_ROUNDS: u32 = 6;
/// Entries and records that are written at the same time.
const CONCURRENT: usize = 8;

/// How much a part has removed, or would remove.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Removed {
    /// Records that said something about the person.
    pub records: usize,
    /// Entries of histories.
    pub entries: usize,
    /// Images of signatures.
    pub images: usize,
    /// Stored responses.
    pub responses: usize,
}

impl AddAssign for Removed {
    fn add_assign(&mut self, other: Self) {
        let Self { records, entries, images, responses } = other;
        self.records += records;
        self.entries += entries;
        self.images += images;
        self.responses += responses;
    }
}

impl TenantStore {
    /// Erases the user's own record. Nothing may refer to it, unless the erasure is `forced`, as when it is repeated after a
    /// restore.
    ///
    /// # Errors
    ///
    /// As [`UnitOfWork::update_unreferenced`] and [`UnitOfWork::commit`].
    pub async fn erase_user(&self, old: &Stored<User>, context: &ChangeContext, forced: bool) -> Result<(), WriteError> {
        let context = ChangeContext { is_erasure: true, ..context.clone() };
        let (mut unit, next) = (UnitOfWork::new(self, &context), old.value.erased(context.at));
        let _ = if forced { unit.update(old, next)? } else { unit.update_unreferenced(old, next)? };
        unit.commit().await
    }

    /// Begins to erase a person, or goes on, after the person's own record was erased. Returns the state after this part.
    ///
    /// # Errors
    ///
    /// Returns [`WriteError::Store`] when the table or the object store does not respond in time. What was done until then stays
    /// done.
    pub async fn erase_part(&self, person: UserId, context: &ChangeContext) -> Result<(Erasure, Removed), WriteError> {
        let now = self.store.now();
        let state = self
            .change_erasure(person, |present| present.map_or_else(|| Erasure::begun(person, now), |erasure| erasure.resumed(now)))
            .await?;
        let part = self.part_about(person, state.position, state.began_at).await?;
        let removed = self.erase_found(person, &part, context).await?;
        if part.is_due() {
            self.forget_snapshots().await?;
        }
        let end = part.last.is_none().then(|| self.store.now());
        let state = self
            .change_erasure(person, |present| present.unwrap_or_else(|| state.clone()).advanced(&state, part.last, end))
            .await?;
        Ok((state, removed))
    }

    /// What a part finds, is erased.
    ///
    /// # Errors
    ///
    /// As [`TenantStore::erase_part`].
    pub async fn erase_found(&self, person: UserId, part: &PartAbout, context: &ChangeContext) -> Result<Removed, WriteError> {
        let context = ChangeContext { idempotency: None, precondition: None, is_erasure: true, ..context.clone() };
        let mut removed = Removed::default();
        for (kind, id) in &part.records {
            removed += match kind {
                Kind::User => self.erase_record::<User>(person, *id, &context).await?,
                Kind::ApiKey => self.erase_record::<ApiKey>(person, *id, &context).await?,
                Kind::Asset => self.erase_record::<Asset>(person, *id, &context).await?,
                Kind::Link => self.erase_record::<Link>(person, *id, &context).await?,
                Kind::Instance => self.erase_record::<Instance>(person, *id, &context).await?,
                Kind::Movement => self.erase_record::<Movement>(person, *id, &context).await?,
                _ => Removed::default(),
            };
        }
        // The histories of the records are done.
        let actions = part.actions.iter().filter(|(_, event)| !part.records.iter().any(|(_, id)| *id == event.entity_id));
        let actions = actions.map(|(entry, event)| (entry.clone(), actor_pointers(person, &event.actor)));
        removed.entries += self.erase_in_entries(person, actions.collect()).await?;
        if part.is_due() {
            let ids: BTreeSet<Uuid> = part.records.iter().map(|(_, id)| *id).chain([person.uuid()]).collect();
            removed.responses += self.erase_responses(&ids).await?;
        }
        Ok(removed)
    }

    async fn erase_record<T: Erase>(&self, person: UserId, id: Uuid, context: &ChangeContext) -> Result<Removed, WriteError> {
        let mut round = 0;
        let (held, is_changed) = loop {
            let held = self.held::<T>(person, id).await?;
            let Some(old) = &held.record else { break (held, false) };
            let next = old.value.without(person, &held.traces, context.at);
            if next == old.value {
                break (held, false);
            }
            let mut unit = UnitOfWork::new(self, context);
            unit.update(old, next)?;
            match unit.commit().await {
                Ok(()) => break (held, true),
                Err(WriteError::Stale) if round < MAX_ROUNDS => pause(&self.store, round).await,
                Err(error) => return Err(error),
            }
            round += 1;
        };
        // Before the entries, which name the images.
        let images = self.erase_images(id, &held).await?;
        let entries = held.entries.into_iter().map(|(entry, _, about)| (entry, about));
        let entries = self.erase_in_entries(person, entries.collect()).await?;
        Ok(Removed { records: is_changed.into(), entries, images, responses: 0 })
    }

    async fn erase_in_entries(&self, person: UserId, entries: Vec<(HistoryEntry, Vec<String>)>) -> Result<usize, StoreError> {
        let erased = stream::iter(entries).map(|(entry, about)| async move { self.erase_in_entry(person, entry, &about).await });
        let erased: Vec<bool> = erased.buffer_unordered(CONCURRENT).try_collect().await?;
        Ok(erased.into_iter().filter(|is_erased| *is_erased).count())
    }

    /// Deletes the images of the signatures that the entries of an instance say are about the person.
    async fn erase_images<T>(&self, id: Uuid, held: &Held<T>) -> Result<usize, StoreError> {
        let names: BTreeSet<ImageName> = held.entries.iter().flat_map(|(_, event, about)| images(id, event, about)).collect();
        let owner = held.entries.iter().find_map(|(_, event, _)| movement(event)).unwrap_or(id);
        let names: BTreeSet<ImageName> = names.into_iter().map(|name| ImageName { owner, ..name }).collect();
        let present = self.signature_images(names).await?;
        if !self.is_dry_run() {
            for name in present.keys() {
                let delete = self.store.client.delete_item().table_name(&self.store.table);
                let delete = delete.set_key(Some(self.keys.signature(name).item()));
                let delete = delete.condition_expression("#type = :type").expression_attribute_names("#type", TYPE);
                let deleted = delete.expression_attribute_values(":type", AttributeValue::S("signature".to_owned())).send().await;
                match deleted {
                    // Another request was faster.
                    Err(error) if error.as_service_error().is_some_and(|e| e.is_conditional_check_failed_exception()) => {}
                    result => drop(result?),
                }
            }
        }
        Ok(present.len())
    }

    /// The next list is made from the table, or from a snapshot that is written later.
    async fn forget_snapshots(&self) -> Result<(), StoreError> {
        let Some(objects) = self.store.snapshots.as_ref().filter(|_| !self.is_dry_run()) else { return Ok(()) };
        for key in self.snapshot_keys() {
            objects.delete(&key).await.map_err(|error| StoreError::Unavailable(error.to_string().into()))?;
        }
        Ok(())
    }
}

/// The images at these pointers of an instance's event.
fn images(owner: Uuid, event: &Event, about: &[String]) -> Vec<ImageName> {
    let changes = Value::Object(event.changes.clone());
    let image = |pointer: &String| {
        let pointer = pointer.strip_prefix("/changes")?;
        let (_, step) = pointer.rsplit_once('/')?;
        let hash = changes.pointer(pointer)?["sha256"].as_str()?;
        Some(ImageName { owner, step: step.to_owned(), hash: hash.to_owned() })
    };
    about.iter().filter_map(image).collect()
}

/// The movement that an instance is part of: the first event says so.
fn movement(event: &Event) -> Option<Uuid> {
    event.changes.get("movement_id")?["new"].as_str()?.parse().ok()
}
