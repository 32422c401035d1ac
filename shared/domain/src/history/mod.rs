//! What has happened to records.

pub mod chain;
pub mod event;
pub mod filter;
pub mod restore;
