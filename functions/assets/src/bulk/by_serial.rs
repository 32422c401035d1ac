//! The endpoint for upserts by serial number.

use crate::changes::{Action, AssetOperation, AssetWrite, Target};
use crate::handlers::{AssetView, NewAsset};
use shared::auth::Caller;
use shared::auth::caller::AssetsWrite;
use shared::domain::assets::asset::AssetChange;
use shared::domain::record::Patch;
use shared::domain::values::field_error::FieldError;
use shared::fields::serial_number;
use shared::http::openapi::{ChangeErrors, SerialNumberConflict};
use shared::http::requests::body::JsonBody;
use shared::http::requests::params::{Path, SerialNumber};
use shared::http::responses::{ApiError, Upserted};

/// Create or update an asset by its serial number
///
/// Creates the asset, or changes the given fields if an asset has this serial number. Serial numbers are compared ignoring case,
/// width and whitespace; an existing asset keeps its spelling. Concurrent requests create only one asset. The request is refused
/// if several assets already have the serial number, or if it is a placeholder such as `unknown`.
#[utoipa::path(put, path = "/assets/by-serial/{serial}", tag = "assets", responses(ChangeErrors, SerialNumberConflict))]
pub async fn put_asset_by_serial(
    caller: Caller<AssetsWrite>,
    Path(serial): Path<SerialNumber>,
    body: JsonBody<NewAsset>,
) -> Result<Upserted<AssetView>, ApiError> {
    let (body, mut errors) = body.parse_with_errors(&caller)?;
    let key = serial_number::key(&serial);
    errors.extend(serial_number::fault(&serial).map(|fault| FieldError::parameter("serial", fault)));
    match &body.details.serial_number {
        Patch::Absent => {}
        Patch::Value(other) if serial_number::key(other) == key => {}
        _ => errors.push(FieldError::field("serial_number", "differs from the one in the path")),
    }
    let mut change = AssetChange::from(body);
    change.details.serial_number = Patch::Value(serial);
    let mut caller = caller.verified().await?;
    // The path has no ID to check the precondition against.
    let if_match = caller.take_precondition().and_then(|precondition| precondition.expected.versions);
    let action = Action::Write(Box::new(AssetWrite::new(change, errors)));
    let operation = AssetOperation::new(caller.store.new_id(caller.context.at)?, Target::Serial(key), action);
    let outcome = operation.with_if_match(if_match).read_and_commit(&caller).await?;
    Ok(outcome.upserted())
}
