//! The dev server and the parts of it that tests use: the embedded engine, the table of template.yaml, a meter of
//! DynamoDB costs, the table's stream, a queue, invariants and demo data. Never deployed; no function depends on it.

pub mod api;
pub mod cpu_time;
mod data_folder;
mod demo;
pub mod document;
pub mod engine;
pub mod faulty_table;
mod greeting;
pub mod in_process;
pub mod invariants;
mod listen;
pub mod log;
pub mod meter;
pub mod options;
pub mod queue;
pub mod sample;
pub mod server;
pub mod serving;
pub mod simulation;
pub mod stream;
pub mod table;
mod table_calls;
pub mod test_data;
mod token_bucket;
pub mod webhooks;

pub use data_folder::SnapshotFolder;
