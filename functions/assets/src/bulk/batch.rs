//! The endpoint of batches.

use super::assets_in_bulk::AssetsInBulk;
use super::operation::{Action, AssetOperation, AssetOutcome, AssetWrite, Target};
use crate::expand::without_users;
use crate::wire::{AssetPatch, AssetView, DeletedAsset, NewAsset};
use shared::auth::UnverifiedRequest;
use shared::domain::assets::change::AssetChange;
use shared::domain::keys::scope::Scope;
use shared::domain::request::StoredResponse;
use shared::domain::values::field_error::FieldError;
use shared::domain::values::id::{AssetId, Id};
use shared::http::body::ReadOnlyFields;
use shared::http::bulk::batch::{Batch, BatchResult};
use shared::http::bulk::import::RowResult;
use shared::http::bulk::operations::{OperationKind, RawOperation};
use shared::http::error::ApiError;
use shared::http::extract::JsonBody;
use shared::http::openapi::{AssetBatchConflict, BatchErrors};
use shared::http::response::{Created, Data, Json, Success, Versioned};
use shared::store::StoreError;
use std::sync::Arc;

/// Change several assets
///
/// Creates, updates and deletes up to 100 assets. Each operation succeeds or fails on its own, unless `atomic` is true:
/// then all of up to 20 succeed or none does. With an `Idempotency-Key`, a repetition goes on where the request stopped.
#[utoipa::path(post, path = "/assets/batch", tag = "assets", security(("api_key" = ["assets:write"])), responses(BatchErrors, AssetBatchConflict))]
pub async fn batch_assets(request: UnverifiedRequest, body: JsonBody<Batch>) -> Result<Json<BatchResult>, ApiError> {
    let (caller, ()) = request.authorize(Scope::AssetsWrite, async |_| Ok(())).await?;
    let (operations, is_atomic) = body.parse(&caller)?.into_operations()?;
    let assets = Arc::new(AssetsInBulk::default());
    let operations: Vec<AssetOperation> = operations.iter().map(|raw| operation(raw, &assets)).collect();
    BatchResult::of(&caller, &operations, is_atomic).await.map(Json)
}

fn operation(raw: &RawOperation, assets: &Arc<AssetsInBulk>) -> AssetOperation {
    let target = match raw.kind {
        OperationKind::Create => Target::New,
        OperationKind::Update | OperationKind::Delete => Target::Id(AssetId::from_uuid(raw.id)),
    };
    let action = match raw.kind {
        OperationKind::Delete => Ok(Action::Delete),
        OperationKind::Create => raw.read::<NewAsset>().map(|(body, errors)| {
            let (name, change) = body.into_change(errors);
            write(Some(name), change, ReadOnlyFields::default())
        }),
        OperationKind::Update => raw.read::<AssetPatch>().map(|(mut body, errors)| {
            let unchanged = without_users(std::mem::take(&mut body.unchanged));
            let mut change = body.into_change(errors);
            write(change.name.take(), change, unchanged)
        }),
    };
    let action = action.unwrap_or_else(|error| match error {
        ApiError::Invalid(errors) => Action::Refuse(errors),
        error => Action::Refuse(vec![FieldError::whole(error.to_string())]),
    });
    AssetOperation { if_match: raw.if_match.clone(), ..AssetOperation::new(assets, target, action, respond) }
}

fn write(name: Option<shared::domain::values::text::Name>, change: AssetChange, unchanged: ReadOnlyFields) -> Action {
    Action::Write(Box::new(AssetWrite { name, change, unchanged, ..AssetWrite::default() }))
}

/// Returns the response that the single request would have.
pub(crate) fn respond(changed: &AssetOutcome) -> Result<StoredResponse, StoreError> {
    if changed.is_deleted {
        return Data { data: DeletedAsset { message: "Asset deleted." } }.to_stored(Vec::new());
    }
    let (id, version) = (changed.asset.value.id, changed.asset.version);
    let data = AssetView::new(changed.asset.clone(), changed.names.clone());
    match changed.result {
        RowResult::Created => Created::new("assets", id, data).to_stored(Vec::new()),
        _ => Versioned { version, data }.to_stored(Vec::new()),
    }
}
