//! Tests the whole API as its users see it: the real router, the real SDK, and a DynamoDB-compatible engine.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests, and helpers that only tests call")]

mod assets;
mod catalog;
mod deployment;
mod document;
mod history;
mod http;
mod keys;
mod lists;
mod people;
mod processes;
mod receipts;
mod signing;
mod support;
mod table;
mod tenants;
mod users;
mod webhooks;
