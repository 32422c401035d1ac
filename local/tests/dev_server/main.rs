//! The dev server: how it starts, and what each connection may take.
#![expect(clippy::unwrap_used, reason = "tests, and helpers that only tests call")]

mod server;
mod serving;
mod start;
