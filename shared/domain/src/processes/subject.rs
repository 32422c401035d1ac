//! The subject of submissions, cancellations and signatures: a single process instance, or a movement with all its instances.

use crate::values::id::{Id, InstanceId, MovementId};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The ID of a movement, or of a process instance outside of movements. Serialized as `movement_id` or `instance_id`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SubjectId {
    #[serde(rename = "instance_id")]
    Instance(InstanceId),
    #[serde(rename = "movement_id")]
    Movement(MovementId),
}

impl SubjectId {
    #[must_use]
    pub fn uuid(self) -> Uuid {
        match self {
            Self::Instance(id) => id.uuid(),
            Self::Movement(id) => id.uuid(),
        }
    }

    /// `None` for a movement.
    #[must_use]
    pub fn instance(self) -> Option<InstanceId> {
        if let Self::Instance(id) = self { Some(id) } else { None }
    }

    /// `None` for a process instance.
    #[must_use]
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
