//! Requests to the service: how they are sent and repeated, and what the answers mean.

pub mod answer;
pub mod client;
pub mod pace;
pub mod patience;
pub mod request;
