//! Key encryption that counts its calls, and fails when it is told to.

use crate::support::Api;
use shared::domain::values::id::TenantId;
use shared::key_encryption::{KeyBytes, KeyEncryption, KeyEncryptionError, Purpose};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

pub struct ObservedKeyEncryption {
    inner: Arc<dyn KeyEncryption>,
    encryptions: AtomicUsize,
    fails: AtomicBool,
    has_failed: AtomicBool,
}

impl ObservedKeyEncryption {
    pub fn new(api: &Api) -> Self {
        let inner = Arc::clone(&api.key_encryption);
        Self { inner, encryptions: AtomicUsize::new(0), fails: AtomicBool::new(false), has_failed: AtomicBool::new(false) }
    }

    pub fn encryptions(&self) -> usize {
        self.encryptions.load(Ordering::Relaxed)
    }

    pub fn fail_to_decrypt(&self) {
        self.fails.store(true, Ordering::Relaxed);
    }

    pub fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }
}

impl KeyEncryption for ObservedKeyEncryption {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn encrypt_key<'a>(&'a self, purpose: Purpose, tenant: TenantId, secret: &'a [u8]) -> KeyBytes<'a> {
        self.encryptions.fetch_add(1, Ordering::Relaxed);
        self.inner.encrypt_key(purpose, tenant, secret)
    }

    fn decrypt_key<'a>(&'a self, purpose: Purpose, tenant: TenantId, ciphertext: &'a [u8]) -> KeyBytes<'a> {
        if self.fails.swap(false, Ordering::Relaxed) {
            self.has_failed.store(true, Ordering::Relaxed);
            return Box::pin(async { Err(KeyEncryptionError::Unavailable("injected".into())) });
        }
        self.inner.decrypt_key(purpose, tenant, ciphertext)
    }
}
