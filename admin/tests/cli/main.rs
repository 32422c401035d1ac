//! The command line as an operator runs it, against an embedded engine.
#![expect(clippy::unwrap_used, reason = "tests, and helpers that only tests call")]

mod environment;
mod events;
mod operator;
mod receipts;
mod tenants;
mod verify;
