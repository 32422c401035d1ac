//! Personal data: commitments, reports, erasure.

pub mod erase;
pub mod every_operation;
pub mod faults;
pub mod guests;
pub mod holders;
pub mod report;
