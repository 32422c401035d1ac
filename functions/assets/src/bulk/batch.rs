//! The endpoint for batches.

use crate::changes::{Action, AssetOperation, AssetWrite, Target, commit_failure, without_users};
use crate::handlers::{AssetPatch, NewAsset};
use shared::auth::caller::AssetsWrite;
use shared::auth::{Caller, Principal};
use shared::domain::values::field_error::FieldError;
use shared::domain::values::id::{AssetId, Id};
use shared::http::bulk::operations::{Batch, BatchResult, OperationKind, OperationResults, RawOperation, too_many_operations};
use shared::http::openapi::{AssetBatchConflict, BatchErrors};
use shared::http::requests::body::JsonBody;
use shared::http::responses::{ApiError, Json};
use shared::store::WriteError;

/// Change several assets
///
/// Creates, updates and deletes up to 20 assets in one transaction: all succeed, or nothing changes. For more assets, import
/// NDJSON, which writes row by row.
#[utoipa::path(post, path = "/assets/batch", tag = "assets", responses(BatchErrors, AssetBatchConflict))]
pub async fn batch_assets(caller: Caller<AssetsWrite>, body: JsonBody<Batch>) -> Result<Json<BatchResult>, ApiError> {
    let (operations, faults) = body.parse(&caller)?.into_operations();
    let caller = caller.verified().await?;
    let ids = caller.store.new_ids(caller.context.at, operations.len())?;
    let mut operations: Vec<AssetOperation> = operations.iter().zip(ids).map(|(raw, id)| operation(raw, id)).collect();
    AssetOperation::note_brought_tags(&mut operations);
    caller.refuse_precondition()?;
    let operations: Vec<&AssetOperation> = operations.iter().collect();
    let (caller, operations, faults) = (&caller, &operations, &faults);
    // Boxed, because the compiler limits how deep future types can nest.
    let read = |is_retry| Box::pin(AssetOperation::read_all(caller, operations, is_retry));
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
            error => commit_failure(error),
        })
    };
    match caller.retry(read(false).await?, || read(true), attempt).await {
        Err(error @ ApiError::Conflict(_)) => Err(error_of_one(&caller.with_dry_run(), operations, error).await),
        result => result.map(Json),
    }
}

/// Dry-runs the operations of a failed batch one by one. Returns their errors, or `error` if every dry run succeeds. The failed
/// commit alone doesn't show which operation's record is still referenced.
async fn error_of_one(checker: &Principal, operations: &[&AssetOperation], error: ApiError) -> ApiError {
    let mut results = OperationResults::default();
    for (index, operation) in operations.iter().enumerate() {
        let executed = Box::pin(operation.read_and_commit(checker)).await;
        results.add(index, executed.and_then(|outcome| Ok(outcome.response()?)));
    }
    results.finish(true).err().unwrap_or(error)
}

fn operation(raw: &RawOperation, new_id: AssetId) -> AssetOperation {
    let target = match raw.kind {
        Some(OperationKind::Update | OperationKind::Delete) if !raw.is_faulty => Target::Id(AssetId::from_uuid(raw.id)),
        _ => Target::New,
    };
    let write = match raw.kind {
        None | Some(OperationKind::Delete) => Ok(None),
        Some(OperationKind::Create) => raw.read::<NewAsset>().map(|(body, errors)| Some(AssetWrite::new(body, errors))),
        Some(OperationKind::Update) => raw.read::<AssetPatch>().map(|(mut body, errors)| {
            let unchanged = without_users(std::mem::take(&mut body.unchanged));
            Some(AssetWrite { unchanged, ..AssetWrite::new(body, errors) })
        }),
    };
    let action = match write {
        Ok(write) if raw.is_faulty => Action::Refuse(write.map(|write| write.change.errors).unwrap_or_default()),
        Ok(Some(write)) => Action::Write(Box::new(write)),
        Ok(None) => Action::Delete,
        Err(ApiError::Invalid(errors)) => Action::Refuse(errors),
        Err(error) => Action::Refuse(vec![FieldError::whole(error.to_string())]),
    };
    AssetOperation::new(new_id, target, action).with_if_match(raw.if_match.clone())
}
