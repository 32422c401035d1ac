//! Requests to the service: sending, repetition, and the meaning of answers.

pub mod answer;
pub mod client;
pub mod pace;
pub mod patience;
pub mod request;
