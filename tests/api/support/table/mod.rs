//! The table behind the service: its items, and changes that the service doesn't make.

pub mod dump;
pub mod history;
pub mod snapshot;
