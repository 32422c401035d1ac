//! Envelope encryption of signing keys and secrets: the table stores them encrypted. The configuration selects a provider; the
//! crate `key_encryption` implements the providers (docs/adr/0009-audit.md).

use crate::domain::values::id::TenantId;
use futures_util::future::BoxFuture;

type Cause = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, thiserror::Error)]
pub enum KeyEncryptionError {
    /// The provider is throttled or did not respond in time. A retry may succeed.
    #[error("key encryption is unavailable")]
    Unavailable(#[source] Cause),
    /// The provider rejected the request, or the ciphertext was not encrypted for this tenant.
    #[error("key encryption failed")]
    Rejected(#[source] Cause),
}

/// The use of a secret. The ciphertext is bound to the purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    ReceiptKey,
    WebhookSecret,
}

impl Purpose {
    /// Returns the text that ciphertexts are bound to, and that permissions refer to.
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

/// Encrypts small secrets, each for a tenant and a purpose.
pub trait KeyEncryption: Send + Sync {
    /// Returns the provider's name, which is stored with each encrypted key.
    fn name(&self) -> &'static str;

    /// # Errors
    ///
    /// Returns a [`KeyEncryptionError`] if the provider is unavailable or rejects the request.
    fn encrypt_key<'a>(&'a self, purpose: Purpose, tenant: TenantId, secret: &'a [u8]) -> KeyBytes<'a>;

    /// Decrypts a ciphertext that was encrypted for the same tenant and purpose.
    ///
    /// # Errors
    ///
    /// Returns a [`KeyEncryptionError`] if the provider is unavailable or the ciphertext is for a different tenant or purpose.
    fn decrypt_key<'a>(&'a self, purpose: Purpose, tenant: TenantId, ciphertext: &'a [u8]) -> KeyBytes<'a>;
}
