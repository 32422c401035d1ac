//! The dev server and the parts of it that tests use: the embedded engine, the table of template.yaml, a meter of
//! DynamoDB costs, the table's stream, a queue, invariants and demo data. Never deployed; no function depends on it.

pub mod address;
pub mod api;
mod data_folder;
mod demo;
pub mod document;
pub mod engine;
pub mod fake_sqs;
pub mod faulty_table;
mod greeting;
pub mod in_process;
pub mod invariants;
pub mod log;
pub mod meter;
pub mod options;
pub mod queue;
pub mod server;
pub mod simulation;
pub mod table;
pub mod test_data;
pub mod webhooks;

pub use data_folder::SnapshotFolder;
