//! Signing links, drawn signatures, and the keys of receipts.

pub(in crate::store) mod links;
pub(in crate::store) mod receipt_keys;
pub(in crate::store) mod signature_images;
