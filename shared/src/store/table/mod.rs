//! Items and transactions, for every kind of record.

pub(in crate::store) mod backoff;
pub(in crate::store) mod blob_cache;
mod blob_reads;
pub(in crate::store) mod change_context;
pub(in crate::store) mod condition;
pub(in crate::store) mod counters;
pub(in crate::store) mod deadline;
pub(in crate::store) mod deduplicated_blobs;
pub(in crate::store) mod delays;
pub(in crate::store) mod dry_run;
pub(in crate::store) mod error;
pub(in crate::store) mod item;
pub(in crate::store) mod read;
pub(in crate::store) mod reference_items;
pub(in crate::store) mod stored_responses;
pub(in crate::store) mod torn_reads;
pub(in crate::store) mod transaction;
pub(in crate::store) mod transaction_items;
pub(in crate::store) mod unit_of_work;
