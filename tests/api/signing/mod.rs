//! Signing links.

pub mod costs;
pub mod credentials;
pub mod ends;
pub mod faults;
pub mod faulty_table;
pub mod limits;
pub mod links;
pub mod races;
pub mod receipts;
pub mod session;
pub mod signatures;
pub mod submitted;
pub mod texts;
pub mod typed_signatures;
pub mod values;
