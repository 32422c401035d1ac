//! The endpoints of signing links, for clients with an API key. The endpoints for the signer's page are in `signing`.

mod create;
mod wire;

use crate::links::create::{CreateLink, Inputs};
use crate::links::wire::{LinkQuery, LinkView, NewLink, NewLinkView, created};
use crate::subject::Subject;
use shared::auth::Caller;
use shared::auth::scopes::{ProcessesRead, ProcessesWrite};
use shared::domain::keys::token::{LinkToken, Secret};
use shared::domain::processes::subject::SubjectId;
use shared::domain::record::Stored;
use shared::domain::signing::link::Link;
use shared::domain::values::id::{InstanceId, LinkId, MovementId};
use shared::http::base_url::BaseUrl;
use shared::http::error::ApiError;
use shared::http::openapi::{CancellationConflict, ChangeConflict, ChangeErrors, ResourceErrors};
use shared::http::requests::extract::{JsonBody, Path, Query};
use shared::http::requests::params;
use shared::http::responses::{CreatedSecret, Data, Versioned, or_not_found};
use shared::store::{Page, TenantStore};

/// Make a signing link for a process instance
///
/// A person without an API key submits steps with it: the open one and those that follow, up to `until`. Only
/// this response shows the link's address.
#[utoipa::path(post, path = "/processes/instances/{id}/links", tag = "signing", responses(ResourceErrors, CancellationConflict))]
pub async fn create_instance_link(
    caller: Caller<ProcessesWrite>,
    Path(id): Path<InstanceId>,
    base: BaseUrl,
    body: JsonBody<NewLink>,
) -> Result<CreatedSecret<NewLinkView>, ApiError> {
    create(caller, id.into(), base, body).await
}

/// Make a signing link for a movement
///
/// A person without an API key submits steps of all its instances with it: the open one and those that follow, up to `until`.
/// Only this response shows the link's address.
#[utoipa::path(post, path = "/movements/{id}/links", tag = "signing", responses(ResourceErrors, CancellationConflict))]
pub async fn create_movement_link(
    caller: Caller<ProcessesWrite>,
    Path(id): Path<MovementId>,
    base: BaseUrl,
    body: JsonBody<NewLink>,
) -> Result<CreatedSecret<NewLinkView>, ApiError> {
    create(caller, id.into(), base, body).await
}

async fn create(
    caller: Caller<ProcessesWrite>,
    subject: SubjectId,
    base: BaseUrl,
    body: JsonBody<NewLink>,
) -> Result<CreatedSecret<NewLinkView>, ApiError> {
    let (body, errors) = body.parse_with_errors(&caller)?;
    let inputs = Inputs::read(&caller.store, subject, &body).await?;
    let caller = caller.verified().await?;
    let secret = Secret::new(caller.store.store().random()?);
    let command = CreateLink { subject, body, errors, hash: secret.hash() };
    let position = inputs.subject.position();
    let stored = caller.execute(&command, inputs).await?;
    let token = LinkToken::new(caller.store.id(), stored.value.id, secret).expose();
    let url = format!("{}/v1/sign#{token}", base.as_str());
    caller.store.note_assigned(&url);
    let link = LinkView::new(stored, caller.context.at, position);
    Ok(created(subject, link.id, NewLinkView { url, link }))
}

/// List the signing links of a process instance
///
/// Newest first, without their secrets.
#[utoipa::path(get, path = "/processes/instances/{id}/links", tag = "signing", responses(ResourceErrors))]
pub async fn list_instance_links(
    caller: Caller<ProcessesRead>,
    Query(query): Query<LinkQuery>,
    Path(id): Path<InstanceId>,
) -> Result<Page<LinkView>, ApiError> {
    list(caller, id.into(), query).await
}

/// List the signing links of a movement
///
/// Newest first, without their secrets.
#[utoipa::path(get, path = "/movements/{id}/links", tag = "signing", responses(ResourceErrors))]
pub async fn list_movement_links(
    caller: Caller<ProcessesRead>,
    Query(query): Query<LinkQuery>,
    Path(id): Path<MovementId>,
) -> Result<Page<LinkView>, ApiError> {
    list(caller, id.into(), query).await
}

async fn list(caller: Caller<ProcessesRead>, id: SubjectId, query: LinkQuery) -> Result<Page<LinkView>, ApiError> {
    let (store, now) = (&caller.store, caller.store.store().now());
    let subject = Subject::read(store, id).await?;
    let links = store.list_links(id.uuid(), params::page(query.page, query.limit)).await?;
    Ok(links.map(|link| LinkView::new(link, now, subject.position())))
}

/// Get a signing link of a process instance
///
/// Without its secret.
#[utoipa::path(get, path = "/processes/instances/{id}/links/{link_id}", tag = "signing", responses(ResourceErrors))]
pub async fn get_instance_link(
    caller: Caller<ProcessesRead>,
    Path(id): Path<InstanceId>,
    Path(link): Path<LinkId>,
) -> Result<Versioned<LinkView>, ApiError> {
    get(caller, id.into(), link).await
}

/// Get a signing link of a movement
///
/// Without its secret.
#[utoipa::path(get, path = "/movements/{id}/links/{link_id}", tag = "signing", responses(ResourceErrors))]
pub async fn get_movement_link(
    caller: Caller<ProcessesRead>,
    Path(id): Path<MovementId>,
    Path(link): Path<LinkId>,
) -> Result<Versioned<LinkView>, ApiError> {
    get(caller, id.into(), link).await
}

async fn get(caller: Caller<ProcessesRead>, of: SubjectId, link: LinkId) -> Result<Versioned<LinkView>, ApiError> {
    let now = caller.store.store().now();
    let (link, subject) = read(&caller.store, of, link).await?;
    Ok(Versioned { version: link.version, data: LinkView::new(link, now, subject.position()) })
}

async fn read(store: &TenantStore, of: SubjectId, id: LinkId) -> Result<(Stored<Link>, Subject), ApiError> {
    let (link, subject) = tokio::try_join!(async { Ok(store.get::<Link>(id).await?) }, Subject::read(store, of))?;
    Ok((or_not_found(link.filter(|link| link.value.subject == of))?, subject))
}

/// Revoke a signing link of a process instance
///
/// The next request with it is refused. Revoking it again changes nothing.
#[utoipa::path(
    delete,
    path = "/processes/instances/{id}/links/{link_id}",
    tag = "signing",
    responses(ChangeErrors, ChangeConflict)
)]
pub async fn revoke_instance_link(
    caller: Caller<ProcessesWrite>,
    Path(id): Path<InstanceId>,
    Path(link): Path<LinkId>,
) -> Result<Data<LinkView>, ApiError> {
    revoke(caller, id.into(), link).await
}

/// Revoke a signing link of a movement
///
/// The next request with it is refused. Revoking it again changes nothing.
#[utoipa::path(delete, path = "/movements/{id}/links/{link_id}", tag = "signing", responses(ChangeErrors, ChangeConflict))]
pub async fn revoke_movement_link(
    caller: Caller<ProcessesWrite>,
    Path(id): Path<MovementId>,
    Path(link): Path<LinkId>,
) -> Result<Data<LinkView>, ApiError> {
    revoke(caller, id.into(), link).await
}

async fn revoke(caller: Caller<ProcessesWrite>, of: SubjectId, link: LinkId) -> Result<Data<LinkView>, ApiError> {
    let (link, subject) = read(&caller.store, of, link).await?;
    let caller = caller.verified().await?;
    let now = caller.context.at;
    let revoked = caller.update(link, |link| Ok(link.revoked(now))).await?;
    Ok(Data { data: LinkView::new(revoked, now, subject.position()) })
}
