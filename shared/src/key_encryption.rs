//! Sealing secrets that the table keeps: by whom is for the program to say (docs/adr/0009).

use crate::domain::id::TenantId;
use futures_util::future::BoxFuture;

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why something could not be sealed or opened.
#[derive(Debug, thiserror::Error)]
pub enum KeyEncryptionError {
    /// The key_encryption did not answer in time. Trying again later can help.
    #[error("the key_encryption did not answer in time")]
    Unavailable(#[source] Cause),
    /// It refused, or what it was given is not what it sealed for this tenant.
    #[error("the key_encryption refused")]
    Refused(#[source] Cause),
}

/// Encrypts small secrets and binds them to a tenant.
pub trait KeyEncryption: Send + Sync {
    /// Tells sealers apart; kept beside what is sealed.
    fn name(&self) -> &'static str;

    /// Seals a secret of a tenant.
    fn encrypt_key<'a>(&'a self, tenant: TenantId, secret: &'a [u8]) -> BoxFuture<'a, Result<Vec<u8>, KeyEncryptionError>>;

    /// Opens what was sealed for the same tenant.
    fn decrypt_key<'a>(&'a self, tenant: TenantId, sealed: &'a [u8]) -> BoxFuture<'a, Result<Vec<u8>, KeyEncryptionError>>;
}
