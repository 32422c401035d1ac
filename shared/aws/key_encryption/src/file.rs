//! Encryption with a key file, for machines without KMS.

use futures_util::future::{FutureExt, ready};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use shared::domain::values::id::TenantId;
use shared::key_encryption::{KeyBytes, KeyEncryption, KeyEncryptionError, Purpose};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

const KEY_BYTES: usize = 32;

/// Encrypts with AES-256-GCM (RFC 5116), which also authenticates the purpose and the tenant. A ciphertext starts with a random
/// nonce and ends with the tag.
pub struct FileKeyEncryption(LessSafeKey);

fn random<const N: usize>() -> Result<[u8; N], io::Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}

impl FileKeyEncryption {
    /// Generates a key that exists only in memory.
    ///
    /// # Errors
    ///
    /// Returns an I/O error when the system can't provide random bytes.
    pub fn in_memory() -> Result<Self, io::Error> {
        Self::from_key(&random::<KEY_BYTES>()?)
    }

    /// Reads the key file at `path`. If it doesn't exist, creates it with a new key, readable only by its owner.
    ///
    /// # Errors
    ///
    /// Returns an I/O error when the file can't be read or created, is readable by other users, or contains no valid key.
    pub fn open(path: &Path) -> Result<Self, io::Error> {
        match File::open(path) {
            Ok(file) => Self::read(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::create(path),
            Err(error) => Err(error),
        }
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
    }

    fn read(mut file: File) -> Result<Self, io::Error> {
        if file.metadata()?.permissions().mode() & 0o077 != 0 {
            return Err(io::Error::other("this key is readable by others; make it readable only by its owner (chmod 600)"));
        }
        let mut key = Vec::new();
        file.read_to_end(&mut key)?;
        Self::from_key(&key)
    }

    fn create(path: &Path) -> Result<Self, io::Error> {
        // Write the key to a draft file, and link the complete file to its final name. If two processes race, both use the key
        // that was linked first.
        let extension = random::<8>()?.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let draft = path.with_extension(extension);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        let written = file.write_all(&random::<KEY_BYTES>()?).and_then(|()| file.sync_all());
        let linked = written.and_then(|()| std::fs::hard_link(&draft, path));
        std::fs::remove_file(&draft)?;
        match linked {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Self::read(File::open(path)?),
        }
    }

    fn from_key(key: &[u8]) -> Result<Self, io::Error> {
        let key = UnboundKey::new(&AES_256_GCM, key).map_err(|_| io::Error::other("the key must be 32 bytes long"))?;
        Ok(Self(LessSafeKey::new(key)))
    }

    fn encrypt(&self, purpose: Purpose, tenant: TenantId, secret: &[u8]) -> Result<Vec<u8>, KeyEncryptionError> {
        let nonce = random::<NONCE_LEN>().map_err(|error| KeyEncryptionError::Unavailable(error.into()))?;
        let mut text = secret.to_vec();
        self.0
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(associated_data(purpose, tenant)), &mut text)
            .map_err(|_| KeyEncryptionError::Rejected("AES-GCM".into()))?;
        Ok([nonce.as_slice(), &text].concat())
    }

    fn decrypt(&self, purpose: Purpose, tenant: TenantId, ciphertext: &[u8]) -> Result<Vec<u8>, KeyEncryptionError> {
        let rejected =
            || KeyEncryptionError::Rejected("encrypted with another key or for another tenant, or modified since".into());
        let (nonce, text) = ciphertext.split_first_chunk::<NONCE_LEN>().ok_or_else(rejected)?;
        let mut text = text.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let secret =
            self.0.open_in_place(nonce, Aad::from(associated_data(purpose, tenant)), &mut text).map_err(|_| rejected())?;
        Ok(secret.to_vec())
    }
}

/// Returns the associated data that binds a ciphertext to its purpose and tenant.
fn associated_data(purpose: Purpose, tenant: TenantId) -> Vec<u8> {
    format!("{} {tenant}", purpose.as_str()).into_bytes()
}

impl KeyEncryption for FileKeyEncryption {
    fn name(&self) -> &'static str {
        "file"
    }

    fn encrypt_key<'a>(&'a self, purpose: Purpose, tenant: TenantId, secret: &'a [u8]) -> KeyBytes<'a> {
        ready(self.encrypt(purpose, tenant, secret)).boxed()
    }

    fn decrypt_key<'a>(&'a self, purpose: Purpose, tenant: TenantId, ciphertext: &'a [u8]) -> KeyBytes<'a> {
        ready(self.decrypt(purpose, tenant, ciphertext)).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::domain::values::id::Id;
    use shared::domain::values::time::Timestamp;

    fn tenant(n: u8) -> TenantId {
        TenantId::new(Timestamp::from_millis(0), [n; 10])
    }

    #[test]
    fn a_ciphertext_is_decrypted_only_unchanged_and_for_its_tenant() {
        let provider = FileKeyEncryption::in_memory().expect("a key");
        let ciphertext = provider.encrypt(Purpose::ReceiptKey, tenant(1), b"seed").expect("encrypted");
        assert!(!ciphertext.windows(4).any(|window| window == b"seed"));
        assert_eq!(provider.decrypt(Purpose::ReceiptKey, tenant(1), &ciphertext).expect("decrypted"), b"seed");
        assert!(provider.decrypt(Purpose::ReceiptKey, tenant(2), &ciphertext).is_err());
        assert!(FileKeyEncryption::in_memory().expect("a key").decrypt(Purpose::ReceiptKey, tenant(1), &ciphertext).is_err());
        for position in 0..ciphertext.len() {
            let mut changed = ciphertext.clone();
            changed[position] ^= 1;
            assert!(provider.decrypt(Purpose::ReceiptKey, tenant(1), &changed).is_err(), "byte {position}");
            assert!(provider.decrypt(Purpose::ReceiptKey, tenant(1), &ciphertext[..position]).is_err(), "{position} bytes");
        }
        assert_ne!(
            provider.encrypt(Purpose::ReceiptKey, tenant(1), b"seed").expect("encrypted"),
            ciphertext,
            "every nonce is new"
        );
    }

    #[test]
    fn a_key_file_is_created_once_and_for_its_owner_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("key");
        let ciphertext =
            FileKeyEncryption::open(&path).expect("created").encrypt(Purpose::ReceiptKey, tenant(1), b"seed").expect("encrypted");
        assert_eq!(std::fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o600);
        let reopened = FileKeyEncryption::open(&path).expect("read");
        assert_eq!(reopened.decrypt(Purpose::ReceiptKey, tenant(1), &ciphertext).expect("decrypted"), b"seed");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).expect("permissions");
        assert!(FileKeyEncryption::open(&path).err().expect("others may read it").to_string().contains("chmod 600"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("permissions");
        std::fs::write(&path, "short").expect("written");
        assert!(FileKeyEncryption::open(&path).err().expect("no key").to_string().contains("32 bytes"));
    }
}
