//! What handlers do with a verified request: read and change records, import rows, send a message once.

mod changes;
mod idempotent_enqueue;
mod import;

pub use changes::{Assigned, unknown_reference};
pub use import::{RowInputs, Rows};
