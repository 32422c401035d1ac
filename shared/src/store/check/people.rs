//! People who were erased, and of whom something is left: a restore has brought it back in part, or the erasure has not ended.

use super::scan::{RecordFacts, Role};
use super::{TenantCheck, named};
use crate::domain::history::chain::HistoryEntry;
use crate::domain::people::Removed;
use crate::domain::record::Kind;
use crate::domain::values::id::{Id, UserId};
use crate::store::people::PartAbout;
use crate::store::table::error::{StoreError, WriteError};

impl TenantCheck<'_> {
    /// Those whose records say so, and those whose erasure has begun.
    pub(super) async fn know_erased_people(&mut self) -> Result<(), StoreError> {
        let begun = self.store.erasures().await?.into_iter().map(|erasure| erasure.user_id);
        let is_erased = |(_, facts): &(_, &RecordFacts)| matches!(facts.role, Role::ErasedUser);
        let erased = self.of_kind(Kind::User).filter(is_erased).map(|(id, _)| UserId::from_uuid(id));
        self.erased = erased.chain(begun).map(|person| (person, PartAbout::new(person))).collect();
        Ok(())
    }

    pub(super) fn look_for_erased_people(&mut self, entry: &HistoryEntry) {
        for found in self.erased.values_mut() {
            found.add(entry);
        }
    }

    /// A dry erasure says what is left.
    pub(super) async fn check_people(&mut self) -> Result<(), StoreError> {
        for (person, found) in std::mem::take(&mut self.erased) {
            let problem = match self.store.remains_in(person, &found).await {
                Ok(remains) if remains == Removed::default() => continue,
                Ok(Removed { resources, entries, signatures, responses }) => format!(
                    "the person was erased, and is still named in {resources} records, {entries} entries of histories, {signatures} \
                     images and {responses} stored responses"
                ),
                Err(WriteError::Store(error @ StoreError::Unavailable(_))) => return Err(error),
                Err(error) => format!("the person was erased, and what is left can't be told: {error}"),
            };
            let advice = format!("erase the person again: `admin erase --tenant {} --user {person}`", self.store.id());
            self.report(named((Kind::User, person.uuid())), problem, advice);
        }
        Ok(())
    }
}
