//! Tenants and their settings.

pub mod locale;
pub mod tenant;
pub mod time_zone;
