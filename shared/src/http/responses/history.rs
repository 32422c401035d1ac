//! The audit trail as responses show it.

use super::or_not_found;
use super::page::Meta;
use crate::domain::history::chain::Verification;
use crate::domain::record::Record;
use crate::domain::values::json;
use crate::event_view::EventView;
use crate::http::error::ApiError;
use crate::http::requests::params::{self, Limit, PageNumber};
use crate::store::{HistoryPage, MAX_BODY_BEFORE_OMISSION, TenantStore};
use serde::Serialize;
use utoipa::ToSchema;

crate::query! {
    /// Part of a history.
    pub struct HistoryQuery {
        /// Page number. Default 1.
        page: PageNumber as PageNumber,
        /// Items per page. Default 20, maximum 100.
        limit: Limit as Limit,
        /// `true` also recomputes the whole hash chain.
        verify: bool as bool,
    }
}

/// A page of a resource's history.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EventHistory)]
pub struct History {
    /// Changes, newest first.
    data: Vec<EventView>,
    /// Position of the page.
    meta: Meta,
    /// Result of recomputing the hash chain. Present if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Verification, required = false)]
    verification: Option<Verification>,
}

/// # Errors
///
/// Returns [`ApiError::NotFound`] if no such record ever existed, and [`ApiError::Unavailable`] if the table does not respond or
/// an entry can't be found yet.
pub async fn read<T: Record>(store: &TenantStore, id: T::Id, query: HistoryQuery) -> Result<History, ApiError> {
    let request = params::page(query.page, query.limit);
    let verification = async {
        match query.verify {
            Some(true) => store.verify_history::<T>(id).await,
            _ => Ok(None),
        }
    };
    let (page, verification) = tokio::try_join!(store.history::<T>(id, request), verification)?;
    let HistoryPage { entries, total, request } = or_not_found(page)?;
    let total = usize::try_from(total).unwrap_or(usize::MAX);
    let mut bytes = 0;
    let data = entries.into_iter().filter_map(|entry| {
        bytes += json::escaped_len(entry.text.as_bytes());
        let view = EventView::read(entry)?;
        Some(if bytes > MAX_BODY_BEFORE_OMISSION { EventView { changes: None, ..view } } else { view })
    });
    Ok(History { data: data.collect(), meta: Meta::new(total, request), verification })
}
