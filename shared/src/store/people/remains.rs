//! Erasing all at once, and counting what an erasure would remove, for the operator.

use super::PartAbout;
use crate::domain::people::{Erasure, Removed};
use crate::domain::values::id::UserId;
use crate::store::table::error::WriteError;
use crate::store::{ChangeContext, DryRun, TenantStore};

impl TenantStore {
    /// Erases a person from the beginning to the end, also what an earlier erasure should have done.
    ///
    /// # Errors
    ///
    /// As [`TenantStore::erase_part`]. A repetition does the rest.
    pub async fn erase_whole(&self, person: UserId) -> Result<Removed, WriteError> {
        let now = self.store.now();
        let begun = |present: Option<Erasure>| present.map_or_else(|| Erasure::begun(person, now), |it| it.restarted(now));
        self.change_erasure(person, begun).await?;
        let mut removed = Removed::default();
        loop {
            let (is_done, part) = self.erase_part(person, &ChangeContext::operator(self.store.now())).await?;
            removed += part;
            if is_done {
                return Ok(removed);
            }
        }
    }

    /// What [`TenantStore::erase_whole`] would remove, and whether that is all: at most `max_parts` are counted.
    ///
    /// # Errors
    ///
    /// As [`TenantStore::erase_part`].
    pub async fn remains(&self, person: UserId, max_parts: usize) -> Result<(bool, Removed), WriteError> {
        let (until, mut found) = (self.store.now(), PartAbout::new(person));
        for _ in 0..max_parts {
            let part = self.part_about(person, found.last, until).await?;
            found.records.extend(part.records);
            found.actions.extend(part.actions);
            found.last = part.last;
            if found.last.is_none() {
                break;
            }
        }
        Ok((found.last.is_none(), self.remains_in(person, &found).await?))
    }

    /// What an erasure would remove of this.
    ///
    /// # Errors
    ///
    /// As [`TenantStore::erase_part`].
    pub async fn remains_in(&self, person: UserId, found: &PartAbout) -> Result<Removed, WriteError> {
        let store = if self.is_dry_run() { self.clone() } else { self.clone().in_dry_run(DryRun::default()) };
        let mut removed = store.erase_found(person, found, &ChangeContext::operator(self.store.now())).await?;
        let mut until = None;
        loop {
            let (count, next) = store.erase_responses(found, until.as_deref()).await?;
            removed.responses += count;
            until = next;
            if until.is_none() {
                return Ok(removed);
            }
        }
    }
}
