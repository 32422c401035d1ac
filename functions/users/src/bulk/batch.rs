//! The endpoint of batches.

use super::operation::{Action, Target, UserOperation, UserOutcome, UserWrite};
use super::users_in_bulk::UsersInBulk;
use crate::wire::{NewUser, UserPatch, UserView};
use shared::auth::UnverifiedRequest;
use shared::domain::keys::scope::Scope;
use shared::domain::request::StoredResponse;
use shared::domain::user::UserChange;
use shared::domain::values::field_error::FieldError;
use shared::domain::values::id::{Id, UserId};
use shared::http::body::ReadOnlyFields;
use shared::http::bulk::batch::{Batch, BatchResult};
use shared::http::bulk::import::RowResult;
use shared::http::bulk::operations::{OperationKind, RawOperation};
use shared::http::error::ApiError;
use shared::http::extract::JsonBody;
use shared::http::openapi::{PatchErrors, UserBatchConflict};
use shared::http::response::{Created, Data, Json, Success, Versioned};
use shared::store::StoreError;
use std::sync::Arc;

/// Change several users
///
/// Creates, updates and deletes up to 100 users. Each operation succeeds or fails on its own, unless `atomic` is true:
/// then all of up to 20 succeed or none does. With an `Idempotency-Key`, a repetition goes on where the request stopped.
#[utoipa::path(post, path = "/users/batch", tag = "users", security(("api_key" = ["users:write"])), responses(PatchErrors, UserBatchConflict))]
pub async fn batch_users(request: UnverifiedRequest, body: JsonBody<Batch>) -> Result<Json<BatchResult>, ApiError> {
    let (caller, ()) = request.authorize(Scope::UsersWrite, async |_| Ok(())).await?;
    let (operations, is_atomic) = body.parse(&caller)?.into_operations()?;
    let users = Arc::new(UsersInBulk::default());
    let ids = caller.store.new_ids(caller.context.at, operations.len())?;
    let operations: Vec<UserOperation> = operations.iter().zip(ids).map(|(raw, id)| operation(raw, id, &users)).collect();
    BatchResult::of(&caller, &operations, is_atomic).await.map(Json)
}

fn operation(raw: &RawOperation, new_id: UserId, users: &Arc<UsersInBulk>) -> UserOperation {
    let target = match raw.kind {
        OperationKind::Create => Target::New,
        OperationKind::Update | OperationKind::Delete => Target::Id(UserId::from_uuid(raw.id)),
    };
    let action = match raw.kind {
        OperationKind::Delete => Ok(Action::Delete),
        OperationKind::Create => raw.read::<NewUser>().map(|(body, errors)| {
            let NewUser { email, display_name, role, is_active } = body;
            let change = UserChange { email: Some(email), display_name: Some(display_name), role, is_active };
            Action::Write(Box::new(UserWrite { change, unchanged: ReadOnlyFields::default(), errors }))
        }),
        OperationKind::Update => raw.read::<UserPatch>().map(|(mut body, errors)| {
            let unchanged = std::mem::take(&mut body.unchanged);
            Action::Write(Box::new(UserWrite { change: body.into(), unchanged, errors }))
        }),
    };
    let action = action.unwrap_or_else(|error| match error {
        ApiError::Invalid(errors) => Action::Refuse(errors),
        error => Action::Refuse(vec![FieldError::whole(error.to_string())]),
    });
    let (users, if_match) = (Arc::clone(users), raw.if_match.clone());
    UserOperation { users, target, action, if_match, respond, locate: |error| error, missing: |error| error, new_id }
}

/// Returns the response that the single request would have.
fn respond(changed: &UserOutcome) -> Result<StoredResponse, StoreError> {
    let (id, version) = (changed.user.value.id, changed.user.version);
    let data = UserView::from(changed.user.clone());
    match changed.result {
        _ if changed.is_deleted => Data { data }.to_stored(Vec::new()),
        RowResult::Created => Created::new("users", id, data).to_stored(Vec::new()),
        _ => Versioned { version, data }.to_stored(Vec::new()),
    }
}
