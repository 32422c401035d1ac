//! How far the erasure of a person has come.

use crate::values::id::{EventId, UserId};
use crate::values::time::Timestamp;
use serde::{Deserialize, Serialize};

/// Names nobody. It is kept, so that erasures can be repeated after a restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Erasure {
    pub user_id: UserId,
    /// The first request.
    pub erased_at: Timestamp,
    /// The beginning of the present pass over the tenant's events.
    pub began_at: Timestamp,
    /// Everything up to this event is done; `None` at the beginning.
    pub position: Option<EventId>,
    /// The end of the last whole pass.
    pub done_at: Option<Timestamp>,
    pub is_done: bool,
}

impl Erasure {
    #[must_use]
    pub fn begun(user_id: UserId, at: Timestamp) -> Self {
        Self { user_id, erased_at: at, began_at: at, position: None, done_at: None, is_done: false }
    }

    /// At a further request: a pass that has ended begins again, since a restored table can have old values.
    #[must_use]
    pub fn resumed(self, at: Timestamp) -> Self {
        if self.is_done { self.restarted(at) } else { self }
    }

    /// From the beginning: after a restore, the table may lack what the present pass has done.
    #[must_use]
    pub fn restarted(self, at: Timestamp) -> Self {
        Self { began_at: at, position: None, is_done: false, ..self }
    }

    /// It ended at `since` or later, or has not ended. A table that is restored to that moment lacks it, or parts of it.
    #[must_use]
    pub fn is_since(&self, since: Timestamp) -> bool {
        !self.is_done || self.done_at.is_none_or(|done_at| done_at >= since)
    }

    /// After a part that ended with `position`. A request that came later may have gone on meanwhile, or begun again.
    #[must_use]
    pub fn advanced(self, of: &Self, position: Option<EventId>, end: Option<Timestamp>) -> Self {
        if self.began_at != of.began_at || self.is_done {
            return self;
        }
        let position = self.position.max(position);
        Self { position, done_at: end.or(self.done_at), is_done: end.is_some(), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{time, user};

    #[test]
    fn a_table_restored_to_a_moment_lacks_what_was_not_done_before() {
        let begun = Erasure::begun(user(1), time(1));
        let done = begun.clone().advanced(&begun, None, Some(time(5)));
        assert!(begun.is_since(time(9)) && done.is_since(time(5)) && !done.is_since(time(6)));
        let again = done.resumed(time(7));
        assert!(again.is_since(time(9)) && again.done_at == Some(time(5)), "the second pass has not ended");
        assert_eq!(again.clone().restarted(time(8)), Erasure { began_at: time(8), ..again });
    }
}
