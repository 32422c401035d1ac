//! Signing links, and the keys that sign a tenant's receipts.

use crate::domain::receipts::key::{CurrentKey, EncryptedSeed, KEY_BYTES, ReceiptKeys, SigningKey};
use crate::domain::record::{Kind, Stored};
use crate::domain::signing::{Link, MAX_LINKS};
use crate::domain::user::Email;
use crate::domain::values::id::{Id, LinkId, ReceiptKeysId};
use crate::domain::values::time::Timestamp;
use crate::key_encryption::{KeyEncryption, KeyEncryptionError, Purpose};
use crate::store::keys::{Item, Key, Keys, record_id_of_sort_key};
use crate::store::lists::indexed_lists::{Page, PageRequest};
use crate::store::table::read::OWNER;
use crate::store::table::unit_of_work::{ChangeContext, UnitOfWork};
use crate::store::{BatchGet, Reader, StoreError, WriteError, Writer, pause};
use std::collections::HashSet;
use uuid::Uuid;

/// After this many conflicting attempts, the creation or replacement of a signing key fails.
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

impl Reader {
    /// Returns the slots for further links of `subject`, a process instance or movement. Takes one round trip.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time.
    pub async fn free_link_slots(&self, subject: Uuid) -> Result<Vec<u8>, StoreError> {
        let taken: HashSet<Key> = self.link_markers(subject).await?.iter().filter_map(Key::of).collect();
        let is_free = |slot: &u8| !taken.contains(&self.keys.unique(Kind::Link, &Link::unique_slot(subject, *slot)));
        Ok((0..MAX_LINKS).filter(is_free).collect())
    }

    /// Reads the markers of the subject's links, at most [`MAX_LINKS`].
    async fn link_markers(&self, subject: Uuid) -> Result<Vec<Item>, StoreError> {
        self.every(self.beginning(Keys::markers(Kind::Link, &Link::of_subject(subject)))).await
    }

    /// Lists link IDs, newest first. Includes every link whose creation was acknowledged before the call.
    async fn link_ids(&self, subject: Uuid) -> Result<Vec<LinkId>, StoreError> {
        let markers = self.link_markers(subject).await?;
        let owner = |marker: &Item| record_id_of_sort_key(Kind::Link, marker.get(OWNER)?.as_s().ok()?);
        let mut ids: Vec<LinkId> = markers.iter().filter_map(owner).map(LinkId::from_uuid).collect();
        ids.sort_unstable_by(|a, b| b.cmp(a));
        Ok(ids)
    }

    /// Returns the links of guests with this address, compared without case.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time.
    pub(in crate::store) async fn links_of_address(&self, address: &Email) -> Result<Vec<LinkId>, StoreError> {
        let markers = self.every(self.beginning(Keys::markers(Kind::Link, &Link::of_address(address)))).await?;
        let owner = |marker: &Item| {
            let id = LinkId::from_uuid(record_id_of_sort_key(Kind::Link, marker.get(OWNER)?.as_s().ok()?)?);
            let expected = self.keys.unique(Kind::Link, &Link::unique_address(address, id));
            (Key::of(marker)? == expected).then_some(id)
        };
        Ok(markers.iter().filter_map(owner).collect())
    }

    /// Lists the links of a process instance or movement, newest first. Takes two round trips.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] when the table can't be read.
    pub async fn list_links(&self, subject: Uuid, request: PageRequest) -> Result<Page<Stored<Link>>, StoreError> {
        let ids = self.link_ids(subject).await?;
        let Page { items, total, request, mut unreadable, .. } = Page::cut_from(ids, request);
        let links = self.batch_get(BatchGet::new().with_all::<Link>(items.iter().copied())).await?;
        let mut page = Vec::new();
        for id in items {
            match links.get::<Link>(Some(id)) {
                Ok(link) => page.extend(link),
                Err(error) => unreadable.extend(error.unreadable_id()?),
            }
        }
        Ok(Page::new(page, total, request, unreadable))
    }

    /// Reads the tenant's receipt keys; `None` if the tenant has no keys yet.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] when the keys can't be read.
    pub async fn receipt_keys(&self) -> Result<Option<Stored<ReceiptKeys>>, StoreError> {
        // A tenant has only one such record, so its ID doesn't matter.
        self.get(ReceiptKeysId::from_uuid(Uuid::nil())).await
    }

    async fn new_key(&self, key_encryption: &dyn KeyEncryption, since: Timestamp) -> Result<CurrentKey, KeyError> {
        let seed: [u8; KEY_BYTES] = self.store.random()?;
        let public_key = SigningKey::from_seed(&seed).and_then(|key| key.public()).map_err(StoreError::broken)?;
        let encrypted_seed = EncryptedSeed(key_encryption.encrypt_key(Purpose::ReceiptKey, self.id, &seed).await?);
        Ok(CurrentKey { public_key, encrypted_seed, encrypted_by: key_encryption.name().to_owned(), since })
    }
}

impl Writer {
    /// Returns the signing key for receipts. The first call creates the key; concurrent first calls return the same key.
    ///
    /// # Errors
    ///
    /// Returns [`KeyError::Encryption`] when the key can't be encrypted or decrypted, and [`KeyError::Write`] when the key can't
    /// be read or created.
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

    /// Replaces the signing key. Signatures made with the old key stay valid, but its private key is deleted.
    ///
    /// # Errors
    ///
    /// Returns [`KeyError::Encryption`] when the new key can't be encrypted, and [`KeyError::Write`] when the key can't be
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
}
