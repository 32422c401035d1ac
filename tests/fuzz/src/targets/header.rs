//! `If-Match`, `If-None-Match` and `Idempotency-Key`. The first line is a header's value, the rest a body.

use super::{lines, text};
use axum::http::HeaderValue;
use shared::domain::keys::token::{Secret, Token};
use shared::domain::request::{ExpectedVersions, IdempotencyKey, IdempotentRequest, entity_tag, if_none_match_contains};
use shared::domain::values::id::{ApiKeyId, Id, TenantId};
use uuid::Uuid;

/// A valid list of entity tags stays valid with one tag more, which it then contains. A valid idempotency key can be sent as
/// a header, and its fingerprint depends on path and body.
pub fn run(bytes: &[u8]) {
    let [value, body] = lines(text(bytes));
    let version = body.len() as u64;
    let tag = entity_tag(version, body.as_bytes());
    assert!(HeaderValue::from_str(&tag).is_ok(), "{tag}");

    let expected = ExpectedVersions::parse(value);
    let is_named = if_none_match_contains(value, &tag);
    assert_eq!(expected.is_ok(), is_named.is_ok(), "{value:?}");
    if expected.is_ok() && value.trim() != "*" {
        for longer in [format!("{value},{tag}"), format!("{tag} , {value}")] {
            assert!(ExpectedVersions::parse(&longer).is_ok_and(|expected| expected.contains(version)), "{longer:?}");
            assert_eq!(if_none_match_contains(&longer, &tag), Ok(true), "{longer:?}");
        }
        let weak = format!("W/{tag}");
        assert!(ExpectedVersions::parse(&weak).is_ok_and(|expected| !expected.contains(version)));
    }
    if let Ok(ExpectedVersions::Versions(versions)) = expected {
        assert!(versions.len() <= value.len() / 2, "{value:?} has {versions:?}");
    }

    if let Ok(key) = value.parse::<IdempotencyKey>() {
        assert!(HeaderValue::from_str(value).is_ok(), "{value:?} is not a valid header value");
        let api_key = Token::new(TenantId::from_uuid(Uuid::nil()), ApiKeyId::from_uuid(Uuid::nil()), Secret::new([1; 32]));
        let fingerprint = |path: &str, body: &[u8]| IdempotentRequest::new(&api_key, key.clone(), path, body).fingerprint;
        assert_eq!(key.hash().len(), 64);
        assert_eq!(fingerprint("/v1/assets", body.as_bytes()), fingerprint("/v1/assets", body.as_bytes()));
        assert_ne!(fingerprint("/v1/assets", body.as_bytes()), fingerprint("/v1/asset", format!("s{body}").as_bytes()));
    }
}
