//! What goes over the wire: bodies, queries and views of API keys.

use serde::Serialize;
use shared::domain::api_key::{ApiKey, MAX_GRACE_SECONDS, prefix};
use shared::domain::id::{ApiKeyId, UserId};
use shared::domain::record::Stored;
use shared::domain::scope::Scopes;
use shared::domain::text::Name;
use shared::domain::time::Timestamp;
use shared::http::body::{BoundedInteger, RateLimit};
use shared::http::params::{Limit, PageNumber};
use utoipa::ToSchema;

/// Fields of a key that nobody sets.
const READ_ONLY: &[&str] = &["id", "prefix", "api_key", "last_used_at", "created_at", "created_by"];

/// How many seconds an old secret goes on.
type Grace = BoundedInteger<0, MAX_GRACE_SECONDS>;

shared::body! {
    /// What a new API key is made from.
    pub struct NewKey {
        /// What it is for.
        required name: Name,
        /// What it may do; nothing that your own key may not.
        required scopes: Scopes,
        /// The active user whom it is bound to: its scopes are cut to what that user's role allows.
        nullable user_id: UserId,
        /// From when on it is refused.
        nullable expires_at: Timestamp,
        /// How many requests a minute; 600 when left out.
        optional rate_limit_per_minute: RateLimit,
    }
    read_only: READ_ONLY
}

shared::body! {
    /// How to rotate a key.
    pub struct Rotation {
        /// How long the old secret keeps working, in seconds; 0 when left out, at most 7 days.
        optional grace_seconds: Grace,
    }
    read_only: &[]
}

shared::query! {
    /// Which page of keys.
    pub struct KeyQuery {
        /// Page number; default 1.
        page: PageNumber as PageNumber,
        /// Items per page; default 20, maximum 100.
        limit: Limit as Limit,
    }
}

/// An API key without its secret.
#[derive(Debug, Serialize, ToSchema)]
pub struct KeyView {
    /// Identifier.
    id: ApiKeyId,
    /// What it is for.
    name: Name,
    /// What it was given.
    scopes: Scopes,
    /// Whom it is bound to.
    #[schema(required)]
    user_id: Option<UserId>,
    /// The first 12 characters, to recognise it by.
    prefix: String,
    /// From when on it is refused.
    #[schema(required)]
    expires_at: Option<Timestamp>,
    /// When it was last used, to the hour.
    #[schema(required)]
    last_used_at: Option<Timestamp>,
    /// How many requests a minute.
    rate_limit_per_minute: u32,
    /// When it was created.
    created_at: Timestamp,
    /// The key that created it; null for the operator.
    #[schema(required)]
    created_by: Option<ApiKeyId>,
}

/// An API key with its secret: shown this once.
#[derive(Debug, Serialize, ToSchema)]
pub struct NewKeyView {
    /// The key, to be sent as `Authorization: Bearer …`. Nobody can show it again; a replay has it not.
    #[schema(required = false)]
    pub(crate) api_key: String,
    /// Its record.
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
