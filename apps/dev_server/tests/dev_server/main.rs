//! Tests of the dev server: start, data folder, and webhooks with receivers on this machine.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests, and helpers that only tests call")]

mod deliveries;
mod engine;
mod server;
mod start;
