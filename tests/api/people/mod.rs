//! People's data: committed to, reported, erased.

pub mod copies;
pub mod erase;
pub mod faults;
pub mod properties;
pub mod races;
