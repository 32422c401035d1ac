//! Why a run does not start or go on.

use super::InstanceStatus;
use crate::domain::asset::Status;
use crate::domain::field_error::FieldError;
use crate::domain::id::{AssetId, InstanceId};

/// Why a process can't start on an asset, or a run can't go on; in words for whoever asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProcessError {
    /// The definition is inactive.
    #[error("The process is inactive.")]
    Inactive,
    /// Another run is on the asset.
    #[error("A process runs on the asset already: complete or cancel it first.")]
    Running(AssetId, InstanceId),
    /// The asset has another status than the process begins with.
    #[error("The asset is {is}; the process begins with an asset that is {needed}.")]
    WrongStatus {
        /// Which asset.
        asset: AssetId,
        /// What it is.
        is: Status,
        /// What it must be.
        needed: Status,
    },
    /// The run has ended.
    #[error("The run is {0}.")]
    Closed(InstanceStatus),
    /// Another step is open than the caller takes it for.
    #[error("The open step is {0}.")]
    Moved(usize),
    /// A value that was submitted before would change.
    #[error("The step {0} was submitted already and can't change.")]
    Submitted(String),
    /// Values are not acceptable; all of them.
    #[error("{} values were refused.", .0.len())]
    Invalid(Vec<FieldError>),
}
