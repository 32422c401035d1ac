//! Items and transactions, for every kind of record.

pub(in crate::store) mod blobs;
pub(in crate::store) mod dry_run;
pub(in crate::store) mod read;
pub(in crate::store) mod stored_responses;
pub(in crate::store) mod unit_of_work;
