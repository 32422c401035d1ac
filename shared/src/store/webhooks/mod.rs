//! Webhooks and their deliveries.

pub(in crate::store) mod deliveries;
pub(in crate::store) mod delivery_list;
pub(in crate::store) mod health;
pub(in crate::store) mod pending;
pub(in crate::store) mod registry;
pub(in crate::store) mod replays;
