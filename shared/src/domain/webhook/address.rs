//! Where webhooks may be: https addresses of public hosts.

use crate::domain::field_error::{ValueError, text_form};
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// The address of a webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, max_length = 2048, examples("https://example.com/hooks/assets"))]
pub struct WebhookUrl(String);

/// Which addresses webhooks may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AddressPolicy {
    /// Public ones only: https, port 443 or 8443.
    #[default]
    Public,
    /// Also http and https to loopback addresses, at any port, as the dev server's `--allow-local-webhooks` permits.
    PublicOrLoopback,
}

impl WebhookUrl {
    /// Returns the address.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for WebhookUrl {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        Ok(Self(text.to_owned()))
    }
}

text_form!(WebhookUrl, |url| url.0);
