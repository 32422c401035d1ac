//! What a function keeps between requests.

use crate::domain::custom_fields::Schemas;
use crate::domain::id::{EventId, Id};
use crate::domain::time::Timestamp;
use crate::key_encryption::KeyEncryption;
use crate::store::{Clock, Store};
use std::sync::Arc;

/// The table, the clock, the compiled schemas and who seals secrets; cheap to clone.
#[derive(Clone)]
pub struct App {
    store: Store,
    schemas: Arc<Schemas>,
    key_encryption: Option<Arc<dyn KeyEncryption>>,
}

impl App {
    /// An app on this table.
    #[must_use]
    pub fn new(store: Store) -> Self {
        Self { store, schemas: Arc::default(), key_encryption: None }
    }

    /// The app with somebody who seals secrets.
    #[must_use]
    pub fn with_key_encryption(self, key_encryption: Option<Arc<dyn KeyEncryption>>) -> Self {
        Self { key_encryption, ..self }
    }

    /// Who seals secrets; `None` where nobody was set up to.
    #[must_use]
    pub fn key_encryption(&self) -> Option<&dyn KeyEncryption> {
        self.key_encryption.as_deref()
    }

    /// The table.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Custom fields' schemas, compiled.
    #[must_use]
    pub fn schemas(&self) -> &Schemas {
        &self.schemas
    }

    /// A new id for a request.
    #[must_use]
    pub fn request_id(&self) -> String {
        // Without random bytes the id is still one of its millisecond.
        EventId::new(self.store.now(), self.store.random().unwrap_or_default()).to_string()
    }
}

/// The clock of the machine.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the one place where the time comes from")]
pub fn system_clock() -> Clock {
    Arc::new(|| Timestamp::from(chrono::Utc::now()))
}
