//! Access to AWS other than the table, linked into every function.
//!
//! KMS and SQS have separate crates, `key_encryption` and `queue`, because only some functions link their SDKs.

pub mod environment;
pub mod object_store;
