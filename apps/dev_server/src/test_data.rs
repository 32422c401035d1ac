//! Sample data for the tests of several programs.

use serde_json::{Value, json};
use shared::domain::keys::token::{BearerToken, Credential, Secret};
use shared::domain::values::id::{ApiKeyId, Id, LinkId, TenantId};
use uuid::Uuid;

/// Of the right form, but never created by the tenant.
#[must_use]
pub fn made_up_key(tenant: TenantId) -> String {
    made_up::<ApiKeyId>(tenant)
}

/// The secret of a signing link, of the right form, but never created by the tenant.
#[must_use]
pub fn made_up_link(tenant: TenantId) -> String {
    made_up::<LinkId>(tenant)
}

fn made_up<C: Credential>(tenant: TenantId) -> String {
    BearerToken::new(tenant, C::from_uuid(Uuid::from_bytes([5; 16])), Secret::new([1; 32])).expose()
}

#[must_use]
pub fn unknown_tenant() -> TenantId {
    TenantId::from_uuid(Uuid::from_bytes([5; 16]))
}

/// Each item of the array `list` is compared with 900 rules.
#[must_use]
pub fn expensive_schema() -> Value {
    let rules: Vec<Value> = (0..900).map(|n| json!({"type": "string", "minLength": n})).collect();
    json!({"properties": {"list": {"items": {"not": {"anyOf": rules}}}}})
}
