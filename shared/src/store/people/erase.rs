//! Erasing a person, part by part. Each part can be repeated.

use super::held::Held;
use super::pass::PartAbout;
use crate::domain::assets::asset::Asset;
use crate::domain::history::chain::HistoryEntry;
use crate::domain::keys::api_key::ApiKey;
use crate::domain::people::{Erase, Erasure, PartEnd, Removed, actor_pointers};
use crate::domain::processes::instance::{ImageName, Instance};
use crate::domain::processes::movement::Movement;
use crate::domain::record::{Kind, Stored};
use crate::domain::signing::link::Link;
use crate::domain::user::User;
use crate::domain::values::id::UserId;
use crate::store::keys::Keys;
use crate::store::table::backoff::{MAX_ROUNDS, pause};
use crate::store::table::deadline::has_time_for_operation;
use crate::store::table::delays::{MAX_REQUEST, max_event_delay};
use crate::store::table::error::{StoreError, WriteError};
use crate::store::{ChangeContext, TenantStore, UnitOfWork};
use futures_util::{StreamExt, TryStreamExt, stream};
use std::collections::BTreeSet;
use uuid::Uuid;

/// The parts that a dry run of one request counts.
const MAX_COUNTED_PARTS: usize = 4;
/// Entries and records that are written at the same time.
const CONCURRENT: usize = 8;

/// What one part of an erasure has done.
struct Step {
    ended_pass: bool,
    is_done: bool,
    removed: Removed,
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

    /// Begins to erase a person, or goes on, after the person's own record was erased. Returns whether all is done.
    ///
    /// # Errors
    ///
    /// Returns [`WriteError::Store`] when the table or the object store does not respond in time. What was done until then stays
    /// done.
    pub async fn erase_part(&self, person: UserId, context: &ChangeContext) -> Result<(bool, Removed), WriteError> {
        if self.is_dry_run() {
            return self.remains(person, MAX_COUNTED_PARTS).await;
        }
        let mut removed = Removed::default();
        loop {
            let step = self.erase_next(person, context).await?;
            removed += step.removed;
            // Nobody has to come back for a part without anything, or for what came in the minute since the pass began.
            let goes_on = step.ended_pass || step.removed == Removed::default();
            if step.is_done || !goes_on || !has_time_for_operation() {
                return Ok((step.is_done, removed));
            }
        }
    }

    async fn erase_next(&self, person: UserId, context: &ChangeContext) -> Result<Step, WriteError> {
        let now = self.store.now();
        let state = self
            .change_erasure(person, |present| {
                present.map_or_else(|| Erasure::begun(person, now), |erasure| erasure.resumed(now)).part_begun()
            })
            .await?;
        let part = self.part_about(person, state.position, state.began_at).await?;
        let mut removed = Removed::default();
        if state.responses_until.is_none() {
            removed += self.erase_found(person, &part, context).await?;
        }
        let mut responses_until = None;
        if part.is_due() {
            (removed.responses, responses_until) = self.erase_responses(&part, state.responses_until.as_deref()).await?;
            self.forget_snapshots().await?;
        }
        let ended_pass = part.last.is_none() && responses_until.is_none();
        let end = PartEnd {
            position: part.last,
            responses_until,
            has_removed: removed != Removed::default(),
            at: self.store.now(),
            // Events can be written later than their ids say.
            next_pass: Keys::last_event_before(state.began_at.plus(-(max_event_delay() + MAX_REQUEST))),
        };
        let advanced = |present: Option<Erasure>| present.unwrap_or_else(|| state.clone()).advanced(&state, end.clone());
        let is_done = self.change_erasure(person, advanced).await?.is_done;
        Ok(Step { ended_pass, is_done, removed })
    }

    /// Erases what a part has found in records and entries.
    ///
    /// # Errors
    ///
    /// As [`TenantStore::erase_part`].
    pub(super) async fn erase_found(
        &self,
        person: UserId,
        part: &PartAbout,
        context: &ChangeContext,
    ) -> Result<Removed, WriteError> {
        let context = ChangeContext { idempotency: None, precondition: None, is_erasure: true, ..context.clone() };
        let (mut removed, mut images) = (Removed::default(), BTreeSet::new());
        for (kind, id) in &part.records {
            removed += match kind {
                Kind::User => self.erase_record::<User>(person, *id, &context, &mut images).await?,
                Kind::ApiKey => self.erase_record::<ApiKey>(person, *id, &context, &mut images).await?,
                Kind::Asset => self.erase_record::<Asset>(person, *id, &context, &mut images).await?,
                Kind::Link => self.erase_record::<Link>(person, *id, &context, &mut images).await?,
                Kind::Instance => self.erase_record::<Instance>(person, *id, &context, &mut images).await?,
                Kind::Movement => self.erase_record::<Movement>(person, *id, &context, &mut images).await?,
                _ => Removed::default(),
            };
        }
        removed.signatures = images.len();
        let actions = part.actions_on_others().map(|(entry, event)| (entry.clone(), actor_pointers(person, &event.actor)));
        removed.entries += self.erase_in_entries(person, actions.collect()).await?;
        Ok(removed)
    }

    /// Adds the images that it has deleted to `images`.
    async fn erase_record<T: Erase>(
        &self,
        person: UserId,
        id: Uuid,
        context: &ChangeContext,
        images: &mut BTreeSet<ImageName>,
    ) -> Result<Removed, WriteError> {
        let mut round = 0;
        let (held, is_changed) = loop {
            let held = self.held::<T>(person, id).await?;
            match self.rewrite(person, &held, context).await {
                Ok(is_changed) => break (held, is_changed),
                Err(WriteError::Stale) if round < MAX_ROUNDS => pause(&self.store, round).await,
                Err(error) => return Err(error),
            }
            round += 1;
        };
        // Before the entries, which name the images.
        self.erase_images(id, &held, images).await?;
        let entries = held.entries.into_iter().map(|(entry, _, about)| (entry, about));
        let entries = self.erase_in_entries(person, entries.collect()).await?;
        Ok(Removed { resources: is_changed.into(), entries, ..Removed::default() })
    }

    /// Returns whether the record had something about the person.
    async fn rewrite<T: Erase>(&self, person: UserId, held: &Held<T>, context: &ChangeContext) -> Result<bool, WriteError> {
        let Some(old) = &held.record else { return Ok(false) };
        let next = old.value.without(person, &held.traces, context.at);
        if next == old.value {
            return Ok(false);
        }
        let mut unit = UnitOfWork::new(self, context);
        unit.update(old, next)?;
        unit.commit().await.map(|()| true)
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
