//! Starting a movement: one process on several assets, all or none.

use crate::instance_wire::{InstanceOrMovement, MovementView};
use crate::movement_commands::{ChangedMovement, invalid};
use crate::process_error::process_error;
use crate::views;
use serde_json::{Map, Value, json};
use shared::auth::{Caller, Command};
use shared::domain::asset::Asset;
use shared::domain::asset_tag::TagTemplate;
use shared::domain::field_error::FieldError;
use shared::domain::id::{AssetId, InstanceId, MovementId, ProcessId};
use shared::domain::instance::{Instance, ProcessError, Starter};
use shared::domain::movement::{Movement, NUMBER_TEMPLATE};
use shared::domain::process::Process;
use shared::domain::record::Stored;
use shared::domain::request::StoredResponse;
use shared::http::error::ApiError;
use shared::http::response::{Created, found};
use shared::store::{AttemptError, BatchGet, MAX_TRANSACTION_ITEMS, PointReads, StoreError, UnitOfWork, WriteError};

/// The start of a process on several assets.
pub(crate) struct StartMovement {
    pub(crate) process: ProcessId,
    pub(crate) assets: Vec<AssetId>,
    /// Errors of the request that are known already.
    pub(crate) errors: Vec<FieldError>,
    /// The movement's number, once it is taken.
    pub(crate) number: String,
}

impl StartMovement {
    /// Returns the command with the next movement number.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Unavailable`] if the table does not respond.
    pub(crate) async fn numbered(self, caller: &Caller) -> Result<Self, ApiError> {
        let template: TagTemplate = NUMBER_TEMPLATE.parse().map_err(StoreError::broken)?;
        Ok(Self { number: caller.store.next_movement_number(&template).await?, ..self })
    }
}

impl Command for StartMovement {
    type Inputs = (Stored<Process>, Vec<Stored<Asset>>);
    type Outcome = ChangedMovement;

    async fn read(&self, reads: &PointReads) -> Result<Self::Inputs, ApiError> {
        let batch = BatchGet::new().with::<Process>(Some(self.process)).with_all::<Asset>(self.assets.iter().copied());
        let batch = reads.batch_get(batch).await?;
        let process = found(batch.get::<Process>(Some(self.process))?)?;
        let (mut assets, mut errors) = (Vec::new(), self.errors.clone());
        for (place, id) in self.assets.iter().enumerate() {
            match batch.get::<Asset>(Some(*id))? {
                Some(asset) => assets.push(asset),
                None => {
                    errors.push(FieldError::within("asset_ids", &format!("/{place}"), "does not exist in this tenant"));
                }
            }
        }
        if errors.is_empty() { Ok((process, assets)) } else { Err(ApiError::Invalid(errors)) }
    }

    /// All instances start, or none does.
    fn decide(
        &self,
        caller: &Caller,
        unit: &mut UnitOfWork<'_>,
        (process, assets): &Self::Inputs,
    ) -> Result<ChangedMovement, AttemptError<ApiError>> {
        if Movement::items_of_largest_step(&process.value, assets) > MAX_TRANSACTION_ITEMS {
            let fits = |count: &usize| {
                let some = assets.get(..*count).unwrap_or_default();
                Movement::items_of_largest_step(&process.value, some) <= MAX_TRANSACTION_ITEMS
            };
            let most = (1..assets.len()).rev().find(fits).unwrap_or(1);
            let detail = format!(
                "are too many for one transaction, with the users whom they are assigned to and those whom the process \
                 picks; the first {most} fit, so start at most these together"
            );
            return Err(invalid("asset_ids", &detail).into());
        }
        let id: MovementId = caller.store.new_id(caller.context.at)?;
        let starter = Starter::from(&caller.context.actor);
        let (mut instances, mut errors) = (Vec::new(), Vec::new());
        for asset in assets {
            let instance_id = caller.store.new_id(caller.context.at)?;
            match Instance::start(instance_id, &process.value, &asset.value, &starter) {
                Ok((instance, next)) => {
                    instances.push(unit.create(Instance { movement_id: Some(id), ..instance })?);
                    unit.update(asset, next)?;
                }
                Err(error) => errors.push((asset.value.id, error)),
            }
        }
        if !errors.is_empty() {
            return Err(start_error(errors).into());
        }
        let instance_ids: Vec<InstanceId> = instances.iter().map(|instance| instance.value.id).collect();
        let movement = Movement {
            id,
            number: self.number.clone(),
            process_id: process.value.id,
            process_name: process.value.name.clone(),
            instance_ids,
            started_by: starter.key_id,
            started_by_name: starter.name,
        };
        Ok((unit.create(movement)?, instances))
    }

    fn stored_response(&self, (movement, instances): &ChangedMovement) -> Result<StoredResponse, StoreError> {
        views::stored_movement(movement, instances, created)
    }

    fn judge(&self, error: WriteError, _: &ChangedMovement) -> AttemptError<ApiError> {
        match error {
            WriteError::TooLarge => {
                let detail =
                    "are too large for one transaction, with their notes and custom fields; start fewer of them together";
                invalid("asset_ids", detail).into()
            }
            error => error.into(),
        }
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
