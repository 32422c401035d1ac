//! Tenants and their settings.

pub mod tenant;
pub mod time_zone;
