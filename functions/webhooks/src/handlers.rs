//! The endpoints of webhooks.

use shared::auth::UnverifiedRequest;
use shared::domain::scope::Scope;
use shared::http::error::ApiError;
use shared::http::openapi::ListErrors;
use shared::http::response::Data;

/// List webhooks
///
/// Newest first, without their secrets.
#[utoipa::path(get, path = "/webhooks", tag = "webhooks", security(("api_key" = ["webhooks:read"])), responses(ListErrors))]
pub async fn list_webhooks(request: UnverifiedRequest) -> Result<Data<String>, ApiError> {
    request.authorize(Scope::WebhooksRead, async |_| Ok(())).await?;
    Ok(Data { data: String::new() })
}
