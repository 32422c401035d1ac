//! Erasing all at once, and counting what an erasure would remove, for the operator.

use super::{PartAbout, Removed};
use crate::domain::people::Erasure;
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
            let (state, part) = self.erase_part(person, &ChangeContext::operator(self.store.now())).await?;
            removed += part;
            if state.is_done {
                return Ok(removed);
            }
        }
    }

    /// What [`TenantStore::erase_whole`] would remove.
    ///
    /// # Errors
    ///
    /// As [`TenantStore::erase_part`].
    pub async fn remains(&self, person: UserId) -> Result<Removed, WriteError> {
        let (until, mut found, mut after) = (self.store.now(), PartAbout::new(person), None);
        loop {
            let part = self.part_about(person, after, until).await?;
            found.records.extend(part.records);
            found.actions.extend(part.actions);
            match part.last {
                Some(last) => after = Some(last),
                None => return self.remains_in(person, &found).await,
            }
        }
    }

    /// What an erasure would remove of this.
    ///
    /// # Errors
    ///
    /// As [`TenantStore::erase_part`].
    pub async fn remains_in(&self, person: UserId, found: &PartAbout) -> Result<Removed, WriteError> {
        let store = if self.is_dry_run() { self.clone() } else { self.clone().in_dry_run(DryRun::default()) };
        store.erase_found(person, found, &ChangeContext::operator(self.store.now())).await
    }
}
