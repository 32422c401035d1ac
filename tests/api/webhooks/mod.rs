//! Webhooks and their deliveries.

mod apart;
pub mod attempts;
pub mod capacity;
mod deliveries;
pub mod deliveries_again;
pub mod deliveries_failed;
pub mod deliveries_faulty_table;
pub mod deliveries_races;
pub mod deliveries_replay_races;
pub mod deliveries_stored;
pub mod failing;
pub mod fanout;
pub mod messages;
pub mod policies;
mod replays;
pub mod resources;
pub mod secrets;
mod waits;
