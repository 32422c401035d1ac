//! The endpoints of webhooks, with their bodies, queries and views.

use crate::secrets::{self, NewSecret};
use serde::Serialize;
use serde_json::json;
use shared::auth::caller::{WebhooksRead, WebhooksWrite};
use shared::auth::{Caller, VerifiedCaller};
use shared::domain::record::Stored;
use shared::domain::values::field_error::FieldError;
use shared::domain::values::id::{WebhookId, choose_slot};
use shared::domain::values::text::Notes;
use shared::domain::values::time::Timestamp;
use shared::domain::webhooks::{
    AddressPolicy, DisabledReason, EncryptedSecret, MAX_GRACE_SECONDS, MAX_WEBHOOKS, Webhook, WebhookChange, WebhookEvents,
    WebhookUrl,
};
use shared::http::openapi::{ChangeConflict, ChangeErrors, InputErrors, RequestConflict, ResourceErrors};
use shared::http::requests::body::{BoundedInteger, JsonBody};
use shared::http::requests::params::{self, Limit, PageNumber, Path, Query};
use shared::http::responses::{ApiError, ConflictCode, Created, CreatedSecret, Data, Success, Versioned};
use shared::request::Assigned;
use shared::store::{CommitFailure, Page, WriteError};
use utoipa::ToSchema;

/// List webhooks
///
/// Newest first, without secrets.
#[utoipa::path(get, path = "/webhooks", tag = "webhooks", responses(InputErrors))]
pub async fn list_webhooks(
    caller: Caller<WebhooksRead>,
    Query(query): Query<WebhookQuery>,
) -> Result<Page<WebhookView>, ApiError> {
    Ok(caller.store.list_webhooks(params::page(query.page, query.limit)).await?.map(WebhookView::from))
}

/// Get a webhook
///
/// Returns the webhook without its secret.
#[utoipa::path(get, path = "/webhooks/{id}", tag = "webhooks", responses(ResourceErrors))]
pub async fn get_webhook(caller: Caller<WebhooksRead>, Path(id): Path<WebhookId>) -> Result<Versioned<WebhookView>, ApiError> {
    caller.get::<Webhook, _>(id).await
}

/// Create a webhook
///
/// The secret that signs deliveries is returned only once, in this response. A tenant can have up to 20 webhooks.
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
    // Without a queue, nothing could be delivered.
    secrets::queue(&caller.app)?;
    if free_slots.is_empty() {
        // Checked early, to avoid encrypting a secret for nothing.
        return Err(too_many());
    }
    let caller = caller.verified().await?;
    let secret = NewSecret::make(&caller).await?;
    let webhook = create(&caller, body, &secret.encrypted, free_slots).await?;
    Ok(created(&webhook.clone(), secret.show(&caller, webhook)))
}

/// Update a webhook
///
/// Changes the given fields.
#[utoipa::path(patch, path = "/webhooks/{id}", tag = "webhooks", responses(ChangeErrors, ChangeConflict))]
pub async fn update_webhook(
    caller: Caller<WebhooksWrite>,
    Path(id): Path<WebhookId>,
    body: JsonBody<WebhookPatch>,
) -> Result<Versioned<WebhookView>, ApiError> {
    let check = |old: &Webhook, body: &WebhookPatch| {
        // The current URL can be sent back unchanged, even if the policy no longer permits it.
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
/// Drops pending deliveries. Returns the webhook's last state.
#[utoipa::path(delete, path = "/webhooks/{id}", tag = "webhooks", responses(ChangeErrors, ChangeConflict))]
pub async fn delete_webhook(caller: Caller<WebhooksWrite>, Path(id): Path<WebhookId>) -> Result<Data<WebhookView>, ApiError> {
    caller.delete::<Webhook, _>(id, |_| Ok(())).await
}

fn created<T>(webhook: &Stored<Webhook>, view: T) -> CreatedSecret<T> {
    Created::new("webhooks", webhook.value.id, view).with_secret()
}

fn too_many() -> ApiError {
    let detail = format!("The limit of {MAX_WEBHOOKS} webhooks is reached.");
    ApiError::conflict(ConflictCode::Conflict, detail, json!({"limit": MAX_WEBHOOKS}))
}

async fn create(
    caller: &VerifiedCaller,
    body: NewWebhook,
    secret: &EncryptedSecret,
    free_slots: Vec<u8>,
) -> Result<Stored<Webhook>, ApiError> {
    let (NewWebhook { url, description, events, is_active }, now) = (&body, caller.context.at);
    let read = || async { Ok(caller.store.free_webhook_slots().await?) };
    let attempt = |free_slots: Vec<u8>| async move {
        let id = caller.store.new_id(now)?;
        let slot = choose_slot(&free_slots, id).ok_or_else(too_many)?;
        let mut unit = caller.unit();
        let webhook = unit.create(Webhook {
            id,
            url: url.clone(),
            description: description.value().cloned().unwrap_or_default(),
            events: events.clone(),
            is_active: is_active.unwrap_or(true),
            disabled_reason: None,
            active_since: now,
            slot,
            secret: secret.clone(),
            previous_secret: None,
            rotated_at: None,
            created_by: caller.context.actor.key_id,
        })?;
        // The stored response must not contain the secret.
        match unit.commit_with(|| created(&webhook, WebhookView::from(webhook.clone())).to_stored(Vec::new())).await {
            Ok(()) => Ok(webhook),
            // A concurrent request took the slot. The next attempt takes a free slot.
            Err(WriteError::Duplicate(..)) => Err(CommitFailure::Outdated(WriteError::Stale)),
            Err(error) => Err(error.into()),
        }
    };
    caller.retry(free_slots, read, attempt).await
}

const READ_ONLY: &[&str] =
    &["id", "disabled_reason", "secret", "created_at", "updated_at", "rotated_at", "previous_secret_until"];

/// How long the previous secret still signs, in seconds.
type Grace = BoundedInteger<0, MAX_GRACE_SECONDS>;

shared::body! {
    /// A new webhook.
    pub struct NewWebhook {
        /// URL that events are sent to.
        required url: WebhookUrl,
        /// Purpose.
        nullable description: Notes,
        /// Event types.
        required events: WebhookEvents,
        /// Whether events are sent. Default true.
        optional is_active: bool,
    }
    read_only: READ_ONLY
}

shared::body! {
    /// Fields to change in a webhook.
    pub struct WebhookPatch {
        /// URL that events are sent to.
        optional url: WebhookUrl,
        /// Purpose.
        nullable description: Notes,
        /// Event types.
        optional events: WebhookEvents,
        /// Whether events are sent. `true` also clears the `disabled_reason`.
        optional is_active: bool,
    }
    unchanged: READ_ONLY, into: WebhookChange
}

shared::body! {
    /// Options for rotating a webhook's secret.
    pub struct Rotation as WebhookRotation {
        /// How many seconds the previous secret still signs, in addition to the new one. Default 0, maximum 604800 (7 days).
        optional grace_seconds: Grace,
    }
    read_only: &[]
}

fn check_url(url: &WebhookUrl, policy: AddressPolicy) -> Option<FieldError> {
    url.check(policy).err().map(|error| FieldError::field("url", error.to_string()))
}

shared::query! {
    /// Page of webhooks.
    pub struct WebhookQuery {
        /// Page number. Default 1.
        page: PageNumber as PageNumber,
        /// Items per page. Default 20, maximum 100.
        limit: Limit as Limit,
    }
}

/// A webhook, without its secret.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Webhook)]
pub struct WebhookView {
    /// ID.
    id: WebhookId,
    /// URL that events are sent to.
    url: WebhookUrl,
    /// Purpose.
    #[schema(required)]
    description: Option<Notes>,
    /// Event types.
    events: WebhookEvents,
    /// Whether events are sent.
    is_active: bool,
    /// Why the service disabled the webhook. Null if it didn't.
    #[schema(required)]
    disabled_reason: Option<DisabledReason>,
    /// Time of creation.
    created_at: Timestamp,
    /// Time of the last change.
    updated_at: Timestamp,
    /// Time of the last rotation of its secret.
    #[schema(required)]
    rotated_at: Option<Timestamp>,
    /// End of the previous secret's grace period. Null if there is none.
    #[schema(required)]
    previous_secret_until: Option<Timestamp>,
}

/// A webhook with its secret.
#[derive(Serialize, ToSchema)]
#[schema(as = WebhookWithSecret)]
pub struct NewWebhookView {
    /// The secret that signs deliveries, `whsec_…`. Returned only once; a replay by `Idempotency-Key` omits it. Null in a dry
    /// run.
    #[schema(required = false, value_type = Option<String>)]
    pub(crate) secret: Assigned<String>,
    /// The webhook without its secret.
    #[serde(flatten)]
    pub(crate) webhook: WebhookView,
}

impl From<Stored<Webhook>> for WebhookView {
    fn from(stored: Stored<Webhook>) -> Self {
        let Stored { value: webhook, created_at, updated_at, .. } = stored;
        Self {
            id: webhook.id,
            url: webhook.url,
            description: Some(webhook.description).filter(|text| !text.is_empty()),
            events: webhook.events,
            is_active: webhook.is_active,
            disabled_reason: webhook.disabled_reason,
            created_at,
            updated_at,
            rotated_at: webhook.rotated_at,
            previous_secret_until: webhook.previous_secret.map(|previous| previous.until),
        }
    }
}
