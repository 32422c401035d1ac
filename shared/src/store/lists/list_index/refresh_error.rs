//! Why a list index can't be loaded or brought up to date.

use super::change_event::Inconsistent;
use crate::store::table::error::StoreError;

pub(super) enum RefreshError {
    Store(StoreError),
    /// The index would exceed the memory budget.
    TooLarge,
    /// The index contradicts the table or the change feed.
    Inconsistent,
    /// There are too many events since the last refresh.
    TooManyEvents,
}

impl From<Inconsistent> for RefreshError {
    fn from(_: Inconsistent) -> Self {
        Self::Inconsistent
    }
}

impl From<StoreError> for RefreshError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
