//! The endpoint for replays, which send all events of a period again.

use crate::deliveries::check_active;
use crate::secrets;
use serde::Serialize;
use serde_json::json;
use shared::auth::Caller;
use shared::auth::caller::WebhooksWrite;
use shared::domain::record::Mismatch;
use shared::domain::values::field_error::FieldError;
use shared::domain::values::id::{EventId, WebhookId};
use shared::domain::values::time::Timestamp;
use shared::domain::webhooks::{MAX_REPLAYS_PER_DAY, Message, ReplayRefusal, ReplayRequest, Replays, Webhook, WebhookEvents};
use shared::http::openapi::{RequestConflict, ResourceErrors};
use shared::http::requests::body::JsonBody;
use shared::http::requests::params::Path;
use shared::http::responses::{ApiError, ConflictCode, Data, or_not_found};
use shared::store::keys::Keys;
use utoipa::ToSchema;

/// How far a client's clock can be ahead, in seconds.
const MAX_CLOCK_DIFFERENCE: u32 = 60;

shared::body! {
    /// Events to send again.
    pub struct Replay as WebhookReplay {
        /// Start of the period.
        required since: Timestamp,
        /// End of the period, exclusive. Default: now.
        optional until: Timestamp,
        /// Event types. Default: the webhook's.
        optional events: WebhookEvents,
    }
    read_only: &[]
}

/// A requested replay.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StartedReplay)]
pub struct ReplayView {
    /// The webhook.
    webhook_id: WebhookId,
    /// Start of the period.
    since: Timestamp,
    /// End of the period, exclusive.
    until: Timestamp,
    /// Event types.
    events: WebhookEvents,
    /// Time of the request. Its deliveries have the same `requested_at`.
    requested_at: Timestamp,
}

/// Replay events
///
/// Sends all events of a period again, whether or not they were delivered. Each event gets one delivery, which appears in the
/// list of deliveries. A webhook can have one replay at a time, and a tenant can start at most 50 a day.
#[utoipa::path(post, path = "/webhooks/{id}/replay", tag = "webhooks", responses(ResourceErrors, RequestConflict))]
pub async fn replay_events(
    caller: Caller<WebhooksWrite>,
    Path(id): Path<WebhookId>,
    body: JsonBody<Replay>,
) -> Result<Data<ReplayView>, ApiError> {
    let webhook = caller.store.get::<Webhook>(id).await?;
    let (body, errors) = body.parse_with_errors(&caller)?;
    let webhook = or_not_found(webhook)?.value;
    let caller = caller.verified().await?;
    // `idempotent_enqueue` also refuses a precondition, but only after the replay is recorded.
    if caller.context.precondition.is_some() {
        return Err(ApiError::PreconditionFailed(Mismatch::Version));
    }
    let now = caller.context.at;
    check_times(&body, now, errors)?;
    check_active(&webhook)?;
    let queue = secrets::queue(&caller.app)?;
    let Replay { since, until, events } = body;
    let identity = match &caller.context.idempotency {
        Some(request) => caller.store.request_identity(request),
        None => caller.store.new_id::<EventId>(now)?.to_string(),
    };
    let start = |replays: Replays| replays.start(webhook.id, &identity, now).map_err(refused);
    let asked = async {
        // If the request is resumed, its first attempt has already started the replay.
        let requested_at = if caller.is_resumed() { now } else { caller.store.change_replays(start).await? };
        let (until, events) = (until.unwrap_or(requested_at), events.unwrap_or(webhook.events));
        let message = Message::Replay(ReplayRequest {
            tenant_id: caller.store.id(),
            webhook_id: webhook.id,
            after: Keys::last_event_before(since),
            until,
            events: events.clone(),
            requested_at,
        });
        let response = Data { data: ReplayView { webhook_id: webhook.id, since, until, events, requested_at } };
        caller.idempotent_enqueue(queue, message, &response).await?;
        Ok(response)
    };
    let asked = asked.await;
    if asked.is_err() && caller.context.idempotency.is_none() {
        // Without an idempotency key, no copy of the request will send the message. If cancelling fails too, the replay counts as
        // running for a while.
        let cancel = |replays: Replays| Ok::<_, ApiError>((replays.cancelled(webhook.id, &identity), ()));
        let _ = caller.store.change_replays(cancel).await;
    }
    asked
}

fn refused(refusal: ReplayRefusal) -> ApiError {
    let (detail, context) = match refusal {
        ReplayRefusal::Running(since) => {
            (format!("A replay of this webhook, requested at {since}, is still running."), json!({"requested_at": since}))
        }
        ReplayRefusal::DayIsUsed(next_day) => (
            format!("The limit of {MAX_REPLAYS_PER_DAY} replays a day is reached. The next day starts at {next_day}."),
            json!({"retry_at": next_day}),
        ),
    };
    ApiError::conflict(ConflictCode::Conflict, detail, context)
}

/// Checks that the period doesn't end in the future, and starts before its end.
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
