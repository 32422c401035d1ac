//! The responses to errors of process instances.

use serde_json::json;
use shared::domain::processes::instance::ProcessError;
use shared::domain::values::id::MovementId;
use shared::http::error::{ApiError, ConflictCode};

pub(crate) fn process_error(error: ProcessError) -> ApiError {
    let (code, detail) = (ConflictCode::from(&error), error.to_string());
    let context = match error {
        ProcessError::Invalid(errors) => return ApiError::Invalid(errors),
        ProcessError::Inactive => json!({}),
        ProcessError::Running(asset, instance) => json!({"instance_id": instance, "asset_id": asset}),
        ProcessError::WrongStatus { asset, actual, required } => {
            json!({"asset_id": asset, "status_of_asset": actual, "trigger_status": required})
        }
        ProcessError::Closed(status) => json!({"instance_status": status}),
        ProcessError::Moved(step) => json!({"current_step": step}),
        ProcessError::Submitted(key) => json!({"step": key}),
    };
    ApiError::conflict(code, detail, context)
}

/// For a request about an instance that is only possible for its movement. `advice` is the alternative.
pub(crate) fn part_of_movement(movement: MovementId, advice: &str) -> ApiError {
    let detail = format!("The instance is part of a movement. {advice}");
    ApiError::conflict(ConflictCode::Conflict, detail, json!({"movement_id": movement}))
}
