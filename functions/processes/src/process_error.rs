//! What errors of process instances mean to a client.

use serde_json::json;
use shared::domain::instance::ProcessError;
use shared::http::error::{ApiError, ConflictCode};

/// Returns the response to an error of the domain.
pub(crate) fn process_error(error: ProcessError) -> ApiError {
    let detail = error.to_string();
    let (code, context) = match error {
        ProcessError::Invalid(errors) => return ApiError::Invalid(errors),
        ProcessError::Inactive => (ConflictCode::ProcessInactive, json!({})),
        ProcessError::Running(asset, instance) => {
            (ConflictCode::ProcessRunning, json!({"instance_id": instance, "asset_id": asset}))
        }
        ProcessError::WrongStatus { asset, actual, required } => {
            let context = json!({"asset_id": asset, "status_of_asset": actual, "trigger_status": required});
            (ConflictCode::WrongAssetStatus, context)
        }
        ProcessError::Closed(status) => (ConflictCode::InstanceClosed, json!({"instance_status": status})),
        ProcessError::Moved(step) => (ConflictCode::StepMoved, json!({"current_step": step})),
        ProcessError::Submitted(key) => (ConflictCode::StepSubmitted, json!({"step": key})),
    };
    ApiError::conflict(code, detail, context)
}
