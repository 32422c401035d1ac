//! Texts without regard to case.

use icu_normalizer::ComposingNormalizer;

/// Equal for texts that differ only in case, and in how accents are encoded.
#[must_use]
pub fn folded(text: &str) -> String {
    ComposingNormalizer::new_nfc().normalize(&text.to_lowercase()).into_owned()
}
