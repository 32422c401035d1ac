//! The parts of the operator's configuration that webhooks need, and the errors without them.

use serde_json::Value;
use shared::app::App;
use shared::http::error::{ApiError, ConflictCode};
use shared::key_encryption::KeyEncryption;
use shared::queue::Queue;

fn unavailable(lacking: &str) -> ApiError {
    let detail = format!("Webhooks are not available: the operator has not configured {lacking}.");
    ApiError::conflict(ConflictCode::Conflict, detail, Value::Null)
}

pub(crate) fn key_encryption(app: &App) -> Result<&dyn KeyEncryption, ApiError> {
    app.key_encryption().ok_or_else(|| unavailable("an encryption key for their secrets"))
}

pub(crate) fn queue(app: &App) -> Result<&dyn Queue, ApiError> {
    app.queue().ok_or_else(|| unavailable("a queue for deliveries"))
}
