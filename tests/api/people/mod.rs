//! People's data: committed to, reported, erased.

pub mod erase;
