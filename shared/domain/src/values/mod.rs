//! Basic values and texts, and their errors.

pub mod base62;
pub mod field_error;
pub mod hex;
pub mod id;
pub mod json;
pub mod money;
pub mod natural_order;
pub mod signature_image;
pub mod string_enum;
pub mod text;
pub mod time;
