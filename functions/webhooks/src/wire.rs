//! Bodies, queries and views of webhooks.

use serde::Serialize;
use shared::domain::record::Stored;
use shared::domain::values::field_error::FieldError;
use shared::domain::values::id::WebhookId;
use shared::domain::values::text::Notes;
use shared::domain::values::time::Timestamp;
use shared::domain::webhooks::{
    AddressPolicy, DisabledReason, MAX_GRACE_SECONDS, Webhook, WebhookChange, WebhookEvents, WebhookUrl,
};
use shared::http::requests::body::BoundedInteger;
use shared::http::requests::params::{Limit, PageNumber};
use utoipa::ToSchema;

const READ_ONLY: &[&str] =
    &["id", "disabled_reason", "secret", "created_at", "updated_at", "rotated_at", "previous_secret_until"];

/// Seconds in which the previous secret still signs.
type Grace = BoundedInteger<0, MAX_GRACE_SECONDS>;

shared::body! {
    /// A new webhook.
    pub struct NewWebhook {
        required url: WebhookUrl,
        /// What it is for.
        nullable description: Notes,
        /// Types of events.
        required events: WebhookEvents,
        /// Whether events are sent. Default true.
        optional is_active: bool,
    }
    read_only: READ_ONLY
}

shared::body! {
    /// Fields of a webhook to change.
    pub struct WebhookPatch {
        optional url: WebhookUrl,
        /// What it is for.
        nullable description: Notes,
        /// Types of events.
        optional events: WebhookEvents,
        /// Whether events are sent. `true` also takes the `disabled_reason` away.
        optional is_active: bool,
    }
    unchanged: READ_ONLY, into: WebhookChange
}

shared::body! {
    /// Options for rotating a webhook's secret.
    pub struct Rotation as WebhookRotation {
        /// How many seconds the previous secret still signs, besides the new one. Default 0, maximum 604800 (7 days).
        optional grace_seconds: Grace,
    }
    read_only: &[]
}

pub(crate) fn check_url(url: &WebhookUrl, policy: AddressPolicy) -> Option<FieldError> {
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
    pub(crate) id: WebhookId,
    /// Address that events are sent to.
    url: WebhookUrl,
    /// What it is for.
    #[schema(required)]
    description: Option<Notes>,
    /// Types of events.
    events: WebhookEvents,
    /// Whether events are sent.
    is_active: bool,
    /// Why the service has disabled it. Null if it did not.
    #[schema(required)]
    disabled_reason: Option<DisabledReason>,
    /// Time of creation.
    created_at: Timestamp,
    /// Time of the last change.
    updated_at: Timestamp,
    /// Time of the last rotation of its secret.
    #[schema(required)]
    rotated_at: Option<Timestamp>,
    /// Until when the secret before the last rotation also signs, or has signed.
    #[schema(required)]
    previous_secret_until: Option<Timestamp>,
}

/// A webhook with its secret.
#[derive(Serialize, ToSchema)]
#[schema(as = WebhookWithSecret)]
pub struct NewWebhookView {
    /// The secret that signs deliveries, `whsec_…`. Shown only in this response, and not when the response is replayed for an
    /// `Idempotency-Key`. Null in a dry run.
    #[schema(required = false, value_type = Option<String>)]
    pub(crate) secret: String,
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
