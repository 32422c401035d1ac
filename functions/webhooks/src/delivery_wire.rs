//! Queries and views of deliveries.

use serde::Serialize;
use shared::domain::values::id::{EventId, Id, WebhookId};
use shared::domain::values::time::Timestamp;
use shared::domain::webhooks::{Attempt, AttemptFailure, Delivery, DeliveryStatus};
use shared::http::requests::params::{Limit, PageNumber};
use utoipa::ToSchema;

shared::query! {
    /// Deliveries to list.
    pub struct DeliveryQuery {
        /// Page number. Default 1.
        page: PageNumber as PageNumber,
        /// Items per page. Default 20, maximum 100.
        limit: Limit as Limit,
        /// Filter by status.
        status: DeliveryStatus as DeliveryStatus,
    }
}

/// An attempt to deliver an event.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DeliveryAttempt)]
pub struct AttemptView {
    /// When it began.
    at: Timestamp,
    /// Status of the response. Null if there was none.
    #[schema(required)]
    status: Option<u16>,
    /// Why there was no response.
    #[schema(required)]
    error: Option<AttemptFailure>,
    /// How long it took, in milliseconds.
    duration_ms: u64,
}

/// An event on its way to a webhook.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Delivery)]
pub struct DeliveryView {
    /// ID: that of the event, and the header `webhook-id`.
    id: EventId,
    /// Everything else.
    #[serde(flatten)]
    details: DeliveryDetails,
}

/// The delivery of a test event.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TestDelivery)]
pub struct TestDeliveryView {
    /// ID: that of the event, and the header `webhook-id`. Null in a dry run.
    #[schema(required, value_type = Option<EventId>)]
    id: EventId,
    /// Everything else.
    #[serde(flatten)]
    details: DeliveryDetails,
}

/// A delivery without its ID.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeliveryDetails {
    /// The webhook.
    webhook_id: WebhookId,
    /// Type of the event; `webhook.test` for a test.
    #[schema(examples("asset.updated"))]
    event_type: String,
    /// What became of it.
    status: DeliveryStatus,
    /// The newest 20 attempts, oldest first.
    attempts: Vec<AttemptView>,
    /// How many attempts there were in all.
    attempt_count: u64,
    /// When the next attempt is due. Null if none is, or if it is due now.
    #[schema(required)]
    next_attempt_at: Option<Timestamp>,
    /// Time of the event.
    created_at: Timestamp,
    /// When the delivery was asked for: the time of the event, or of the last retry or replay.
    requested_at: Timestamp,
}

impl From<Attempt> for AttemptView {
    fn from(attempt: Attempt) -> Self {
        let Attempt { at, status, error, duration_ms } = attempt;
        Self { at, status, error, duration_ms }
    }
}

impl From<Delivery> for DeliveryView {
    fn from(delivery: Delivery) -> Self {
        Self { id: delivery.event_id, details: delivery.into() }
    }
}

impl From<Delivery> for TestDeliveryView {
    fn from(delivery: Delivery) -> Self {
        Self { id: delivery.event_id, details: delivery.into() }
    }
}

impl From<Delivery> for DeliveryDetails {
    fn from(delivery: Delivery) -> Self {
        Self {
            webhook_id: delivery.webhook_id,
            event_type: delivery.event_type,
            status: delivery.status,
            attempts: delivery.attempts.into_iter().map(AttemptView::from).collect(),
            attempt_count: delivery.attempt_count,
            next_attempt_at: delivery.next_attempt_at,
            created_at: delivery.event_id.timestamp(),
            requested_at: delivery.requested_at,
        }
    }
}
