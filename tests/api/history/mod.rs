//! The history of records, and the feed of events.

pub mod as_of;
pub mod entries;
pub mod events;
pub mod feed;
pub mod feed_filters;
pub mod lag;
pub mod torn_reads;
pub mod verification;
