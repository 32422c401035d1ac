//! API keys: what they permit, and how they are written.

pub mod api_key;
pub mod grant;
pub mod rate;
pub mod scope;
pub mod token;
