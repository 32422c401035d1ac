//! The services that a function has: the table, the clock, key encryption and the queue, and what it keeps between requests.

mod verified_keys;

pub use verified_keys::{KnownKey, VerifiedKeys};

use crate::domain::values::id::{EventId, Id};
use crate::domain::values::time::Timestamp;
use crate::domain::webhooks::AddressPolicy;
use crate::key_encryption::KeyEncryption;
use crate::queue::Queue;
use crate::store::{Clock, Store};
use std::sync::Arc;

/// The state that a function keeps between requests. Cheap to clone.
#[derive(Clone)]
pub struct App(Arc<Parts>);

/// Shared by all clones of [`App`]. Every route has a clone.
#[derive(Clone)]
struct Parts {
    store: Store,
    verified_keys: Arc<VerifiedKeys>,
    key_encryption: Option<Arc<dyn KeyEncryption>>,
    queue: Option<Arc<dyn Queue>>,
    address_policy: AddressPolicy,
}

impl App {
    #[must_use]
    pub fn new(store: Store) -> Self {
        Self(Arc::new(Parts {
            store,
            verified_keys: Arc::default(),
            key_encryption: None,
            queue: None,
            address_policy: AddressPolicy::Public,
        }))
    }

    fn with(self, change: impl FnOnce(&mut Parts)) -> Self {
        let mut parts = Arc::unwrap_or_clone(self.0);
        change(&mut parts);
        Self(Arc::new(parts))
    }

    #[must_use]
    pub fn with_key_encryption(self, key_encryption: Option<Arc<dyn KeyEncryption>>) -> Self {
        self.with(|parts| parts.key_encryption = key_encryption)
    }

    #[must_use]
    pub fn with_queue(self, queue: Option<Arc<dyn Queue>>) -> Self {
        self.with(|parts| parts.queue = queue)
    }

    /// Sets which webhook addresses are permitted. By default, they must be public.
    #[must_use]
    pub fn with_address_policy(self, address_policy: AddressPolicy) -> Self {
        self.with(|parts| parts.address_policy = address_policy)
    }

    #[must_use]
    pub fn queue(&self) -> Option<&dyn Queue> {
        self.0.queue.as_deref()
    }

    #[must_use]
    pub fn address_policy(&self) -> AddressPolicy {
        self.0.address_policy
    }

    #[must_use]
    pub fn key_encryption(&self) -> Option<&dyn KeyEncryption> {
        self.0.key_encryption.as_deref()
    }

    #[must_use]
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    #[must_use]
    pub fn verified_keys(&self) -> &VerifiedKeys {
        &self.0.verified_keys
    }

    #[must_use]
    pub fn request_id(&self) -> String {
        // If there are no random bytes, the ID still contains the time in milliseconds.
        EventId::new(self.0.store.now(), self.0.store.random().unwrap_or_default()).to_string()
    }
}

#[must_use]
#[expect(clippy::disallowed_methods, reason = "the only place that reads the clock")]
pub fn system_clock() -> Clock {
    Arc::new(|| Timestamp::from(chrono::Utc::now()))
}
