//! Receipts, and the keys that sign them.

pub mod key;
pub mod receipt;
