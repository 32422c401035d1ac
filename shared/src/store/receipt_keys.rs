//! The keys that a tenant's receipts are signed with.

use super::TenantStore;
use super::change_context::ChangeContext;
use super::error::{StoreError, WriteError};
use super::unit_of_work::UnitOfWork;
use crate::domain::id::{Id, ReceiptKeysId, TenantId};
use crate::domain::receipt_key::{CurrentKey, EncryptedSeed, KEY_LENGTH, ReceiptKeys, SigningKey};
use crate::domain::record::Stored;
use crate::domain::time::Timestamp;
use crate::key_encryption::{KeyEncryption, KeyEncryptionError};
use uuid::Uuid;

/// How often it is tried again when others make or replace the key at the same time.
const TRIES: u32 = 5;

/// Why there is no key to sign with.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The key_encryption.
    #[error(transparent)]
    Seal(#[from] KeyEncryptionError),
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
    /// The key_encryption and the table.
    pub async fn signing_key(&self, key_encryption: &dyn KeyEncryption, context: &ChangeContext) -> Result<SigningKey, KeyError> {
        for _ in 0..TRIES {
            let keys = match self.receipt_keys().await? {
                Some(keys) => keys.value,
                None => {
                    let key = self.new_key(key_encryption, context.at).await?;
                    let mut work = UnitOfWork::new(self, context);
                    let made = work.create(ReceiptKeys::first(self.new_id(context.at)?, key))?;
                    match work.commit().await {
                        Ok(()) => made.value,
                        Err(WriteError::Stale) => continue,
                        Err(error) => return Err(error.into()),
                    }
                }
            };
            let seed = key_encryption.decrypt_key(self.id, &keys.current.sealed.0).await?;
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
    /// The key_encryption and the table.
    pub async fn rotate_receipt_key(
        &self,
        key_encryption: &dyn KeyEncryption,
        context: &ChangeContext,
    ) -> Result<ReceiptKeys, KeyError> {
        let key = self.new_key(key_encryption, context.at).await?;
        for _ in 0..TRIES {
            let mut work = UnitOfWork::new(self, context);
            let keys = match self.receipt_keys().await? {
                Some(keys) => work.update(&keys, keys.value.rotated(key.clone()))?,
                None => work.create(ReceiptKeys::first(self.new_id(context.at)?, key.clone()))?,
            };
            match work.commit().await {
                Ok(()) => return Ok(keys.value),
                Err(WriteError::Stale) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(WriteError::Stale.into())
    }

    async fn new_key(&self, key_encryption: &dyn KeyEncryption, since: Timestamp) -> Result<CurrentKey, KeyError> {
        let seed: [u8; KEY_LENGTH] = self.store.random()?;
        let public_key = SigningKey::of(&seed).and_then(|key| key.public()).map_err(StoreError::broken)?;
        let tenant: TenantId = self.id;
        let sealed = EncryptedSeed(key_encryption.encrypt_key(tenant, &seed).await?);
        Ok(CurrentKey { public_key, sealed, sealed_by: key_encryption.name().to_owned(), since })
    }
}
