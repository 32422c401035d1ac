//! The errors of starting and continuing a process.

use super::InstanceStatus;
use crate::assets::asset::Status;
use crate::values::field_error::FieldError;
use crate::values::id::{AssetId, InstanceId};

/// The texts are for clients.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProcessError {
    #[error("The process is inactive.")]
    Inactive,
    /// Another process instance is in progress on the asset.
    #[error("Another process is in progress on the asset. Complete or cancel it first.")]
    Running(AssetId, InstanceId),
    /// The asset does not have the process's trigger status.
    #[error("The asset's status is {actual}. The process can only be started on an asset whose status is {required}.")]
    WrongStatus { asset: AssetId, actual: Status, required: Status },
    /// The process instance is completed or cancelled.
    #[error("The process instance is {0}.")]
    Closed(InstanceStatus),
    /// The current step is another one than the request expects.
    #[error("The current step is {0}.")]
    Moved(usize),
    /// The request would change the value of a step that has already been submitted.
    #[error("The step {0} has already been submitted and can't be changed.")]
    Submitted(String),
    /// All values that are not acceptable.
    #[error("{} values are not acceptable.", .0.len())]
    Invalid(Vec<FieldError>),
}
