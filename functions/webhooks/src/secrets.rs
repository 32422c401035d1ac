//! The secrets that sign deliveries: made, encrypted, shown once, and replaced.

use crate::unavailable;
use crate::wire::{NewWebhookView, Rotation, WebhookView};
use shared::auth::{Caller, UnverifiedRequest};
use shared::domain::keys::scope::Scope;
use shared::domain::record::Stored;
use shared::domain::values::id::WebhookId;
use shared::domain::webhooks::{EncryptedSecret, Webhook, WebhookSecret};
use shared::http::error::ApiError;
use shared::http::openapi::{ChangeErrors, RequestConflict};
use shared::http::requests::extract::{OptionalJsonBody, PathId};
use shared::http::responses::{Data, or_not_found};
use shared::key_encryption::Purpose;

/// A new secret in plain and in stored form.
pub(crate) struct NewSecret {
    text: String,
    pub(crate) encrypted: EncryptedSecret,
}

impl NewSecret {
    pub(crate) async fn make(caller: &Caller) -> Result<Self, ApiError> {
        let key_encryption = unavailable::key_encryption(&caller.app)?;
        let secret = WebhookSecret::new(caller.store.store().random()?);
        let tenant = caller.store.id();
        let encrypted = key_encryption.encrypt_key(Purpose::WebhookSecret, tenant, secret.bytes()).await?;
        Ok(Self { text: secret.expose(), encrypted: EncryptedSecret(encrypted) })
    }

    pub(crate) fn show(self, caller: &Caller, webhook: Stored<Webhook>) -> NewWebhookView {
        caller.store.note_assigned(&self.text);
        NewWebhookView { secret: self.text, webhook: webhook.into() }
    }
}

/// Rotate a webhook's secret
///
/// Only this response shows the new secret. For `grace_seconds`, deliveries are signed with both. A body is optional.
#[utoipa::path(post, path = "/webhooks/{id}/rotate", tag = "webhooks", security(("api_key" = ["webhooks:write"])), responses(ChangeErrors, RequestConflict))]
pub async fn rotate_webhook(
    request: UnverifiedRequest,
    id: PathId<WebhookId>,
    body: OptionalJsonBody<Rotation>,
) -> Result<Data<NewWebhookView>, ApiError> {
    let (caller, webhook) =
        request.authorize_and_read(Scope::WebhooksWrite, async |store| Ok(store.get::<Webhook>(id.parse()?).await?)).await?;
    let rotation = body.parse(&caller)?;
    let webhook = or_not_found(webhook)?;
    let now = caller.context.at;
    let grace = rotation.and_then(|rotation| rotation.grace_seconds).map_or(0, |grace| grace.0);
    let secret = NewSecret::make(&caller).await?;
    let next = webhook.value.rotated(secret.encrypted.clone(), now, now.plus_seconds(grace));
    // The stored response must not have the secret.
    let rotated = caller.replace(&webhook, next, |rotated| Data { data: WebhookView::from(rotated) }).await?;
    Ok(Data { data: secret.show(&caller, rotated) })
}
