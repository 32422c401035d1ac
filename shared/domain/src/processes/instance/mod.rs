//! Process instances: a process on one asset, the values submitted so far, and the effect on the asset.
//!
//! Advancing an instance checks the submitted values against the steps, and records who signed and what the signer read. For
//! signers who can't draw, a signature image can show a typed name; the stored signature is then marked.

#[cfg(test)]
mod tests;

use crate::assets::asset::{Asset, Status};
use crate::history::event::Actor;
use crate::processes::process::{CheckedValue, Checks, Process, ProcessStatus, Step, StepKind, StepValues, Steps};
use crate::record::{Kind, Record, Reference, Stored, fields};
use crate::tenants::tenant::Language;
use crate::user::User;
use crate::values::field_error::{ErrorCode, FieldError, ValueError, pointer_token, unknown_name};
use crate::values::id::{ApiKeyId, AssetId, Id, InstanceId, MovementId, ProcessId, UserId};
use crate::values::signature_image::{DecodedImages, SignatureImage, data_url_len};
use crate::values::string_enum::string_enum;
use crate::values::text::{Name, Notes};
use crate::values::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

string_enum! {
    /// The status of a process instance.
    InstanceStatus {
        InProgress = "in_progress",
        Completed = "completed",
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
    /// The movement that the instance is part of, if any. The instance is then only advanced and cancelled with the movement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub movement_id: Option<MovementId>,
    /// Flattened into attributes of the item, so that an index can contain the status.
    #[serde(flatten)]
    pub state: State,
    pub step_values: StepValues,
    /// The author of each signature, by step key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub signed: BTreeMap<String, Signed>,
    /// The definition's steps when the instance was started.
    pub steps: Steps,
    /// The definition's target status when the instance was started.
    pub target_status: Status,
    /// The definition's name when the instance was started.
    pub process_name: Name,
    /// The asset's name when the instance was started.
    pub asset_name: Name,
    pub asset_tag: String,
    pub started_by: Option<ApiKeyId>,
    /// The name of the user who started the instance, or else of the API key.
    pub started_by_name: String,
    /// The user who had the asset at the start; in a movement, the user who had all of its assets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_by: Option<UserId>,
}

#[derive(Debug, Clone)]
pub struct Starter {
    pub key_id: Option<ApiKeyId>,
    /// The display name of the key's user, or else the key's name.
    pub name: String,
}

impl From<&Actor> for Starter {
    fn from(actor: &Actor) -> Self {
        Self { key_id: actor.key_id, name: actor.user_name.clone().unwrap_or_else(|| actor.key_name.clone()) }
    }
}

/// Checks that a process can be started on an asset.
///
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

/// Identifies a signature image. Contains the image's hash, so a later signature never replaces an image that an instance or a
/// stored response refers to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ImageName {
    /// The process instance, or its movement: the instances of a movement share their images.
    pub owner: Uuid,
    pub step: String,
    pub hash: String,
}

impl Instance {
    /// Starts a process on an asset. Returns the instance at its first step, and the changed asset.
    ///
    /// # Errors
    ///
    /// Returns the error of [`check_startable`].
    pub fn start(id: InstanceId, process: &Process, asset: &Asset, starter: &Starter) -> Result<(Self, Asset), ProcessError> {
        check_startable(process, asset)?;
        let instance = Self {
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
        };
        Ok((instance, Asset { running_instance_id: Some(id), ..asset.clone() }))
    }

    pub fn status(&self) -> InstanceStatus {
        match self.state {
            State::InProgress { .. } => InstanceStatus::InProgress,
            State::Completed { .. } => InstanceStatus::Completed,
            State::Cancelled { .. } => InstanceStatus::Cancelled,
        }
    }

    /// Returns the index of the current step: for a completed instance, the last step; for a cancelled one, the step at which it
    /// was cancelled.
    pub fn current_step(&self) -> usize {
        match self.state {
            State::InProgress { step } | State::Cancelled { step, .. } => step,
            State::Completed { .. } => self.steps.as_slice().len().saturating_sub(1),
        }
    }

    /// Returns the index of the current step of an instance in progress.
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

    /// Returns the API path of a signature image.
    pub fn signature_path(&self, key: &str) -> String {
        format!("/v1/processes/instances/{}/signatures/{key}", self.id)
    }

    /// Returns the image name of each submitted signature, and the length of its data URL.
    pub fn signatures(&self) -> impl Iterator<Item = (ImageName, usize)> {
        let signatures = self.steps.as_slice().iter().filter(|step| step.is_signature());
        signatures.filter_map(|step| {
            let value = self.step_values.0.get(&step.key)?;
            let bytes = usize::try_from(value["bytes"].as_u64()?).ok()?;
            Some((self.image_name(&step.key, value["sha256"].as_str()?), data_url_len(bytes)))
        })
    }

    pub fn image_name(&self, step: &str, hash: &str) -> ImageName {
        let owner = self.movement_id.map_or(self.id.uuid(), Id::uuid);
        ImageName { owner, step: step.to_owned(), hash: hash.to_owned() }
    }

    /// Cancels the instance.
    ///
    /// # Errors
    ///
    /// Returns [`ProcessError::Closed`] if the instance is already completed or cancelled.
    pub fn cancelled(&self, reason: Option<Notes>, at: Timestamp) -> Result<Self, ProcessError> {
        let step = self.open_step()?;
        Ok(Self { state: State::Cancelled { step, at, reason }, ..self.clone() })
    }

    /// Returns the users picked so far, in the order of the steps.
    pub fn picked_users(&self) -> impl DoubleEndedIterator<Item = UserId> {
        let pickers = self.steps.as_slice().iter().filter(|step| step.kind == StepKind::UserPicker);
        pickers.filter_map(|step| self.step_values.0.get(&step.key)?.as_str()?.parse().ok())
    }

    /// Checks that all picked users are among the `active` ones.
    ///
    /// # Errors
    ///
    /// Returns [`ProcessError::InactiveUser`] with the first one that isn't.
    pub fn check_picked(&self, active: &BTreeSet<UserId>) -> Result<(), ProcessError> {
        self.picked_users().find(|user| !active.contains(user)).map_or(Ok(()), |user| Err(ProcessError::InactiveUser(user)))
    }

    /// Returns the asset's user after completion: the one picked last.
    pub fn recipient(&self) -> Option<UserId> {
        self.picked_users().next_back()
    }

    /// Returns the asset after this instance has ended. Only a completed instance changes the asset's status and assignment.
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

/// The subject of submissions, cancellations and signatures: a movement with all its instances, or a process instance that is not
/// part of a movement. Serialized as `movement_id` or `instance_id`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SubjectId {
    #[serde(rename = "instance_id")]
    Instance(InstanceId),
    #[serde(rename = "movement_id")]
    Movement(MovementId),
}

impl SubjectId {
    pub fn uuid(self) -> Uuid {
        match self {
            Self::Instance(id) => id.uuid(),
            Self::Movement(id) => id.uuid(),
        }
    }

    pub fn instance(self) -> Option<InstanceId> {
        if let Self::Instance(id) = self { Some(id) } else { None }
    }

    pub fn movement(self) -> Option<MovementId> {
        if let Self::Movement(id) = self { Some(id) } else { None }
    }
}

impl From<InstanceId> for SubjectId {
    fn from(id: InstanceId) -> Self {
        Self::Instance(id)
    }
}

impl From<MovementId> for SubjectId {
    fn from(id: MovementId) -> Self {
        Self::Movement(id)
    }
}

/// Returns the status and current step of a movement: in progress if any instance is, otherwise completed if any is, otherwise
/// cancelled.
pub fn overall_status(instances: impl IntoIterator<Item = (InstanceStatus, usize)>) -> (InstanceStatus, usize) {
    let rank = |status: InstanceStatus| match status {
        InstanceStatus::InProgress => 0,
        InstanceStatus::Completed => 1,
        InstanceStatus::Cancelled => 2,
    };
    instances.into_iter().min_by_key(|(status, _)| rank(*status)).unwrap_or((InstanceStatus::Cancelled, 0))
}

pub fn position(instances: &[Stored<Instance>]) -> (InstanceStatus, usize) {
    overall_status(instances.iter().map(|it| (it.value.status(), it.value.current_step())))
}

/// Adapts `step_data`, submitted for all `instances` of a movement, to `instance`.
///
/// A signature submitted before can be sent again as the path of its image. The path contains the ID of one of the instances, so
/// it is replaced by the path of `instance` if both have the same image.
pub fn data_for_instance<'a>(
    instance: &Instance,
    instances: &[Stored<Instance>],
    step_data: &'a Map<String, Value>,
) -> Cow<'a, Map<String, Value>> {
    let mut data = Cow::Borrowed(step_data);
    for (image, _) in instance.signatures() {
        let is_sent =
            |other: &&Stored<Instance>| step_data.get(&image.step) == Some(&json!(other.value.signature_path(&image.step)));
        let sent = instances.iter().find(is_sent);
        if sent.is_some_and(|other| other.value.signatures().any(|(other_image, _)| other_image == image)) {
            data.to_mut().insert(image.step.clone(), json!(instance.signature_path(&image.step)));
        }
    }
    data
}

/// Why a process can't be started or advanced. The error texts are shown to clients.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProcessError {
    #[error("The process is inactive.")]
    Inactive,
    #[error("Another process is in progress on the asset. Complete or cancel it first.")]
    Running(AssetId, InstanceId),
    #[error("The asset's status is {actual}. The process can only be started on an asset whose status is {required}.")]
    WrongStatus { asset: AssetId, actual: Status, required: Status },
    #[error("The process instance is {0}.")]
    Closed(InstanceStatus),
    /// The current step is not the one that the request expects.
    #[error("The current step is {0}.")]
    Moved(usize),
    #[error("The step {0} has already been submitted and can't be changed.")]
    Submitted(String),
    #[error("The picked user {0} is no longer active. Activate the user, or cancel the process.")]
    InactiveUser(UserId),
    /// All errors in the values.
    #[error("{} values are invalid.", .0.len())]
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

    /// References the definition and the picked users while the instance is in progress, so that they can't be deleted.
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

/// The author of a signature, shown to the next signer. Stored beside the values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signed {
    /// The name of the signer or the key's user, or else of the API key.
    pub by: String,
    pub at: Timestamp,
}

impl Signed {
    pub fn new(actor: &Actor, at: Timestamp) -> Self {
        Self { by: Starter::from(actor).name, at }
    }
}

/// Maximum size of an instance's step values, in bytes of compact JSON without images. They are stored in one attribute.
const MAX_STEP_VALUES_BYTES: usize = 128 * 1024;

#[derive(Debug, Clone)]
pub struct AdvanceOutcome {
    /// The process instance after each submitted step except the last, in order.
    pub earlier: Vec<Instance>,
    pub instance: Instance,
    /// The submitted signatures, by step key.
    pub signatures: BTreeMap<String, SignatureImage>,
}

impl AdvanceOutcome {
    /// Returns the process instance after each submitted step, in order.
    pub fn versions(&self) -> Vec<Instance> {
        self.earlier.iter().chain([&self.instance]).cloned().collect()
    }

    /// Records the author of each signature that isn't in `before`.
    #[must_use]
    pub fn signed(mut self, before: &Instance, signed: &Signed) -> Self {
        for instance in self.earlier.iter_mut().chain([&mut self.instance]) {
            let steps = instance.steps.as_slice().iter().filter(|step| step.is_signature()).map(|step| &step.key);
            let signers = steps.filter_map(|step| {
                let value = instance.step_values.0.get(step)?;
                let signed = if before.step_values.0.get(step) == Some(value) { before.signed.get(step)? } else { signed };
                Some((step.clone(), signed.clone()))
            });
            instance.signed = signers.collect();
        }
        self
    }

    /// Records, with each submitted signature, the statement that the signer read, if it is a translation.
    #[must_use]
    pub fn stated(mut self, language: Language) -> Self {
        for instance in self.earlier.iter_mut().chain([&mut self.instance]) {
            for (key, image) in &self.signatures {
                let step = instance.steps.as_slice().iter().find(|step| step.key == *key);
                let statement = step.and_then(|step| step.translated_statement(language));
                let value = instance.step_values.0.get_mut(key).filter(|value| value["sha256"] == image.hash());
                if let (Some(statement), Some(value)) = (statement, value) {
                    value["statement"] = json!(statement);
                }
            }
        }
        self
    }
}

/// The values of a request, merged into the values submitted before.
struct MergedValues {
    step_values: Map<String, Value>,
    signatures: BTreeMap<String, SignatureImage>,
    errors: Vec<FieldError>,
    /// The key of a step that was submitted before with a different value.
    changed_key: Option<String>,
}

impl Instance {
    /// Stores values sent with the start, before the first step is submitted.
    ///
    /// # Errors
    ///
    /// Returns [`ProcessError::Invalid`] if a key doesn't belong to a step, a value is invalid, all values together are too
    /// large, or the image of a typed signature is missing.
    pub fn with_values(
        self,
        step_data: &Map<String, Value>,
        active_users: &BTreeSet<UserId>,
        images: &DecodedImages,
    ) -> Result<AdvanceOutcome, ProcessError> {
        self.check_typed_signatures(images.typed(), step_data)?;
        let mut merged = self.merged_values(step_data, 0, &Checks { active_users, images });
        merged.check_size();
        if !merged.errors.is_empty() {
            return Err(ProcessError::Invalid(merged.errors));
        }
        let instance = Self { step_values: StepValues(merged.step_values), ..self };
        Ok(AdvanceOutcome { earlier: Vec::new(), instance, signatures: merged.signatures })
    }

    /// Submits the current step and moves on to the next one, or completes the instance. With `through`, submits all steps up to
    /// the one with this key, each with its value.
    ///
    /// `step_data` can contain the current step's value, values of later steps, which are stored with the last submitted step,
    /// and unchanged values of earlier steps. `null` removes a value. `expected_step`, if sent, is the step that the client
    /// expects to be current. `active_users` must contain all active users among the [`candidate_users`] and the users picked
    /// before. `images` decodes the request's images once for all instances that the request advances.
    ///
    /// # Errors
    ///
    /// Returns the error of the first step that can't be submitted:
    ///
    /// - [`ProcessError::Closed`] if the instance is completed or cancelled.
    /// - [`ProcessError::Moved`] if `expected_step` is not the current step.
    /// - [`ProcessError::Invalid`] if `through` or a key doesn't belong to a step, a value is invalid, a required value is
    ///   missing, all values together are too large, or the image of a typed signature is missing.
    /// - [`ProcessError::Submitted`] if the value of an earlier step would change, or `through` is an earlier step.
    /// - [`ProcessError::InactiveUser`] if a picked user is no longer active, unless `step_data` picks a different one.
    pub fn advance(
        &self,
        through: Option<&str>,
        step_data: &Map<String, Value>,
        expected_step: Option<usize>,
        active_users: &BTreeSet<UserId>,
        images: &DecodedImages,
        at: Timestamp,
    ) -> Result<AdvanceOutcome, ProcessError> {
        let current = self.open_step()?;
        if expected_step.is_some_and(|expected| expected != current) {
            return Err(ProcessError::Moved(current));
        }
        let last = match through {
            None => current,
            Some(key) => self.index_of(key).ok_or_else(|| ProcessError::Invalid(vec![self.no_step_to_go_through()]))?,
        };
        if last < current {
            return Err(ProcessError::Submitted(through.unwrap_or_default().to_owned()));
        }
        self.check_typed_signatures(images.typed(), step_data)?;
        let checks = Checks { active_users, images };
        let (mut instance, mut earlier, mut signatures) = (self.clone(), Vec::new(), BTreeMap::new());
        for step in current..=last {
            let is_of_step = |key: &str| self.index_of(key).unwrap_or(current).clamp(current, last) == step;
            let own = step_data.iter().filter(|(key, _)| is_of_step(key));
            let own = own.map(|(key, value)| (key.clone(), value.clone())).collect();
            let next = instance.submit(step, &own, &checks, at)?;
            signatures.extend(next.signatures);
            earlier.push(std::mem::replace(&mut instance, next.instance));
        }
        instance.check_picked(active_users)?;
        // The first one is the instance before the request.
        earlier.remove(0);
        Ok(AdvanceOutcome { earlier, instance, signatures })
    }

    pub fn index_of(&self, key: &str) -> Option<usize> {
        self.steps.as_slice().iter().position(|step| step.key == key)
    }

    fn no_step_to_go_through(&self) -> FieldError {
        FieldError::field("through", format!("must be the key of a step: {}", self.step_keys().join(", ")))
    }

    fn step_keys(&self) -> Vec<&str> {
        self.steps.as_slice().iter().map(|step| step.key.as_str()).collect()
    }

    fn submit(
        &self,
        current: usize,
        step_data: &Map<String, Value>,
        checks: &Checks<'_>,
        at: Timestamp,
    ) -> Result<AdvanceOutcome, ProcessError> {
        let mut merged = self.merged_values(step_data, current, checks);
        merged.check_required(&self.steps.as_slice()[current]);
        merged.check_size();
        let MergedValues { step_values, signatures, errors, changed_key } = merged;
        if !errors.is_empty() {
            return Err(ProcessError::Invalid(errors));
        }
        if let Some(key) = changed_key {
            return Err(ProcessError::Submitted(key));
        }
        let is_last = current + 1 == self.steps.as_slice().len();
        let state = if is_last { State::Completed { at } } else { State::InProgress { step: current + 1 } };
        let instance = Self { state, step_values: StepValues(step_values), ..self.clone() };
        Ok(AdvanceOutcome { earlier: Vec::new(), instance, signatures })
    }

    /// Checks `step_data` and merges it into the values submitted before.
    fn merged_values(&self, step_data: &Map<String, Value>, current: usize, checks: &Checks<'_>) -> MergedValues {
        let (steps, keys) = (self.steps.as_slice(), self.step_keys());
        let step_values = self.step_values.0.clone();
        let mut merged = MergedValues { step_values, signatures: BTreeMap::new(), errors: Vec::new(), changed_key: None };
        for (key, value) in step_data {
            match steps.iter().enumerate().find(|(_, step)| step.key == *key) {
                None => {
                    let detail = unknown_name(key, &keys, "step key", merged.errors.len());
                    merged.errors.push(step_error(key, detail));
                }
                Some((index, step)) if index < current => {
                    if !self.has_value(step, value, checks) {
                        merged.changed_key = Some(key.clone());
                    }
                }
                Some(_) if value.is_null() => drop(merged.step_values.remove(key)),
                Some((_, step)) => match step.check(value, checks) {
                    Ok(checked) => merged.set(key, checked, checks.images),
                    // An unchanged value stays valid: a picked user can be inactive by now.
                    Err(_) if self.has_value(step, value, checks) => {}
                    Err(error) => merged.errors.push(step_error(key, error)),
                },
            }
        }
        merged
    }

    /// Whether `value` is the step's current value, as submitted or as stored. A signature can also be given as the path of its
    /// image or, after an erasure, as the pseudonym. A typed signature doesn't have to be marked again.
    fn has_value(&self, step: &Step, value: &Value, checks: &Checks<'_>) -> bool {
        match (self.step_values.0.get(&step.key), &step.kind) {
            (None, _) => value.is_null(),
            (Some(erased), StepKind::Signature { .. }) if erased.is_string() => erased == value,
            (Some(stored), StepKind::Signature { .. }) => {
                let text = value.as_str().unwrap_or_default();
                let is_same_image = text == self.signature_path(&step.key)
                    || checks.images.image(text).is_ok_and(|image| stored["sha256"] == image.hash());
                is_same_image && (is_typed(stored) || !checks.images.is_typed(&step.key))
            }
            (Some(stored), _) => {
                let is_equal = |checked| matches!(checked, CheckedValue::Value(checked) if checked == *stored);
                stored == value || step.check(value, checks).is_ok_and(is_equal)
            }
        }
    }

    /// Checks that each of the `typed` keys names a signature step whose image is in `step_data`.
    fn check_typed_signatures(&self, typed: &[String], step_data: &Map<String, Value>) -> Result<(), ProcessError> {
        let signatures = self.steps.as_slice().iter().filter(|step| step.is_signature());
        let keys: Vec<&str> = signatures.map(|step| step.key.as_str()).collect();
        let mut errors = Vec::new();
        for (index, key) in typed.iter().enumerate() {
            let detail = if !keys.contains(&key.as_str()) {
                unknown_name(key, &keys, "key of a signature step", errors.len())
            } else if step_data.get(key).is_none_or(Value::is_null) {
                "must be the key of a step whose image is in step_data".to_owned()
            } else {
                continue;
            };
            errors.push(FieldError::within("typed_signatures", &format!("/{index}"), detail));
        }
        if errors.is_empty() { Ok(()) } else { Err(ProcessError::Invalid(errors)) }
    }
}

impl MergedValues {
    fn set(&mut self, key: &str, value: CheckedValue, images: &DecodedImages) {
        let value = match value {
            CheckedValue::Value(value) => value,
            CheckedValue::Signature(image) => {
                let value = stored_signature(&image, images.is_typed(key), self.step_values.get(key));
                self.signatures.insert(key.to_owned(), image);
                value
            }
        };
        self.step_values.insert(key.to_owned(), value);
    }

    fn check_required(&mut self, step: &Step) {
        let error = step_error(&step.key, ValueError::required());
        let has_error = self.errors.iter().any(|known| known.location == error.location);
        if step.is_required() && !self.step_values.contains_key(&step.key) && !has_error {
            self.errors.push(error);
        }
    }

    fn check_size(&mut self) {
        if String::from(StepValues(self.step_values.clone())).len() > MAX_STEP_VALUES_BYTES {
            let detail = format!("must have at most {MAX_STEP_VALUES_BYTES} bytes as JSON in all, without images");
            self.errors.push(FieldError::field("step_data", ValueError::coded(ErrorCode::TooMuch, detail)));
        }
    }
}

fn step_error(key: &str, reason: impl Into<ValueError>) -> FieldError {
    FieldError::within("step_data", &format!("/{}", pointer_token(key)), reason)
}

/// Returns the IDs in `step_data` that could be picked users. The users can be read together with the instance, before it is
/// known which steps pick users.
pub fn candidate_users(step_data: &Map<String, Value>) -> impl Iterator<Item = UserId> {
    step_data.values().filter_map(|value| value.as_str()?.parse().ok())
}

/// Builds the stored value of a signature step. The image is stored separately. Only typed signatures are marked. `before` is the
/// replaced value: if the same image is sent again, its marks stay.
fn stored_signature(image: &SignatureImage, is_typed: bool, before: Option<&Value>) -> Value {
    let before = before.filter(|before| before["sha256"] == image.hash());
    let mut value = json!({"sha256": image.hash(), "bytes": image.bytes().len()});
    if is_typed || before.is_some_and(self::is_typed) {
        value["typed"] = json!(true);
    }
    if let Some(statement) = before.and_then(|before| before.get("statement")) {
        value["statement"] = statement.clone();
    }
    value
}

/// Whether a step's stored value is a typed signature.
pub fn is_typed(value: &Value) -> bool {
    value["typed"] == true
}

/// Returns the statement that the signer read, if it was a translation. `value` is the stored value of the step.
pub fn read_statement(value: &Value) -> Option<&str> {
    value["statement"].as_str()
}
