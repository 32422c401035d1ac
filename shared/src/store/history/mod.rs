//! Histories of records, and the change feed.

pub(in crate::store) mod feed;
pub(in crate::store) mod of_record;
