//! The endpoints of signing links, for clients with an API key. The endpoints for the signer's page are in `signing`.

mod create;
mod wire;

use crate::links::create::{CreateLink, Inputs};
use crate::links::wire::{LinkQuery, LinkView, NewLink, NewLinkView, created};
use crate::subject::Subject;
use shared::auth::{Caller, UnverifiedRequest};
use shared::domain::keys::scope::Scope;
use shared::domain::keys::token::{LinkToken, Secret};
use shared::domain::processes::subject::SubjectId;
use shared::domain::record::Stored;
use shared::domain::signing::link::Link;
use shared::domain::values::id::{InstanceId, LinkId, MovementId};
use shared::http::base_url::BaseUrl;
use shared::http::error::ApiError;
use shared::http::openapi::{CancellationConflict, ChangeConflict, ChangeErrors, ResourceErrors};
use shared::http::requests::extract::{JsonBody, PathId, QueryParams};
use shared::http::requests::params;
use shared::http::requests::path::IdInPath;
use shared::http::responses::{CreatedSecret, Data, Versioned, or_not_found};
use shared::store::{Page, TenantStore};

/// Make a signing link for a process instance
///
/// A person without an API key submits steps with it: the open one and those that follow, up to `until`. Only
/// this response shows the link's address.
#[utoipa::path(post, path = "/processes/instances/{id}/links", tag = "signing", security(("api_key" = ["processes:write"])), responses(ResourceErrors, CancellationConflict))]
pub async fn create_instance_link(
    request: UnverifiedRequest,
    id: PathId<InstanceId>,
    base: BaseUrl,
    body: JsonBody<NewLink>,
) -> Result<CreatedSecret<NewLinkView>, ApiError> {
    create(request, id, base, body).await
}

/// Make a signing link for a movement
///
/// A person without an API key submits steps of all its instances with it: the open one and those that follow, up to `until`.
/// Only this response shows the link's address.
#[utoipa::path(post, path = "/movements/{id}/links", tag = "signing", security(("api_key" = ["processes:write"])), responses(ResourceErrors, CancellationConflict))]
pub async fn create_movement_link(
    request: UnverifiedRequest,
    id: PathId<MovementId>,
    base: BaseUrl,
    body: JsonBody<NewLink>,
) -> Result<CreatedSecret<NewLinkView>, ApiError> {
    create(request, id, base, body).await
}

async fn create<I: IdInPath + Into<SubjectId>>(
    request: UnverifiedRequest,
    id: PathId<I>,
    base: BaseUrl,
    body: JsonBody<NewLink>,
) -> Result<CreatedSecret<NewLinkView>, ApiError> {
    let (caller, (subject, body, errors, inputs)) = request
        .authorize_and_read(Scope::ProcessesWrite, async |store| {
            let subject = id.parse()?.into();
            let (body, errors) = body.parse_with_errors(&store)?;
            let inputs = Inputs::read(&store, subject, &body).await?;
            Ok((subject, body, errors, inputs))
        })
        .await?;
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
#[utoipa::path(get, path = "/processes/instances/{id}/links", tag = "signing", security(("api_key" = ["processes:read"])), responses(ResourceErrors))]
pub async fn list_instance_links(
    request: UnverifiedRequest,
    id: PathId<InstanceId>,
    query: QueryParams<LinkQuery>,
) -> Result<Page<LinkView>, ApiError> {
    list(request, id, query).await
}

/// List the signing links of a movement
///
/// Newest first, without their secrets.
#[utoipa::path(get, path = "/movements/{id}/links", tag = "signing", security(("api_key" = ["processes:read"])), responses(ResourceErrors))]
pub async fn list_movement_links(
    request: UnverifiedRequest,
    id: PathId<MovementId>,
    query: QueryParams<LinkQuery>,
) -> Result<Page<LinkView>, ApiError> {
    list(request, id, query).await
}

async fn list<I: IdInPath + Into<SubjectId>>(
    request: UnverifiedRequest,
    id: PathId<I>,
    query: QueryParams<LinkQuery>,
) -> Result<Page<LinkView>, ApiError> {
    let (caller, (id, subject, page)) = request
        .authorize_with_query(Scope::ProcessesRead, query, async |store, query| {
            let id = id.parse()?.into();
            Ok((id, Subject::read(&store, id).await?, params::page(query.page, query.limit)))
        })
        .await?;
    let links = caller.store.list_links(id.uuid(), page).await?;
    Ok(links.map(|link| LinkView::new(link, caller.context.at, subject.position())))
}

/// Get a signing link of a process instance
///
/// Without its secret.
#[utoipa::path(get, path = "/processes/instances/{id}/links/{link_id}", tag = "signing", security(("api_key" = ["processes:read"])), responses(ResourceErrors))]
pub async fn get_instance_link(
    request: UnverifiedRequest,
    id: PathId<InstanceId>,
    link: PathId<LinkId>,
) -> Result<Versioned<LinkView>, ApiError> {
    get(request, id, link).await
}

/// Get a signing link of a movement
///
/// Without its secret.
#[utoipa::path(get, path = "/movements/{id}/links/{link_id}", tag = "signing", security(("api_key" = ["processes:read"])), responses(ResourceErrors))]
pub async fn get_movement_link(
    request: UnverifiedRequest,
    id: PathId<MovementId>,
    link: PathId<LinkId>,
) -> Result<Versioned<LinkView>, ApiError> {
    get(request, id, link).await
}

async fn get<I: IdInPath + Into<SubjectId>>(
    request: UnverifiedRequest,
    id: PathId<I>,
    link: PathId<LinkId>,
) -> Result<Versioned<LinkView>, ApiError> {
    let (caller, (link, subject)) = request
        .authorize_and_read(Scope::ProcessesRead, async |store| read(&store, id.parse()?.into(), link.parse()?).await)
        .await?;
    Ok(Versioned { version: link.version, data: LinkView::new(link, caller.context.at, subject.position()) })
}

async fn read(store: &TenantStore, of: SubjectId, id: LinkId) -> Result<(Stored<Link>, Subject), ApiError> {
    let (link, subject) = tokio::try_join!(async { Ok(store.get::<Link>(id).await?) }, Subject::read(store, of))?;
    Ok((or_not_found(link.filter(|link| link.value.subject == of))?, subject))
}

/// Revoke a signing link of a process instance
///
/// The next request with it is refused. Revoking it again changes nothing.
#[utoipa::path(delete, path = "/processes/instances/{id}/links/{link_id}", tag = "signing", security(("api_key" = ["processes:write"])), responses(ChangeErrors, ChangeConflict))]
pub async fn revoke_instance_link(
    request: UnverifiedRequest,
    id: PathId<InstanceId>,
    link: PathId<LinkId>,
) -> Result<Data<LinkView>, ApiError> {
    revoke(request, id, link).await
}

/// Revoke a signing link of a movement
///
/// The next request with it is refused. Revoking it again changes nothing.
#[utoipa::path(delete, path = "/movements/{id}/links/{link_id}", tag = "signing", security(("api_key" = ["processes:write"])), responses(ChangeErrors, ChangeConflict))]
pub async fn revoke_movement_link(
    request: UnverifiedRequest,
    id: PathId<MovementId>,
    link: PathId<LinkId>,
) -> Result<Data<LinkView>, ApiError> {
    revoke(request, id, link).await
}

async fn revoke<I: IdInPath + Into<SubjectId>>(
    request: UnverifiedRequest,
    id: PathId<I>,
    link: PathId<LinkId>,
) -> Result<Data<LinkView>, ApiError> {
    let (caller, (link, subject)): (Caller, _) = request
        .authorize_and_read(Scope::ProcessesWrite, async |store| read(&store, id.parse()?.into(), link.parse()?).await)
        .await?;
    let now = caller.context.at;
    let revoked = caller.update(link, |link| Ok(link.revoked(now))).await?;
    Ok(Data { data: LinkView::new(revoked, now, subject.position()) })
}
