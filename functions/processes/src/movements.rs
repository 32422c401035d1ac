//! The endpoints for movements: one process on several assets at once.

use crate::subject::{self, Advance, Cancel, MovementView};
use crate::subject::{Subject, advance, cancel};
use shared::auth::Caller;
use shared::auth::caller::{ProcessesRead, ProcessesWrite};
use shared::domain::processes::instance::Instance;
use shared::domain::values::id::{Id, MovementId};
use shared::http::openapi::{CancellationConflict, InputErrors, ResourceErrors, SubmissionConflict};
use shared::http::requests::body::{JsonBody, OptionalJsonBody};
use shared::http::requests::params::{self, Limit, PageNumber, Path, Query};
use shared::http::responses::{ApiError, Data, PageItems, SerializedPage};
use shared::store::{BatchGet, StoreError};

/// Number of movements to read at once for a list. More movements with large instances could exceed a function's memory.
const MOVEMENTS_PER_READ: usize = 20;

/// List movements
///
/// Newest first, with their instances. Signatures are returned as paths.
#[utoipa::path(get, path = "/movements", tag = "processes", responses(InputErrors))]
pub async fn list_movements(
    caller: Caller<ProcessesRead>,
    Query(query): Query<MovementQuery>,
) -> Result<SerializedPage<MovementView>, ApiError> {
    let page = caller.store.list_movements(params::page(query.page, query.limit)).await?;
    let (store, mut items, mut unreadable) = (&caller.store, PageItems::default(), page.unreadable);
    for movements in page.items.chunks(MOVEMENTS_PER_READ) {
        let ids = movements.iter().flat_map(|movement| movement.value.instance_ids.iter().copied());
        let batch = store.batch_get(BatchGet::new().with_all::<Instance>(ids)).await?;
        for movement in movements {
            let instances = match batch.get_all::<Instance>(movement.value.instance_ids.iter().copied()) {
                // A movement with an unreadable instance can't be shown.
                Err(StoreError::Unreadable(_)) => {
                    unreadable.push(movement.value.id.uuid());
                    continue;
                }
                instances => instances?,
            };
            items.push(&MovementView::new(movement.clone(), subject::views(store, instances, true).await?))?;
        }
        if items.is_too_large() {
            break;
        }
    }
    items.into_page(page.total, page.request, unreadable)
}

/// Get a movement
///
/// Includes the movement's instances.
#[utoipa::path(get, path = "/movements/{id}", tag = "processes", responses(ResourceErrors))]
pub async fn get_movement(caller: Caller<ProcessesRead>, Path(id): Path<MovementId>) -> Result<Data<MovementView>, ApiError> {
    let subject = Subject::read(&caller.store, id.into()).await?;
    subject::respond(&caller.store, subject, false).await
}

/// Advance a movement
///
/// Submits the open step, and any following steps up to `through`, of all instances in progress in one transaction.
#[utoipa::path(post, path = "/movements/{id}/advance", tag = "processes", responses(ResourceErrors, SubmissionConflict))]
pub async fn advance_movement(
    caller: Caller<ProcessesWrite>,
    Path(id): Path<MovementId>,
    body: JsonBody<Advance>,
) -> Result<Data<MovementView>, ApiError> {
    advance(caller, id.into(), body).await
}

/// Cancel a movement
///
/// Cancels all instances in progress, in one transaction. The body is optional.
#[utoipa::path(post, path = "/movements/{id}/cancel", tag = "processes", responses(ResourceErrors, CancellationConflict))]
pub async fn cancel_movement(
    caller: Caller<ProcessesWrite>,
    Path(id): Path<MovementId>,
    body: OptionalJsonBody<Cancel>,
) -> Result<Data<MovementView>, ApiError> {
    cancel(caller, id.into(), body).await
}

shared::query! {
    /// Page of movements.
    pub struct MovementQuery {
        /// Page number. Default 1.
        page: PageNumber as PageNumber,
        /// Items per page. Default 20, maximum 100.
        limit: Limit as Limit,
    }
}
