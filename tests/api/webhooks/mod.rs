//! Webhooks and their deliveries.

pub mod attempts;
pub mod capacity;
mod deliveries;
pub mod deliveries_races;
pub mod failing;
pub mod fanout;
pub mod policies;
pub mod resources;
mod waits;
