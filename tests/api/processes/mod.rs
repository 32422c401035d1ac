//! Processes, instances and movements.

pub mod definitions;
pub mod instances;
pub mod movements;
pub mod steps;
pub mod through;
