//! Webhooks and their deliveries.

pub mod attempts;
mod deliveries;
pub mod deliveries_races;
pub mod failing;
pub mod fanout;
pub mod policies;
pub mod resources;
mod waits;
