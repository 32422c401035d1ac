//! The endpoints of webhooks.

use crate::new_webhook::{CreateWebhook, created, too_many};
use crate::secrets::NewSecret;
use crate::unavailable;
use crate::wire::{NewWebhook, NewWebhookView, WebhookPatch, WebhookQuery, WebhookView, check_url};
use shared::auth::UnverifiedRequest;
use shared::domain::keys::scope::Scope;
use shared::domain::values::id::WebhookId;
use shared::domain::webhook::{Webhook, WebhookChange};
use shared::http::error::ApiError;
use shared::http::extract::{JsonBody, PathId, QueryParams};
use shared::http::openapi::{ChangeConflict, DeleteErrors, GetErrors, ListErrors, PatchErrors, PostErrors, RequestConflict};
use shared::http::params;
use shared::http::response::{Created, Data, Versioned, found};
use shared::store::Page;

/// List webhooks
///
/// Newest first, without their secrets.
#[utoipa::path(get, path = "/webhooks", tag = "webhooks", security(("api_key" = ["webhooks:read"])), responses(ListErrors))]
pub async fn list_webhooks(request: UnverifiedRequest, query: QueryParams<WebhookQuery>) -> Result<Page<WebhookView>, ApiError> {
    let (_, page) = request
        .authorize_with_query(Scope::WebhooksRead, query, async |store, query| {
            Ok(store.verified().await.list_webhooks(params::page(query.page, query.limit)).await?)
        })
        .await?;
    Ok(page.map(WebhookView::from))
}

/// Get a webhook
///
/// Without its secret.
#[utoipa::path(get, path = "/webhooks/{id}", tag = "webhooks", security(("api_key" = ["webhooks:read"])), responses(GetErrors))]
pub async fn get_webhook(request: UnverifiedRequest, id: PathId<WebhookId>) -> Result<Versioned<WebhookView>, ApiError> {
    let (_, webhook) =
        request.authorize(Scope::WebhooksRead, async |store| found(store.get::<Webhook>(id.parse()?).await?)).await?;
    Ok(Versioned { version: webhook.version, data: webhook.into() })
}

/// Create a webhook
///
/// The response shows the secret that deliveries are signed with. It is not shown again, not even when the response is
/// replayed for an `Idempotency-Key`. A tenant can have 20 webhooks.
#[utoipa::path(post, path = "/webhooks", tag = "webhooks", security(("api_key" = ["webhooks:write"])), responses(PostErrors, RequestConflict))]
pub async fn create_webhook(request: UnverifiedRequest, body: JsonBody<NewWebhook>) -> Result<Created<NewWebhookView>, ApiError> {
    let (caller, free_slots) =
        request.authorize(Scope::WebhooksWrite, async |store| Ok(store.free_webhook_slots().await?)).await?;
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
    let secret = NewSecret::make(&caller).await?;
    let command = CreateWebhook { body, secret: secret.encrypted.clone() };
    let webhook = caller.execute(&command, free_slots).await?;
    Ok(created(&webhook.clone(), secret.show(&caller, webhook)))
}

/// Update a webhook
///
/// Changes the fields that are sent.
#[utoipa::path(patch, path = "/webhooks/{id}", tag = "webhooks", security(("api_key" = ["webhooks:write"])), responses(PatchErrors, ChangeConflict))]
pub async fn update_webhook(
    request: UnverifiedRequest,
    id: PathId<WebhookId>,
    body: JsonBody<WebhookPatch>,
) -> Result<Versioned<WebhookView>, ApiError> {
    let (caller, webhook) =
        request.authorize(Scope::WebhooksWrite, async |store| Ok(store.get::<Webhook>(id.parse()?).await?)).await?;
    let (body, mut errors) = body.parse_with_errors(&caller)?;
    let webhook = found(webhook)?;
    // The present address may have been allowed by another policy. It can be sent back.
    let new_url = body.url.as_ref().filter(|url| **url != webhook.value.url);
    errors.extend(new_url.and_then(|url| check_url(url, caller.app.address_policy())));
    body.unchanged.check(&WebhookView::from(webhook.clone()), errors)?;
    let change = WebhookChange::from(body);
    let now = caller.context.at;
    let webhook = caller.update(webhook, |old| Ok(old.changed(&change, now))).await?;
    Ok(Versioned { version: webhook.version, data: webhook.into() })
}

/// Delete a webhook
///
/// Deliveries that are pending are dropped. Returns the webhook as it was.
#[utoipa::path(delete, path = "/webhooks/{id}", tag = "webhooks", security(("api_key" = ["webhooks:write"])), responses(DeleteErrors, ChangeConflict))]
pub async fn delete_webhook(request: UnverifiedRequest, id: PathId<WebhookId>) -> Result<Data<WebhookView>, ApiError> {
    let (caller, webhook) =
        request.authorize(Scope::WebhooksWrite, async |store| found(store.get::<Webhook>(id.parse()?).await?)).await?;
    Ok(Data { data: caller.delete(webhook, |_| Ok(())).await?.into() })
}
