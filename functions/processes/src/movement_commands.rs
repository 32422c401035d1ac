//! Advancing and cancelling a movement: all its process instances change in one transaction.

use crate::process_error::process_error;
use crate::submission::{Submission, change_asset, invalid, put_images, too_many_steps};
use crate::views;
use shared::auth::{Command, Requester};
use shared::domain::assets::asset::Asset;
use shared::domain::processes::instance::{Instance, InstanceStatus, ProcessError};
use shared::domain::processes::movement::{Movement, data_for_instance, position};
use shared::domain::record::Stored;
use shared::domain::request::StoredResponse;
use shared::domain::values::id::{AssetId, MovementId, UserId};
use shared::domain::values::text::Notes;
use shared::http::error::ApiError;
use shared::http::response::{Data, found};
use shared::store::{AttemptError, BatchGet, PointReads, StoreError, UnitOfWork, WriteError};
use std::collections::{BTreeSet, HashMap};

/// A movement with its instances, as a command leaves it.
pub(crate) type ChangedMovement = (Stored<Movement>, Vec<Stored<Instance>>);

/// What a change of a movement needs to know.
pub(crate) struct MovementInputs {
    pub(crate) movement: Stored<Movement>,
    pub(crate) instances: Vec<Stored<Instance>>,
    /// The assets that the change frees.
    assets: HashMap<AssetId, Stored<Asset>>,
    /// Those of the users in the step data who can be picked.
    active: BTreeSet<UserId>,
    /// The step that was open when the request was first looked at.
    meant_step: Option<usize>,
}

impl MovementInputs {
    /// Reads a movement, its instances, and the users of the submission.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::NotFound`] if there is no such movement.
    pub(crate) async fn read(reads: &PointReads, id: MovementId, submission: Option<&Submission>) -> Result<Self, ApiError> {
        let movement = found(reads.get::<Movement>(id).await?)?;
        let ids = movement.value.instance_ids.iter().copied();
        let batch = BatchGet::new().with_all::<Instance>(ids.clone());
        let batch = match submission {
            Some(submission) => submission.with_users(batch),
            None => batch,
        };
        let batch = reads.batch_get(batch).await?;
        let instances = batch.get_all::<Instance>(ids)?;
        let active = submission.map_or(Ok(BTreeSet::new()), |submission| submission.active_users(&batch))?;
        let meant_step = open_step(&instances, None).ok();
        Ok(Self { movement, instances, assets: HashMap::new(), active, meant_step })
    }

    /// Returns the inputs with the assets of all instances that are in progress.
    async fn with_assets(self, reads: &PointReads) -> Result<Self, ApiError> {
        let ids: Vec<AssetId> = self.open_instances().map(|instance| instance.value.asset_id).collect();
        let batch = reads.batch_get(BatchGet::new().with_all::<Asset>(ids.iter().copied())).await?;
        let assets = batch.get_all::<Asset>(ids)?.into_iter().map(|asset| (asset.value.id, asset)).collect();
        Ok(Self { assets, ..self })
    }

    fn open_instances(&self) -> impl Iterator<Item = &Stored<Instance>> {
        self.instances.iter().filter(|instance| instance.value.status() == InstanceStatus::InProgress)
    }

    /// Returns the asset of an instance in progress. It can't be deleted: without it, the instance has just ended.
    fn asset_of(&self, instance: &Instance) -> Result<&Stored<Asset>, AttemptError<ApiError>> {
        self.assets.get(&instance.asset_id).ok_or(AttemptError::Outdated(WriteError::Stale))
    }
}

/// Returns the step that is open in all instances in progress. `meant` is the step that the client meant, once that is
/// known.
fn open_step(instances: &[Stored<Instance>], meant: Option<usize>) -> Result<usize, ProcessError> {
    Err(match (position(instances), meant) {
        ((InstanceStatus::InProgress, step), None) => return Ok(step),
        ((InstanceStatus::InProgress, step), Some(meant)) if step == meant => return Ok(step),
        ((InstanceStatus::InProgress | InstanceStatus::Completed, step), Some(_)) => ProcessError::Moved(step),
        ((status, _), _) => ProcessError::Closed(status),
    })
}

/// The submission of the open step of all instances in progress, and perhaps of those that follow.
pub(crate) struct AdvanceMovement {
    pub(crate) id: MovementId,
    pub(crate) submission: Submission,
}

impl AdvanceMovement {
    /// Adds the changes of all instances in progress to `unit`, and returns all instances as they are afterwards.
    fn add(
        &self,
        requester: &Requester,
        unit: &mut UnitOfWork<'_>,
        inputs: &MovementInputs,
        through: Option<&str>,
    ) -> Result<Vec<Stored<Instance>>, AttemptError<ApiError>> {
        let (mut instances, mut has_images) = (Vec::new(), false);
        for instance in &inputs.instances {
            if instance.value.status() != InstanceStatus::InProgress {
                instances.push(instance.clone());
                continue;
            }
            // More than one transaction holds is refused, so the rest need not be made.
            if !unit.fits() {
                break;
            }
            let own_data = data_for_instance(&instance.value, &inputs.instances, &self.submission.data);
            let next = self.submission.advance(&instance.value, &own_data, through, &inputs.active, requester.context.at)?;
            if next.instance.status() == InstanceStatus::Completed {
                change_asset(unit, inputs.asset_of(&instance.value)?, Vec::new(), &next.instance)?;
            }
            // All instances share the images, so only the first one adds them.
            if !std::mem::replace(&mut has_images, true) {
                put_images(requester, unit, &next.instance, &next.signatures)?;
            }
            instances.push(unit.update_in_steps(instance, next.versions())?);
        }
        Ok(instances)
    }
}

impl Command for AdvanceMovement {
    type Inputs = MovementInputs;
    type Outcome = ChangedMovement;

    async fn read(&self, reads: &PointReads) -> Result<MovementInputs, ApiError> {
        let inputs = MovementInputs::read(reads, self.id, Some(&self.submission)).await?;
        let completes = inputs.open_instances().any(|instance| self.submission.completes(&instance.value));
        if completes { inputs.with_assets(reads).await } else { Ok(inputs) }
    }

    async fn reread(&self, previous: MovementInputs, reads: &PointReads) -> Result<MovementInputs, ApiError> {
        Ok(MovementInputs { meant_step: previous.meant_step, ..self.read(reads).await? })
    }

    fn decide(
        &self,
        requester: &Requester,
        unit: &mut UnitOfWork<'_>,
        inputs: &MovementInputs,
    ) -> Result<ChangedMovement, AttemptError<ApiError>> {
        let open_step = open_step(&inputs.instances, inputs.meant_step);
        let open_step = open_step.or_else(|error| self.submission.result(Err(error)))?;
        let empty = unit.trial();
        let instances = self.add(requester, unit, inputs, self.submission.through.as_deref())?;
        if !unit.fits()
            && let Some(instance) = inputs.open_instances().next()
        {
            let fits = |through: &str| {
                let mut trial = empty.trial();
                self.add(requester, &mut trial, inputs, Some(through)).is_ok() && trial.fits()
            };
            return Err(too_many_steps(self.submission.steps_through(&instance.value, open_step), fits).into());
        }
        Ok((inputs.movement.clone(), instances))
    }

    fn stored_response(&self, (movement, instances): &ChangedMovement) -> Result<StoredResponse, StoreError> {
        views::stored_movement(movement, instances, |data| Data { data })
    }

    fn judge(&self, error: WriteError, (_, instances): &ChangedMovement) -> AttemptError<ApiError> {
        judge(&self.submission, error, instances)
    }
}

/// Returns what a failed commit of these instances means.
pub(crate) fn judge(submission: &Submission, error: WriteError, instances: &[Stored<Instance>]) -> AttemptError<ApiError> {
    if matches!(error, WriteError::TooLarge) && submission.through.is_none() {
        let detail =
            "makes all instances together too large for one transaction; send less with this step, or cancel some instances";
        return invalid("step_data", detail.to_owned()).into();
    }
    let changed = instances.iter().rfind(|it| it.value.status() == InstanceStatus::Completed).or(instances.last());
    match changed {
        Some(instance) => submission.judge(error, &instance.value),
        None => error.into(),
    }
}

/// The cancellation of all instances in progress.
pub(crate) struct CancelMovement {
    pub(crate) id: MovementId,
    pub(crate) reason: Option<Notes>,
}

impl Command for CancelMovement {
    type Inputs = MovementInputs;
    type Outcome = ChangedMovement;

    async fn read(&self, reads: &PointReads) -> Result<MovementInputs, ApiError> {
        MovementInputs::read(reads, self.id, None).await?.with_assets(reads).await
    }

    fn decide(
        &self,
        requester: &Requester,
        unit: &mut UnitOfWork<'_>,
        inputs: &MovementInputs,
    ) -> Result<ChangedMovement, AttemptError<ApiError>> {
        open_step(&inputs.instances, None).map_err(process_error)?;
        let mut instances = inputs.instances.clone();
        for instance in instances.iter_mut().filter(|it| it.value.status() == InstanceStatus::InProgress) {
            let asset = inputs.asset_of(&instance.value)?;
            let next = instance.value.cancelled(self.reason.clone(), requester.context.at).map_err(process_error)?;
            unit.update(asset, next.asset_after(&asset.value))?;
            *instance = unit.update(instance, next)?;
        }
        Ok((inputs.movement.clone(), instances))
    }

    fn stored_response(&self, (movement, instances): &ChangedMovement) -> Result<StoredResponse, StoreError> {
        views::stored_movement(movement, instances, |data| Data { data })
    }
}
