//! The public keys that receipts are checked with.

use axum::extract::{RawQuery, State};
use shared::app::App;
use shared::domain::field_error::FieldError;
use shared::domain::id::TenantId;
use shared::domain::receipt_key::Jwks;
use shared::http::Answer;
use shared::http::error::ApiError;
use shared::http::openapi::OpenQueryErrors;
use shared::http::params::FromQuery;
use shared::http::response;

shared::query! {
    /// Whose keys.
    pub struct KeysQuery {
        /// The tenant; a receipt names it. It must be given.
        tenant: TenantId as TenantId,
    }
}

/// Gets the public keys that a tenant's receipts are checked with, as a JWK set (RFC 7517); earlier ones, too.
///
/// Empty for a tenant that there is not, and for one that has given no receipt yet.
#[utoipa::path(get, path = "/.well-known/receipt-keys", tag = "meta", security(()),
    params(("tenant" = inline(TenantId), Query, description = "The tenant; a receipt names it")),
    responses((status = 200, description = "The keys, the current one first", body = Jwks), OpenQueryErrors))]
pub async fn get_receipt_keys(State(app): State<App>, RawQuery(query): RawQuery) -> Answer {
    let query = KeysQuery::from_query(query.as_deref().unwrap_or_default())?;
    let tenant = query.tenant.ok_or_else(|| ApiError::Invalid(vec![FieldError::parameter("tenant", "is required")]))?;
    let keys = app.store().tenant(tenant).receipt_keys().await?;
    response::json(&keys.map(|keys| Jwks::from(&keys.value)).unwrap_or_default())
}
