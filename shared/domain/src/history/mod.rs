//! The history of records.

pub mod chain;
pub mod event;
pub mod filter;
pub mod past;
