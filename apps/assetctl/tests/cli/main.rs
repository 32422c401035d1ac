//! Runs the real binary against fake services and against the real one.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests, and helpers that only tests call")]

mod field_files;
mod handover;
mod hostile;
mod import;
mod labels;
mod list;
mod mcp;
mod offboard;
mod overlapping_lists;
mod real_service;
mod set;
mod show_and_who;
mod stocktake;
mod support;
mod users_and_types;
mod verify;
mod webhooks_listen;
