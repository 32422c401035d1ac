//! The dev server: how it starts, what it does to its data folder, and what each connection may take.
#![expect(clippy::unwrap_used, reason = "tests, and helpers that only tests call")]

mod data_folder;
mod server;
mod serving;
mod start;
