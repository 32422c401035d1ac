//! API keys, ids and numbers in base62.

use super::text;
use shared::domain::base62;
use shared::domain::id::{ApiKeyId, AssetId, Id, TenantId};
use shared::domain::token::{PREFIX, Secret, Token};
use uuid::Uuid;

/// Whatever is read prints as the same text; a key of these very bytes is read back, and not once a character differs.
pub fn run(bytes: &[u8]) {
    let text = text(bytes);
    if let Some(token) = Token::parse(text) {
        assert_eq!(token.expose(), text);
    }
    // What a guess with the right checksum would be.
    if text.len() == 92 && text.starts_with(PREFIX) {
        let whole = format!("{text}{}", base62::encode(crc32fast::hash(text.as_bytes()).into(), 6));
        assert_eq!(Token::parse(&whole).map(|token| token.expose()).unwrap_or(whole.clone()), whole);
    }
    if let Ok(id) = text.parse::<AssetId>() {
        assert_eq!(id.to_string(), text);
        assert_eq!(AssetId::from_short(&id.short()), Some(id));
    }
    if let Some(id) = AssetId::from_short(text) {
        assert_eq!(id.short(), text);
    }
    if let Some(number) = base62::decode(text) {
        assert_eq!(base62::encode(number, text.len()), text);
    }
    if let Some((raw, rest)) = bytes.split_at_checked(64) {
        let number = |at: usize| Uuid::from_slice(&raw[at..at + 16]).expect("16 bytes");
        let secret = Secret::new(raw[32..].try_into().expect("32 bytes"));
        let token = Token::new(TenantId::from_uuid(number(0)), ApiKeyId::from_uuid(number(16)), secret);
        let text = token.expose();
        assert_eq!(Token::parse(&text), Some(token));
        if let [at, digit, ..] = *rest
            && digit.is_ascii()
        {
            let at = usize::from(at) % text.len();
            let mut other = text.clone();
            other.replace_range(at..=at, char::from(digit).encode_utf8(&mut [0; 4]));
            assert_eq!(Token::parse(&other).is_some(), other == text);
        }
    }
}
