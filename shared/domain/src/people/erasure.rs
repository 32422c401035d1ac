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
    /// The beginning of the present pass over the tenant's events. It looks at those before.
    pub began_at: Timestamp,
    /// Everything up to this event is done; `None` at the beginning.
    pub position: Option<EventId>,
    /// Of the part after that, the records and the stored responses up to this key are done.
    pub responses_until: Option<String>,
    /// The present pass has removed something, or was interrupted where it may have.
    pub has_removed: bool,
    /// A part has begun and not ended. What it has removed is not in `has_removed` yet.
    pub is_in_part: bool,
    /// The end of the last whole pass.
    pub done_at: Option<Timestamp>,
    pub is_done: bool,
}

impl Erasure {
    #[must_use]
    pub fn begun(user_id: UserId, at: Timestamp) -> Self {
        Self {
            user_id,
            erased_at: at,
            began_at: at,
            position: None,
            responses_until: None,
            has_removed: false,
            is_in_part: false,
            done_at: None,
            is_done: false,
        }
    }

    /// At a further request: a pass that has ended begins again, since a restored table can have old values.
    #[must_use]
    pub fn resumed(self, at: Timestamp) -> Self {
        if self.is_done { self.restarted(at) } else { self }
    }

    /// From the beginning: after a restore, the table may lack what the present pass has done.
    #[must_use]
    pub fn restarted(self, at: Timestamp) -> Self {
        Self {
            began_at: at,
            position: None,
            responses_until: None,
            has_removed: false,
            is_in_part: false,
            is_done: false,
            ..self
        }
    }

    /// To be stored before a part removes anything. If the part before was interrupted, its repetition would find nothing to
    /// remove, and no other pass would follow.
    #[must_use]
    pub fn part_begun(self) -> Self {
        Self { has_removed: self.has_removed || self.is_in_part, is_in_part: true, ..self }
    }

    /// It ended at `since` or later, or has not ended. A table that is restored to that moment lacks it, or parts of it.
    #[must_use]
    pub fn is_since(&self, since: Timestamp) -> bool {
        !self.is_done || self.done_at.is_none_or(|done_at| done_at >= since)
    }

    /// After a part of `of`. A request that came later may have gone on meanwhile, or begun again.
    ///
    /// A pass that has removed something is followed by another one, over what came meanwhile: somebody may have signed through a
    /// link before the pass met it.
    #[must_use]
    pub fn advanced(self, of: &Self, part: PartEnd) -> Self {
        if self.began_at != of.began_at || self.is_done {
            return self;
        }
        let has_removed = self.has_removed || part.has_removed;
        if self.position != of.position {
            return Self { has_removed, ..self };
        }
        let (position, responses_until) = (part.position, part.responses_until);
        let ended = Self { is_in_part: false, ..self };
        match (&responses_until, &position) {
            (Some(_), _) => Self { has_removed, responses_until, ..ended },
            (None, Some(_)) => Self { has_removed, position, responses_until, ..ended },
            (None, None) if has_removed => Self { position: Some(part.next_pass), ..ended.restarted(part.at) },
            (None, None) => Self { position, responses_until, done_at: Some(part.at), is_done: true, ..ended },
        }
    }
}

/// How a part ended.
#[derive(Debug, Clone)]
pub struct PartEnd {
    /// The last event of the part; `None` at the end of the pass.
    pub position: Option<EventId>,
    /// The last stored response that the part looked at, if there are more.
    pub responses_until: Option<String>,
    pub has_removed: bool,
    pub at: Timestamp,
    /// Where another pass would begin.
    pub next_pass: EventId,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{time, user};
    use crate::values::id::Id;

    fn end(at: i64, position: Option<EventId>, has_removed: bool) -> PartEnd {
        PartEnd { position, responses_until: None, has_removed, at: time(at), next_pass: event(9) }
    }

    fn event(number: i64) -> EventId {
        EventId::new(time(number), [0; 10])
    }

    #[test]
    fn a_table_restored_to_a_moment_lacks_what_was_not_done_before() {
        let begun = Erasure::begun(user(1), time(1));
        let done = begun.clone().advanced(&begun, end(5, None, false));
        assert!(begun.is_since(time(9)) && done.is_since(time(5)) && !done.is_since(time(6)));
        let again = done.resumed(time(7));
        assert!(again.is_since(time(9)) && again.done_at == Some(time(5)), "the second pass has not ended");
        assert_eq!(again.clone().restarted(time(8)), Erasure { began_at: time(8), ..again });
    }

    #[test]
    fn it_is_done_once_a_pass_has_removed_nothing() {
        let begun = Erasure::begun(user(1), time(1));
        let half = begun.clone().advanced(&begun, end(2, Some(event(1)), true));
        assert_eq!((half.position, half.has_removed), (Some(event(1)), true));
        let second = half.clone().advanced(&half, end(3, None, false));
        assert_eq!((second.is_done, second.began_at, second.position), (false, time(3), Some(event(9))));
        assert!(second.clone().advanced(&second, end(4, None, false)).is_done);
    }

    #[test]
    fn an_interrupted_part_is_followed_by_another_pass() {
        let begun = Erasure::begun(user(1), time(1)).part_begun();
        assert_eq!((begun.has_removed, begun.is_in_part), (false, true));
        let again = begun.part_begun();
        let second = again.clone().advanced(&again, end(3, None, false));
        assert_eq!((second.is_done, second.position), (false, Some(event(9))));
        let undisturbed = second.part_begun();
        assert!(undisturbed.clone().advanced(&undisturbed, end(4, None, false)).is_done);
    }

    #[test]
    fn a_part_ends_with_its_stored_responses() {
        let begun = Erasure::begun(user(1), time(1));
        let part = PartEnd { responses_until: Some("key".into()), ..end(2, Some(event(1)), false) };
        let half = begun.clone().advanced(&begun, part);
        assert_eq!((half.position, half.responses_until.as_deref()), (None, Some("key")));
        let whole = half.clone().advanced(&half, end(3, Some(event(1)), false));
        assert_eq!((whole.position, whole.responses_until), (Some(event(1)), None));
        assert_eq!(half.clone().advanced(&begun, end(3, Some(event(1)), false)).position, Some(event(1)));
    }
}
