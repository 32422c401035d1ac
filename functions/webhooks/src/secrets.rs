//! Secrets that sign deliveries: creates them, encrypts them, shows them once and replaces them. Also checks the operator's
//! configuration that webhooks need.

use crate::handlers::{NewWebhookView, Rotation, WebhookView};
use serde_json::Value;
use shared::auth::caller::WebhooksWrite;
use shared::auth::{Caller, VerifiedCaller};
use shared::domain::record::Stored;
use shared::domain::values::id::WebhookId;
use shared::domain::webhooks::{EncryptedSecret, Webhook, WebhookSecret};
use shared::http::openapi::{ChangeErrors, RequestConflict};
use shared::http::requests::body::OptionalJsonBody;
use shared::http::requests::params::Path;
use shared::http::responses::{ApiError, ConflictCode, Data, or_not_found};
use shared::key_encryption::Purpose;
use shared::queue::Queue;
use shared::services::App;

/// A new secret, in plain text and encrypted.
pub(crate) struct NewSecret {
    text: String,
    pub(crate) encrypted: EncryptedSecret,
}

impl NewSecret {
    pub(crate) async fn make(caller: &VerifiedCaller) -> Result<Self, ApiError> {
        let key_encryption = caller.app.key_encryption();
        let key_encryption = key_encryption.ok_or_else(|| unavailable("an encryption key for their secrets"))?;
        let secret = WebhookSecret::new(caller.store.random()?);
        let tenant = caller.store.id();
        let encrypted = key_encryption.encrypt_key(Purpose::WebhookSecret, tenant, secret.bytes()).await?;
        Ok(Self { text: secret.expose(), encrypted: EncryptedSecret(encrypted) })
    }

    pub(crate) fn show(self, caller: &VerifiedCaller, webhook: Stored<Webhook>) -> NewWebhookView {
        NewWebhookView { secret: caller.assign(self.text), webhook: webhook.into() }
    }
}

/// Rotate a webhook's secret
///
/// The new secret is returned only once, in this response. For `grace_seconds`, deliveries are signed with the previous secret,
/// too. The body is optional.
#[utoipa::path(post, path = "/webhooks/{id}/rotate", tag = "webhooks", responses(ChangeErrors, RequestConflict))]
pub async fn rotate_webhook(
    caller: Caller<WebhooksWrite>,
    Path(id): Path<WebhookId>,
    body: OptionalJsonBody<Rotation>,
) -> Result<Data<NewWebhookView>, ApiError> {
    let webhook = caller.store.get::<Webhook>(id).await?;
    let rotation = body.parse(&caller)?;
    let webhook = or_not_found(webhook)?;
    let caller = caller.verified().await?;
    let now = caller.context.at;
    let grace = rotation.and_then(|rotation| rotation.grace_seconds).map_or(0, |grace| grace.0);
    let secret = NewSecret::make(&caller).await?;
    let next = webhook.value.rotated(secret.encrypted.clone(), now, now.plus_seconds(grace));
    // The stored response must not contain the secret.
    let unit = caller.unit();
    let rotated = caller.replace(unit, &webhook, next, |rotated| Data { data: WebhookView::from(rotated) }).await?;
    Ok(Data { data: secret.show(&caller, rotated) })
}

fn unavailable(lacking: &str) -> ApiError {
    let detail = format!("Webhooks are not available: the operator has not configured {lacking}.");
    ApiError::conflict(ConflictCode::Conflict, detail, Value::Null)
}

pub(crate) fn queue(app: &App) -> Result<&dyn Queue, ApiError> {
    app.queue().ok_or_else(|| unavailable("a queue for deliveries"))
}
