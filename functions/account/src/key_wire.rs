//! Bodies, queries and views of API keys.

use serde::Serialize;
use shared::domain::keys::api_key::{ApiKey, MAX_GRACE_SECONDS, prefix};
use shared::domain::keys::scope::{Scope, Scopes};
use shared::domain::record::Stored;
use shared::domain::values::id::{ApiKeyId, UserId};
use shared::domain::values::text::Name;
use shared::domain::values::time::Timestamp;
use shared::http::requests::body::{BoundedInteger, RateLimit};
use shared::http::requests::params::{Limit, PageNumber};
use utoipa::ToSchema;

const READ_ONLY: &[&str] = &["id", "prefix", "api_key", "last_used_at", "created_at", "created_by"];

/// Seconds in which the previous secret stays valid.
type Grace = BoundedInteger<0, MAX_GRACE_SECONDS>;

shared::body! {
    /// A new API key.
    pub struct NewKey as NewApiKey {
        /// Name that says what the key is for.
        required name: Name,
        /// Scopes. Your own key must have all of them.
        required scopes: Scopes,
        /// Active user to bind the key to. The key's scopes are then limited to what the user's role allows. Default: the
        /// user whom your own key is bound to. A bound key can't create others than its user's.
        nullable user_id: UserId,
        /// Time of expiry, which can't be later than that of your own key. Default: that of your own key.
        nullable expires_at: Timestamp,
        /// Maximum number of requests per minute, at most that of your own key. Default 600, or that of your own key if it
        /// is lower.
        optional rate_limit_per_minute: RateLimit,
    }
    read_only: READ_ONLY
}

shared::body! {
    /// Options for rotating a key.
    pub struct Rotation as KeyRotation {
        /// How many seconds the previous secret stays valid. Default 0, maximum 604800 (7 days).
        optional grace_seconds: Grace,
    }
    read_only: &[]
}

shared::query! {
    /// Page of API keys.
    pub struct KeyQuery {
        /// Page number. Default 1.
        page: PageNumber as PageNumber,
        /// Items per page. Default 20, maximum 100.
        limit: Limit as Limit,
    }
}

/// An API key without its secret.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ApiKey)]
pub struct KeyView {
    /// Identifier.
    id: ApiKeyId,
    /// Name that says what the key is for.
    name: Name,
    /// Scopes.
    #[schema(value_type = Vec<Scope>)]
    scopes: Scopes,
    /// User whom the key is bound to.
    #[schema(required)]
    user_id: Option<UserId>,
    /// The key's first 12 characters, to recognize it by.
    prefix: String,
    /// Time of expiry.
    #[schema(required)]
    expires_at: Option<Timestamp>,
    /// Time of the last use, accurate to the hour.
    #[schema(required)]
    last_used_at: Option<Timestamp>,
    /// Maximum number of requests per minute.
    rate_limit_per_minute: u32,
    /// Time of creation.
    created_at: Timestamp,
    /// Key that created this one. Null if the operator did.
    #[schema(required)]
    created_by: Option<ApiKeyId>,
}

/// An API key with its secret.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ApiKeyWithSecret)]
pub struct NewKeyView {
    /// The key, to be sent as `Authorization: Bearer …`. Shown only in this response, and not when the response is
    /// replayed for an `Idempotency-Key`. Null in a dry run.
    #[schema(required = false, value_type = Option<String>)]
    pub(crate) api_key: String,
    /// The key without its secret.
    #[serde(flatten)]
    pub(crate) record: KeyView,
}

impl From<Stored<ApiKey>> for KeyView {
    fn from(stored: Stored<ApiKey>) -> Self {
        let key = stored.value;
        Self {
            id: key.id,
            name: key.name,
            scopes: key.scopes,
            user_id: key.user_id,
            prefix: prefix(key.id),
            expires_at: key.expires_at,
            last_used_at: key.last_used_at,
            rate_limit_per_minute: key.rate_limit_per_minute,
            created_at: stored.created_at,
            created_by: key.created_by,
        }
    }
}
