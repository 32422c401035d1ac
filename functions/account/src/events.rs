//! The feed of all changes in the tenant.

use serde::Serialize;
use shared::auth::Caller;
use shared::auth::caller::EventsRead;
use shared::domain::history::filter::{EventFilter, EventTypes};
use shared::domain::values::field_error::ValueError;
use shared::domain::values::id::{EventId, Id};
use shared::domain::values::time::Timestamp;
use shared::event_view::{FeedEntry, feed_entries};
use shared::http::openapi::InputErrors;
use shared::http::requests::params::{FromParam, Limit, Query};
use shared::http::responses::{ApiError, Json};
use utoipa::ToSchema;

const DEFAULT_LIMIT: u32 = 20;

/// Where to start in the feed.
#[derive(Debug, Clone, Copy)]
pub enum Start {
    /// At the current end, before the next event.
    Now,
    After(EventId),
}

impl FromParam for Start {
    fn from_param(text: &str) -> Result<Self, ValueError> {
        if text == "now" {
            return Ok(Self::Now);
        }
        text.parse().map(Self::After).map_err(|error: ValueError| ValueError::new(format!("{error}, or now")))
    }
}

/// The ID of an event, or `now`.
#[derive(ToSchema)]
#[schema(value_type = String, pattern = "^(now|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$")]
#[schema(as = FeedStart)]
pub struct StartText(());

shared::query! {
    /// Query of the event feed.
    pub struct EventQuery {
        /// ID of the event to continue after. `now` starts about ten seconds before the request, so that no change is missed.
        /// Default: from the first event.
        after: Start as StartText,
        /// Maximum number of events. Default 20, maximum 100.
        limit: Limit as Limit,
        /// Event types, separated by commas: exact types such as `asset.created`, all types of a kind such as `asset.*`, or `*`
        /// for all.
        types: EventTypes as EventTypes,
        /// Only events of this resource.
        entity_id: EventId as EventId,
        /// Only changes made by this key, user or signing link.
        actor_id: EventId as EventId,
        /// Only events at this time or later.
        since: Timestamp as Timestamp,
        /// Only events before this time.
        until: Timestamp as Timestamp,
    }
}

/// Part of the event feed.
#[derive(Debug, Serialize, ToSchema)]
pub struct EventFeed {
    /// Changes, oldest first.
    data: Vec<FeedEntry>,
    /// How to continue.
    meta: FeedMeta,
}

/// How to continue with the feed.
#[derive(Debug, Serialize, ToSchema)]
pub struct FeedMeta {
    /// Maximum number of events per response.
    limit: u32,
    /// Value of `after` for the next request. Null while the tenant has no events.
    #[schema(required)]
    after: Option<EventId>,
    /// Whether more events are available now. With a filter, they might not match.
    has_more: bool,
}

/// List events
///
/// All changes in the tenant, oldest first, about ten seconds after they happen. Send `meta.after` as `after` to continue: no
/// event is missed or repeated. With a filter, `data` can be empty although `has_more` is true.
#[utoipa::path(get, path = "/events", tag = "events", responses(InputErrors))]
pub async fn list_events(caller: Caller<EventsRead>, Query(query): Query<EventQuery>) -> Result<Json<EventFeed>, ApiError> {
    let EventQuery { after, limit, types, entity_id, actor_id, since, until } = query;
    let limit = limit.map_or(DEFAULT_LIMIT, Limit::get);
    let after = match after {
        Some(Start::Now) => {
            let meta = FeedMeta { limit, after: Some(caller.store.end_of_feed()), has_more: false };
            return Ok(Json(EventFeed { data: Vec::new(), meta }));
        }
        Some(Start::After(id)) => Some(id),
        None => None,
    };
    let (types, entity, actor) = (types.and_then(EventTypes::unless_all), entity_id.map(Id::uuid), actor_id.map(Id::uuid));
    let feed = caller.store.matching_events(after, limit, &EventFilter { types, entity, actor, since, until }).await?;
    let meta = FeedMeta { limit, after: feed.last, has_more: feed.has_more };
    Ok(Json(EventFeed { data: feed_entries(&caller.store, feed.entries).await?, meta }))
}
