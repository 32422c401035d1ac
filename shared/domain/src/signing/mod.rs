//! Signing links and drawn signatures.

pub mod link;
pub mod signature_image;
