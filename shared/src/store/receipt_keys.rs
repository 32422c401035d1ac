//! The keys that a tenant's receipts are signed with.

use super::TenantStore;
use super::error::{StoreError, WriteError};
use super::write::{Stamp, Work};
use crate::domain::id::{Id, ReceiptKeysId, TenantId};
use crate::domain::receipt_key::{CurrentKey, KEY_LENGTH, ReceiptKeys, Sealed, SigningKey};
use crate::domain::record::Stored;
use crate::domain::time::Timestamp;
use crate::seal::{SealError, Sealer};
use uuid::Uuid;

/// How often it is tried again when others make or replace the key at the same time.
const TRIES: u32 = 5;

/// Why there is no key to sign with.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The sealer.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The table.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl From<StoreError> for KeyError {
    fn from(error: StoreError) -> Self {
        Self::Write(error.into())
    }
}

impl TenantStore {
    /// The tenant's keys, if it has any yet.
    ///
    /// # Errors
    ///
    /// The table.
    pub async fn receipt_keys(&self) -> Result<Option<Stored<ReceiptKeys>>, StoreError> {
        // There is one such record, whatever its id.
        self.get(ReceiptKeysId::from_uuid(Uuid::nil())).await
    }

    /// The key that signs now. The first who asks makes it; of two at once one does, and both get the same.
    ///
    /// # Errors
    ///
    /// The sealer and the table.
    pub async fn signing_key(&self, sealer: &dyn Sealer, stamp: &Stamp) -> Result<SigningKey, KeyError> {
        for _ in 0..TRIES {
            let keys = match self.receipt_keys().await? {
                Some(keys) => keys.value,
                None => {
                    let key = self.new_key(sealer, stamp.at).await?;
                    let mut work = Work::new(self, stamp);
                    let made = work.create(ReceiptKeys::first(self.new_id(stamp.at)?, key))?;
                    match work.commit().await {
                        Ok(()) => made.value,
                        Err(WriteError::Stale) => continue,
                        Err(error) => return Err(error.into()),
                    }
                }
            };
            let seed = sealer.open(self.id, &keys.current.sealed.0).await?;
            let key = SigningKey::of(&seed).map_err(StoreError::broken)?;
            if key.public().ok() != Some(keys.current.public_key) {
                return Err(StoreError::broken("a sealed key that does not fit its public half").into());
            }
            return Ok(key);
        }
        Err(WriteError::Stale.into())
    }

    /// Replaces the key that signs by a new one. What the old one signed stays verifiable; its secret half is gone.
    ///
    /// # Errors
    ///
    /// The sealer and the table.
    pub async fn rotate_receipt_key(&self, sealer: &dyn Sealer, stamp: &Stamp) -> Result<ReceiptKeys, KeyError> {
        let key = self.new_key(sealer, stamp.at).await?;
        for _ in 0..TRIES {
            let mut work = Work::new(self, stamp);
            let keys = match self.receipt_keys().await? {
                Some(keys) => work.update(&keys, keys.value.rotated(key.clone()), false)?,
                None => work.create(ReceiptKeys::first(self.new_id(stamp.at)?, key.clone()))?,
            };
            match work.commit().await {
                Ok(()) => return Ok(keys.value),
                Err(WriteError::Stale) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(WriteError::Stale.into())
    }

    async fn new_key(&self, sealer: &dyn Sealer, since: Timestamp) -> Result<CurrentKey, KeyError> {
        let seed: [u8; KEY_LENGTH] = self.store.random()?;
        let public_key = SigningKey::of(&seed).and_then(|key| key.public()).map_err(StoreError::broken)?;
        let tenant: TenantId = self.id;
        let sealed = Sealed(sealer.seal(tenant, &seed).await?);
        Ok(CurrentKey { public_key, sealed, sealed_by: sealer.name().to_owned(), since })
    }
}
