//! The dev server, and what the tests share with it: the embedded engine, the table that template.yaml declares,
//! a meter of costs and the demo data. Never deployed; no function depends on it.

pub mod api;
pub mod demo;
pub mod engine;
mod headers;
pub mod invariants;
pub mod meter;
pub mod server;
pub mod table;
