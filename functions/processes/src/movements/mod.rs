//! The endpoints of movements: one process on several assets at once.

pub(crate) mod wire;

use self::wire::MovementQuery;
use crate::subject::advance::advance;
use crate::subject::cancel::cancel;
use crate::subject::wire::MovementView;
use crate::subject::wire::{Advance, Cancel};
use crate::subject::{Subject, views};
use shared::auth::UnverifiedRequest;
use shared::domain::keys::scope::Scope;
use shared::domain::processes::instance::Instance;
use shared::domain::values::id::{Id, MovementId};
use shared::http::error::ApiError;
use shared::http::openapi::{CancellationConflict, InputErrors, ResourceErrors, SubmissionConflict};
use shared::http::requests::extract::{JsonBody, OptionalJsonBody, PathId, QueryParams};
use shared::http::requests::params;
use shared::http::responses::Data;
use shared::http::responses::page::{PageItems, SerializedPage};
use shared::store::{BatchGet, StoreError};

/// Movements that are read at once for a list. More movements with large instances could exceed a function's memory.
const MOVEMENTS_PER_READ: usize = 20;

/// List movements
///
/// Newest first, with their instances. Signatures are returned as paths.
#[utoipa::path(get, path = "/movements", tag = "processes", security(("api_key" = ["processes:read"])), responses(InputErrors))]
pub async fn list_movements(
    request: UnverifiedRequest,
    query: QueryParams<MovementQuery>,
) -> Result<SerializedPage<MovementView>, ApiError> {
    let (caller, page) = request
        .authorize_with_query(Scope::ProcessesRead, query, async |store, query| {
            Ok(store.list_movements(params::page(query.page, query.limit)).await?)
        })
        .await?;
    let (store, mut items, mut unreadable) = (&caller.store, PageItems::default(), page.unreadable);
    for movements in page.items.chunks(MOVEMENTS_PER_READ) {
        let ids = movements.iter().flat_map(|movement| movement.value.instance_ids.iter().copied());
        let batch = store.batch_get(BatchGet::new().with_all::<Instance>(ids)).await?;
        for movement in movements {
            let instances = match batch.get_all::<Instance>(movement.value.instance_ids.iter().copied()) {
                // Without one of its instances, a movement can't be shown.
                Err(StoreError::Unreadable(_)) => {
                    unreadable.push(movement.value.id.uuid());
                    continue;
                }
                instances => instances?,
            };
            items.push(&MovementView::new(movement.clone(), views::views(store, instances, true).await?))?;
        }
        if items.is_too_large() {
            break;
        }
    }
    items.into_page(page.total, page.request, unreadable)
}

/// Get a movement
///
/// With its instances.
#[utoipa::path(get, path = "/movements/{id}", tag = "processes", security(("api_key" = ["processes:read"])), responses(ResourceErrors))]
pub async fn get_movement(request: UnverifiedRequest, id: PathId<MovementId>) -> Result<Data<MovementView>, ApiError> {
    let (caller, subject) =
        request.authorize_and_read(Scope::ProcessesRead, async |store| Subject::read(&store, id.parse()?.into()).await).await?;
    views::respond(&caller.store, subject, false).await
}

/// Advance a movement
///
/// Submits the open step of all instances in progress, and those that follow up to `through`, in one transaction.
#[utoipa::path(post, path = "/movements/{id}/advance", tag = "processes", security(("api_key" = ["processes:write"])), responses(ResourceErrors, SubmissionConflict))]
pub async fn advance_movement(
    request: UnverifiedRequest,
    id: PathId<MovementId>,
    body: JsonBody<Advance>,
) -> Result<Data<MovementView>, ApiError> {
    advance(request, id, body).await
}

/// Cancel a movement
///
/// Cancels all instances in progress, in one transaction. A body is optional.
#[utoipa::path(post, path = "/movements/{id}/cancel", tag = "processes", security(("api_key" = ["processes:write"])), responses(ResourceErrors, CancellationConflict))]
pub async fn cancel_movement(
    request: UnverifiedRequest,
    id: PathId<MovementId>,
    body: OptionalJsonBody<Cancel>,
) -> Result<Data<MovementView>, ApiError> {
    cancel(request, id, body).await
}
