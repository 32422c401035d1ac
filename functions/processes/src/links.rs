//! The endpoints of signing links, for clients with an API key. What the signer's page calls is in `signing`.

use crate::link_subject::LinkSubject;
use crate::link_wire::{LinkQuery, LinkView, NewLink, NewLinkView, created};
use crate::new_link::{CreateLink, Inputs};
use shared::auth::{Caller, UnverifiedRequest};
use shared::domain::keys::scope::Scope;
use shared::domain::keys::token::{LinkToken, Secret};
use shared::domain::record::Stored;
use shared::domain::signing::link::{Link, LinkTarget};
use shared::domain::values::id::{InstanceId, LinkId, MovementId};
use shared::http::base_url::BaseUrl;
use shared::http::error::ApiError;
use shared::http::extract::{JsonBody, PathId, PathLinkId, QueryParams};
use shared::http::openapi::{ActionErrors, CancellationConflict, ChangeConflict, DeleteErrors, GetErrors};
use shared::http::params;
use shared::http::response::{Created, Data, Versioned, found};
use shared::store::{Page, UnverifiedStore};

/// Make a signing link for a process instance
///
/// A person without an API key submits steps with it: the open one and those that follow, up to `until`. The response shows
/// the link's address. It is not shown again, not even when the response is replayed for an `Idempotency-Key`.
#[utoipa::path(post, path = "/processes/instances/{id}/links", tag = "signing", security(("api_key" = ["processes:write"])), responses(ActionErrors, CancellationConflict))]
pub async fn create_instance_link(
    request: UnverifiedRequest,
    id: PathId<InstanceId>,
    base: BaseUrl,
    body: JsonBody<NewLink>,
) -> Result<Created<NewLinkView>, ApiError> {
    create(request, || id.parse().map(LinkTarget::InstanceId), base, body).await
}

/// Make a signing link for a movement
///
/// A person without an API key submits steps of all its instances with it: the open one and those that follow, up to `until`.
/// The response shows the link's address. It is not shown again, not even when the response is replayed for an
/// `Idempotency-Key`.
#[utoipa::path(post, path = "/movements/{id}/links", tag = "signing", security(("api_key" = ["processes:write"])), responses(ActionErrors, CancellationConflict))]
pub async fn create_movement_link(
    request: UnverifiedRequest,
    id: PathId<MovementId>,
    base: BaseUrl,
    body: JsonBody<NewLink>,
) -> Result<Created<NewLinkView>, ApiError> {
    create(request, || id.parse().map(LinkTarget::MovementId), base, body).await
}

async fn create(
    request: UnverifiedRequest,
    target: impl FnOnce() -> Result<LinkTarget, ApiError>,
    base: BaseUrl,
    body: JsonBody<NewLink>,
) -> Result<Created<NewLinkView>, ApiError> {
    let (caller, (target, body, errors, inputs)) = request
        .authorize(Scope::ProcessesWrite, async |store| {
            let target = target()?;
            let (body, errors) = body.parse_early(&store).await?;
            let inputs = Inputs::read(&store, target, &body).await?;
            Ok((target, body, errors, inputs))
        })
        .await?;
    let secret = Secret::new(caller.store.store().random()?);
    let command = CreateLink { target, body, errors, hash: secret.hash() };
    let position = inputs.subject.position();
    let stored = caller.execute(&command, inputs).await?;
    let token = LinkToken::new(caller.store.id(), stored.value.id, secret).expose();
    let url = format!("{}/v1/sign#{token}", base.as_str());
    caller.store.note_assigned(&url);
    let link = LinkView::new(stored, caller.context.at, position);
    Ok(created(target, link.id, NewLinkView { url, link }))
}

/// List the signing links of a process instance
///
/// Newest first, without their secrets.
#[utoipa::path(get, path = "/processes/instances/{id}/links", tag = "signing", security(("api_key" = ["processes:read"])), responses(GetErrors))]
pub async fn list_instance_links(
    request: UnverifiedRequest,
    id: PathId<InstanceId>,
    query: QueryParams<LinkQuery>,
) -> Result<Page<LinkView>, ApiError> {
    list(request, || id.parse().map(LinkTarget::InstanceId), query).await
}

/// List the signing links of a movement
///
/// Newest first, without their secrets.
#[utoipa::path(get, path = "/movements/{id}/links", tag = "signing", security(("api_key" = ["processes:read"])), responses(GetErrors))]
pub async fn list_movement_links(
    request: UnverifiedRequest,
    id: PathId<MovementId>,
    query: QueryParams<LinkQuery>,
) -> Result<Page<LinkView>, ApiError> {
    list(request, || id.parse().map(LinkTarget::MovementId), query).await
}

async fn list(
    request: UnverifiedRequest,
    target: impl FnOnce() -> Result<LinkTarget, ApiError>,
    query: QueryParams<LinkQuery>,
) -> Result<Page<LinkView>, ApiError> {
    let (caller, (target, subject, page)) = request
        .authorize_with_query(Scope::ProcessesRead, query, async |store, query| {
            let target = target()?;
            Ok((target, LinkSubject::read(&store, target).await?, params::page(query.page, query.limit)))
        })
        .await?;
    let links = caller.store.list_links(target.uuid(), page).await?;
    Ok(links.map(|link| LinkView::new(link, caller.context.at, subject.position())))
}

/// Get a signing link of a process instance
///
/// Without its secret.
#[utoipa::path(get, path = "/processes/instances/{id}/links/{link_id}", tag = "signing", security(("api_key" = ["processes:read"])), responses(GetErrors))]
pub async fn get_instance_link(
    request: UnverifiedRequest,
    id: PathId<InstanceId>,
    link: PathLinkId,
) -> Result<Versioned<LinkView>, ApiError> {
    get(request, || id.parse().map(LinkTarget::InstanceId), link).await
}

/// Get a signing link of a movement
///
/// Without its secret.
#[utoipa::path(get, path = "/movements/{id}/links/{link_id}", tag = "signing", security(("api_key" = ["processes:read"])), responses(GetErrors))]
pub async fn get_movement_link(
    request: UnverifiedRequest,
    id: PathId<MovementId>,
    link: PathLinkId,
) -> Result<Versioned<LinkView>, ApiError> {
    get(request, || id.parse().map(LinkTarget::MovementId), link).await
}

async fn get(
    request: UnverifiedRequest,
    target: impl FnOnce() -> Result<LinkTarget, ApiError>,
    link: PathLinkId,
) -> Result<Versioned<LinkView>, ApiError> {
    let (caller, (link, subject)) =
        request.authorize(Scope::ProcessesRead, async |store| read(&store, target()?, link.parse()?).await).await?;
    Ok(Versioned { version: link.version, data: LinkView::new(link, caller.context.at, subject.position()) })
}

/// Reads a link and what it opens.
async fn read(store: &UnverifiedStore, target: LinkTarget, id: LinkId) -> Result<(Stored<Link>, LinkSubject), ApiError> {
    let (link, subject) = tokio::try_join!(async { Ok(store.get::<Link>(id).await?) }, LinkSubject::read(store, target))?;
    Ok((found(link.filter(|link| link.value.target == target))?, subject))
}

/// Revoke a signing link of a process instance
///
/// The next request with it is refused. Revoking it again changes nothing.
#[utoipa::path(delete, path = "/processes/instances/{id}/links/{link_id}", tag = "signing", security(("api_key" = ["processes:write"])), responses(DeleteErrors, ChangeConflict))]
pub async fn revoke_instance_link(
    request: UnverifiedRequest,
    id: PathId<InstanceId>,
    link: PathLinkId,
) -> Result<Data<LinkView>, ApiError> {
    revoke(request, || id.parse().map(LinkTarget::InstanceId), link).await
}

/// Revoke a signing link of a movement
///
/// The next request with it is refused. Revoking it again changes nothing.
#[utoipa::path(delete, path = "/movements/{id}/links/{link_id}", tag = "signing", security(("api_key" = ["processes:write"])), responses(DeleteErrors, ChangeConflict))]
pub async fn revoke_movement_link(
    request: UnverifiedRequest,
    id: PathId<MovementId>,
    link: PathLinkId,
) -> Result<Data<LinkView>, ApiError> {
    revoke(request, || id.parse().map(LinkTarget::MovementId), link).await
}

async fn revoke(
    request: UnverifiedRequest,
    target: impl FnOnce() -> Result<LinkTarget, ApiError>,
    link: PathLinkId,
) -> Result<Data<LinkView>, ApiError> {
    let (caller, (link, subject)): (Caller, _) =
        request.authorize(Scope::ProcessesWrite, async |store| read(&store, target()?, link.parse()?).await).await?;
    let now = caller.context.at;
    let revoked = caller.update(link, |link| Ok(link.revoked(now))).await?;
    Ok(Data { data: LinkView::new(revoked, now, subject.position()) })
}
