//! The domain: values, rules and decisions of the service. It depends on neither HTTP, nor AWS, nor the clock.

pub mod api_key;
pub mod asset;
pub mod asset_change;
pub mod asset_tag;
pub mod base62;
pub mod catalog;
pub mod chain;
pub mod custom_fields;
pub mod event;
pub mod field_error;
pub mod hex;
pub mod id;
pub mod instance;
pub mod json;
pub mod money;
pub mod movement;
pub mod process;
pub mod rate;
pub mod receipt;
pub mod receipt_key;
pub mod record;
pub mod request;
pub mod restore;
#[cfg(test)]
pub(crate) mod samples;
pub mod scope;
pub mod signature_image;
pub mod signed_receipt;
pub(crate) mod string_enum;
pub mod tenant;
pub mod text;
pub mod time;
pub mod token;
pub mod user;
pub mod verified_keys;
