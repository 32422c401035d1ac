//! Runs the real binary against a service that misbehaves as it is told, and against the real one.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests, and helpers that only tests call")]

mod export;
mod field_files;
mod handover;
mod handover_wait;
mod hostile_answers;
mod hostile_texts;
mod import;
mod labels;
mod list;
mod mcp;
mod offboard;
mod overlapping_lists;
mod real_answers;
mod real_service;
mod resume;
mod show_and_who;
mod stocktake;
mod summaries;
mod support;
mod taking_back;
mod webhooks_listen;
