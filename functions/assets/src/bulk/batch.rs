//! The endpoint for batches.

use crate::changes::{Action, AssetOperation, AssetWrite, Target, without_users};
use crate::handlers::{AssetPatch, NewAsset};
use shared::auth::Caller;
use shared::auth::caller::AssetsWrite;
use shared::domain::values::field_error::FieldError;
use shared::domain::values::id::{AssetId, Id};
use shared::http::bulk::operations::{Batch, BatchResult, OperationKind, RawOperation};
use shared::http::openapi::{AssetBatchConflict, BatchErrors};
use shared::http::requests::body::JsonBody;
use shared::http::responses::{ApiError, Json};

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
    caller.execute_batch(&operations, &faults).await.map(Json)
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
