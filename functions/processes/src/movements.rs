//! The endpoints of movements: one process on several assets at once.

use crate::commands::Submission;
use crate::instance_wire::{Advance, Cancel, MovementQuery, MovementView};
use crate::movement_commands::{advance, cancel, read};
use crate::views;
use serde_json::Map;
use shared::auth::UnverifiedRequest;
use shared::domain::id::{Id, MovementId};
use shared::domain::instance::Instance;
use shared::domain::movement::Movement;
use shared::domain::scope::Scope;
use shared::http::openapi::{GetErrors, ListErrors, PatchErrors};
use shared::http::response::{self, Data, List, Rows, present};
use shared::http::{Answer, params};
use shared::store::{BatchGet, TenantStore};

/// How many movements are read at once for a list.
const AT_ONCE: usize = 20;

/// Lists movements, newest first, with their runs; signatures are given as paths.
#[utoipa::path(get, path = "/movements", tag = "processes", params(MovementQuery), security(("api_key" = ["processes:read"])),
    responses((status = 200, description = "A page of movements", body = List<MovementView>), ListErrors))]
pub async fn list_movements(request: UnverifiedRequest) -> Answer {
    let (caller, listed) = request
        .enter_list(Scope::ProcessesRead, async |store| {
            let query: MovementQuery = request.query()?;
            Ok(store.list_movements(params::page(query.page, query.limit)).await?)
        })
        .await?;
    let (store, mut rows) = (&caller.store, Rows::default());
    // Twenty movements of large runs are more than a function's memory should hold at once.
    for some in listed.items.chunks(AT_ONCE) {
        let ids = some.iter().flat_map(|movement| &movement.value.instance_ids);
        let batch = store.batch(ids.fold(BatchGet::new(), |wanted, run| wanted.with::<Instance>(store, Some(*run)))).await?;
        for movement in some {
            let runs = movement.value.instance_ids.iter().filter_map(|run| batch.get::<Instance>(store, Some(*run)).transpose());
            let runs = runs.collect::<Result<Vec<_>, _>>()?;
            rows.push(&views::movement(store, movement.clone(), runs, true).await?)?;
        }
        if rows.are_too_many() {
            break;
        }
    }
    rows.reply(listed.total, listed.page)
}

/// Gets one movement with its runs.
#[utoipa::path(get, path = "/movements/{id}", tag = "processes",
    params(("id" = MovementId, Path, description = "The movement")), security(("api_key" = ["processes:read"])),
    responses((status = 200, description = "The movement", body = Data<MovementView>), GetErrors))]
pub async fn get_movement(request: UnverifiedRequest) -> Answer {
    let found = async |store: TenantStore| read(&store, request.id()?, &Map::new()).await;
    let (caller, (movement, runs, _)) = request.enter(Scope::ProcessesRead, found).await?;
    response::data(views::movement(&caller.store, movement, runs, false).await?)
}

/// Submits the open step of all runs of a movement that are still open, in one transaction.
#[utoipa::path(post, path = "/movements/{id}/advance", tag = "processes",
    params(("id" = MovementId, Path, description = "The movement")), request_body = Advance,
    security(("api_key" = ["processes:write"])),
    responses((status = 200, description = "The movement as it is now", body = Data<MovementView>), PatchErrors))]
pub async fn advance_movement(request: UnverifiedRequest) -> Answer {
    let (caller, (id, submission)) = request
        .enter(Scope::ProcessesWrite, async |store| {
            let id: MovementId = request.id()?;
            let submission = Submission::from(request.body_and_errors::<Advance>()?);
            present(store.get::<Movement>(id).await?)?;
            Ok((id, submission))
        })
        .await?;
    response::data(advance(&caller, id, &submission).await?)
}

/// Cancels all runs of a movement that are still open, in one transaction. A body is not needed.
#[utoipa::path(post, path = "/movements/{id}/cancel", tag = "processes",
    params(("id" = MovementId, Path, description = "The movement")), request_body = Option<Cancel>,
    security(("api_key" = ["processes:write"])),
    responses((status = 200, description = "The movement as it is now", body = Data<MovementView>), PatchErrors))]
pub async fn cancel_movement(request: UnverifiedRequest) -> Answer {
    let (caller, (id, body)) = request
        .enter(Scope::ProcessesWrite, async |store| {
            let id: MovementId = request.id()?;
            present(store.get::<Movement>(id).await?)?;
            Ok((id, request.optional_body::<Cancel>()?))
        })
        .await?;
    let reason = body.and_then(|body| body.reason.or(None));
    response::data(cancel(&caller, id, reason).await?)
}

/// Where a new movement can be read.
pub(crate) fn created(view: MovementView) -> Answer {
    let id = view.id;
    response::created(
        "movements",
        MovementId::from_uuid(id.uuid()),
        crate::instances::InstanceOrMovement::Movement(Box::new(view)),
    )
}
