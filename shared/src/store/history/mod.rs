//! The histories of records, and the feed of events.

pub(in crate::store) mod as_of;
pub(in crate::store) mod feed;
pub(in crate::store) mod history_head;
pub(in crate::store) mod of_record;
pub(in crate::store) mod record_names;
pub(in crate::store) mod verify_history;
