//! The endpoints of webhooks.

use crate::new_webhook::{CreateWebhook, created, too_many};
use crate::secrets::NewSecret;
use crate::unavailable;
use crate::wire::{NewWebhook, NewWebhookView, WebhookPatch, WebhookQuery, WebhookView, check_url};
use shared::auth::Caller;
use shared::auth::scopes::{WebhooksRead, WebhooksWrite};
use shared::domain::values::id::WebhookId;
use shared::domain::webhooks::{Webhook, WebhookChange};
use shared::http::error::ApiError;
use shared::http::openapi::{ChangeConflict, ChangeErrors, InputErrors, RequestConflict, ResourceErrors};
use shared::http::requests::extract::{JsonBody, Path, Query};
use shared::http::requests::params;
use shared::http::responses::{CreatedSecret, Data, Versioned};
use shared::store::Page;

/// List webhooks
///
/// Newest first, without their secrets.
#[utoipa::path(get, path = "/webhooks", tag = "webhooks", responses(InputErrors))]
pub async fn list_webhooks(
    caller: Caller<WebhooksRead>,
    Query(query): Query<WebhookQuery>,
) -> Result<Page<WebhookView>, ApiError> {
    Ok(caller.store.list_webhooks(params::page(query.page, query.limit)).await?.map(WebhookView::from))
}

/// Get a webhook
///
/// Without its secret.
#[utoipa::path(get, path = "/webhooks/{id}", tag = "webhooks", responses(ResourceErrors))]
pub async fn get_webhook(caller: Caller<WebhooksRead>, Path(id): Path<WebhookId>) -> Result<Versioned<WebhookView>, ApiError> {
    caller.get::<Webhook, _>(id).await
}

/// Create a webhook
///
/// Only this response shows the secret that deliveries are signed with. A tenant can have 20 webhooks.
#[utoipa::path(post, path = "/webhooks", tag = "webhooks", responses(InputErrors, RequestConflict))]
pub async fn create_webhook(
    caller: Caller<WebhooksWrite>,
    body: JsonBody<NewWebhook>,
) -> Result<CreatedSecret<NewWebhookView>, ApiError> {
    let free_slots = caller.store.free_webhook_slots().await?;
    let (body, mut errors) = body.parse_with_errors(&caller)?;
    errors.extend(check_url(&body.url, caller.app.address_policy()));
    if !errors.is_empty() {
        return Err(ApiError::Invalid(errors));
    }
    // Without a queue, nothing would be delivered.
    unavailable::queue(&caller.app)?;
    if free_slots.is_empty() {
        // Before a secret is encrypted for nothing.
        return Err(too_many());
    }
    let caller = caller.verified().await?;
    let secret = NewSecret::make(&caller).await?;
    let command = CreateWebhook { body, secret: secret.encrypted.clone() };
    let webhook = caller.execute(&command, free_slots).await?;
    Ok(created(&webhook.clone(), secret.show(&caller, webhook)))
}

/// Update a webhook
///
/// Changes the fields that are sent.
#[utoipa::path(patch, path = "/webhooks/{id}", tag = "webhooks", responses(ChangeErrors, ChangeConflict))]
pub async fn update_webhook(
    caller: Caller<WebhooksWrite>,
    Path(id): Path<WebhookId>,
    body: JsonBody<WebhookPatch>,
) -> Result<Versioned<WebhookView>, ApiError> {
    let check = |old: &Webhook, body: &WebhookPatch| {
        // The present address may have been allowed by another policy. It can be sent back.
        let new_url = body.url.as_ref().filter(|url| **url != old.url);
        new_url.and_then(|url| check_url(url, caller.app.address_policy()))
    };
    let (old, body) = caller.patch::<_, WebhookView, _>(id, body, check).await?;
    let caller = caller.verified().await?;
    let (change, now) = (WebhookChange::from(body), caller.context.at);
    Ok(caller.update(old, |old| Ok(old.changed(&change, now))).await?.into())
}

/// Delete a webhook
///
/// Deliveries that are pending are dropped. Returns the webhook as it was.
#[utoipa::path(delete, path = "/webhooks/{id}", tag = "webhooks", responses(ChangeErrors, ChangeConflict))]
pub async fn delete_webhook(caller: Caller<WebhooksWrite>, Path(id): Path<WebhookId>) -> Result<Data<WebhookView>, ApiError> {
    caller.delete::<Webhook, _>(id, |_| Ok(())).await
}
