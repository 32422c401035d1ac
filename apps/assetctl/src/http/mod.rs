//! Requests to the service: sending, repetition, and the meaning of answers.

pub mod client;
pub mod request;
