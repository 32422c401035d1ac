//! Starts a process on one asset, or on several at once: all instances start, or none.

use super::{InstanceOrMovement, Subject, Submission, change_asset, process_error, put_images, too_many_steps, too_much};
use serde_json::{Map, Value, json};
use shared::auth::Principal;
use shared::domain::assets::asset::Asset;
use shared::domain::processes::instance::{Instance, ProcessError, Signed, Starter};
use shared::domain::processes::movement::{Movement, NUMBER_TEMPLATE};
use shared::domain::processes::process::Process;
use shared::domain::record::Stored;
use shared::domain::tenants::tenant::TagTemplate;
use shared::domain::values::field_error::{FieldError, ValueError};
use shared::domain::values::id::{AssetId, MovementId, ProcessId, UserId};
use shared::http::responses::{ApiError, Created, or_not_found};
use shared::store::{BatchGet, CommitFailure, MAX_TRANSACTION_ITEMS, Reader, StoreError, UnitOfWork, WriteError};
use std::collections::BTreeSet;

pub(crate) struct StartProcess {
    process: ProcessId,
    assets: Vec<AssetId>,
    submission: Submission,
    /// Empty until [`StartProcess::execute`] takes the movement's next number.
    number: String,
}

impl StartProcess {
    pub(crate) fn new(process: ProcessId, assets: Vec<AssetId>, submission: Submission) -> Self {
        Self { process, assets, submission, number: String::new() }
    }

    fn is_movement(&self) -> bool {
        self.assets.len() > 1
    }

    pub(crate) async fn execute(self, principal: &Principal, inputs: StartInputs) -> Result<Subject, ApiError> {
        let number = if self.is_movement() {
            let template: TagTemplate = NUMBER_TEMPLATE.parse().map_err(StoreError::broken)?;
            principal.store.next_movement_number(&template).await?
        } else {
            String::new()
        };
        let command = &Self { number, ..self };
        let attempt = |inputs| async move {
            let mut unit = principal.unit();
            let subject = command.decide(principal, &mut unit, &inputs)?;
            let committed = unit.commit_with(|| super::stored::<Created<InstanceOrMovement>>(&subject)).await;
            committed.map_err(|error| command.failure(error, &subject)).map(|()| subject)
        };
        principal.retry(inputs, || command.read(&principal.store), attempt).await
    }

    fn add(
        &self,
        principal: &Principal,
        unit: &mut UnitOfWork<'_>,
        inputs: &StartInputs,
        assets: &[Stored<Asset>],
        through: Option<&str>,
    ) -> Result<Subject, CommitFailure<ApiError>> {
        let (process, at) = (&inputs.process.value, principal.context.at);
        let movement_id: Option<MovementId> = self.is_movement().then(|| principal.store.new_id(at)).transpose()?;
        let starter = Starter::from(&principal.context.actor);
        let by = Signed::new(&principal.context.actor, at);
        let mut holders = assets.iter().map(|asset| asset.value.assigned_to);
        let held_by = holders.next().flatten().filter(|first| holders.all(|holder| holder == Some(*first)));
        let (mut started, mut errors) = (Vec::new(), Vec::new());
        for asset in assets {
            match Instance::start(principal.store.new_id(at)?, process, &asset.value, &starter) {
                Ok((instance, reserved)) => started.push((Instance { movement_id, held_by, ..instance }, asset, reserved)),
                Err(error) if self.is_movement() => errors.push((asset.value.id, error)),
                Err(error) => return Err(process_error(error).into()),
            }
        }
        if !errors.is_empty() {
            return Err(movement_error(errors).into());
        }
        let mut instances = Vec::new();
        for (instance, asset, reserved) in started {
            // The transaction is already too large and will be refused, so skip the rest.
            if !unit.fits() {
                break;
            }
            let begun = self.submission.begin(instance, through, &inputs.active, &by)?;
            change_asset(unit, asset, vec![reserved], begun.last())?;
            // All instances share the images, so only the first instance adds them.
            if instances.is_empty() {
                put_images(unit, begun.last(), &begun.signatures);
            }
            instances.push(unit.create_in_steps(begun.created, begun.later)?);
        }
        let movement = movement_id.map(|id| Movement {
            id,
            number: self.number.clone(),
            process_id: process.id,
            process_name: process.name.clone(),
            instance_ids: instances.iter().map(|instance| instance.value.id).collect(),
            started_by: starter.key_id,
            started_by_name: starter.name,
        });
        let movement = movement.map(|movement| unit.create(movement)).transpose()?;
        Ok(Subject { movement, instances })
    }

    /// Fails if the largest transaction for these assets would be too large. One asset always fits.
    fn check_size(&self, StartInputs { process, assets, .. }: &StartInputs) -> Result<(), ApiError> {
        let has_values = !self.submission.data.is_empty();
        let fits = |assets| Movement::items_of_largest_step(&process.value, assets, has_values) <= MAX_TRANSACTION_ITEMS;
        if !self.is_movement() || fits(assets) {
            return Ok(());
        }
        let most = (1..assets.len()).rev().find(|count| fits(assets.get(..*count).unwrap_or_default())).unwrap_or(1);
        let detail = format!(
            "are too many for one transaction, which also includes the users that they are assigned to and the users that the \
             process picks; start at most the first {most} together"
        );
        Err(too_much("asset_ids", detail))
    }

    fn too_many_steps(&self, principal: &Principal, inputs: &StartInputs, instance: &Instance) -> ApiError {
        let fits = |assets: &[Stored<Asset>], through: Option<&str>| {
            let mut trial = principal.unit();
            self.add(principal, &mut trial, inputs, assets, through).is_ok() && trial.fits()
        };
        let error = too_many_steps(self.submission.steps_through(instance, 0), |key| fits(&inputs.assets, Some(key)));
        let through = self.submission.through.as_deref().filter(|_| self.is_movement());
        let (ApiError::Invalid(errors), Some(through)) = (&error, through) else { return error };
        let counts: Vec<usize> = (1..=inputs.assets.len()).collect();
        let most = counts.partition_point(|count| fits(inputs.assets.get(..*count).unwrap_or_default(), Some(through)));
        if most == 0 {
            return error;
        }
        let with_count = |error: &FieldError| {
            let FieldError { location, reason } = error.clone();
            let text = format!("{reason}; with all steps, the first {most} of the assets fit");
            FieldError { location, reason: ValueError { text, ..reason } }
        };
        ApiError::Invalid(errors.iter().map(with_count).collect())
    }
}

pub(crate) struct StartInputs {
    process: Stored<Process>,
    assets: Vec<Stored<Asset>>,
    /// Users in the step data who may be picked.
    active: BTreeSet<UserId>,
}

impl StartProcess {
    pub(crate) async fn read(&self, reads: &Reader) -> Result<StartInputs, ApiError> {
        let batch = BatchGet::new().with::<Process>(Some(self.process)).with_all::<Asset>(self.assets.iter().copied());
        let batch = reads.batch_get(self.submission.with_users(batch)).await?;
        let process = or_not_found(batch.get::<Process>(Some(self.process))?)?;
        let active = self.submission.active_users(&batch)?;
        let (mut assets, mut errors) = (Vec::new(), self.submission.errors.clone());
        for (place, id) in self.assets.iter().enumerate() {
            match batch.get::<Asset>(Some(*id))? {
                Some(asset) => assets.push(asset),
                None if self.is_movement() => {
                    errors.push(FieldError::within("asset_ids", &format!("/{place}"), ValueError::unknown_reference()))
                }
                None => errors.push(FieldError::field("asset_id", ValueError::unknown_reference())),
            }
        }
        if errors.is_empty() { Ok(StartInputs { process, assets, active }) } else { Err(ApiError::Invalid(errors)) }
    }

    fn decide(
        &self,
        principal: &Principal,
        unit: &mut UnitOfWork<'_>,
        inputs: &StartInputs,
    ) -> Result<Subject, CommitFailure<ApiError>> {
        self.check_size(inputs)?;
        let subject = self.add(principal, unit, inputs, &inputs.assets, self.submission.through.as_deref())?;
        match subject.instances.first() {
            Some(instance) if !unit.fits() => Err(self.too_many_steps(principal, inputs, &instance.value).into()),
            _ => Ok(subject),
        }
    }

    fn failure(&self, error: WriteError, subject: &Subject) -> CommitFailure<ApiError> {
        if matches!(error, WriteError::TooLarge) && self.submission.through.is_none() && self.is_movement() {
            let detail =
                "are too large for one transaction, with their notes, custom fields and values; start fewer of them together";
            return too_much("asset_ids", detail).into();
        }
        self.submission.classify_failure(error, subject)
    }
}

/// Builds one 409 for all assets on which a movement can't start, with the code of the first asset and an error for each asset.
fn movement_error(errors: Vec<(AssetId, ProcessError)>) -> ApiError {
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
