//! Processes, their instances, and movements.

pub mod instance;
pub mod movement;
pub mod process;
pub mod stats;
