//! A run of a process on one asset: what was answered, what may come next, what it does to the asset (contract 7).

mod advance;
mod error;

pub use advance::{Advancement, possible_users};
pub use error::ProcessError;

use super::asset::{Asset, Status};
use super::id::{ApiKeyId, AssetId, Id, InstanceId, MovementId, ProcessId, UserId};
use super::process::values::StepValues;
use super::process::{Process, ProcessStatus, Step, StepKind, Steps};
use super::record::{Kind, Record, Reference};
use super::scope::words;
use super::signature_image::data_url_length;
use super::text::{Name, Notes};
use super::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use uuid::Uuid;

words! {
    /// Where a run stands, in one word (interface 3.2).
    InstanceStatus, "in_progress, completed, cancelled", {
        /// Steps are open.
        InProgress = "in_progress",
        /// Every step was submitted.
        Completed = "completed",
        /// It was ended before.
        Cancelled = "cancelled",
    }
}

/// Where a run stands. What only makes sense in one state lives in that state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum State {
    /// The step with this index is open.
    InProgress {
        /// From zero.
        step: usize,
    },
    /// Every step was submitted.
    Completed {
        /// When the last one was.
        at: Timestamp,
    },
    /// It was ended before.
    Cancelled {
        /// The step that was open.
        step: usize,
        /// When.
        at: Timestamp,
        /// Why, if somebody said so.
        reason: Option<Notes>,
    },
}

/// A run of a process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Instance {
    /// Which one.
    pub id: InstanceId,
    /// Of which definition.
    pub process_id: ProcessId,
    /// On which asset.
    pub asset_id: AssetId,
    /// The movement that it is part of, and with which alone it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub movement_id: Option<MovementId>,
    /// Where it stands; its parts are attributes of the item, so that an index can have the status.
    #[serde(flatten)]
    pub state: State,
    /// What was submitted.
    pub answers: StepValues,
    /// The steps as they were at the start.
    pub steps: Steps,
    /// The status that the asset gets, as it was at the start.
    pub target_status: Status,
    /// The process's name at the start.
    pub process_name: Name,
    /// The asset's name at the start.
    pub asset_name: Name,
    /// The asset's tag.
    pub asset_tag: String,
    /// The key that started it.
    pub started_by: Option<ApiKeyId>,
    /// Whoever that was.
    pub started_by_name: String,
}

/// Who starts a run.
#[derive(Debug, Clone)]
pub struct StartedBy {
    /// The key.
    pub key: Option<ApiKeyId>,
    /// The bound user's name, else the key's.
    pub name: String,
}

/// Whether `process` can start on `asset` now.
///
/// # Errors
///
/// Why not.
pub fn startable(process: &Process, asset: &Asset) -> Result<(), ProcessError> {
    if process.status == ProcessStatus::Inactive {
        return Err(ProcessError::Inactive);
    }
    if let Some(running) = asset.running_instance_id {
        return Err(ProcessError::Running(asset.id, running));
    }
    if asset.status != process.trigger_status {
        return Err(ProcessError::WrongStatus { asset: asset.id, is: asset.status, needed: process.trigger_status });
    }
    Ok(())
}

/// Names one image for good: what a run once showed, it shows whatever another signs later.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ImageName {
    /// The run; or its movement, whose runs share their images.
    pub owner: Uuid,
    /// The step's key.
    pub step: String,
    /// SHA-256 of the image.
    pub hash: String,
}

impl Instance {
    /// A run of `process` on `asset`, and the asset with the run on it.
    ///
    /// # Errors
    ///
    /// Why it can't start.
    pub fn start(id: InstanceId, process: &Process, asset: &Asset, by: &StartedBy) -> Result<(Self, Asset), ProcessError> {
        startable(process, asset)?;
        let instance = Self {
            id,
            process_id: process.id,
            asset_id: asset.id,
            movement_id: None,
            state: State::InProgress { step: 0 },
            answers: StepValues::default(),
            steps: process.steps.clone(),
            target_status: process.target_status,
            process_name: process.name.clone(),
            asset_name: asset.name.clone(),
            asset_tag: asset.asset_tag.clone(),
            started_by: by.key,
            started_by_name: by.name.clone(),
        };
        Ok((instance, Asset { running_instance_id: Some(id), ..asset.clone() }))
    }

    /// Where it stands, in one word.
    #[must_use]
    pub fn status(&self) -> InstanceStatus {
        match self.state {
            State::InProgress { .. } => InstanceStatus::InProgress,
            State::Completed { .. } => InstanceStatus::Completed,
            State::Cancelled { .. } => InstanceStatus::Cancelled,
        }
    }

    /// The index of the open step; of the last one once completed (contract 7, "advance").
    #[must_use]
    pub fn current_step(&self) -> usize {
        match self.state {
            State::InProgress { step } | State::Cancelled { step, .. } => step,
            State::Completed { .. } => self.steps.as_slice().len().saturating_sub(1),
        }
    }

    /// The open step's index.
    ///
    /// # Errors
    ///
    /// [`ProcessError::Closed`].
    pub fn open_step(&self) -> Result<usize, ProcessError> {
        match self.state {
            State::InProgress { step } => Ok(step),
            _ => Err(ProcessError::Closed(self.status())),
        }
    }

    /// Where a signature's image can be read.
    #[must_use]
    pub fn signature_path(&self, key: &str) -> String {
        format!("/v1/processes/instances/{}/signatures/{key}", self.id)
    }

    /// The signatures that there are: the image of each, and how long it is as a data URL.
    pub fn signatures(&self) -> impl Iterator<Item = (ImageName, usize)> {
        let signed = self.steps.as_slice().iter().filter(|step| step.kind == StepKind::Signature);
        signed.filter_map(|step| {
            let answer = self.answers.0.get(&step.key)?;
            let bytes = usize::try_from(answer["bytes"].as_u64()?).ok()?;
            Some((self.image_name(&step.key, answer["sha256"].as_str()?), data_url_length(bytes)))
        })
    }

    /// The name of a step's image with this hash.
    #[must_use]
    pub fn image_name(&self, step: &str, hash: &str) -> ImageName {
        let owner = self.movement_id.map_or(self.id.uuid(), Id::uuid);
        ImageName { owner, step: step.to_owned(), hash: hash.to_owned() }
    }

    /// Ends the run before its last step.
    ///
    /// # Errors
    ///
    /// [`ProcessError::Closed`].
    pub fn cancelled(&self, reason: Option<Notes>, at: Timestamp) -> Result<Self, ProcessError> {
        let step = self.open_step()?;
        Ok(Self { state: State::Cancelled { step, at, reason }, ..self.clone() })
    }

    /// The users picked so far, in the order of the steps.
    fn picked(&self) -> impl DoubleEndedIterator<Item = (&Step, UserId)> {
        let pickers = self.steps.as_slice().iter().filter(|step| step.kind == StepKind::UserPicker);
        pickers.filter_map(|step| Some((step, self.answers.0.get(&step.key)?.as_str()?.parse().ok()?)))
    }

    /// Who gets the asset when the run is completed: the user of the last step that picked one.
    #[must_use]
    pub fn recipient(&self) -> Option<UserId> {
        self.picked().next_back().map(|(_, user)| user)
    }

    /// The asset once this run, whatever its state, is over for it: free again; if completed, with its new status
    /// and assignment.
    #[must_use]
    pub fn released(&self, asset: &Asset) -> Asset {
        let mut asset = Asset { running_instance_id: None, ..asset.clone() };
        if self.status() == InstanceStatus::Completed {
            asset.status = self.target_status;
            match self.recipient() {
                Some(user) => asset.assigned_to = Some(user),
                None if asset.status.is_nobodys() => asset.assigned_to = None,
                None => {}
            }
        }
        asset
    }
}

impl Record for Instance {
    const KIND: Kind = Kind::Instance;
    type Id = InstanceId;

    fn id(&self) -> InstanceId {
        self.id
    }

    fn audit(&self) -> Map<String, Value> {
        let (completed_at, cancelled_at, reason) = match &self.state {
            State::InProgress { .. } => (None, None, None),
            State::Completed { at } => (Some(*at), None, None),
            State::Cancelled { at, reason, .. } => (None, Some(*at), reason.clone()),
        };
        let fields = [
            ("process_id", json!(self.process_id)),
            ("asset_id", json!(self.asset_id)),
            ("movement_id", json!(self.movement_id)),
            ("status", json!(self.status())),
            ("current_step", json!(self.current_step())),
            ("step_data", Value::Object(self.answers.0.clone())),
            ("completed_at", json!(completed_at)),
            ("cancelled_at", json!(cancelled_at)),
            ("cancel_reason", json!(reason)),
        ];
        fields.into_iter().map(|(field, value)| (field.to_owned(), value)).collect()
    }

    /// While it runs: its definition and the users picked, none of whom can be deleted.
    fn references(&self) -> Vec<Reference> {
        if self.status() != InstanceStatus::InProgress {
            return Vec::new();
        }
        let process = Reference::new("process_id", Kind::Process, self.process_id.uuid());
        let users: BTreeSet<UserId> = self.picked().map(|(_, user)| user).collect();
        let users = users.into_iter().map(|user| Reference::new("step_data", Kind::User, user.uuid()));
        std::iter::once(process).chain(users).collect()
    }
}
