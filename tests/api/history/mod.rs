//! The history of records, and the feed of events.

pub mod as_of;
pub mod entries;
pub mod feed;
pub mod lag;
