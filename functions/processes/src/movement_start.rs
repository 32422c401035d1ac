//! Starting a movement: one process on several assets, all or none.

use crate::instance_wire::{InstanceOrMovement, MovementView};
use crate::movement_commands::{ChangedMovement, judge};
use crate::process_error::process_error;
use crate::submission::{Submission, change_asset, invalid, put_images, too_many_steps};
use crate::views;
use serde_json::{Map, Value, json};
use shared::auth::{Command, Requester};
use shared::domain::assets::asset::Asset;
use shared::domain::assets::tag::TagTemplate;
use shared::domain::processes::instance::{Instance, ProcessError, Starter};
use shared::domain::processes::movement::{Movement, NUMBER_TEMPLATE};
use shared::domain::processes::process::Process;
use shared::domain::record::Stored;
use shared::domain::request::StoredResponse;
use shared::domain::values::field_error::FieldError;
use shared::domain::values::id::{AssetId, MovementId, ProcessId, UserId};
use shared::http::error::ApiError;
use shared::http::response::{Created, found};
use shared::store::{AttemptError, BatchGet, MAX_TRANSACTION_ITEMS, PointReads, StoreError, UnitOfWork, WriteError};
use std::collections::BTreeSet;

/// The start of a process on several assets.
pub(crate) struct StartMovement {
    pub(crate) process: ProcessId,
    pub(crate) assets: Vec<AssetId>,
    pub(crate) submission: Submission,
    /// The movement's number, once it is taken.
    pub(crate) number: String,
}

impl StartMovement {
    /// Returns the command with the next movement number.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Unavailable`] if the table does not respond.
    pub(crate) async fn numbered(self, requester: &Requester) -> Result<Self, ApiError> {
        let template: TagTemplate = NUMBER_TEMPLATE.parse().map_err(StoreError::broken)?;
        Ok(Self { number: requester.store.next_movement_number(&template).await?, ..self })
    }
}

/// What a start on several assets needs to know.
pub(crate) struct StartInputs {
    process: Stored<Process>,
    assets: Vec<Stored<Asset>>,
    /// Those of the users in the step data who can be picked.
    active: BTreeSet<UserId>,
}

impl StartMovement {
    /// Adds the movement and the instances of these assets to `unit`. All of them start, or none does.
    fn add(
        &self,
        requester: &Requester,
        unit: &mut UnitOfWork<'_>,
        inputs: &StartInputs,
        assets: &[Stored<Asset>],
        through: Option<&str>,
    ) -> Result<ChangedMovement, AttemptError<ApiError>> {
        let (process, at) = (&inputs.process.value, requester.context.at);
        let id: MovementId = requester.store.new_id(at)?;
        let starter = Starter::from(&requester.context.actor);
        let (mut started, mut errors) = (Vec::new(), Vec::new());
        for asset in assets {
            match Instance::start(requester.store.new_id(at)?, process, &asset.value, &starter) {
                Ok((instance, reserved)) => started.push((Instance { movement_id: Some(id), ..instance }, asset, reserved)),
                Err(error) => errors.push((asset.value.id, error)),
            }
        }
        if !errors.is_empty() {
            return Err(start_error(errors).into());
        }
        let mut instances = Vec::new();
        for (instance, asset, reserved) in started {
            // More than one transaction holds is refused, so the rest need not be made.
            if !unit.fits() {
                break;
            }
            let begun = self.submission.begin(instance, through, &inputs.active, at)?;
            change_asset(unit, asset, vec![reserved], begun.last())?;
            // All instances share the images, so only the first one adds them.
            if instances.is_empty() {
                put_images(requester, unit, begun.last(), &begun.signatures)?;
            }
            instances.push(unit.create_in_steps(begun.created, begun.later)?);
        }
        let movement = Movement {
            id,
            number: self.number.clone(),
            process_id: process.id,
            process_name: process.name.clone(),
            instance_ids: instances.iter().map(|instance| instance.value.id).collect(),
            started_by: starter.key_id,
            started_by_name: starter.name,
        };
        Ok((unit.create(movement)?, instances))
    }

    /// Returns the error of steps that don't fit into the transaction of the start.
    fn too_many_steps(&self, requester: &Requester, inputs: &StartInputs, instance: &Instance) -> ApiError {
        let fits = |assets: &[Stored<Asset>], through: Option<&str>| {
            let mut trial = UnitOfWork::new(&requester.store, &requester.context);
            self.add(requester, &mut trial, inputs, assets, through).is_ok() && trial.fits()
        };
        let through = self.submission.through.as_deref();
        let counts: Vec<usize> = (1..=inputs.assets.len()).collect();
        let most = counts.partition_point(|count| fits(inputs.assets.get(..*count).unwrap_or_default(), through));
        let error = too_many_steps(self.submission.steps_through(instance, 0), |key| fits(&inputs.assets, Some(key)));
        match error {
            ApiError::Invalid(errors) if through.is_some() && most > 0 => {
                let with_count = |error: FieldError| {
                    let detail = format!("{}; with all steps, the first {most} of the assets fit", error.detail);
                    FieldError { detail, ..error }
                };
                ApiError::Invalid(errors.into_iter().map(with_count).collect())
            }
            error => error,
        }
    }
}

impl Command for StartMovement {
    type Inputs = StartInputs;
    type Outcome = ChangedMovement;

    async fn read(&self, reads: &PointReads) -> Result<StartInputs, ApiError> {
        let batch = BatchGet::new().with::<Process>(Some(self.process)).with_all::<Asset>(self.assets.iter().copied());
        let batch = reads.batch_get(self.submission.with_users(batch)).await?;
        let process = found(batch.get::<Process>(Some(self.process))?)?;
        let active = self.submission.active_users(&batch)?;
        let (mut assets, mut errors) = (Vec::new(), self.submission.errors.clone());
        for (place, id) in self.assets.iter().enumerate() {
            match batch.get::<Asset>(Some(*id))? {
                Some(asset) => assets.push(asset),
                None => {
                    errors.push(FieldError::within("asset_ids", &format!("/{place}"), "does not exist in this tenant"));
                }
            }
        }
        if errors.is_empty() { Ok(StartInputs { process, assets, active }) } else { Err(ApiError::Invalid(errors)) }
    }

    fn decide(
        &self,
        requester: &Requester,
        unit: &mut UnitOfWork<'_>,
        inputs: &StartInputs,
    ) -> Result<ChangedMovement, AttemptError<ApiError>> {
        let StartInputs { process, assets, .. } = inputs;
        let has_values = !self.submission.data.is_empty();
        let fits = |assets| Movement::items_of_largest_step(&process.value, assets, has_values) <= MAX_TRANSACTION_ITEMS;
        if !fits(assets) {
            let most = (1..assets.len()).rev().find(|count| fits(assets.get(..*count).unwrap_or_default())).unwrap_or(1);
            let detail = format!(
                "are too many for one transaction, with the users whom they are assigned to and those whom the process \
                 picks; the first {most} fit, so start at most these together"
            );
            return Err(invalid("asset_ids", detail).into());
        }
        let (movement, instances) = self.add(requester, unit, inputs, assets, self.submission.through.as_deref())?;
        match instances.first() {
            Some(instance) if !unit.fits() => Err(self.too_many_steps(requester, inputs, &instance.value).into()),
            _ => Ok((movement, instances)),
        }
    }

    fn stored_response(&self, (movement, instances): &ChangedMovement) -> Result<StoredResponse, StoreError> {
        views::stored_movement(movement, instances, created)
    }

    fn judge(&self, error: WriteError, (_, instances): &ChangedMovement) -> AttemptError<ApiError> {
        if matches!(error, WriteError::TooLarge) && self.submission.through.is_none() {
            let detail =
                "are too large for one transaction, with their notes, custom fields and values; start fewer of them together";
            return invalid("asset_ids", detail.to_owned()).into();
        }
        judge(&self.submission, error, instances)
    }
}

/// Returns the response to the start of a movement.
pub(crate) fn created(view: MovementView) -> Created<InstanceOrMovement> {
    Created::new("movements", view.id, InstanceOrMovement::Movement(Box::new(view)))
}

/// Returns one 409 for all assets on which the process can't start: the code of the first, and every asset with its own.
fn start_error(errors: Vec<(AssetId, ProcessError)>) -> ApiError {
    let mut assets = Vec::new();
    let mut first = None;
    for (asset, error) in errors {
        let ApiError::Conflict(mut conflict) = process_error(error) else { continue };
        let mut row = json!({"code": conflict.code.as_str(), "detail": conflict.detail});
        if let Value::Object(row) = &mut row {
            row.append(&mut conflict.context.clone());
            row.insert("asset_id".into(), json!(asset));
        }
        assets.push(row);
        if first.is_none() {
            conflict.context = Map::new();
            first = Some(conflict);
        }
    }
    match first {
        Some(mut conflict) => {
            conflict.context.insert("assets".into(), assets.into());
            ApiError::Conflict(conflict)
        }
        None => WriteError::Stale.into(),
    }
}
