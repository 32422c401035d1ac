//! Envelope encryption of the keys and secrets that sign: the table stores them encrypted. The configuration names the provider;
//! the crate `key_encryption` has them (docs/adr/0009-audit.md).

use crate::domain::values::id::TenantId;
use futures_util::future::BoxFuture;

type Cause = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, thiserror::Error)]
pub enum KeyEncryptionError {
    /// The provider is throttled or did not respond in time. A later attempt may succeed.
    #[error("key encryption is unavailable")]
    Unavailable(#[source] Cause),
    /// The provider rejected the request, or the ciphertext was not encrypted by it for this tenant.
    #[error("key encryption failed")]
    Rejected(#[source] Cause),
}

/// The use of a secret. A ciphertext is bound to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    ReceiptKey,
    WebhookSecret,
}

impl Purpose {
    /// A ciphertext is bound to this text, and permissions name it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReceiptKey => "asset-lifecycle receipt key",
            Self::WebhookSecret => "asset-lifecycle webhook secret",
        }
    }
}

/// A secret or its ciphertext.
pub type KeyBytes<'a> = BoxFuture<'a, Result<Vec<u8>, KeyEncryptionError>>;

/// Encrypts small secrets, each for one tenant and one purpose.
pub trait KeyEncryption: Send + Sync {
    /// The provider's name, which is stored with each encrypted key.
    fn name(&self) -> &'static str;

    /// # Errors
    ///
    /// Returns a [`KeyEncryptionError`] when the provider is unavailable or rejects the request.
    fn encrypt_key<'a>(&'a self, purpose: Purpose, tenant: TenantId, secret: &'a [u8]) -> KeyBytes<'a>;

    /// The secret was encrypted for the same tenant and purpose.
    ///
    /// # Errors
    ///
    /// Returns a [`KeyEncryptionError`] when the provider is unavailable, or the ciphertext is not of this tenant and purpose.
    fn decrypt_key<'a>(&'a self, purpose: Purpose, tenant: TenantId, ciphertext: &'a [u8]) -> KeyBytes<'a>;
}
