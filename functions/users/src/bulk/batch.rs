//! The endpoint for batches.

use crate::changes::{Action, Target, UserOperation, UserWrite};
use crate::handlers::{NewUser, UserPatch};
use shared::auth::caller::UsersWrite;
use shared::auth::{Caller, Principal};
use shared::domain::keys::api_key::Role;
use shared::domain::values::field_error::FieldError;
use shared::domain::values::id::{Id, UserId};
use shared::http::bulk::operations::{Batch, BatchResult, OperationKind, OperationResults, RawOperation, too_many_operations};
use shared::http::openapi::{BatchErrors, UserBatchConflict};
use shared::http::requests::body::JsonBody;
use shared::http::responses::{ApiError, Json};
use shared::store::WriteError;

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
    caller.refuse_precondition()?;
    let operations: Vec<&UserOperation> = operations.iter().collect();
    let (caller, operations, faults) = (&caller, &operations, &faults);
    // Boxed, because the compiler limits how deep future types can nest.
    let read = || Box::pin(UserOperation::read_all(caller, operations));
    let attempt = |inputs: Vec<Result<_, ApiError>>| async move {
        let (mut unit, mut results) = (caller.unit(), OperationResults::with_faults(faults));
        for (index, (operation, inputs)) in operations.iter().zip(inputs).enumerate() {
            results.add_unique(index, operation.unique_value());
            let decided = inputs.and_then(|inputs| operation.decide(caller, &mut unit, &inputs));
            results.add(index, decided.and_then(|outcome| Ok(outcome.response()?)));
        }
        let result = results.finish(caller.store.is_dry_run())?;
        let committed = unit.commit_with(|| result.to_stored()).await;
        committed.map(|()| result).map_err(|error| match error {
            WriteError::TooLarge => too_many_operations().into(),
            error => error.into(),
        })
    };
    match caller.retry(read().await?, read, attempt).await {
        Err(error @ ApiError::Conflict(_)) => Err(error_of_one(&caller.with_dry_run(), operations, error).await),
        result => result.map(Json),
    }
}

/// Dry-runs the operations of a failed batch one by one. Returns their errors, or `error` if every dry run succeeds. The failed
/// commit alone doesn't show which operation's record is still referenced.
async fn error_of_one(checker: &Principal, operations: &[&UserOperation], error: ApiError) -> ApiError {
    let mut results = OperationResults::default();
    for (index, operation) in operations.iter().enumerate() {
        let executed = Box::pin(operation.read_and_commit(checker)).await;
        results.add(index, executed.and_then(|outcome| Ok(outcome.response()?)));
    }
    results.finish(true).err().unwrap_or(error)
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
