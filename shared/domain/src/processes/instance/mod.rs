//! Process instances: a process on one asset, the values submitted so far, and its effect on the asset.

mod advance;
mod error;
mod record;
mod signed;
#[cfg(test)]
mod tests;
mod typed_signatures;

pub use advance::{AdvanceOutcome, candidate_users};
pub use error::ProcessError;
pub use signed::Signed;
pub use typed_signatures::{is_typed, read_statement};

use crate::actor::Actor;
use crate::assets::asset::{Asset, Status};
use crate::processes::process::values::StepValues;
use crate::processes::process::{Process, ProcessStatus, StepKind, Steps};
use crate::values::id::{ApiKeyId, AssetId, Id, InstanceId, MovementId, ProcessId, UserId};
use crate::values::signature_image::data_url_len;
use crate::values::string_enum::string_enum;
use crate::values::text::{Name, Notes};
use crate::values::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use uuid::Uuid;

string_enum! {
    /// The status of a process instance.
    InstanceStatus {
        /// There are steps to submit.
        InProgress = "in_progress",
        /// All steps have been submitted.
        Completed = "completed",
        /// It was cancelled before the last step.
        Cancelled = "cancelled",
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum State {
    InProgress {
        /// The index of the current step, from zero.
        step: usize,
    },
    Completed {
        at: Timestamp,
    },
    Cancelled {
        /// The index of the current step at the cancellation.
        step: usize,
        at: Timestamp,
        reason: Option<Notes>,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Instance {
    pub id: InstanceId,
    pub process_id: ProcessId,
    pub asset_id: AssetId,
    /// The movement that it is part of. Such an instance is advanced and cancelled only together with the movement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub movement_id: Option<MovementId>,
    /// Its state. Flattened into attributes of the item, so that an index can contain the status.
    #[serde(flatten)]
    pub state: State,
    pub step_values: StepValues,
    /// By step key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub signed: BTreeMap<String, Signed>,
    /// The steps of the definition when it was started.
    pub steps: Steps,
    /// The target status of the definition when it was started.
    pub target_status: Status,
    /// The name of the definition when it was started.
    pub process_name: Name,
    /// The name of the asset when it was started.
    pub asset_name: Name,
    pub asset_tag: String,
    pub started_by: Option<ApiKeyId>,
    /// The name of the user who started it, else that of the API key.
    pub started_by_name: String,
    /// The user who had the asset when it was started; in a movement, all of its assets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_by: Option<UserId>,
}

#[derive(Debug, Clone)]
pub struct Starter {
    pub key_id: Option<ApiKeyId>,
    /// The display name of the key's user, else the name of the key.
    pub name: String,
}

impl From<&Actor> for Starter {
    fn from(actor: &Actor) -> Self {
        Self { key_id: actor.key_id, name: actor.user_name.clone().unwrap_or_else(|| actor.key_name.clone()) }
    }
}

/// # Errors
///
/// Returns [`ProcessError::Inactive`], [`ProcessError::Running`] or [`ProcessError::WrongStatus`], the first that applies.
pub fn check_startable(process: &Process, asset: &Asset) -> Result<(), ProcessError> {
    if process.status == ProcessStatus::Inactive {
        return Err(ProcessError::Inactive);
    }
    if let Some(running) = asset.running_instance_id {
        return Err(ProcessError::Running(asset.id, running));
    }
    if asset.status != process.trigger_status {
        return Err(ProcessError::WrongStatus { asset: asset.id, actual: asset.status, required: process.trigger_status });
    }
    Ok(())
}

/// Identifies the image of a signature. It contains the image's hash, so a later signature never replaces an image that an
/// instance or a stored response refers to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ImageName {
    /// The process instance, or its movement: the instances of a movement share their images.
    pub owner: Uuid,
    pub step: String,
    pub hash: String,
}

impl Instance {
    /// At its first step.
    pub(crate) fn new(id: InstanceId, process: &Process, asset: &Asset, starter: &Starter) -> Self {
        Self {
            id,
            process_id: process.id,
            asset_id: asset.id,
            movement_id: None,
            state: State::InProgress { step: 0 },
            step_values: StepValues::default(),
            signed: BTreeMap::new(),
            steps: process.steps.clone(),
            target_status: process.target_status,
            process_name: process.name.clone(),
            asset_name: asset.name.clone(),
            asset_tag: asset.asset_tag.clone(),
            started_by: starter.key_id,
            started_by_name: starter.name.clone(),
            held_by: asset.assigned_to,
        }
    }

    /// # Errors
    ///
    /// Returns the error of [`check_startable`].
    pub fn start(id: InstanceId, process: &Process, asset: &Asset, starter: &Starter) -> Result<(Self, Asset), ProcessError> {
        check_startable(process, asset)?;
        Ok((Self::new(id, process, asset, starter), Asset { running_instance_id: Some(id), ..asset.clone() }))
    }

    #[must_use]
    pub fn status(&self) -> InstanceStatus {
        match self.state {
            State::InProgress { .. } => InstanceStatus::InProgress,
            State::Completed { .. } => InstanceStatus::Completed,
            State::Cancelled { .. } => InstanceStatus::Cancelled,
        }
    }

    /// Of a completed instance it is the last step, of a cancelled one the step at which it was cancelled.
    #[must_use]
    pub fn current_step(&self) -> usize {
        match self.state {
            State::InProgress { step } | State::Cancelled { step, .. } => step,
            State::Completed { .. } => self.steps.as_slice().len().saturating_sub(1),
        }
    }

    /// The index of the current step.
    ///
    /// # Errors
    ///
    /// Returns [`ProcessError::Closed`] if the instance is completed or cancelled.
    pub fn open_step(&self) -> Result<usize, ProcessError> {
        match self.state {
            State::InProgress { step } => Ok(step),
            _ => Err(ProcessError::Closed(self.status())),
        }
    }

    /// Where the API serves the image of a signature.
    #[must_use]
    pub fn signature_path(&self, key: &str) -> String {
        format!("/v1/processes/instances/{}/signatures/{key}", self.id)
    }

    /// The name of each submitted signature's image, and the length of its data URL.
    pub fn signatures(&self) -> impl Iterator<Item = (ImageName, usize)> {
        let signatures = self.steps.as_slice().iter().filter(|step| step.is_signature());
        signatures.filter_map(|step| {
            let value = self.step_values.0.get(&step.key)?;
            let bytes = usize::try_from(value["bytes"].as_u64()?).ok()?;
            Some((self.image_name(&step.key, value["sha256"].as_str()?), data_url_len(bytes)))
        })
    }

    #[must_use]
    pub fn image_name(&self, step: &str, hash: &str) -> ImageName {
        let owner = self.movement_id.map_or(self.id.uuid(), Id::uuid);
        ImageName { owner, step: step.to_owned(), hash: hash.to_owned() }
    }

    /// # Errors
    ///
    /// Returns [`ProcessError::Closed`] if the instance is already completed or cancelled.
    pub fn cancelled(&self, reason: Option<Notes>, at: Timestamp) -> Result<Self, ProcessError> {
        let step = self.open_step()?;
        Ok(Self { state: State::Cancelled { step, at, reason }, ..self.clone() })
    }

    /// The users picked so far, in the order of the steps.
    pub fn picked_users(&self) -> impl DoubleEndedIterator<Item = UserId> {
        let pickers = self.steps.as_slice().iter().filter(|step| step.kind == StepKind::UserPicker);
        pickers.filter_map(|step| self.step_values.0.get(&step.key)?.as_str()?.parse().ok())
    }

    /// The user to whom the asset is assigned on completion: the user of the last step that picked one.
    #[must_use]
    pub fn recipient(&self) -> Option<UserId> {
        self.picked_users().next_back()
    }

    /// A completed instance also sets its status and assignment, a cancelled one changes nothing else.
    #[must_use]
    pub fn asset_after(&self, asset: &Asset) -> Asset {
        let mut asset = Asset { running_instance_id: None, ..asset.clone() };
        if self.status() == InstanceStatus::Completed {
            asset.status = self.target_status;
            match self.recipient() {
                Some(user) => asset.reassign(Some(user)),
                None if asset.status.clears_assignment() => asset.reassign(None),
                None => {}
            }
        }
        asset
    }
}
