//! Secrets that sign deliveries, as [Standard Webhooks](https://www.standardwebhooks.com) describes them.

use crate::error::{CliError, Result};
use base64_simd::STANDARD;
use ring::hmac;
use std::fmt;
use std::str::FromStr;

const PREFIX: &str = "whsec_";
const NEW_BYTES: usize = 32;
const BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// Its `Debug` text does not disclose it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    pub fn generate() -> Result<Self> {
        let mut bytes = vec![0; NEW_BYTES];
        getrandom::fill(&mut bytes).map_err(|error| CliError::Failed(format!("no random numbers: {error}")))?;
        Ok(Self(bytes))
    }

    /// The text that receivers verify with.
    #[must_use]
    pub fn expose(&self) -> String {
        format!("{PREFIX}{}", STANDARD.encode_to_string(&self.0))
    }

    /// `seconds` is the Unix time of the delivery.
    #[must_use]
    pub fn sign(&self, id: &str, seconds: u64, body: &str) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.0);
        let signature = hmac::sign(&key, format!("{id}.{seconds}.{body}").as_bytes());
        format!("v1,{}", STANDARD.encode_to_string(signature.as_ref()))
    }
}

impl FromStr for Secret {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let bytes = text.strip_prefix(PREFIX).and_then(|encoded| STANDARD.decode_to_vec(encoded).ok());
        let bytes = bytes.filter(|bytes| BYTES.contains(&bytes.len()));
        bytes.map(Self).ok_or_else(|| format!("must be {PREFIX} and {} to {} bytes in base64", BYTES.start(), BYTES.end()))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_those_of_the_specification() {
        let secret: Secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse().expect("a secret");
        let signature = secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn secrets_have_a_prefix_and_enough_bytes() {
        let (one, other) = (Secret::generate().expect("a secret"), Secret::generate().expect("a secret"));
        assert!(one != other && one.expose().parse() == Ok(one.clone()));
        assert_eq!(format!("{one:?}"), "Secret(…)");
        for bad in ["", "whsec_", "whsec_AAAA", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS!"] {
            assert!(bad.parse::<Secret>().is_err(), "{bad}");
        }
    }
}
