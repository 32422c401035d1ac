//! Signing links.

pub mod credentials;
pub mod ends;
pub mod faults;
pub mod links;
pub mod receipts;
pub mod session;
pub mod signatures;
