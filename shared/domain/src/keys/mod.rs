//! API keys: their rights, limits and text form.

pub mod api_key;
pub mod grant;
pub mod lease;
