//! The endpoints that list and request deliveries, with their queries and views. The function `deliver` sends them.

use crate::secrets;
use serde::Serialize;
use serde_json::Value;
use shared::auth::caller::{WebhooksRead, WebhooksWrite};
use shared::auth::{Caller, VerifiedCaller};
use shared::domain::values::id::{EventId, Id, WebhookId};
use shared::domain::values::time::Timestamp;
use shared::domain::webhooks::{
    Attempt, AttemptFailure, Delivery, DeliveryRequest, DeliveryStatus, Message, TEST_EVENT, TestEvent, Webhook,
};
use shared::http::openapi::{RequestConflict, ResourceErrors};
use shared::http::requests::body::NoBody;
use shared::http::requests::params::{self, Limit, PageNumber, Path, Query};
use shared::http::responses::{ApiError, ConflictCode, Data, or_not_found};
use shared::request::Assigned;
use shared::store::Page;
use utoipa::ToSchema;

/// List deliveries
///
/// Newest event first. Counts and shows at most the newest 500 matching deliveries. Deliveries are kept for 30 days after their
/// last attempt.
#[utoipa::path(get, path = "/webhooks/{id}/deliveries", tag = "webhooks", responses(ResourceErrors))]
pub async fn list_deliveries(
    caller: Caller<WebhooksRead>,
    Query(query): Query<DeliveryQuery>,
    Path(id): Path<WebhookId>,
) -> Result<Page<DeliveryView>, ApiError> {
    let page = params::page(query.page, query.limit);
    let deliveries = async { Ok(caller.store.list_deliveries(id, query.status, page).await?) };
    let webhook = async { or_not_found(caller.store.get::<Webhook>(id).await?) };
    let (_, page) = tokio::try_join!(webhook, deliveries)?;
    Ok(page.map(DeliveryView::from))
}

/// Send a test event
///
/// Sends an event of the type `webhook.test` to this webhook, even if it is inactive. The delivery appears in the list after its
/// first attempt. Failed tests are retried, except after a 410, and never disable the webhook.
#[utoipa::path(post, path = "/webhooks/{id}/test", tag = "webhooks", responses(ResourceErrors, RequestConflict))]
pub async fn test_webhook(
    caller: Caller<WebhooksWrite>,
    Path(id): Path<WebhookId>,
    body: NoBody,
) -> Result<Data<TestDeliveryView>, ApiError> {
    let webhook = or_not_found(caller.store.get::<Webhook>(id).await?)?;
    body.check(&caller)?;
    let caller = caller.verified().await?;
    let now = caller.context.at;
    let event_id: EventId = caller.store.new_id(now)?;
    let delivery = Delivery {
        webhook_id: webhook.value.id,
        event_id,
        event_type: TEST_EVENT.to_owned(),
        status: DeliveryStatus::Pending,
        requested_at: now,
        tries: 0,
        attempt_count: 0,
        attempts: Vec::new(),
        next_attempt_at: None,
        test: None,
    };
    let view = |delivery| TestDeliveryView { id: caller.assign(event_id), details: DeliveryDetails::from(delivery) };
    ask_for(&caller, delivery, view).await
}

/// Retry a delivery
///
/// Sends the event again, regardless of the delivery's status. Failed attempts are retried as for a new delivery. The list of
/// deliveries changes only after the first attempt.
#[utoipa::path(
    post,
    path = "/webhooks/{id}/deliveries/{delivery_id}/retry",
    tag = "webhooks",
    responses(ResourceErrors, RequestConflict)
)]
pub async fn retry_delivery(
    caller: Caller<WebhooksWrite>,
    Path(id): Path<WebhookId>,
    Path(event): Path<EventId>,
    body: NoBody,
) -> Result<Data<DeliveryView>, ApiError> {
    let (webhook, delivery) = tokio::try_join!(caller.store.get::<Webhook>(id), caller.store.find_delivery(id, event))?;
    let (webhook, delivery) = (or_not_found(webhook)?, or_not_found(delivery)?);
    body.check(&caller)?;
    let caller = caller.verified().await?;
    check_active(&webhook.value)?;
    let again = Delivery {
        status: DeliveryStatus::Pending,
        requested_at: later(caller.context.at, delivery.requested_at),
        next_attempt_at: None,
        ..delivery
    };
    ask_for(&caller, again, DeliveryView::from).await
}

/// Returns the time of a delivery request: always later than the previous request, regardless of clocks, because the latest
/// request counts.
fn later(now: Timestamp, before: Timestamp) -> Timestamp {
    now.max(Timestamp::from_millis(before.millis() + 1))
}

pub(crate) fn check_active(webhook: &Webhook) -> Result<(), ApiError> {
    if webhook.is_active {
        return Ok(());
    }
    let detail = "The webhook is not active. Set is_active to true first.";
    Err(ApiError::conflict(ConflictCode::Conflict, detail, Value::Null))
}

/// Enqueues a delivery for the function `deliver`. The response shows the current state.
async fn ask_for<V: Serialize>(
    caller: &VerifiedCaller,
    delivery: Delivery,
    view: impl FnOnce(Delivery) -> V,
) -> Result<Data<V>, ApiError> {
    let queue = secrets::queue(&caller.app)?;
    let is_test = delivery.event_type == TEST_EVENT;
    // A test event is in no history.
    let test = is_test.then(|| TestEvent { actor: caller.context.actor.nameless() });
    let Delivery { webhook_id, event_id, requested_at, .. } = delivery;
    let request = DeliveryRequest::first(caller.store.id(), webhook_id, event_id, requested_at);
    let message = Message::Delivery(DeliveryRequest { test, ..request });
    let response = Data { data: view(delivery) };
    caller.idempotent_enqueue(queue, message, &response).await?;
    Ok(response)
}

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
    /// Start time.
    at: Timestamp,
    /// Status of the response. Null if there was none.
    #[schema(required)]
    status: Option<u16>,
    /// Why there was no response.
    #[schema(required)]
    error: Option<AttemptFailure>,
    /// Duration in milliseconds.
    duration_ms: u64,
}

/// The delivery of an event to a webhook.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Delivery)]
pub struct DeliveryView {
    /// ID of the event, also in the header `webhook-id`.
    id: EventId,
    /// All fields except the ID.
    #[serde(flatten)]
    details: DeliveryDetails,
}

/// The delivery of a test event.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TestDelivery)]
pub struct TestDeliveryView {
    /// ID of the event, also in the header `webhook-id`. Null in a dry run.
    #[schema(required, value_type = Option<EventId>)]
    id: Assigned<EventId>,
    /// All fields except the ID.
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
    /// Status.
    status: DeliveryStatus,
    /// The newest 20 attempts, oldest first.
    attempts: Vec<AttemptView>,
    /// Number of all attempts.
    attempt_count: u64,
    /// When the next attempt is due. Null if there is none, or if it is due now.
    #[schema(required)]
    next_attempt_at: Option<Timestamp>,
    /// Time of the event.
    created_at: Timestamp,
    /// When the delivery was requested: the time of the event, or of the last retry or replay.
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
