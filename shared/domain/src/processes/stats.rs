//! Statistics of a tenant's process instances.

use crate::assets::stats::Counts;
use crate::processes::instance::InstanceStatus;
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Statistics of all process instances.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct InstanceStats {
    /// Number of process instances by status. Every status is present.
    #[schema(value_type = Counts)]
    pub by_status: BTreeMap<InstanceStatus, u64>,
    /// Number of process instances by process name. Instances of a deleted process are counted under its ID. Absent without the
    /// scope `processes:read`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Counts, required = false)]
    pub by_process: Option<BTreeMap<String, u64>>,
}

impl Default for InstanceStats {
    fn default() -> Self {
        Self { by_status: InstanceStatus::ALL.iter().map(|status| (*status, 0)).collect(), by_process: Some(BTreeMap::new()) }
    }
}

impl InstanceStats {
    pub fn add(&mut self, status: InstanceStatus, process: &str, instances: u64) {
        *self.by_status.entry(status).or_default() += instances;
        *self.by_process.get_or_insert_default().entry(process.to_owned()).or_default() += instances;
    }
}
