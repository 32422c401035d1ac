//! The feed of every change of the tenant.

use serde::Serialize;
use shared::auth::UnverifiedRequest;
use shared::domain::id::EventId;
use shared::domain::scope::Scope;
use shared::http::Answer;
use shared::http::history::EventView;
use shared::http::openapi::ListErrors;
use shared::http::params::Limit;
use shared::http::response;
use utoipa::ToSchema;

/// How many events an answer has unless it is asked for more or fewer.
const DEFAULT_LIMIT: u32 = 20;

shared::query! {
    /// Which part of the feed.
    pub struct EventQuery {
        /// The event to go on after; from the first when left out.
        after: EventId as EventId,
        /// How many at most; default 20, maximum 100.
        limit: Limit as Limit,
    }
}

/// A part of the feed.
#[derive(Debug, Serialize, ToSchema)]
pub struct EventFeed {
    /// The changes, oldest first.
    data: Vec<EventView>,
    /// How to go on.
    meta: FeedMeta,
}

/// How to go on with the feed.
#[derive(Debug, Serialize, ToSchema)]
pub struct FeedMeta {
    /// How many changes an answer has at most.
    limit: u32,
    /// What to send as `after` to go on; null when there was nothing yet.
    #[schema(required)]
    after: Option<EventId>,
    /// Whether there are more already.
    has_more: bool,
}

/// Tells every change in the tenant, oldest first, a few seconds after it happened.
///
/// Whoever goes on with `meta.after` misses none and gets none twice.
#[utoipa::path(get, path = "/events", tag = "events", params(EventQuery), security(("api_key" = ["events:read"])),
    responses((status = 200, description = "A part of the feed", body = EventFeed), ListErrors))]
pub async fn list_events(request: UnverifiedRequest) -> Answer {
    let (_, (limit, feed)) = request
        .enter_list(Scope::EventsRead, async |store| {
            let query: EventQuery = request.query()?;
            let limit = query.limit.map_or(DEFAULT_LIMIT, Limit::get);
            Ok((limit, store.events(query.after, limit).await?))
        })
        .await?;
    let meta = FeedMeta { limit, after: feed.last, has_more: feed.has_more };
    response::json(&EventFeed { data: feed.entries.into_iter().filter_map(EventView::read).collect(), meta })
}
