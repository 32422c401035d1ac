//! The arguments of a handler: path and query parameters, headers and bodies, parsed strictly.

pub mod body;
pub mod params;
