//! Endpoint for the request's own key, its tenant and its owner.

use serde::Serialize;
use shared::auth::{Caller, VerifiedCaller};
use shared::domain::keys::api_key::{Role, Scope, Scopes, prefix};
use shared::domain::tenants::tenant::{Locale, Tenant};
use shared::domain::tenants::time_zone::TimeZone;
use shared::domain::user::{Email, User};
use shared::domain::values::id::{ApiKeyId, Id, TenantId, UserId};
use shared::domain::values::text::Name;
use shared::domain::values::time::Timestamp;
use shared::http::openapi::InputErrors;
use shared::http::responses::{ApiError, Data};
use utoipa::ToSchema;

/// The request's API key, its tenant and its owner.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Me)]
pub struct MeView {
    /// The API key.
    key: OwnKeyView,
    /// Tenant that the key belongs to.
    tenant: OwnTenantView,
    /// The user that the key is bound to. Null for a tenant key.
    #[schema(required)]
    user: Option<OwnerView>,
}

/// The request's API key.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OwnApiKey)]
pub struct OwnKeyView {
    /// ID.
    id: ApiKeyId,
    /// Name that says what the key is for.
    name: Name,
    /// First 12 characters of the key.
    prefix: String,
    /// Effective scopes: the key's, limited by its owner's role.
    #[schema(value_type = Vec<Scope>)]
    scopes: Scopes,
    /// Time of expiry. After a rotation, the expiry of the secret in use.
    #[schema(required)]
    expires_at: Option<Timestamp>,
    /// Maximum number of requests per minute.
    rate_limit_per_minute: u32,
    /// Time of creation.
    created_at: Timestamp,
}

/// The tenant of a key.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OwnTenant)]
pub struct OwnTenantView {
    /// ID.
    id: TenantId,
    /// Name of the organization.
    name: Name,
    /// IANA time zone for pages such as receipts.
    time_zone: TimeZone,
    /// BCP 47 language tag for dates on pages such as receipts.
    locale: Locale,
}

/// The user that a key is bound to.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = KeyOwner)]
pub struct OwnerView {
    /// ID.
    id: UserId,
    /// E-mail address.
    email: Email,
    /// Display name.
    display_name: Name,
    /// Role, which limits the key's scopes.
    role: Role,
}

impl MeView {
    fn new(caller: VerifiedCaller, tenant: Tenant) -> Self {
        let VerifiedCaller { key, scopes, owner, .. } = caller;
        let Tenant { id, name, time_zone, locale, .. } = tenant;
        let owner_view = |User { id, email, display_name, role, .. }| OwnerView { id, email, display_name, role };
        Self {
            key: OwnKeyView {
                id: key.id,
                prefix: prefix(key.id),
                scopes,
                expires_at: key.expires_at,
                rate_limit_per_minute: key.rate_limit_per_minute,
                // A record's ID contains its time of creation, in milliseconds.
                created_at: key.id.timestamp(),
                name: key.name,
            },
            tenant: OwnTenantView { id, name, time_zone, locale },
            user: owner.map(owner_view),
        }
    }
}

/// Get the request's API key
///
/// The key with its effective scopes, its tenant and its owner. Needs no scope.
#[utoipa::path(get, path = "/me", tag = "keys", responses(InputErrors))]
pub async fn get_me(caller: Caller<()>) -> Result<Data<MeView>, ApiError> {
    let tenant = caller.store.get::<Tenant>(caller.store.id()).await?;
    let tenant = tenant.ok_or_else(|| ApiError::Internal("the key's tenant has no record".into()))?;
    Ok(Data { data: MeView::new(caller.verified().await?, tenant.value) })
}
