//! Receipts, their keys and their signatures.

pub mod key;
pub mod receipt;
