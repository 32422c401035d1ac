//! Webhooks and their deliveries.

pub(in crate::store) mod deliveries;
pub(in crate::store) mod registry;
