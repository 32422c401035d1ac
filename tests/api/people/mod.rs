//! People's data: committed to, reported, erased.

pub mod check;
pub mod copies;
pub mod erase;
pub mod every_operation;
pub mod faults;
pub mod holders;
pub mod properties;
pub mod races;
pub mod receipts;
pub mod report;
pub mod size;
