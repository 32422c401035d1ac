//! The template, its policies, and the log.

pub mod log;
pub mod policies;
pub mod template;
