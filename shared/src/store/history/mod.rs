//! The histories of records, and the feed of events.

pub(in crate::store) mod feed;
pub(in crate::store) mod of_record;
