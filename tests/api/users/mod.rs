//! Users.

pub mod me;
pub mod offboard;
pub mod single;
