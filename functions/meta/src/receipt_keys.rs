//! The public keys that verify receipts.

use axum::extract::{RawQuery, State};
use shared::domain::receipts::key::Jwks;
use shared::domain::values::field_error::{FieldError, ValueError};
use shared::domain::values::id::TenantId;
use shared::http::openapi::InputErrors;
use shared::http::requests::params::{FromQuery, Params};
use shared::http::responses::{ApiError, Json};
use shared::services::App;

shared::query! {
    /// Tenant whose keys to return.
    pub struct KeysQuery {
        /// Tenant ID, as in the receipt. Required.
        tenant: TenantId as TenantId,
    }
}

/// Get the receipt keys
///
/// The public keys that verify a tenant's receipts, as a JWK set (RFC 7517). Includes retired keys. Unknown tenants
/// return an empty set.
#[utoipa::path(get, path = "/.well-known/receipt-keys", tag = "meta", security(()),
    params(("tenant" = TenantId, Query, description = "Tenant ID, as in the receipt")), responses(InputErrors))]
pub async fn get_receipt_keys(State(app): State<App>, RawQuery(query): RawQuery) -> Result<Json<Jwks>, ApiError> {
    let query = KeysQuery::from_params(Params::parse(query.as_deref().unwrap_or_default())?)?;
    let tenant = query.tenant.ok_or_else(|| ApiError::Invalid(vec![FieldError::parameter("tenant", ValueError::required())]))?;
    let keys = app.store().reader(tenant).receipt_keys().await?;
    Ok(Json(keys.map(|keys| Jwks::from(&keys.value)).unwrap_or_default()))
}
