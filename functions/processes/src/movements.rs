//! The endpoints of movements: one process on several assets at once.

use crate::instance_wire::{Advance, Cancel, MovementQuery, MovementView};
use crate::movement_work::{advance, cancel, read};
use crate::views;
use crate::work::Submission;
use serde_json::Map;
use shared::auth::Gate;
use shared::domain::id::{Id, MovementId};
use shared::domain::instance::Instance;
use shared::domain::movement::Movement;
use shared::domain::scope::Scope;
use shared::http::openapi::{GetRefusals, ListRefusals, PatchRefusals};
use shared::http::reply::{self, Data, List, Rows, present};
use shared::http::{Answer, params};
use shared::store::{TenantStore, Wanted};

/// How many movements are read at once for a list.
const AT_ONCE: usize = 20;

/// Lists movements, newest first, with their runs; signatures are given as paths.
#[utoipa::path(get, path = "/movements", tag = "processes", params(MovementQuery), security(("api_key" = ["processes:read"])),
    responses((status = 200, description = "A page of movements", body = List<MovementView>), ListRefusals))]
pub async fn list_movements(gate: Gate) -> Answer {
    let (session, listed) = gate
        .enter_list(Scope::ProcessesRead, async |store| {
            let query: MovementQuery = gate.query()?;
            Ok(store.list_movements(params::page(query.page, query.limit)).await?)
        })
        .await?;
    let (store, mut rows) = (&session.store, Rows::default());
    // Twenty movements of large runs are more than a function's memory should hold at once.
    for some in listed.items.chunks(AT_ONCE) {
        let ids = some.iter().flat_map(|movement| &movement.value.runs);
        let batch = store.batch(ids.fold(Wanted::new(), |wanted, run| wanted.with::<Instance>(store, Some(*run)))).await?;
        for movement in some {
            let runs = movement.value.runs.iter().filter_map(|run| batch.get::<Instance>(store, Some(*run)).transpose());
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
    responses((status = 200, description = "The movement", body = Data<MovementView>), GetRefusals))]
pub async fn get_movement(gate: Gate) -> Answer {
    let found = async |store: TenantStore| read(&store, gate.id()?, &Map::new()).await;
    let (session, (movement, runs, _)) = gate.enter(Scope::ProcessesRead, found).await?;
    reply::data(views::movement(&session.store, movement, runs, false).await?)
}

/// Submits the open step of all runs of a movement that are still open, in one transaction.
#[utoipa::path(post, path = "/movements/{id}/advance", tag = "processes",
    params(("id" = MovementId, Path, description = "The movement")), request_body = Advance,
    security(("api_key" = ["processes:write"])),
    responses((status = 200, description = "The movement as it is now", body = Data<MovementView>), PatchRefusals))]
pub async fn advance_movement(gate: Gate) -> Answer {
    let (session, (id, submission)) = gate
        .enter(Scope::ProcessesWrite, async |store| {
            let id: MovementId = gate.id()?;
            let submission = Submission::from(gate.body_and_faults::<Advance>()?);
            present(store.get::<Movement>(id).await?)?;
            Ok((id, submission))
        })
        .await?;
    reply::data(advance(&session, id, &submission).await?)
}

/// Cancels all runs of a movement that are still open, in one transaction. A body is not needed.
#[utoipa::path(post, path = "/movements/{id}/cancel", tag = "processes",
    params(("id" = MovementId, Path, description = "The movement")), request_body = Option<Cancel>,
    security(("api_key" = ["processes:write"])),
    responses((status = 200, description = "The movement as it is now", body = Data<MovementView>), PatchRefusals))]
pub async fn cancel_movement(gate: Gate) -> Answer {
    let (session, (id, body)) = gate
        .enter(Scope::ProcessesWrite, async |store| {
            let id: MovementId = gate.id()?;
            present(store.get::<Movement>(id).await?)?;
            Ok((id, gate.optional_body::<Cancel>()?))
        })
        .await?;
    let reason = body.and_then(|body| body.reason.or(None));
    reply::data(cancel(&session, id, reason).await?)
}

/// Where a new movement can be read.
pub(crate) fn created(view: MovementView) -> Answer {
    let id = view.id;
    reply::created("movements", MovementId::from_uuid(id.uuid()), crate::instances::Started::Movement(Box::new(view)))
}
