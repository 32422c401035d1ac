//! Requests to the service: sending, repetition, and the meaning of answers.

pub mod answer;
pub mod client;
pub mod request;
