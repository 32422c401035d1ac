//! Assets: their assignments and serial numbers.

pub(in crate::store) mod assignments;
pub(in crate::store) mod serial_numbers;
