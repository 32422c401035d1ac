//! The secrets that sign deliveries, decrypted.

use shared::domain::values::id::TenantId;
use shared::domain::webhooks::{EncryptedSecret, WebhookSecret};
use shared::key_encryption::{KeyEncryption, KeyEncryptionError, Purpose};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

const MAX_SECRETS: usize = 1000;

/// Keeps decrypted secrets in memory: each delivery needs one, and decrypting it costs a request to the provider.
pub(crate) struct Secrets {
    key_encryption: Arc<dyn KeyEncryption>,
    decrypted: Mutex<HashMap<(TenantId, EncryptedSecret), WebhookSecret>>,
}

impl Secrets {
    pub(crate) fn new(key_encryption: Arc<dyn KeyEncryption>) -> Self {
        Self { key_encryption, decrypted: Mutex::default() }
    }

    /// # Errors
    ///
    /// Returns a [`KeyEncryptionError`] when it can't be decrypted.
    pub(crate) async fn decrypt(&self, tenant: TenantId, secret: &EncryptedSecret) -> Result<WebhookSecret, KeyEncryptionError> {
        let name = (tenant, secret.clone());
        if let Some(known) = self.known(&name) {
            return Ok(known);
        }
        let bytes = self.key_encryption.decrypt_key(Purpose::WebhookSecret, tenant, &secret.0).await?;
        let decrypted = WebhookSecret::from_bytes(bytes);
        let mut kept = self.decrypted.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MAX_SECRETS {
            kept.clear();
        }
        kept.insert(name, decrypted.clone());
        Ok(decrypted)
    }

    fn known(&self, name: &(TenantId, EncryptedSecret)) -> Option<WebhookSecret> {
        self.decrypted.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::domain::values::id::Id;
    use shared::domain::values::time::Timestamp;
    use shared::key_encryption::KeyBytes;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Leaves each ciphertext as it is, and counts.
    #[derive(Default)]
    struct Counting(AtomicUsize);

    impl KeyEncryption for Counting {
        fn name(&self) -> &'static str {
            "counting"
        }

        fn encrypt_key<'a>(&'a self, _: Purpose, _: TenantId, secret: &'a [u8]) -> KeyBytes<'a> {
            Box::pin(async { Ok(secret.to_vec()) })
        }

        fn decrypt_key<'a>(&'a self, purpose: Purpose, _: TenantId, ciphertext: &'a [u8]) -> KeyBytes<'a> {
            assert_eq!(purpose, Purpose::WebhookSecret);
            self.0.fetch_add(1, Ordering::Relaxed);
            Box::pin(async { Ok(ciphertext.to_vec()) })
        }
    }

    #[tokio::test]
    async fn a_secret_is_decrypted_once_for_each_tenant_and_few_are_kept() {
        let provider = Arc::new(Counting::default());
        let secrets = Secrets::new(Arc::clone(&provider) as Arc<dyn KeyEncryption>);
        let tenants = [1, 2].map(|n| TenantId::new(Timestamp::from_millis(0), [n; 10]));
        let secret = EncryptedSecret(vec![1; 32]);
        for tenant in [tenants[0], tenants[0], tenants[1]] {
            assert_eq!(secrets.decrypt(tenant, &secret).await.unwrap().bytes(), [1; 32]);
        }
        assert_eq!(provider.0.load(Ordering::Relaxed), 2);
        for n in 0..MAX_SECRETS {
            secrets.decrypt(tenants[0], &EncryptedSecret(n.to_le_bytes().to_vec())).await.unwrap();
        }
        assert!(secrets.decrypted.lock().unwrap().len() < MAX_SECRETS);
    }
}
