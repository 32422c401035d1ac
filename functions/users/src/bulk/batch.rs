//! The endpoint of batches.

use super::operation::{Action, Target, UserOperation};
use super::users_in_bulk::UsersInBulk;
use crate::wire::{NewUser, UserPatch};
use shared::auth::{Caller, UnverifiedRequest};
use shared::domain::keys::scope::Scope;
use shared::domain::values::field_error::FieldError;
use shared::domain::values::id::{Id, UserId};
use shared::http::bulk::batch::{Batch, BatchResult};
use shared::http::bulk::operations::{OperationKind, RawOperation};
use shared::http::error::ApiError;
use shared::http::openapi::{UserBatchConflict, UserBatchErrors};
use shared::http::requests::body::ReadOnlyFields;
use shared::http::requests::extract::JsonBody;
use shared::http::responses::Json;
use std::sync::Arc;

/// Change several users
///
/// Creates, updates and deletes up to 20 users in one transaction: all succeed, or nothing changes. To change many one by one, import
/// NDJSON.
#[utoipa::path(post, path = "/users/batch", tag = "users", security(("api_key" = ["users:write"])), responses(UserBatchErrors, UserBatchConflict))]
pub async fn batch_users(request: UnverifiedRequest, body: JsonBody<Batch>) -> Result<Json<BatchResult>, ApiError> {
    let caller = request.authorize(Scope::UsersWrite).await?;
    let operations = body.parse(&caller)?.into_operations()?;
    let users = Arc::new(UsersInBulk::default());
    let ids = caller.store.new_ids(caller.context.at, operations.len())?;
    let operations: Vec<_> = operations.iter().zip(ids).map(|(raw, id)| operation(&caller, raw, id, &users)).collect();
    caller.execute_batch(&operations).await.map(Json)
}

fn operation(caller: &Caller, raw: &RawOperation, new_id: UserId, users: &Arc<UsersInBulk>) -> UserOperation {
    let target = match raw.kind {
        OperationKind::Create => Target::New,
        OperationKind::Update | OperationKind::Delete => Target::Id(UserId::from_uuid(raw.id)),
    };
    let action = match raw.kind {
        OperationKind::Delete => Ok(Action::Delete),
        OperationKind::Create => raw.read::<NewUser>().map(|(body, errors)| Action::set(body, ReadOnlyFields::default(), errors)),
        OperationKind::Update => raw.read::<UserPatch>().map(|(mut body, errors)| {
            let unchanged = std::mem::take(&mut body.unchanged);
            Action::set(body, unchanged, errors)
        }),
    };
    let action = action.unwrap_or_else(|error| match error {
        ApiError::Invalid(errors) => Action::Refuse(errors),
        error => Action::Refuse(vec![FieldError::whole(error.to_string())]),
    });
    UserOperation { if_match: raw.if_match.clone(), ..UserOperation::new(caller, users, new_id, target, action) }
}
