//! Items and transactions, for every kind of record.

pub(in crate::store) mod read;
pub(in crate::store) mod unit_of_work;
