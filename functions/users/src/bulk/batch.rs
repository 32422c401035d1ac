//! The endpoint for batches.

use crate::changes::{Action, Target, UserOperation, UserWrite};
use crate::handlers::{NewUser, UserPatch};
use shared::auth::Caller;
use shared::auth::caller::UsersWrite;
use shared::domain::keys::api_key::Role;
use shared::domain::values::field_error::FieldError;
use shared::domain::values::id::{Id, UserId};
use shared::http::bulk::operations::{Batch, BatchResult, OperationKind, RawOperation};
use shared::http::openapi::{BatchErrors, UserBatchConflict};
use shared::http::requests::body::JsonBody;
use shared::http::responses::{ApiError, Json};

/// Change several users
///
/// Creates, updates and deletes up to 20 users in one transaction: all succeed, or nothing changes. For more users, import
/// NDJSON, which writes row by row.
#[utoipa::path(post, path = "/users/batch", tag = "users", responses(BatchErrors, UserBatchConflict))]
pub async fn batch_users(caller: Caller<UsersWrite>, body: JsonBody<Batch>) -> Result<Json<BatchResult>, ApiError> {
    let (operations, faults) = body.parse(&caller)?.into_operations();
    let caller = caller.verified().await?;
    let ids = caller.store.new_ids(caller.context.at, operations.len())?;
    let operations: Vec<_> = operations.iter().zip(ids).map(|(raw, id)| operation(caller.role, raw, id)).collect();
    caller.execute_batch(&operations, &faults).await.map(Json)
}

fn operation(role: Role, raw: &RawOperation, new_id: UserId) -> UserOperation {
    let target = match raw.kind {
        Some(OperationKind::Update | OperationKind::Delete) if !raw.is_faulty => Target::Id(UserId::from_uuid(raw.id)),
        _ => Target::New,
    };
    let write = match raw.kind {
        None | Some(OperationKind::Delete) => Ok(None),
        Some(OperationKind::Create) => {
            raw.read::<NewUser>().map(|(body, errors)| Some(UserWrite { change: body.into(), errors, ..UserWrite::default() }))
        }
        Some(OperationKind::Update) => raw.read::<UserPatch>().map(|(mut body, errors)| {
            let unchanged = std::mem::take(&mut body.unchanged);
            Some(UserWrite { change: body.into(), unchanged, errors })
        }),
    };
    let action = match write {
        Ok(write) if raw.is_faulty => Action::Refuse(write.map(|write| write.errors).unwrap_or_default()),
        Ok(Some(write)) => Action::Write(Box::new(write)),
        Ok(None) => Action::Delete,
        Err(ApiError::Invalid(errors)) => Action::Refuse(errors),
        Err(error) => Action::Refuse(vec![FieldError::whole(error.to_string())]),
    };
    UserOperation::new(role, new_id, target, action).with_if_match(raw.if_match.clone())
}
