//! The common rules of all endpoints: conventions, headers, errors, repeated requests and dry runs.

pub mod boundaries;
pub mod conventions;
pub mod coverage;
pub mod deadline;
pub mod dry_run;
pub mod dry_run_races;
pub mod dry_run_refusals;
pub mod error_texts;
pub mod gateway;
pub mod growth;
pub mod headers;
pub mod hidden_text;
pub mod idempotency;
pub mod known_attacks;
pub mod patch_coverage;
pub mod preconditions;
pub mod sent_back;
