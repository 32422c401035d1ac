//! People's data: committed to, reported, erased.

pub mod erase;
pub mod every_operation;
pub mod faults;
pub mod holders;
pub mod report;
