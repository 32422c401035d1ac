//! The query of process instances.

use crate::subject::wire::Omit;
use shared::domain::processes::instance::InstanceStatus;
use shared::domain::values::id::{AssetId, ProcessId};
use shared::http::requests::params::{Limit, PageNumber};
use shared::store::InstanceFilter;

shared::query! {
    /// Process instances to list.
    pub struct InstanceQuery {
        /// Page number. Default 1.
        page: PageNumber as PageNumber,
        /// Items per page. Default 20, maximum 100.
        limit: Limit as Limit,
        /// `in_progress`, `completed` or `cancelled`. Default: in progress and completed.
        status: InstanceStatus as InstanceStatus,
        /// Filter by asset.
        asset_id: AssetId as AssetId,
        /// Filter by process definition.
        process_id: ProcessId as ProcessId,
        /// `signatures` returns their paths instead of their images.
        omit: Omit as Omit,
    }
}

impl From<&InstanceQuery> for InstanceFilter {
    fn from(query: &InstanceQuery) -> Self {
        Self { status: query.status, asset_id: query.asset_id, process_id: query.process_id }
    }
}
