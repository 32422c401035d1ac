//! Access to AWS besides the table: the parts that every function links.
//!
//! KMS and SQS are separate crates, in `key_encryption` and `queue` beside this one: only some functions link their SDKs.

pub mod environment;
pub mod object_store;
pub mod s3;
