//! Erasing a person, part by part. Each part can be repeated.

use super::pass::PartAbout;
use crate::domain::assets::asset::Asset;
use crate::domain::history::chain::HistoryEntry;
use crate::domain::keys::api_key::ApiKey;
use crate::domain::people::{Erase, Erasure, actor_pointers};
use crate::domain::processes::instance::Instance;
use crate::domain::processes::movement::Movement;
use crate::domain::record::{Kind, Stored};
use crate::domain::signing::link::Link;
use crate::domain::user::User;
use crate::domain::values::id::{Id, UserId};
use crate::store::table::backoff::pause;
use crate::store::table::error::{StoreError, WriteError};
use crate::store::{ChangeContext, TenantStore, UnitOfWork};
use futures_util::{StreamExt, TryStreamExt, stream};
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
        let actions = part.actions_on_others().map(|(entry, event)| (entry.clone(), actor_pointers(person, &event.actor)));
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

    /// The next list is made from the table, or from a snapshot that is written later.
    async fn forget_snapshots(&self) -> Result<(), StoreError> {
        let Some(objects) = self.store.snapshots.as_ref().filter(|_| !self.is_dry_run()) else { return Ok(()) };
        for key in self.snapshot_keys() {
            objects.delete(&key).await.map_err(|error| StoreError::Unavailable(error.to_string().into()))?;
        }
        Ok(())
    }
}
