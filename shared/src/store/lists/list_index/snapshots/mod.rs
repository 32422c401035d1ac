//! Snapshots of list indexes, outside of the table (docs/adr/0013-snapshots.md).

pub(super) mod blocks;
mod catch_up;
pub(super) mod format;
mod load;
#[cfg(test)]
mod properties;
pub(super) mod rows;
pub(super) mod writer;
