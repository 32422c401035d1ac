//! Signing links.

pub mod link;
