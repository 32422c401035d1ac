//! Receipts and their keys.

pub mod page;
pub mod signed;
