//! The endpoint of batches.

use super::assets_in_bulk::AssetsInBulk;
use super::operation::AssetOperation;
use super::write::{Action, Target};
use crate::expand::without_users;
use crate::wire::{AssetPatch, NewAsset};
use shared::auth::UnverifiedRequest;
use shared::domain::keys::scope::Scope;
use shared::domain::values::field_error::FieldError;
use shared::domain::values::id::{AssetId, Id};
use shared::http::bulk::batch::{Batch, BatchResult};
use shared::http::bulk::operations::{OperationKind, RawOperation};
use shared::http::error::ApiError;
use shared::http::openapi::{AssetBatchConflict, AssetBatchErrors};
use shared::http::requests::body::ReadOnlyFields;
use shared::http::requests::extract::JsonBody;
use shared::http::responses::Json;
use std::sync::Arc;

/// Change several assets
///
/// Creates, updates and deletes up to 20 assets in one transaction: all succeed, or nothing changes. To change many one by one, import
/// NDJSON.
#[utoipa::path(post, path = "/assets/batch", tag = "assets", security(("api_key" = ["assets:write"])), responses(AssetBatchErrors, AssetBatchConflict))]
pub async fn batch_assets(request: UnverifiedRequest, body: JsonBody<Batch>) -> Result<Json<BatchResult>, ApiError> {
    let caller = request.authorize(Scope::AssetsWrite).await?;
    let operations = body.parse(&caller)?.into_operations()?;
    let assets = Arc::new(AssetsInBulk::default());
    let operations: Vec<AssetOperation> = operations.iter().map(|raw| operation(raw, &assets)).collect();
    caller.execute_batch(&operations).await.map(Json)
}

fn operation(raw: &RawOperation, assets: &Arc<AssetsInBulk>) -> AssetOperation {
    let target = match raw.kind {
        OperationKind::Create => Target::New,
        OperationKind::Update | OperationKind::Delete => Target::Id(AssetId::from_uuid(raw.id)),
    };
    let action = match raw.kind {
        OperationKind::Delete => Ok(Action::Delete),
        OperationKind::Create => {
            raw.read::<NewAsset>().map(|(body, errors)| Action::set(body, ReadOnlyFields::default(), errors))
        }
        OperationKind::Update => raw.read::<AssetPatch>().map(|(mut body, errors)| {
            let unchanged = without_users(std::mem::take(&mut body.unchanged));
            Action::set(body, unchanged, errors)
        }),
    };
    let action = action.unwrap_or_else(|error| match error {
        ApiError::Invalid(errors) => Action::Refuse(errors),
        error => Action::Refuse(vec![FieldError::whole(error.to_string())]),
    });
    AssetOperation { if_match: raw.if_match.clone(), ..AssetOperation::new(assets, target, action) }
}
