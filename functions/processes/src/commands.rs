//! Starting, advancing and cancelling a process instance.

use crate::instance_wire::{InstanceOrMovement, InstanceView};
use crate::process_error::{part_of_movement, process_error};
use crate::submission::{Submission, change_asset, put_images, too_many_steps};
use crate::views;
use shared::auth::{Command, Requester};
use shared::domain::assets::asset::Asset;
use shared::domain::processes::instance::{Instance, InstanceStatus, ProcessError, Starter, State};
use shared::domain::processes::process::Process;
use shared::domain::record::Stored;
use shared::domain::request::StoredResponse;
use shared::domain::values::field_error::FieldError;
use shared::domain::values::id::{AssetId, InstanceId, ProcessId, UserId};
use shared::domain::values::text::Notes;
use shared::http::error::ApiError;
use shared::http::response::{Created, Versioned, found};
use shared::store::{AttemptError, BatchGet, PointReads, StoreError, UnitOfWork, WriteError};
use std::collections::BTreeSet;

/// The start of a process on one asset.
pub(crate) struct StartInstance {
    pub(crate) process: ProcessId,
    pub(crate) asset: AssetId,
    pub(crate) submission: Submission,
}

/// What a start on one asset needs to know.
pub(crate) struct StartInputs {
    process: Stored<Process>,
    asset: Stored<Asset>,
    /// Those of the users in the step data who can be picked.
    active: BTreeSet<UserId>,
}

impl StartInstance {
    /// Adds the instance, its asset and the reference count of the definition to `unit`.
    fn add(
        &self,
        requester: &Requester,
        unit: &mut UnitOfWork<'_>,
        inputs: &StartInputs,
        through: Option<&str>,
    ) -> Result<Stored<Instance>, AttemptError<ApiError>> {
        let StartInputs { process, asset, active } = inputs;
        let id = requester.store.new_id(requester.context.at)?;
        let started = Instance::start(id, &process.value, &asset.value, &Starter::from(&requester.context.actor));
        let (instance, reserved) = started.map_err(process_error)?;
        let begun = self.submission.begin(instance, through, active, requester.context.at)?;
        change_asset(unit, asset, vec![reserved], begun.last())?;
        put_images(requester, unit, begun.last(), &begun.signatures)?;
        Ok(unit.create_in_steps(begun.created, begun.later)?)
    }
}

impl Command for StartInstance {
    type Inputs = StartInputs;
    type Outcome = Stored<Instance>;

    async fn read(&self, reads: &PointReads) -> Result<StartInputs, ApiError> {
        let batch = BatchGet::new().with::<Process>(Some(self.process)).with::<Asset>(Some(self.asset));
        let batch = reads.batch_get(self.submission.with_users(batch)).await?;
        let process = found(batch.get::<Process>(Some(self.process))?)?;
        let active = self.submission.active_users(&batch)?;
        let mut errors = self.submission.errors.clone();
        match batch.get::<Asset>(Some(self.asset))? {
            Some(asset) if errors.is_empty() => return Ok(StartInputs { process, asset, active }),
            Some(_) => {}
            None => errors.push(FieldError::field("asset_id", "does not exist in this tenant")),
        }
        Err(ApiError::Invalid(errors))
    }

    fn decide(
        &self,
        requester: &Requester,
        unit: &mut UnitOfWork<'_>,
        inputs: &StartInputs,
    ) -> Result<Stored<Instance>, AttemptError<ApiError>> {
        let empty = unit.trial();
        let instance = self.add(requester, unit, inputs, self.submission.through.as_deref())?;
        if !unit.fits() {
            let fits = |through: &str| {
                let mut trial = empty.trial();
                self.add(requester, &mut trial, inputs, Some(through)).is_ok() && trial.fits()
            };
            return Err(too_many_steps(self.submission.steps_through(&instance.value, 0), fits).into());
        }
        Ok(instance)
    }

    fn stored_response(&self, instance: &Stored<Instance>) -> Result<StoredResponse, StoreError> {
        views::stored_response(instance, created)
    }

    fn judge(&self, error: WriteError, instance: &Stored<Instance>) -> AttemptError<ApiError> {
        self.submission.judge(error, &instance.value)
    }
}

/// Returns the response to a start on one asset.
pub(crate) fn created(view: InstanceView) -> Created<InstanceOrMovement> {
    Created::new("processes/instances", view.id, InstanceOrMovement::Instance(Box::new(view)))
}

/// The submission of an instance's open step, and perhaps of those that follow.
pub(crate) struct AdvanceInstance {
    pub(crate) id: InstanceId,
    pub(crate) submission: Submission,
}

/// What an advance needs to know.
pub(crate) struct AdvanceInputs {
    pub(crate) instance: Stored<Instance>,
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
        let asset =
            if self.submission.completes(&instance.value) { reads.get::<Asset>(instance.value.asset_id).await? } else { None };
        Ok(AdvanceInputs { instance, active, asset, meant_step: open_step })
    }

    async fn reread(&self, previous: AdvanceInputs, reads: &PointReads) -> Result<AdvanceInputs, ApiError> {
        Ok(AdvanceInputs { meant_step: previous.meant_step, ..self.read(reads).await? })
    }

    /// The last step also changes the asset, in the same transaction.
    fn decide(
        &self,
        requester: &Requester,
        unit: &mut UnitOfWork<'_>,
        inputs: &AdvanceInputs,
    ) -> Result<Stored<Instance>, AttemptError<ApiError>> {
        let AdvanceInputs { instance, active, asset, meant_step } = inputs;
        let submission = &self.submission;
        if let Some(movement) = instance.value.movement_id.filter(|_| submission.errors.is_empty()) {
            return Err(part_of_movement(movement, "Advance the movement instead.").into());
        }
        if let Some(step) = meant_step {
            check_still_open(&instance.value, *step)?;
        }
        let advance = |unit: &mut UnitOfWork<'_>, through: Option<&str>| {
            let next = submission.advance(&instance.value, &submission.data, through, active, requester.context.at)?;
            if next.instance.status() == InstanceStatus::Completed {
                let asset = asset.as_ref().ok_or(AttemptError::Outdated(WriteError::Stale))?;
                change_asset(unit, asset, Vec::new(), &next.instance)?;
            }
            put_images(requester, unit, &next.instance, &next.signatures)?;
            Ok::<_, AttemptError<ApiError>>(unit.update_in_steps(instance, next.versions())?)
        };
        let empty = unit.trial();
        let advanced = advance(unit, submission.through.as_deref())?;
        if !unit.fits() {
            let fits = |through: &str| {
                let mut trial = empty.trial();
                advance(&mut trial, Some(through)).is_ok() && trial.fits()
            };
            return Err(too_many_steps(submission.steps_through(&instance.value, instance.value.current_step()), fits).into());
        }
        Ok(advanced)
    }

    fn stored_response(&self, instance: &Stored<Instance>) -> Result<StoredResponse, StoreError> {
        views::stored_response(instance, |data| Versioned { version: instance.version, data })
    }

    fn judge(&self, error: WriteError, instance: &Stored<Instance>) -> AttemptError<ApiError> {
        self.submission.judge(error, &instance.value)
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
        requester: &Requester,
        unit: &mut UnitOfWork<'_>,
        (instance, asset): &Self::Inputs,
    ) -> Result<Stored<Instance>, AttemptError<ApiError>> {
        let next = instance.value.cancelled(self.reason.clone(), requester.context.at).map_err(process_error)?;
        // The asset can't be deleted while the instance is open: without it, the instance has just ended.
        let asset = asset.as_ref().ok_or(AttemptError::Outdated(WriteError::Stale))?;
        unit.update(asset, next.asset_after(&asset.value))?;
        Ok(unit.update(instance, next)?)
    }

    fn stored_response(&self, instance: &Stored<Instance>) -> Result<StoredResponse, StoreError> {
        views::stored_response(instance, |data| Versioned { version: instance.version, data })
    }
}
