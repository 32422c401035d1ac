//! The command line as an operator runs it, against an embedded engine.
#![expect(clippy::unwrap_used, reason = "tests, and helpers that only tests call")]

mod check;
mod clock;
mod deletion;
mod doctor;
mod environment;
mod erasures;
mod events;
mod keys;
mod on_terminal;
mod operator;
mod policy;
mod receipts;
mod tenants;
mod verify;

/// A well-formed id that no tenant has.
const UNKNOWN_ID: &str = "01890a5d-ac96-774b-bcce-b302099a8057";
