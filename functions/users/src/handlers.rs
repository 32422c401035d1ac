//! The endpoints of users (contract 4).

use crate::wire::{NewUser, UserPatch, UserQuery, UserView};
use shared::auth::UnverifiedRequest;
use shared::domain::id::UserId;
use shared::domain::record::Stored;
use shared::domain::scope::Scope;
use shared::domain::user::{User, UserChange};
use shared::http::openapi::{DeleteErrors, GetErrors, ListErrors, PatchErrors, PostErrors};
use shared::http::response::{self, Data, List, present};
use shared::http::{Answer, params};
use shared::store::TenantStore;

/// Lists users, newest first.
#[utoipa::path(get, path = "/users", tag = "users", params(UserQuery), security(("api_key" = ["users:read"])),
    responses((status = 200, description = "A page of users", body = List<UserView>), ListErrors))]
pub async fn list_users(request: UnverifiedRequest) -> Answer {
    let read = async |store: TenantStore| {
        let query: UserQuery = request.query()?;
        let page = params::page(query.page, query.limit);
        Ok(store.list_users(&query.into(), page).await?)
    };
    let (_, listed) = request.enter_list(Scope::UsersRead, read).await?;
    response::list(listed, UserView::from)
}

/// Gets one user.
#[utoipa::path(get, path = "/users/{id}", tag = "users", params(("id" = UserId, Path, description = "The user")),
    security(("api_key" = ["users:read"])),
    responses((status = 200, description = "The user", body = Data<UserView>), GetErrors))]
pub async fn get_user(request: UnverifiedRequest) -> Answer {
    let (_, found) = request.enter(Scope::UsersRead, async |store| present(store.get::<User>(request.id()?).await?)).await?;
    response::record(found.version, UserView::from(found))
}

/// Creates a user.
#[utoipa::path(post, path = "/users", tag = "users", request_body = NewUser, security(("api_key" = ["users:write"])),
    responses((status = 201, description = "The new user", body = Data<UserView>), PostErrors))]
pub async fn create_user(request: UnverifiedRequest) -> Answer {
    let (caller, body) = request.enter(Scope::UsersWrite, async |_| request.body::<NewUser>()).await?;
    let id = caller.store.new_id(caller.context.at)?;
    let reply = |user: &Stored<User>| response::created("users", id, UserView::from(user.clone()));
    caller.create(body.into_user(id), reply).await
}

/// Changes a user: the fields that are sent.
#[utoipa::path(patch, path = "/users/{id}", tag = "users", params(("id" = UserId, Path, description = "The user")),
    request_body = UserPatch, security(("api_key" = ["users:write"])),
    responses((status = 200, description = "The user as it is now", body = Data<UserView>), PatchErrors))]
pub async fn update_user(request: UnverifiedRequest) -> Answer {
    let read = async |store: TenantStore| {
        let id = request.id()?;
        let change: UserChange = request.body::<UserPatch>()?.into();
        Ok((change, present(store.get::<User>(id).await?)?))
    };
    let (caller, (change, found)) = request.enter(Scope::UsersWrite, read).await?;
    let decide = |old: &User| Ok((old.changed(&change), false));
    let user = caller.update(found, decide).await?;
    response::record(user.version, UserView::from(user))
}

/// Deletes a user that nothing points to; answers it as it was.
#[utoipa::path(delete, path = "/users/{id}", tag = "users", params(("id" = UserId, Path, description = "The user")),
    security(("api_key" = ["users:write"])),
    responses((status = 200, description = "The user as it was", body = Data<UserView>), DeleteErrors))]
pub async fn delete_user(request: UnverifiedRequest) -> Answer {
    let (caller, found) =
        request.enter(Scope::UsersWrite, async |store| present(store.get::<User>(request.id()?).await?)).await?;
    response::data(UserView::from(caller.delete(found, |_| Ok(())).await?))
}
