//! The process instance or the movement that a signing link opens.

use crate::movement_commands::MovementInputs;
use shared::domain::processes::instance::{Instance, InstanceStatus};
use shared::domain::processes::movement::{Movement, position};
use shared::domain::processes::process::Step;
use shared::domain::record::Stored;
use shared::domain::signing::link::LinkTarget;
use shared::http::error::ApiError;
use shared::http::response::found;
use shared::store::PointReads;

/// A process instance, or a movement with its instances.
pub(crate) struct LinkSubject {
    pub(crate) movement: Option<Stored<Movement>>,
    /// All instances of the movement, or the one.
    pub(crate) instances: Vec<Stored<Instance>>,
}

impl LinkSubject {
    /// Reads what a link opens, or is to open.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::NotFound`] if there is no such process instance or movement.
    pub(crate) async fn read(reads: &PointReads, target: LinkTarget) -> Result<Self, ApiError> {
        match target {
            LinkTarget::InstanceId(id) => Ok(Self { movement: None, instances: vec![found(reads.get::<Instance>(id).await?)?] }),
            LinkTarget::MovementId(id) => {
                let MovementInputs { movement, instances, .. } = MovementInputs::read(reads, id, None).await?;
                Ok(Self { movement: Some(movement), instances })
            }
        }
    }

    /// Returns the status and the current step.
    pub(crate) fn position(&self) -> (InstanceStatus, usize) {
        position(&self.instances)
    }
}

/// Returns the instance that stands for all: the first one in progress, or else the first. They have the same steps, and
/// those in progress the same values.
pub(crate) fn representative(instances: &[Stored<Instance>]) -> Result<&Stored<Instance>, ApiError> {
    let open = instances.iter().find(|it| it.value.status() == InstanceStatus::InProgress);
    open.or(instances.first()).ok_or_else(|| ApiError::Internal("a movement without instances".into()))
}

/// Returns the steps of these instances.
pub(crate) fn steps(instances: &[Stored<Instance>]) -> &[Step] {
    instances.first().map(|it| it.value.steps.as_slice()).unwrap_or_default()
}
