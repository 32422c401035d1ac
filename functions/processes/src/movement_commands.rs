//! Advancing and cancelling a movement: all its process instances change in one transaction.

use crate::commands::{self, Submission};
use crate::process_error::process_error;
use crate::views;
use shared::auth::{Caller, Command};
use shared::domain::asset::Asset;
use shared::domain::field_error::FieldError;
use shared::domain::id::{AssetId, MovementId, UserId};
use shared::domain::instance::{Instance, InstanceStatus, ProcessError};
use shared::domain::movement::{Movement, data_for_instance, overall_status};
use shared::domain::record::Stored;
use shared::domain::request::StoredResponse;
use shared::domain::text::Notes;
use shared::http::error::ApiError;
use shared::http::response::{Data, found};
use shared::store::{AttemptError, BatchGet, PointReads, StoreError, UnitOfWork, WriteError};
use std::collections::{BTreeSet, HashMap};

/// A movement with its instances, as a command leaves it.
pub(crate) type ChangedMovement = (Stored<Movement>, Vec<Stored<Instance>>);

/// Returns the error of one field.
pub(crate) fn invalid(field: &str, detail: &str) -> ApiError {
    ApiError::Invalid(vec![FieldError::field(field, detail)])
}

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

    fn is_last_step_open(&self) -> bool {
        self.open_instances().any(|it| it.value.current_step() + 1 == it.value.steps.as_slice().len())
    }

    /// Returns the asset of an instance in progress. It can't be deleted: without it, the instance has just ended.
    fn asset_of(&self, instance: &Instance) -> Result<&Stored<Asset>, AttemptError<ApiError>> {
        self.assets.get(&instance.asset_id).ok_or(AttemptError::Outdated(WriteError::Stale))
    }
}

/// Returns the step that is open in all instances in progress. `meant` is the step that the client meant, once that is
/// known.
fn open_step(instances: &[Stored<Instance>], meant: Option<usize>) -> Result<usize, ProcessError> {
    let positions = instances.iter().map(|instance| (instance.value.status(), instance.value.current_step()));
    Err(match (overall_status(positions), meant) {
        ((InstanceStatus::InProgress, step), None) => return Ok(step),
        ((InstanceStatus::InProgress, step), Some(meant)) if step == meant => return Ok(step),
        ((InstanceStatus::InProgress | InstanceStatus::Completed, step), Some(_)) => ProcessError::Moved(step),
        ((status, _), _) => ProcessError::Closed(status),
    })
}

/// The submission of the open step of all instances in progress.
pub(crate) struct AdvanceMovement {
    pub(crate) id: MovementId,
    pub(crate) submission: Submission,
}

impl Command for AdvanceMovement {
    type Inputs = MovementInputs;
    type Outcome = ChangedMovement;

    async fn read(&self, reads: &PointReads) -> Result<MovementInputs, ApiError> {
        let inputs = MovementInputs::read(reads, self.id, Some(&self.submission)).await?;
        if inputs.is_last_step_open() { inputs.with_assets(reads).await } else { Ok(inputs) }
    }

    async fn reread(&self, previous: MovementInputs, reads: &PointReads) -> Result<MovementInputs, ApiError> {
        Ok(MovementInputs { meant_step: previous.meant_step, ..self.read(reads).await? })
    }

    fn decide(
        &self,
        caller: &Caller,
        unit: &mut UnitOfWork<'_>,
        inputs: &MovementInputs,
    ) -> Result<ChangedMovement, AttemptError<ApiError>> {
        let Submission { data, expected_step, images, .. } = &self.submission;
        if let Err(error) = open_step(&inputs.instances, inputs.meant_step) {
            self.submission.result::<()>(Err(error))?;
        }
        let (mut instances, mut has_images) = (Vec::new(), false);
        for instance in &inputs.instances {
            if instance.value.status() != InstanceStatus::InProgress {
                instances.push(instance.clone());
                continue;
            }
            let own_data = data_for_instance(&instance.value, &inputs.instances, data);
            let advanced = instance.value.advance(&own_data, *expected_step, &inputs.active, images, caller.context.at);
            let next = self.submission.result(advanced)?;
            if next.instance.status() == InstanceStatus::Completed {
                commands::complete(unit, inputs.asset_of(&instance.value)?, &next.instance)?;
            }
            // All instances share the images, so only the first one adds them.
            for (key, image) in next.signatures.iter().filter(|_| !has_images) {
                unit.put_signature_image(&caller.store, &instance.value.image_name(key, image.hash()), image)?;
            }
            has_images = true;
            instances.push(unit.update(instance, next.instance)?);
        }
        Ok((inputs.movement.clone(), instances))
    }

    fn stored_response(&self, (movement, instances): &ChangedMovement) -> Result<StoredResponse, StoreError> {
        views::stored_movement(movement, instances, |data| Data { data })
    }

    fn judge(&self, error: WriteError, (_, instances): &ChangedMovement) -> AttemptError<ApiError> {
        match error {
            WriteError::MissingReference("assigned_to") => {
                let mut completed = instances.iter().filter(|it| it.value.status() == InstanceStatus::Completed);
                commands::recipient_inactive(completed.next_back().and_then(|it| it.value.recipient())).into()
            }
            WriteError::TooLarge => {
                let detail = "makes all instances together too large for one transaction; send less with this step, or cancel some instances";
                invalid("step_data", detail).into()
            }
            error => error.into(),
        }
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
        caller: &Caller,
        unit: &mut UnitOfWork<'_>,
        inputs: &MovementInputs,
    ) -> Result<ChangedMovement, AttemptError<ApiError>> {
        open_step(&inputs.instances, None).map_err(process_error)?;
        let mut instances = inputs.instances.clone();
        for instance in instances.iter_mut().filter(|it| it.value.status() == InstanceStatus::InProgress) {
            let asset = inputs.asset_of(&instance.value)?;
            let next = instance.value.cancelled(self.reason.clone(), caller.context.at).map_err(process_error)?;
            unit.update(asset, next.asset_after(&asset.value))?;
            *instance = unit.update(instance, next)?;
        }
        Ok((inputs.movement.clone(), instances))
    }

    fn stored_response(&self, (movement, instances): &ChangedMovement) -> Result<StoredResponse, StoreError> {
        views::stored_movement(movement, instances, |data| Data { data })
    }
}
