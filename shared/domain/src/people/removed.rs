//! How much an erasure removes.

use serde::Serialize;
use std::ops::AddAssign;

/// What a request has removed; with `dry_run`, what it would remove.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Removed {
    /// Resources that said something about the person.
    pub resources: usize,
    /// Entries of histories.
    pub entries: usize,
    /// Images of signatures.
    pub signatures: usize,
    /// Responses that were stored for repeated requests.
    pub responses: usize,
}

impl AddAssign for Removed {
    fn add_assign(&mut self, other: Self) {
        let Self { resources, entries, signatures, responses } = other;
        self.resources += resources;
        self.entries += entries;
        self.signatures += signatures;
        self.responses += responses;
    }
}
