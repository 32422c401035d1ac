//! The users that the operations of one request read and change: each sees the changes of those before it.

use shared::domain::record::{Record, Stored};
use shared::domain::user::User;
use shared::domain::values::id::UserId;
use shared::http::error::ApiError;
use shared::store::{BatchGet, StoreError, TenantStore, UnreadableRecord};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The users that the operations of a request need, read together.
#[derive(Default)]
pub(crate) struct UsersInBulk(Mutex<State>);

#[derive(Default)]
struct State {
    users: HashMap<UserId, Stored<User>>,
    unreadable: HashMap<UserId, UnreadableRecord>,
    /// Addresses are folded.
    by_email: HashMap<String, UserId>,
}

impl UsersInBulk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `emails` are folded. Takes a round trip, and another one before it for the addresses.
    pub(crate) async fn load(
        &self,
        reads: &TenantStore,
        mut ids: BTreeSet<UserId>,
        emails: &BTreeSet<String>,
    ) -> Result<(), StoreError> {
        let unique = |email: &String| User::unique_email(email.clone());
        let owners = reads.owners::<User>(&emails.iter().map(unique).collect::<Vec<_>>()).await?;
        ids.extend(owners.values());
        let found = reads.batch_get(BatchGet::new().with_all::<User>(ids.iter().copied())).await?;
        let mut state = self.state();
        for id in &ids {
            match found.get::<User>(Some(*id)) {
                Ok(Some(user)) => drop(state.users.insert(*id, user)),
                Ok(None) => drop(state.users.remove(id)),
                Err(StoreError::Unreadable(record)) => drop(state.unreadable.insert(*id, record)),
                Err(error) => return Err(error),
            }
        }
        state.by_email.retain(|email, _| !emails.contains(email));
        state.by_email.extend(owners);
        Ok(())
    }

    /// # Errors
    ///
    /// Returns [`ApiError::NotFound`] if there is none with this ID, and [`ApiError::Unreadable`] if the record is damaged.
    pub(crate) fn user(&self, id: UserId) -> Result<Stored<User>, ApiError> {
        let state = self.state();
        match state.unreadable.get(&id) {
            Some(record) => Err(ApiError::Unreadable(record.clone())),
            None => state.users.get(&id).cloned().ok_or(ApiError::NotFound),
        }
    }

    pub(crate) fn owner(&self, folded_email: &str) -> Option<UserId> {
        self.state().by_email.get(folded_email).copied()
    }

    pub(crate) fn put(&self, user: &Stored<User>) {
        let mut state = self.state();
        let id = user.value.id();
        state.by_email.retain(|_, owner| *owner != id);
        state.by_email.insert(user.value.email.folded(), id);
        state.users.insert(id, user.clone());
    }

    pub(crate) fn remove(&self, id: UserId) {
        let mut state = self.state();
        state.by_email.retain(|_, owner| *owner != id);
        state.users.remove(&id);
    }
}
