//! API keys, secrets of signing links, ids and base62 numbers.

use super::text;
use shared::domain::keys::token::{BearerToken, Credential, LinkToken, Secret, Token};
use shared::domain::values::base62;
use shared::domain::values::id::{ApiKeyId, AssetId, Id, LinkId, TenantId};
use uuid::Uuid;

/// A key that parses prints as the same text. A key made of the input's bytes parses, and doesn't when one character differs.
pub fn run(bytes: &[u8]) {
    let text = text(bytes);
    parse::<ApiKeyId>(text);
    parse::<LinkId>(text);
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
        let uuid = |at: usize| Uuid::from_slice(&raw[at..at + 16]).expect("16 bytes");
        let secret = Secret::new(raw[32..].try_into().expect("32 bytes"));
        let token = Token::new(TenantId::from_uuid(uuid(0)), ApiKeyId::from_uuid(uuid(16)), secret);
        let text = token.expose();
        assert_eq!(Token::parse(&text), Some(token));
        assert_eq!(LinkToken::parse(&text), None);
        if let [index, character, ..] = *rest
            && character.is_ascii()
        {
            let index = usize::from(index) % text.len();
            let mut changed = text.clone();
            changed.replace_range(index..=index, char::from(character).encode_utf8(&mut [0; 4]));
            assert_eq!(Token::parse(&changed).is_some(), changed == text);
        }
    }
}

fn parse<C: Credential>(text: &str) {
    if let Some(token) = BearerToken::<C>::parse(text) {
        assert_eq!(token.expose(), text);
    }
    // Adds the right checksum, which random input hardly ever has.
    if text.len() == 92 && text.starts_with(C::PREFIX) {
        let text = format!("{text}{}", base62::encode(crc32fast::hash(text.as_bytes()).into(), 6));
        assert_eq!(BearerToken::<C>::parse(&text).map(|token| token.expose()).unwrap_or(text.clone()), text);
    }
}
