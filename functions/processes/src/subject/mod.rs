//! The subject of starts, submissions, cancellations and signatures: a process instance on its own, or a movement with all its
//! instances.

pub(crate) mod advance;
pub(crate) mod start;
pub(crate) mod wire;

use serde_json::json;
use shared::domain::assets::asset::Asset;
use shared::domain::processes::instance::{Instance, InstanceStatus, ProcessError};
use shared::domain::processes::movement::{Movement, position};
use shared::domain::processes::process::Step;
use shared::domain::processes::subject::SubjectId;
use shared::domain::record::Stored;
use shared::domain::values::id::{AssetId, MovementId};
use shared::http::error::{ApiError, ConflictCode};
use shared::http::responses::or_not_found;
use shared::store::{BatchGet, BatchResult, CommitFailure, TenantStore, WriteError};
use std::collections::HashMap;

/// A process instance on its own, or a movement with its instances.
#[derive(Clone)]
pub(crate) struct Subject {
    pub(crate) movement: Option<Stored<Movement>>,
    /// All instances of the movement, or the single one.
    pub(crate) instances: Vec<Stored<Instance>>,
}

impl From<Stored<Instance>> for Subject {
    fn from(instance: Stored<Instance>) -> Self {
        Self { movement: None, instances: vec![instance] }
    }
}

impl Subject {
    /// # Errors
    ///
    /// Returns [`ApiError::NotFound`] if there is no such process instance or movement.
    pub(crate) async fn read(reads: &TenantStore, id: SubjectId) -> Result<Self, ApiError> {
        Ok(Self::read_with(reads, id, BatchGet::new()).await?.0)
    }

    /// [`Subject::read`] with other records in the batch of its instances.
    pub(crate) async fn read_with(reads: &TenantStore, id: SubjectId, others: BatchGet) -> Result<(Self, BatchResult), ApiError> {
        let movement = match id {
            SubjectId::Instance(_) => None,
            SubjectId::Movement(id) => Some(or_not_found(reads.get::<Movement>(id).await?)?),
        };
        let ids = movement.iter().flat_map(|movement| &movement.value.instance_ids).copied().chain(id.instance());
        let batch = reads.batch_get(others.with_all::<Instance>(ids.clone())).await?;
        let instances = batch.get_all::<Instance>(ids)?;
        if movement.is_none() && instances.is_empty() {
            return Err(ApiError::NotFound);
        }
        Ok((Self { movement, instances }, batch))
    }

    pub(crate) fn position(&self) -> (InstanceStatus, usize) {
        position(&self.instances)
    }

    /// The step that is open in all instances in progress. It must still be `first_read`, the step that was open at the first read.
    pub(crate) fn open_step(&self, first_read: Option<usize>) -> Result<usize, ProcessError> {
        Err(match (self.position(), first_read) {
            ((InstanceStatus::InProgress, step), None) => return Ok(step),
            ((InstanceStatus::InProgress, step), Some(first)) if step == first => return Ok(step),
            ((InstanceStatus::InProgress | InstanceStatus::Completed, step), Some(_)) => ProcessError::Moved(step),
            ((status, _), _) => ProcessError::Closed(status),
        })
    }

    pub(crate) fn open_instances(&self) -> impl Iterator<Item = &Stored<Instance>> {
        self.instances.iter().filter(|instance| instance.value.status() == InstanceStatus::InProgress)
    }

    /// The first instance in progress, or else the first. All have the same steps, and all in progress the same values.
    pub(crate) fn representative(&self) -> Result<&Stored<Instance>, ApiError> {
        let instance = self.open_instances().next().or(self.instances.first());
        instance.ok_or_else(|| ApiError::Internal("a movement without instances".into()))
    }

    pub(crate) fn steps(&self) -> &[Step] {
        self.instances.first().map(|it| it.value.steps.as_slice()).unwrap_or_default()
    }

    /// The movement, if the request names one of its instances.
    pub(crate) fn part_of(&self) -> Option<MovementId> {
        let instance = self.instances.first().filter(|_| self.movement.is_none());
        instance.and_then(|instance| instance.value.movement_id)
    }
}

/// The assets of the instances that are in progress.
pub(crate) struct OpenAssets(HashMap<AssetId, Stored<Asset>>);

impl OpenAssets {
    pub(crate) async fn read(reads: &TenantStore, subject: &Subject) -> Result<Self, ApiError> {
        let ids: Vec<AssetId> = subject.open_instances().map(|instance| instance.value.asset_id).collect();
        let batch = reads.batch_get(BatchGet::new().with_all::<Asset>(ids.iter().copied())).await?;
        Ok(Self(batch.get_all::<Asset>(ids)?.into_iter().map(|asset| (asset.value.id, asset)).collect()))
    }

    /// The asset of an instance in progress. It can't be deleted: without it, the instance has just ended.
    pub(crate) fn of(&self, instance: &Instance) -> Result<&Stored<Asset>, CommitFailure<ApiError>> {
        self.0.get(&instance.asset_id).ok_or(CommitFailure::Outdated(WriteError::Stale))
    }
}

pub(crate) fn process_error(error: ProcessError) -> ApiError {
    let (code, detail) = (ConflictCode::from(&error), error.to_string());
    let context = match error {
        ProcessError::Invalid(errors) => return ApiError::Invalid(errors),
        ProcessError::Inactive => json!({}),
        ProcessError::Running(asset, instance) => json!({"instance_id": instance, "asset_id": asset}),
        ProcessError::WrongStatus { asset, actual, required } => {
            json!({"asset_id": asset, "status_of_asset": actual, "trigger_status": required})
        }
        ProcessError::Closed(status) => json!({"instance_status": status}),
        ProcessError::Moved(step) => json!({"current_step": step}),
        ProcessError::Submitted(key) => json!({"step": key}),
    };
    ApiError::conflict(code, detail, context)
}

/// For a request about an instance that is only possible for its movement. `advice` is the alternative.
pub(crate) fn part_of_movement(movement: MovementId, advice: &str) -> ApiError {
    let detail = format!("The instance is part of a movement. {advice}");
    ApiError::conflict(ConflictCode::Conflict, detail, json!({"movement_id": movement}))
}
