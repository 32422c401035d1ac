//! Tenants and their settings.

pub mod deletion;
pub mod settings;
