//! The secrets that sign deliveries, as [Standard Webhooks](https://www.standardwebhooks.com) describes them.

use crate::values::field_error::{ValueError, text_form};
use base64_simd::STANDARD;
use ring::hmac;
use serde::{Deserialize, Serialize};

const PREFIX: &str = "whsec_";
pub const SECRET_BYTES: usize = 32;

/// Its `Debug` text does not disclose it.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret(Vec<u8>);

impl WebhookSecret {
    #[must_use]
    pub fn new(random: [u8; SECRET_BYTES]) -> Self {
        Self(random.to_vec())
    }

    #[must_use]
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The text that receivers verify with. Not `Display`, so that nothing prints it by accident.
    #[must_use]
    pub fn expose(&self) -> String {
        format!("{PREFIX}{}", STANDARD.encode_to_string(&self.0))
    }

    /// `v1,` and HMAC-SHA256 in base64 of the ID, the Unix time in seconds and the body.
    #[must_use]
    pub fn sign(&self, id: &str, seconds: i64, body: &str) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.0);
        let mac = hmac::sign(&key, format!("{id}.{seconds}.{body}").as_bytes());
        format!("v1,{}", STANDARD.encode_to_string(mac.as_ref()))
    }
}

impl std::fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WebhookSecret(…)")
    }
}

/// Encrypted by a key outside the table. Its text form is base64.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EncryptedSecret(pub Vec<u8>);

impl std::str::FromStr for EncryptedSecret {
    type Err = ValueError;
    fn from_str(text: &str) -> Result<Self, ValueError> {
        STANDARD.decode_to_vec(text).map(Self).map_err(|_| ValueError::new("must be base64"))
    }
}

text_form!(EncryptedSecret, |secret| STANDARD.encode_to_string(secret.0));

impl std::fmt::Debug for EncryptedSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EncryptedSecret(…)")
    }
}
