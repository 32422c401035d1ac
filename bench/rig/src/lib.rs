//! The environment that Lambda gives a function, for tests and benchmarks: the Runtime API, the function's process, and
//! a table behind TLS.

pub mod environment;
pub mod events;
pub mod function;
