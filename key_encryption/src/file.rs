//! Sealing by a key of our own: for machines without a key service.

use crate::PURPOSE;
use futures_util::future::{BoxFuture, FutureExt, ready};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use shared::domain::id::TenantId;
use shared::key_encryption::{KeyEncryption, KeyEncryptionError};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// How long the key is.
const KEY: usize = 32;

/// Seals by AES-256-GCM (RFC 5116): a random nonce, then what is sealed with its tag. The tenant is authenticated.
pub struct FileKeyEncryption(LessSafeKey);

fn random<const N: usize>() -> Result<[u8; N], io::Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}

impl FileKeyEncryption {
    /// A key that is nowhere but in memory.
    ///
    /// # Errors
    ///
    /// The system has no random bytes.
    pub fn in_memory() -> Result<Self, io::Error> {
        Self::of(&random::<KEY>()?)
    }

    /// The key in `path`, which is made if it is not there, for its owner only.
    ///
    /// # Errors
    ///
    /// The file can't be read or made, others may read it, or it holds no key.
    pub fn open(path: &Path) -> Result<Self, io::Error> {
        let told = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        match File::open(path) {
            Ok(file) => Self::read(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::make(path),
            Err(error) => Err(error),
        }
        .map_err(told)
    }

    fn read(mut file: File) -> Result<Self, io::Error> {
        if file.metadata()?.permissions().mode() & 0o077 != 0 {
            return Err(io::Error::other("others may read this key; let its owner alone (chmod 600)"));
        }
        let mut key = Vec::new();
        file.read_to_end(&mut key)?;
        Self::of(&key)
    }

    fn make(path: &Path) -> Result<Self, io::Error> {
        // Whole or not at all: the name is given once the key is written; of two makers both use the first one's.
        let name = random::<8>()?.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let draft = path.with_extension(name);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        let written = file.write_all(&random::<KEY>()?).and_then(|()| file.sync_all());
        let named = written.and_then(|()| std::fs::hard_link(&draft, path));
        std::fs::remove_file(&draft)?;
        match named {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Self::read(File::open(path)?),
        }
    }

    fn of(key: &[u8]) -> Result<Self, io::Error> {
        let key = UnboundKey::new(&AES_256_GCM, key).map_err(|_| io::Error::other("it holds no key of 32 bytes"))?;
        Ok(Self(LessSafeKey::new(key)))
    }

    fn sealed(&self, tenant: TenantId, secret: &[u8]) -> Result<Vec<u8>, KeyEncryptionError> {
        let nonce = random::<NONCE_LEN>().map_err(|error| KeyEncryptionError::Unavailable(error.into()))?;
        let mut text = secret.to_vec();
        let done = self.0.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(about(tenant)), &mut text);
        done.map_err(|_| KeyEncryptionError::Refused("AES-GCM".into()))?;
        Ok([nonce.as_slice(), &text].concat())
    }

    fn opened(&self, tenant: TenantId, sealed: &[u8]) -> Result<Vec<u8>, KeyEncryptionError> {
        let refused = || KeyEncryptionError::Refused("sealed by another key, for another tenant, or changed since".into());
        let (nonce, text) = sealed.split_first_chunk::<NONCE_LEN>().ok_or_else(refused)?;
        let mut text = text.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let secret = self.0.open_in_place(nonce, Aad::from(about(tenant)), &mut text).map_err(|_| refused())?;
        Ok(secret.to_vec())
    }
}

/// What a secret is for.
fn about(tenant: TenantId) -> Vec<u8> {
    format!("{PURPOSE} {tenant}").into_bytes()
}

impl KeyEncryption for FileKeyEncryption {
    fn name(&self) -> &'static str {
        "file"
    }

    fn encrypt_key<'a>(&'a self, tenant: TenantId, secret: &'a [u8]) -> BoxFuture<'a, Result<Vec<u8>, KeyEncryptionError>> {
        ready(self.sealed(tenant, secret)).boxed()
    }

    fn decrypt_key<'a>(&'a self, tenant: TenantId, sealed: &'a [u8]) -> BoxFuture<'a, Result<Vec<u8>, KeyEncryptionError>> {
        ready(self.opened(tenant, sealed)).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::domain::id::Id;
    use shared::domain::time::Timestamp;

    fn tenant(n: u8) -> TenantId {
        TenantId::new(Timestamp::from_millis(0), [n; 10])
    }

    #[test]
    fn what_is_sealed_for_a_tenant_opens_for_it_and_unchanged_only() {
        let key_encryption = FileKeyEncryption::in_memory().expect("a key");
        let sealed = key_encryption.sealed(tenant(1), b"seed").expect("sealed");
        assert!(!sealed.windows(4).any(|window| window == b"seed"));
        assert_eq!(key_encryption.opened(tenant(1), &sealed).expect("opened"), b"seed");
        assert!(key_encryption.opened(tenant(2), &sealed).is_err());
        assert!(FileKeyEncryption::in_memory().expect("a key").opened(tenant(1), &sealed).is_err());
        for place in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[place] ^= 1;
            assert!(key_encryption.opened(tenant(1), &changed).is_err(), "byte {place}");
            assert!(key_encryption.opened(tenant(1), &sealed[..place]).is_err(), "{place} bytes");
        }
        assert_ne!(key_encryption.sealed(tenant(1), b"seed").expect("sealed"), sealed, "a nonce is used once");
    }

    #[test]
    fn a_file_is_made_once_and_for_its_owner_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("key");
        let sealed = FileKeyEncryption::open(&path).expect("made").sealed(tenant(1), b"seed").expect("sealed");
        assert_eq!(std::fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o600);
        assert_eq!(FileKeyEncryption::open(&path).expect("read").opened(tenant(1), &sealed).expect("opened"), b"seed");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).expect("permissions");
        assert!(FileKeyEncryption::open(&path).err().expect("others may read it").to_string().contains("chmod 600"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("permissions");
        std::fs::write(&path, "short").expect("written");
        assert!(FileKeyEncryption::open(&path).err().expect("no key").to_string().contains("32 bytes"));
    }
}
