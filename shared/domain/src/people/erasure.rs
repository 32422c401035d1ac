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
        if self.is_done { Self { began_at: at, position: None, is_done: false, ..self } } else { self }
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
