//! Snapshots of list indexes, outside of the table (docs/adr/0013-snapshots.md).

pub(super) mod format;
mod load;
#[cfg(test)]
mod properties;
