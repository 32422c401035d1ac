//! The catalog.

pub mod large;
pub mod resources;
