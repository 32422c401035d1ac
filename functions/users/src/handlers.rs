//! The endpoints of users (contract 4).

use crate::wire::{NewUser, UserPatch, UserQuery, UserView};
use shared::auth::Gate;
use shared::domain::id::UserId;
use shared::domain::record::Stored;
use shared::domain::scope::Scope;
use shared::domain::user::{User, UserChange};
use shared::http::openapi::{DeleteRefusals, GetRefusals, ListRefusals, PatchRefusals, PostRefusals};
use shared::http::reply::{self, Data, List, present};
use shared::http::{Answer, params};
use shared::store::TenantStore;

/// Lists users, newest first.
#[utoipa::path(get, path = "/users", tag = "users", params(UserQuery), security(("api_key" = ["users:read"])),
    responses((status = 200, description = "A page of users", body = List<UserView>), ListRefusals))]
pub async fn list_users(gate: Gate) -> Answer {
    let read = async |store: TenantStore| {
        let query: UserQuery = gate.query()?;
        let page = params::page(query.page, query.limit);
        Ok(store.list_users(&query.into(), page).await?)
    };
    let (_, listed) = gate.enter_list(Scope::UsersRead, read).await?;
    reply::list(listed, UserView::from)
}

/// Gets one user.
#[utoipa::path(get, path = "/users/{id}", tag = "users", params(("id" = UserId, Path, description = "The user")),
    security(("api_key" = ["users:read"])),
    responses((status = 200, description = "The user", body = Data<UserView>), GetRefusals))]
pub async fn get_user(gate: Gate) -> Answer {
    let (_, found) = gate.enter(Scope::UsersRead, async |store| present(store.get::<User>(gate.id()?).await?)).await?;
    reply::record(found.version, UserView::from(found))
}

/// Creates a user.
#[utoipa::path(post, path = "/users", tag = "users", request_body = NewUser, security(("api_key" = ["users:write"])),
    responses((status = 201, description = "The new user", body = Data<UserView>), PostRefusals))]
pub async fn create_user(gate: Gate) -> Answer {
    let (session, body) = gate.enter(Scope::UsersWrite, async |_| gate.body::<NewUser>()).await?;
    let id = session.store.new_id(session.stamp.at)?;
    let reply = |user: &Stored<User>| reply::created("users", id, UserView::from(user.clone()));
    session.create(body.into_user(id), reply).await
}

/// Changes a user: the fields that are sent.
#[utoipa::path(patch, path = "/users/{id}", tag = "users", params(("id" = UserId, Path, description = "The user")),
    request_body = UserPatch, security(("api_key" = ["users:write"])),
    responses((status = 200, description = "The user as it is now", body = Data<UserView>), PatchRefusals))]
pub async fn update_user(gate: Gate) -> Answer {
    let read = async |store: TenantStore| {
        let id = gate.id()?;
        let change: UserChange = gate.body::<UserPatch>()?.into();
        Ok((change, present(store.get::<User>(id).await?)?))
    };
    let (session, (change, found)) = gate.enter(Scope::UsersWrite, read).await?;
    let decide = |old: &User| Ok((old.changed(&change), false));
    let user = session.update(found, decide).await?;
    reply::record(user.version, UserView::from(user))
}

/// Deletes a user that nothing points to; answers it as it was.
#[utoipa::path(delete, path = "/users/{id}", tag = "users", params(("id" = UserId, Path, description = "The user")),
    security(("api_key" = ["users:write"])),
    responses((status = 200, description = "The user as it was", body = Data<UserView>), DeleteRefusals))]
pub async fn delete_user(gate: Gate) -> Answer {
    let (session, found) = gate.enter(Scope::UsersWrite, async |store| present(store.get::<User>(gate.id()?).await?)).await?;
    reply::data(UserView::from(session.delete(found, |_| Ok(())).await?))
}
