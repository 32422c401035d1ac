//! What the service is about: values, rules and decisions. Knows no HTTP, no AWS and no clock.

pub mod api_key;
pub mod asset;
pub mod asset_change;
pub mod asset_tag;
pub mod base62;
pub mod catalog;
pub mod chain;
pub mod custom_fields;
pub mod event;
pub mod id;
pub mod instance;
pub mod json;
pub mod money;
pub mod movement;
pub mod png;
pub mod process;
pub mod record;
pub mod refusal;
pub mod scope;
pub mod tenant;
pub mod text;
pub mod time;
pub mod token;
pub mod user;
