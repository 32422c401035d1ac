//! Records whose item can't be read: they are restored from their histories.

use super::scan::ORDER;
use super::{TenantCheck, named};
use crate::domain::record::Kind;
use crate::domain::restore::Restore;
use crate::store::keys::Item;
use crate::store::table::error::StoreError;
use crate::store::table::item::VERSION;
use uuid::Uuid;

impl TenantCheck<'_> {
    /// Restores records that can't be read, as far as their histories suffice.
    pub(super) async fn check_unreadable(&mut self) -> Result<(), StoreError> {
        let unreadable = std::mem::take(&mut self.unreadable);
        // The sources of a record come before it.
        for kind in ORDER {
            for (id, (_, item, cause)) in unreadable.iter().filter(|(_, (of, ..))| *of == kind) {
                with_type!(kind, T => self.restore_unreadable::<T>(*id, item, cause).await?);
            }
        }
        Ok(())
    }

    async fn restore_unreadable<T: Restore>(&mut self, id: Uuid, item: &Item, cause: &str) -> Result<(), StoreError> {
        let subject = named((T::KIND, id));
        let restored = match self.past(id).await? {
            Some(past) => self.restored::<T>(id, &past, None).await?.ok(),
            None => None,
        };
        if let Some(stored) = restored {
            let repair = format!("restores it from its history, at version {}", stored.version);
            if !self.write(self.change(), Some(item), &stored, problem(cause), repair).await? {
                self.unknown.insert(id);
            }
        } else if self.is_unwritten(id, item) {
            let change = self.change().remove(item)?;
            let problem = "it can't be read, and its creation is not in its history: it was written in part";
            self.repair(subject, problem, "removes it", change).await?;
        } else {
            self.unrepaired.insert(id);
            self.unknown.insert(id);
            self.report_unreadable(T::KIND, subject, cause);
        }
        Ok(())
    }

    /// The record was being created: neither its event nor all of its other items were written.
    fn is_unwritten(&self, id: Uuid, item: &Item) -> bool {
        let is_first = item.get(VERSION).and_then(|version| version.as_n().ok()).is_some_and(|version| version == "1");
        is_first && !self.history_lengths.contains_key(&id)
    }

    pub(super) fn report_unreadable(&mut self, kind: Kind, subject: String, cause: &str) {
        let advice = match kind {
            Kind::Tenant => "its history does not say all of it; restore the table to another moment",
            Kind::ReceiptKeys => {
                "its history does not say all of it; receipts that were handed out can be verified with a copy of the \
                 public keys; for new ones, remove it with `admin record remove`"
            }
            _ => "its history does not say all of it; remove it with `admin record remove`",
        };
        self.report(subject, problem(cause), advice);
    }
}

fn problem(cause: &str) -> String {
    format!("it can't be read: {cause}")
}
