//! The whole API as its users see it: the real router, the real SDK, an engine that speaks DynamoDB.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests, and helpers that only tests call")]

mod assets;
mod catalog;
mod conventions;
mod costs;
mod coverage;
mod deadline;
mod directory;
mod directory_races;
mod events;
mod faults;
mod faulty;
mod functions;
mod gateway;
mod headers;
mod idempotency;
mod keys;
mod limits;
mod lists;
mod log;
mod matrix;
mod model;
mod movements;
mod policies;
mod preconditions;
mod process_races;
mod processes;
mod races;
mod samples;
mod secrets;
mod settings;
mod support;
mod template;
mod users;
