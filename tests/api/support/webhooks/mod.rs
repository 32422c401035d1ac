//! The functions that deliver events to webhooks, and their surroundings.

pub mod deliveries;
pub mod key_encryption;
pub mod pipeline;
pub mod receivers;
pub mod stream;
