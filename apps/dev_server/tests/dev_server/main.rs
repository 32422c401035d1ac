//! The dev server: its start, its data folder, and the limits of connections.
#![expect(clippy::unwrap_used, reason = "tests, and helpers that only tests call")]

mod engine;
mod serving;
mod start;
