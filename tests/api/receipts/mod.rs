//! Receipts and their keys.

pub mod keys;
pub mod movements;
pub mod page;
pub mod signed;
