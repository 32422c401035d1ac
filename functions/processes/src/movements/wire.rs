//! The query and the view of movements.

use crate::instances::wire::InstanceView;
use serde::Serialize;
use shared::domain::processes::instance::InstanceStatus;
use shared::domain::processes::movement::{Movement, overall_status};
use shared::domain::record::Stored;
use shared::domain::values::id::{ApiKeyId, MovementId, ProcessId};
use shared::domain::values::text::Name;
use shared::domain::values::time::Timestamp;
use shared::http::requests::params::{Limit, PageNumber};
use utoipa::ToSchema;

shared::query! {
    /// Page of movements.
    pub struct MovementQuery {
        /// Page number. Default 1.
        page: PageNumber as PageNumber,
        /// Items per page. Default 20, maximum 100.
        limit: Limit as Limit,
    }
}

/// A movement: one process on several assets at once.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Movement)]
pub struct MovementView {
    /// ID.
    pub(crate) id: MovementId,
    /// Movement number.
    #[schema(examples("MOV-000001"))]
    number: String,
    /// Process definition.
    process_id: ProcessId,
    /// Name of the process at the start.
    process_name: Name,
    /// `in_progress` while any instance is, else `completed` if any instance is, else `cancelled`.
    status: InstanceStatus,
    /// Index of the open step, from zero. After completion, index of the last step.
    current_step: usize,
    /// One instance for each asset.
    instances: Vec<InstanceView>,
    /// API key that started it.
    #[schema(required)]
    started_by: Option<ApiKeyId>,
    /// Name of the user whom the key is bound to, else of the key.
    started_by_name: String,
    /// Time of the start.
    started_at: Timestamp,
}

impl MovementView {
    pub(crate) fn new(stored: Stored<Movement>, instances: Vec<InstanceView>) -> Self {
        let Movement { id, number, process_id, process_name, started_by, started_by_name, .. } = stored.value;
        let (status, current_step) = overall_status(instances.iter().map(|instance| (instance.status, instance.current_step)));
        let started_at = stored.created_at;
        Self { id, number, process_id, process_name, status, current_step, instances, started_by, started_by_name, started_at }
    }
}
