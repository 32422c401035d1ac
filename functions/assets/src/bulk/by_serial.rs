//! The endpoint of upserts by serial number.

use crate::changes::{Action, AssetOperation, AssetWrite, Target};
use crate::wire::{AssetView, NewAsset};
use shared::auth::caller::AssetsWrite;
use shared::auth::{Caller, Operation};
use shared::domain::assets::change::AssetChange;
use shared::domain::record::Patch;
use shared::domain::values::field_error::FieldError;
use shared::fields::serial_number;
use shared::http::error::ApiError;
use shared::http::openapi::{ChangeErrors, SerialNumberConflict};
use shared::http::requests::extract::{JsonBody, Path, SerialNumber};
use shared::http::responses::Upserted;

/// Create or update an asset by its serial number
///
/// Creates the asset, or changes the fields that are sent if there is one with this serial number. Serial numbers are compared
/// without regard to case, width and white space; an existing asset keeps its spelling. However many such requests arrive at
/// once, they make one asset. If several assets have the serial number already, the request is refused, and so is a
/// placeholder such as `unknown`.
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
    // The path has no ID that the precondition could be about.
    let if_match = caller.take_precondition().map(|precondition| precondition.expected);
    let action = Action::Write(Box::new(AssetWrite::new(change, errors)));
    let operation = AssetOperation::new(caller.store.new_id(caller.context.at)?, Target::Serial(key), action);
    let outcome = caller.read_and_execute(&operation.with_if_match(if_match)).await?;
    Upserted::from_stored(AssetOperation::response(&outcome)?)
}
