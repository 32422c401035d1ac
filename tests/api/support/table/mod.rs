//! The table behind the service: what it holds, and changes that the service doesn't make.

pub mod dump;
pub mod history;
mod indexes;
pub mod snapshot;
