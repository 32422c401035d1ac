//! Snapshots of list indexes, outside of the table (docs/adr/0013-snapshots.md).

mod catch_up;
mod follow;
pub(super) mod format;
mod load;
pub(super) mod pace;
#[cfg(test)]
mod properties;
