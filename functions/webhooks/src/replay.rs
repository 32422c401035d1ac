//! The replay: all events of a time are sent again.

use crate::deliveries::check_active;
use crate::unavailable;
use serde::Serialize;
use shared::auth::UnverifiedRequest;
use shared::domain::keys::scope::Scope;
use shared::domain::values::field_error::FieldError;
use shared::domain::values::id::WebhookId;
use shared::domain::values::time::Timestamp;
use shared::domain::webhooks::{Message, ReplayRequest, Webhook, WebhookEvents};
use shared::http::error::ApiError;
use shared::http::openapi::{RequestConflict, ResourceErrors};
use shared::http::requests::extract::{JsonBody, PathId};
use shared::http::responses::{Data, or_not_found};
use shared::store::keys::Keys;
use utoipa::ToSchema;

/// The most that a client's clock may be ahead, in seconds.
const MAX_CLOCK_DIFFERENCE: u32 = 60;

shared::body! {
    /// The events to send again.
    pub struct Replay as WebhookReplay {
        /// Time of the first events.
        required since: Timestamp,
        /// Time before which the last events are. Default: now.
        optional until: Timestamp,
        /// Types of the events. Default: those of the webhook.
        optional events: WebhookEvents,
    }
    read_only: &[]
}

/// A replay that was asked for.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StartedReplay)]
pub struct ReplayView {
    /// The webhook.
    webhook_id: WebhookId,
    /// Time of the first events.
    since: Timestamp,
    /// Time before which the last events are.
    until: Timestamp,
    /// Types of the events.
    events: WebhookEvents,
    /// When it was asked for: `requested_at` of its deliveries.
    requested_at: Timestamp,
}

/// Replay events
///
/// Sends all events of a time again, whether or not they were delivered: one delivery each, which the list then shows.
#[utoipa::path(post, path = "/webhooks/{id}/replay", tag = "webhooks", security(("api_key" = ["webhooks:write"])), responses(ResourceErrors, RequestConflict))]
pub async fn replay_events(
    request: UnverifiedRequest,
    id: PathId<WebhookId>,
    body: JsonBody<Replay>,
) -> Result<Data<ReplayView>, ApiError> {
    let (caller, webhook) =
        request.authorize_and_read(Scope::WebhooksWrite, async |store| Ok(store.get::<Webhook>(id.parse()?).await?)).await?;
    let (body, errors) = body.parse_with_errors(&caller)?;
    let webhook = or_not_found(webhook)?.value;
    let now = caller.context.at;
    check_times(&body, now, errors)?;
    check_active(&webhook)?;
    let queue = unavailable::queue(&caller.app)?;
    let Replay { since, until, events } = body;
    let (until, events) = (until.unwrap_or(now), events.unwrap_or(webhook.events));
    let message = Message::Replay(ReplayRequest {
        tenant_id: caller.store.id(),
        webhook_id: webhook.id,
        after: Keys::last_event_before(since),
        until,
        events: events.clone(),
        requested_at: now,
    });
    let response = Data { data: ReplayView { webhook_id: webhook.id, since, until, events, requested_at: now } };
    caller.idempotent_enqueue(queue, message, &response).await?;
    Ok(response)
}

/// Checks that a time has an end that is not in the future, and a beginning before it.
fn check_times(body: &Replay, now: Timestamp, mut errors: Vec<FieldError>) -> Result<(), ApiError> {
    let until = body.until.unwrap_or(now);
    let is_known = !errors.iter().any(|error| error.is_at("until"));
    if until > now.plus_seconds(MAX_CLOCK_DIFFERENCE) {
        errors.push(FieldError::field("until", format!("must not be in the future; server time: {now}")));
    } else if is_known && body.since >= until {
        errors.push(FieldError::field("since", format!("must be before the end of the replay, {until}")));
    }
    if errors.is_empty() { Ok(()) } else { Err(ApiError::Invalid(errors)) }
}
