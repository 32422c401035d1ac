//! Starting, advancing and cancelling a process instance.

use crate::instance_wire::{Advance, InstanceOrMovement, InstanceView};
use crate::process_error::process_error;
use crate::views;
use serde_json::{Map, Value, json};
use shared::auth::{Caller, Command};
use shared::domain::asset::Asset;
use shared::domain::field_error::FieldError;
use shared::domain::id::{AssetId, InstanceId, ProcessId, UserId};
use shared::domain::instance::{Instance, InstanceStatus, ProcessError, Starter, State, candidate_users};
use shared::domain::process::Process;
use shared::domain::record::Stored;
use shared::domain::request::StoredResponse;
use shared::domain::signature_image::DecodedImages;
use shared::domain::text::Notes;
use shared::domain::user::User;
use shared::http::error::{ApiError, ConflictCode};
use shared::http::response::{Created, Versioned, found};
use shared::store::{AttemptError, BatchGet, BatchResult, PointReads, StoreError, UnitOfWork, WriteError};
use std::collections::BTreeSet;

/// The start of a process on one asset.
pub(crate) struct StartInstance {
    pub(crate) process: ProcessId,
    pub(crate) asset: AssetId,
    /// Errors of the request that are known already. Those found later are reported together with them.
    pub(crate) errors: Vec<FieldError>,
}

impl Command for StartInstance {
    type Inputs = (Stored<Process>, Stored<Asset>);
    type Outcome = Stored<Instance>;

    async fn read(&self, reads: &PointReads) -> Result<Self::Inputs, ApiError> {
        let batch = BatchGet::new().with::<Process>(Some(self.process)).with::<Asset>(Some(self.asset));
        let batch = reads.batch_get(batch).await?;
        let process = found(batch.get::<Process>(Some(self.process))?)?;
        let mut errors = self.errors.clone();
        match batch.get::<Asset>(Some(self.asset))? {
            Some(asset) if errors.is_empty() => return Ok((process, asset)),
            Some(_) => {}
            None => errors.push(FieldError::field("asset_id", "does not exist in this tenant")),
        }
        Err(ApiError::Invalid(errors))
    }

    /// The instance, its asset and the reference count of the definition change together.
    fn decide(
        &self,
        caller: &Caller,
        unit: &mut UnitOfWork<'_>,
        (process, asset): &Self::Inputs,
    ) -> Result<Stored<Instance>, AttemptError<ApiError>> {
        let id = caller.store.new_id(caller.context.at)?;
        let started = Instance::start(id, &process.value, &asset.value, &Starter::from(&caller.context.actor));
        let (instance, next) = started.map_err(process_error)?;
        let instance = unit.create(instance)?;
        unit.update(asset, next)?;
        Ok(instance)
    }

    fn stored_response(&self, instance: &Stored<Instance>) -> Result<StoredResponse, StoreError> {
        views::stored_response(instance, created)
    }
}

/// Returns the response to a start on one asset.
pub(crate) fn created(view: InstanceView) -> Created<InstanceOrMovement> {
    Created::new("processes/instances", view.id, InstanceOrMovement::Instance(Box::new(view)))
}

/// The submission of step data.
pub(crate) struct Submission {
    pub(crate) data: Map<String, Value>,
    /// The step that the client expects to be open.
    pub(crate) expected_step: Option<usize>,
    /// Errors of the request that are known already.
    pub(crate) errors: Vec<FieldError>,
    /// The images of the data.
    pub(crate) images: DecodedImages,
}

impl From<(Advance, Vec<FieldError>)> for Submission {
    fn from((body, errors): (Advance, Vec<FieldError>)) -> Self {
        let expected_step = body.current_step.map(|step| step.0 as usize);
        Self { data: body.step_data.0, expected_step, errors, images: DecodedImages::default() }
    }
}

impl Submission {
    /// Returns what the domain decided, or all errors of the request together.
    pub(crate) fn result<T>(&self, decided: Result<T, ProcessError>) -> Result<T, ApiError> {
        match decided {
            Err(ProcessError::Invalid(more)) => Err(ApiError::Invalid([self.errors.clone(), more].concat())),
            _ if !self.errors.is_empty() => Err(ApiError::Invalid(self.errors.clone())),
            decided => decided.map_err(process_error),
        }
    }

    /// Adds the users whom the data may pick to a batch. Which steps pick a user is known only from the instance; this
    /// way both are read together.
    pub(crate) fn with_users(&self, batch: BatchGet) -> BatchGet {
        batch.with_all::<User>(candidate_users(&self.data))
    }

    /// Returns those of the users who can be picked: the active ones.
    pub(crate) fn active_users(&self, batch: &BatchResult) -> Result<BTreeSet<UserId>, StoreError> {
        let users = batch.get_all::<User>(candidate_users(&self.data))?;
        Ok(users.iter().filter(|user| user.value.is_active).map(|user| user.value.id).collect())
    }
}

/// The submission of an instance's open step.
pub(crate) struct AdvanceInstance {
    pub(crate) id: InstanceId,
    pub(crate) submission: Submission,
}

/// What an advance needs to know.
pub(crate) struct AdvanceInputs {
    instance: Stored<Instance>,
    /// Those of the users in the step data who can be picked.
    active: BTreeSet<UserId>,
    /// The asset, if the last step is open. `None` also if the instance has ended and its asset was deleted meanwhile.
    asset: Option<Stored<Asset>>,
    /// The step that was open when the request was first looked at.
    meant_step: Option<usize>,
}

impl Command for AdvanceInstance {
    type Inputs = AdvanceInputs;
    type Outcome = Stored<Instance>;

    async fn read(&self, reads: &PointReads) -> Result<AdvanceInputs, ApiError> {
        let batch = self.submission.with_users(BatchGet::new().with::<Instance>(Some(self.id)));
        let batch = reads.batch_get(batch).await?;
        let instance = found(batch.get::<Instance>(Some(self.id))?)?;
        let active = self.submission.active_users(&batch)?;
        let open_step = instance.value.open_step().ok();
        let is_last = open_step.is_some_and(|step| step + 1 == instance.value.steps.as_slice().len());
        let asset = if is_last { reads.get::<Asset>(instance.value.asset_id).await? } else { None };
        Ok(AdvanceInputs { instance, active, asset, meant_step: open_step })
    }

    async fn reread(&self, previous: AdvanceInputs, reads: &PointReads) -> Result<AdvanceInputs, ApiError> {
        Ok(AdvanceInputs { meant_step: previous.meant_step, ..self.read(reads).await? })
    }

    /// The last step also changes the asset, in the same transaction.
    fn decide(
        &self,
        caller: &Caller,
        unit: &mut UnitOfWork<'_>,
        inputs: &AdvanceInputs,
    ) -> Result<Stored<Instance>, AttemptError<ApiError>> {
        let AdvanceInputs { instance, active, asset, meant_step } = inputs;
        let submission = &self.submission;
        if let Some(movement) = instance.value.movement_id.filter(|_| submission.errors.is_empty()) {
            let detail = "The instance is part of a movement. Advance the movement instead.";
            return Err(ApiError::conflict(ConflictCode::Conflict, detail, json!({"movement_id": movement})).into());
        }
        if let Some(step) = meant_step {
            check_still_open(&instance.value, *step)?;
        }
        let at = caller.context.at;
        let advanced = instance.value.advance(&submission.data, submission.expected_step, active, &submission.images, at);
        let next = submission.result(advanced)?;
        if next.instance.status() == InstanceStatus::Completed {
            let asset = asset.as_ref().ok_or(AttemptError::Outdated(WriteError::Stale))?;
            complete(unit, asset, &next.instance)?;
        }
        for (step, image) in &next.signatures {
            unit.put_signature_image(&caller.store, &instance.value.image_name(step, image.hash()), image)?;
        }
        Ok(unit.update(instance, next.instance)?)
    }

    fn stored_response(&self, instance: &Stored<Instance>) -> Result<StoredResponse, StoreError> {
        views::stored_response(instance, |data| Versioned { version: instance.version, data })
    }

    fn judge(&self, error: WriteError, instance: &Stored<Instance>) -> AttemptError<ApiError> {
        match error {
            WriteError::MissingReference("assigned_to") => recipient_inactive(instance.value.recipient()).into(),
            error => error.into(),
        }
    }
}

/// Refuses to submit to another step what was meant for the step `meant`: another submission was faster.
fn check_still_open(instance: &Instance, meant: usize) -> Result<(), ApiError> {
    match instance.state {
        State::InProgress { step } if step == meant => Ok(()),
        State::Cancelled { .. } => Err(process_error(ProcessError::Closed(instance.status()))),
        State::InProgress { .. } | State::Completed { .. } => Err(process_error(ProcessError::Moved(instance.current_step()))),
    }
}

/// Changes the asset of an instance that is completed. The recipient must be active, even if the asset is assigned to
/// them already.
pub(crate) fn complete(unit: &mut UnitOfWork<'_>, asset: &Stored<Asset>, instance: &Instance) -> Result<(), WriteError> {
    if let Some(user) = instance.recipient() {
        unit.require(User::reference("assigned_to", user));
    }
    unit.update(asset, instance.asset_after(&asset.value)).map(|_| ())
}

/// Returns the error of a last step whose recipient has become inactive.
pub(crate) fn recipient_inactive(user: Option<UserId>) -> ApiError {
    let detail = "The picked user is no longer active. Activate the user, or cancel the instance.";
    ApiError::conflict(ConflictCode::Conflict, detail, json!({"user_id": user}))
}

/// The cancellation of an instance, which ends it before its last step and frees its asset.
pub(crate) struct CancelInstance {
    pub(crate) id: InstanceId,
    pub(crate) reason: Option<Notes>,
}

impl Command for CancelInstance {
    type Inputs = (Stored<Instance>, Option<Stored<Asset>>);
    type Outcome = Stored<Instance>;

    async fn read(&self, reads: &PointReads) -> Result<Self::Inputs, ApiError> {
        let instance = found(reads.get::<Instance>(self.id).await?)?;
        let is_open = instance.value.status() == InstanceStatus::InProgress;
        let asset = if is_open { reads.get::<Asset>(instance.value.asset_id).await? } else { None };
        Ok((instance, asset))
    }

    fn decide(
        &self,
        caller: &Caller,
        unit: &mut UnitOfWork<'_>,
        (instance, asset): &Self::Inputs,
    ) -> Result<Stored<Instance>, AttemptError<ApiError>> {
        let next = instance.value.cancelled(self.reason.clone(), caller.context.at).map_err(process_error)?;
        // The asset can't be deleted while the instance is open: without it, the instance has just ended.
        let asset = asset.as_ref().ok_or(AttemptError::Outdated(WriteError::Stale))?;
        unit.update(asset, next.asset_after(&asset.value))?;
        Ok(unit.update(instance, next)?)
    }

    fn stored_response(&self, instance: &Stored<Instance>) -> Result<StoredResponse, StoreError> {
        views::stored_response(instance, |data| Versioned { version: instance.version, data })
    }
}
