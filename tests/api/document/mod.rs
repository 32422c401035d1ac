//! The OpenAPI document and the page that shows it.

pub mod examples;
pub mod file;
pub mod page;
