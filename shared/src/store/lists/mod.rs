//! Lists: their index, pages and filters, exports and statistics.

pub(in crate::store) mod export;
pub(in crate::store) mod filters;
mod hints;
pub(in crate::store) mod indexed_lists;
pub(in crate::store) mod list_index;
mod named_users;
pub(in crate::store) mod small_lists;
pub(in crate::store) mod stats;
