//! The keys that a tenant's receipts are signed with.

use crate::domain::receipts::key::{CurrentKey, EncryptedSeed, KEY_BYTES, ReceiptKeys, SigningKey};
use crate::domain::record::Stored;
use crate::domain::values::id::{Id, ReceiptKeysId};
use crate::domain::values::time::Timestamp;
use crate::key_encryption::{KeyEncryption, KeyEncryptionError, Purpose};
use crate::store::TenantStore;
use crate::store::table::backoff::pause;
use crate::store::table::change_context::ChangeContext;
use crate::store::table::error::{StoreError, WriteError};
use crate::store::table::unit_of_work::UnitOfWork;
use uuid::Uuid;

/// Attempts to create or replace the key while others do the same.
const MAX_TRIES: u32 = 5;

#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error(transparent)]
    Encryption(#[from] KeyEncryptionError),
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl From<StoreError> for KeyError {
    fn from(error: StoreError) -> Self {
        Self::Write(error.into())
    }
}

impl TenantStore {
    /// `None` if it has none yet.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] when the keys can't be read.
    pub async fn receipt_keys(&self) -> Result<Option<Stored<ReceiptKeys>>, StoreError> {
        // A tenant has one such record, whatever its id is.
        self.get(ReceiptKeysId::from_uuid(Uuid::nil())).await
    }

    /// The first call creates it; concurrent first calls return the same key.
    ///
    /// # Errors
    ///
    /// Returns [`KeyError::Encryption`] when the key can't be encrypted or decrypted, and [`KeyError::Write`] when it can't be
    /// read or created.
    pub async fn signing_key(&self, key_encryption: &dyn KeyEncryption, context: &ChangeContext) -> Result<SigningKey, KeyError> {
        for round in 0..MAX_TRIES {
            let keys = match self.receipt_keys().await? {
                Some(keys) => keys.value,
                None => {
                    let key = self.new_key(key_encryption, context.at).await?;
                    let mut unit = UnitOfWork::new(self, context);
                    let created = unit.create(ReceiptKeys::new(self.new_id(context.at)?, key))?;
                    match unit.commit().await {
                        Ok(()) => created.value,
                        Err(WriteError::Stale) => {
                            pause(&self.store, round).await;
                            continue;
                        }
                        Err(error) => return Err(error.into()),
                    }
                }
            };
            let seed = key_encryption.decrypt_key(Purpose::ReceiptKey, self.id, &keys.current.encrypted_seed.0).await?;
            let key = SigningKey::from_seed(&seed).map_err(StoreError::broken)?;
            if key.public().ok() != Some(keys.current.public_key) {
                return Err(StoreError::broken("the encrypted signing key does not match its public key").into());
            }
            return Ok(key);
        }
        Err(WriteError::Stale.into())
    }

    /// Replaces the signing key by a new one. Its signatures remain valid, but its private key is deleted.
    ///
    /// # Errors
    ///
    /// Returns [`KeyError::Encryption`] when the new key can't be encrypted, and [`KeyError::Write`] when it can't be
    /// written.
    pub async fn rotate_receipt_key(
        &self,
        key_encryption: &dyn KeyEncryption,
        context: &ChangeContext,
    ) -> Result<ReceiptKeys, KeyError> {
        let key = self.new_key(key_encryption, context.at).await?;
        for round in 0..MAX_TRIES {
            let mut unit = UnitOfWork::new(self, context);
            let keys = match self.receipt_keys().await? {
                Some(keys) => unit.update(&keys, keys.value.rotated(key.clone()))?,
                None => unit.create(ReceiptKeys::new(self.new_id(context.at)?, key.clone()))?,
            };
            match unit.commit().await {
                Ok(()) => return Ok(keys.value),
                Err(WriteError::Stale) => pause(&self.store, round).await,
                Err(error) => return Err(error.into()),
            }
        }
        Err(WriteError::Stale.into())
    }

    async fn new_key(&self, key_encryption: &dyn KeyEncryption, since: Timestamp) -> Result<CurrentKey, KeyError> {
        let seed: [u8; KEY_BYTES] = self.store.random()?;
        let public_key = SigningKey::from_seed(&seed).and_then(|key| key.public()).map_err(StoreError::broken)?;
        let encrypted_seed = EncryptedSeed(key_encryption.encrypt_key(Purpose::ReceiptKey, self.id, &seed).await?);
        Ok(CurrentKey { public_key, encrypted_seed, encrypted_by: key_encryption.name().to_owned(), since })
    }
}
