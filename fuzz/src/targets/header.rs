//! `If-Match`, `If-None-Match` and `Idempotency-Key`: the value of a header, and behind a line break a body.

use super::{lines, text};
use axum::http::HeaderValue;
use shared::domain::id::{ApiKeyId, Id};
use shared::domain::request::{ExpectedVersions, IdempotencyKey, IdempotentRequest, entity_tag, if_none_match_contains};
use uuid::Uuid;

/// Whatever list of entity tags is understood, it is understood alike with one more, and that one is found in it.
pub fn run(bytes: &[u8]) {
    let [value, body] = lines(text(bytes));
    let version = body.len() as u64;
    let own = entity_tag(version, body.as_bytes());
    assert!(HeaderValue::from_str(&own).is_ok(), "{own}");

    let expected = ExpectedVersions::parse(value);
    let named = if_none_match_contains(value, &own);
    assert_eq!(expected.is_ok(), named.is_ok(), "{value:?}");
    if expected.is_ok() && value.trim() != "*" {
        for longer in [format!("{value},{own}"), format!("{own} , {value}")] {
            assert!(ExpectedVersions::parse(&longer).is_ok_and(|expected| expected.contains(version)), "{longer:?}");
            assert_eq!(if_none_match_contains(&longer, &own), Ok(true), "{longer:?}");
        }
        let weak = format!("W/{own}");
        assert!(ExpectedVersions::parse(&weak).is_ok_and(|expected| !expected.contains(version)));
    }
    if let Ok(ExpectedVersions::Versions(versions)) = expected {
        assert!(versions.len() <= value.len() / 2, "{value:?} names {versions:?}");
    }

    if let Ok(key) = value.parse::<IdempotencyKey>() {
        assert!(HeaderValue::from_str(value).is_ok(), "{value:?} can't be sent");
        let by = ApiKeyId::from_uuid(Uuid::nil());
        let claim = |path: &str, body: &[u8]| IdempotentRequest::new(by, key.clone(), path, body).fingerprint;
        assert_eq!(key.hash().len(), 64);
        assert_eq!(claim("/v1/assets", body.as_bytes()), claim("/v1/assets", body.as_bytes()));
        assert_ne!(claim("/v1/assets", body.as_bytes()), claim("/v1/asset", format!("s{body}").as_bytes()));
    }
}
