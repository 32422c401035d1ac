//! The arguments of a handler: path and query parameters, headers and bodies, read strictly.

mod asset_details;
pub mod body;
pub mod extract;
mod from_json;
pub mod no_body;
pub mod params;
pub mod path;
mod read_only;
pub(crate) mod receive;
pub mod unread;
pub mod utf8;
