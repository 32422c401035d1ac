//! The common rules of all endpoints: conventions, headers, errors, idempotency and dry runs.

pub mod conventions;
pub mod coverage;
pub mod dry_run;
pub mod error_texts;
pub mod gateway;
pub mod guards;
pub mod idempotency;
pub mod known_attacks;
