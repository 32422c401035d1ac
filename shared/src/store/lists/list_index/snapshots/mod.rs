//! Snapshots of list indexes, outside of the table (docs/adr/0013-snapshots.md).

pub(super) mod format;
pub(in crate::store) mod load;
#[cfg(test)]
mod properties;
