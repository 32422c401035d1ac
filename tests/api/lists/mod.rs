//! Lists, their index and its snapshots.

use crate::support::Api;

pub mod filters;
pub mod index;
pub mod index_model;
pub mod index_races;
pub mod pages;
pub mod snapshots;

/// Returns the number of reads of the index `list_index` since the last call.
fn index_reads(api: &Api) -> usize {
    let seen = api.faults.take_requests();
    seen.iter().filter(|(_, request)| request["IndexName"] == "list_index").count()
}
