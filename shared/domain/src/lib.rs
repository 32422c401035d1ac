//! Values, rules and decisions of the service, independent of HTTP, AWS and the clock.

pub mod assets;
pub mod catalog;
pub mod history;
pub mod import;
pub mod keys;
pub mod people;
pub mod processes;
pub mod receipts;
pub mod record;
#[cfg(test)]
pub(crate) mod samples;
pub mod signing;
pub mod tenants;
pub mod user;
pub mod values;
pub mod webhooks;
