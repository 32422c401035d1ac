//! The endpoints of process definitions (contract 7, "Definitions").

use crate::definition_wire::{NewProcess, ProcessPatch, ProcessQuery, ProcessView, StatusFilter};
use crate::instance_wire::InstanceView;
use crate::{commands, views};
use serde_json::Value;
use shared::auth::{Caller, TRIES, UnverifiedRequest, keep};
use shared::domain::id::{Id, InstanceId, ProcessId};
use shared::domain::instance::Instance;
use shared::domain::process::{Process, ProcessChange, ProcessStatus, Slug};
use shared::domain::record::Stored;
use shared::domain::scope::Scope;
use shared::http::error::{ApiError, ConflictCode};
use shared::http::openapi::{DeleteErrors, GetErrors, ListErrors, PatchErrors, PostErrors};
use shared::http::response::{self, Data, List, present};
use shared::http::{Answer, params};
use shared::store::{BatchGet, ProcessFilter, WriteError};
use utoipa::ToSchema;

/// How far slugs are counted for a name that others have too, before the number is one at random.
const COUNTED: u32 = 20;

/// Lists process definitions, newest first: the active ones, unless `status` says otherwise.
#[utoipa::path(get, path = "/processes", tag = "processes", params(ProcessQuery), security(("api_key" = ["processes:read"])),
    responses((status = 200, description = "A page of definitions", body = List<ProcessView>), ListErrors))]
pub async fn list_processes(request: UnverifiedRequest) -> Answer {
    let (_, listed) = request
        .enter_list(Scope::ProcessesRead, async |store| {
            let query: ProcessQuery = request.query()?;
            let filter = ProcessFilter { status: query.status.unwrap_or(StatusFilter::Active).into() };
            Ok(store.list_processes(filter, params::page_of(query.page, query.limit, 100)).await?)
        })
        .await?;
    response::list(listed, ProcessView::from)
}

/// Gets one process definition.
#[utoipa::path(get, path = "/processes/{id}", tag = "processes",
    params(("id" = ProcessId, Path, description = "The definition")), security(("api_key" = ["processes:read"])),
    responses((status = 200, description = "The definition", body = Data<ProcessView>), GetErrors))]
pub async fn get_process(request: UnverifiedRequest) -> Answer {
    let read = async |store: shared::store::TenantStore| present(store.get::<Process>(request.id()?).await?);
    let (_, found) = request.enter(Scope::ProcessesRead, read).await?;
    response::record(found.version, ProcessView::from(found))
}

/// Creates a process definition.
#[utoipa::path(post, path = "/processes", tag = "processes", request_body = NewProcess,
    security(("api_key" = ["processes:write"])),
    responses((status = 201, description = "The new definition", body = Data<ProcessView>), PostErrors))]
pub async fn create_process(request: UnverifiedRequest) -> Answer {
    let (caller, body) = request.enter(Scope::ProcessesWrite, async |_| request.body::<NewProcess>()).await?;
    let wanted = body.slug.is_some();
    let process = Process {
        id: caller.store.new_id(caller.context.at)?,
        slug: body.slug.unwrap_or_else(|| Slug::from_name(&body.name, 1)),
        name: body.name,
        description: body.description.unwrap_or_default(),
        trigger_status: body.trigger_status,
        target_status: body.target_status,
        is_system: false,
        status: body.status.unwrap_or(ProcessStatus::Active),
        steps: body.steps,
    };
    create_slugged(&caller, process, wanted).await
}

/// Writes a definition; one whose slug nobody asked for gets another when it is taken.
async fn create_slugged(caller: &Caller, process: Process, wanted: bool) -> Answer {
    let name = process.name.to_string();
    let reply = |process: &Stored<Process>| response::created("processes", process.value.id, ProcessView::from(process.clone()));
    for nth in 1..=COUNTED + TRIES {
        let nth = if nth > COUNTED { u32::from_le_bytes(caller.store.store().random()?) } else { nth };
        let slug = if wanted { process.slug.clone() } else { Slug::from_name(&name, nth) };
        match caller.store.create(Process { slug, ..process.clone() }, &caller.context, |made| keep(reply(made))).await {
            Err(WriteError::Duplicate(..)) if !wanted => {}
            other => return reply(&other?),
        }
    }
    Err(WriteError::Stale.into())
}

/// What a PATCH of a definition or of a run answers.
#[derive(serde::Serialize, ToSchema)]
#[serde(untagged)]
pub enum DefinitionOrInstance {
    /// The definition as it is now.
    Definition(Box<ProcessView>),
    /// The run as it is now.
    Run(Box<InstanceView>),
}

/// Changes a process definition; or cancels a run, when the id is one's.
///
/// Of a system process only the status can change. What runs keeps the steps that it started with.
#[utoipa::path(patch, path = "/processes/{id}", tag = "processes",
    params(("id" = ProcessId, Path, description = "The definition, or the run to cancel")), request_body = ProcessPatch,
    security(("api_key" = ["processes:write"])),
    responses((status = 200, description = "The definition or the run as it is now", body = Data<DefinitionOrInstance>), PatchErrors))]
pub async fn update_process(request: UnverifiedRequest) -> Answer {
    let (caller, ((body, mut errors), process, run)) = request
        .enter(Scope::ProcessesWrite, async |store| {
            let id: ProcessId = request.id()?;
            let run_id = Some(InstanceId::from_uuid(id.uuid()));
            let batch = store.batch(BatchGet::new().with::<Process>(&store, Some(id)).with::<Instance>(&store, run_id)).await?;
            let (process, run) = (batch.get::<Process>(&store, Some(id))?, batch.get::<Instance>(&store, run_id)?);
            if process.is_none() && run.is_none() {
                return Err(ApiError::NotFound);
            }
            Ok((request.body_and_errors::<ProcessPatch>()?, process, run))
        })
        .await?;
    match (process, run) {
        (Some(process), _) => {
            let (change, field_error): (ProcessChange, _) = body.of_definition();
            errors.extend(field_error);
            if !errors.is_empty() {
                return Err(ApiError::Invalid(errors));
            }
            let decide = |old: &Process| match old.changed(&change) {
                Ok(next) => Ok((next, false)),
                Err(fixed) => Err(ApiError::conflict(ConflictCode::Conflict, format!("Forbidden: {fixed}."), Value::Null)),
            };
            let process = caller.update(process, decide).await?;
            response::record(process.version, DefinitionOrInstance::Definition(Box::new(process.into())))
        }
        (None, Some(run)) => {
            errors = body.errors_for_instance(errors);
            if !errors.is_empty() {
                return Err(ApiError::Invalid(errors));
            }
            let run = commands::cancel(&caller, run, None).await?;
            let version = run.version;
            response::record(version, DefinitionOrInstance::Run(Box::new(views::view(&caller.store, run, false).await?)))
        }
        (None, None) => Err(ApiError::NotFound),
    }
}

/// Deletes a process definition that is no system process and of which nothing runs; answers it as it was.
#[utoipa::path(delete, path = "/processes/{id}", tag = "processes",
    params(("id" = ProcessId, Path, description = "The definition")), security(("api_key" = ["processes:write"])),
    responses((status = 200, description = "The definition as it was", body = Data<ProcessView>), DeleteErrors))]
pub async fn delete_process(request: UnverifiedRequest) -> Answer {
    let read = async |store: shared::store::TenantStore| present(store.get::<Process>(request.id()?).await?);
    let (caller, found) = request.enter(Scope::ProcessesWrite, read).await?;
    let permit = |process: &Process| match process.is_system {
        true => Err(ApiError::conflict(
            ConflictCode::Conflict,
            "A system process can't be deleted; set its status to inactive.",
            Value::Null,
        )),
        false => Ok(()),
    };
    response::data(ProcessView::from(caller.delete(found, permit).await?))
}
