//! What stands around a function in Lambda: a Runtime API, its process, a table behind TLS. For tests and benchmarks.

pub mod emulator;
pub mod events;
pub mod front;
pub mod process;
pub mod runtime_api;
pub mod world;
