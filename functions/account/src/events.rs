//! The feed of all changes in the tenant.

use serde::Serialize;
use shared::auth::UnverifiedRequest;
use shared::domain::id::EventId;
use shared::domain::scope::Scope;
use shared::http::error::ApiError;
use shared::http::extract::QueryParams;
use shared::http::history::EventView;
use shared::http::openapi::ListErrors;
use shared::http::params::Limit;
use shared::http::response::Json;
use utoipa::ToSchema;

/// How many events a response has by default.
const DEFAULT_LIMIT: u32 = 20;

shared::query! {
    /// Part of the feed.
    pub struct EventQuery {
        /// ID of the event to continue after. Default: from the first event.
        after: EventId as EventId,
        /// Maximum number of events. Default 20, maximum 100.
        limit: Limit as Limit,
    }
}

/// A part of the feed.
#[derive(Debug, Serialize, ToSchema)]
pub struct EventFeed {
    /// Changes, oldest first.
    data: Vec<EventView>,
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
    /// Whether more events are available now.
    has_more: bool,
}

/// List events
///
/// All changes in the tenant, oldest first, about ten seconds after they happen. Send `meta.after` as `after` to
/// continue: no event is missed, and none comes twice.
#[utoipa::path(get, path = "/events", tag = "events", security(("api_key" = ["events:read"])), responses(ListErrors))]
pub async fn list_events(request: UnverifiedRequest, query: QueryParams<EventQuery>) -> Result<Json<EventFeed>, ApiError> {
    let (_, (limit, feed)) = request
        .authorize_with_query(Scope::EventsRead, query, async |store, query| {
            let limit = query.limit.map_or(DEFAULT_LIMIT, Limit::get);
            Ok((limit, store.verified().await.events(query.after, limit).await?))
        })
        .await?;
    let meta = FeedMeta { limit, after: feed.last, has_more: feed.has_more };
    Ok(Json(EventFeed { data: feed.entries.into_iter().filter_map(EventView::read).collect(), meta }))
}
