//! Process instances: a process on one asset, the values submitted so far, and its effect on the asset.

mod advance;
#[cfg(test)]
mod tests;

use crate::actor::Actor;
use crate::assets::asset::{Asset, Status};
use crate::processes::process::step::StepValues;
use crate::processes::process::{Process, ProcessStatus, StepKind, Steps};
use crate::record::{Kind, Record, Reference, fields};
use crate::user::User;
use crate::values::field_error::FieldError;
use crate::values::id::{ApiKeyId, AssetId, Id, InstanceId, MovementId, ProcessId, UserId};
use crate::values::signature_image::data_url_len;
use crate::values::string_enum::string_enum;
use crate::values::text::{Name, Notes};
use crate::values::time::Timestamp;
pub use advance::{AdvanceOutcome, candidate_users, is_typed, read_statement};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
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
    /// The name of the user who started it, else of the API key.
    pub started_by_name: String,
    /// The user who had the asset when it was started; in a movement, all of its assets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_by: Option<UserId>,
}

/// The author of a start.
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
    fn new(id: InstanceId, process: &Process, asset: &Asset, starter: &Starter) -> Self {
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

    /// The asset's user after completion: the one that the last step picked.
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

impl Record for Instance {
    const KIND: Kind = Kind::Instance;
    const PERSONAL_FIELDS: &'static [&'static str] = &["step_data/*", "cancel_reason"];
    type Id = InstanceId;

    fn id(&self) -> InstanceId {
        self.id
    }

    fn history_fields(&self) -> Map<String, Value> {
        let Self {
            id: _,
            process_id,
            asset_id,
            movement_id,
            state,
            step_values,
            signed: _,
            steps: _,
            target_status: _,
            process_name: _,
            asset_name: _,
            asset_tag: _,
            started_by: _,
            started_by_name: _,
            held_by,
        } = self;
        let (completed_at, cancelled_at, reason) = match state {
            State::InProgress { step: _ } => (None, None, None),
            State::Completed { at } => (Some(*at), None, None),
            State::Cancelled { step: _, at, reason } => (None, Some(*at), reason.clone()),
        };
        fields([
            ("process_id", json!(process_id)),
            ("asset_id", json!(asset_id)),
            ("movement_id", json!(movement_id)),
            ("held_by", json!(held_by)),
            ("status", json!(self.status())),
            ("current_step", json!(self.current_step())),
            ("step_data", Value::Object(step_values.0.clone())),
            ("completed_at", json!(completed_at)),
            ("cancelled_at", json!(cancelled_at)),
            ("cancel_reason", json!(reason)),
        ])
    }

    fn is_ended(&self) -> bool {
        self.status() != InstanceStatus::InProgress
    }

    /// The definition and, while the instance is in progress, the picked users can't be deleted.
    fn references(&self) -> Vec<Reference> {
        if self.status() != InstanceStatus::InProgress {
            return Vec::new();
        }
        let process = Process::reference("process_id", self.process_id);
        let users: BTreeSet<UserId> = self.picked_users().collect();
        let users = users.into_iter().map(|user| User::reference("step_data", user));
        std::iter::once(process).chain(users).collect()
    }
}

/// The author of a signature, kept beside the values for the next signer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signed {
    /// The name of the signer or of the key's user, else of the API key.
    pub by: String,
    pub at: Timestamp,
}

impl Signed {
    #[must_use]
    pub fn new(actor: &Actor, at: Timestamp) -> Self {
        Self { by: Starter::from(actor).name, at }
    }
}
