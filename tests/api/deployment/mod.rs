//! The template and its policies.

pub mod policies;
pub mod template;
