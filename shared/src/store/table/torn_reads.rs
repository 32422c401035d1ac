//! Reads that saw a part of a transaction, and their repetition.
//!
//! Query and BatchGetItem see the items of a transaction one by one (AWS: "read-committed isolation"). The events may
//! already contain a change that the record does not have yet, or the other way round. Both have it shortly after.

use super::delays::MAX_TIME_TO_COMMIT;
use crate::store::Store;
use crate::store::table::backoff::pause;
use tokio::time::Instant;
use uuid::Uuid;

/// The time limit for repeating reads that contradict each other.
#[derive(Debug, Default)]
pub struct TornReadRetry {
    began_at: Option<Instant>,
    round: u32,
}

impl TornReadRetry {
    /// Waits a random time before the next read. Returns `false`, at once, when the contradiction has lasted longer than
    /// a transaction can explain.
    pub async fn pause(&mut self, store: &Store) -> bool {
        let began_at = *self.began_at.get_or_insert_with(Instant::now);
        if began_at.elapsed() >= MAX_TIME_TO_COMMIT {
            return false;
        }
        pause(store, self.round).await;
        self.round += 1;
        true
    }
}

/// A record whose version in the list index is not that in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contradiction {
    pub id: Uuid,
    pub indexed: u64,
    /// `None` if the table does not have the record.
    pub found: Option<u64>,
}

impl Contradiction {
    /// It is one of the earlier contradictions, and not another change of the same record.
    pub fn persists(&self, earlier: &[Self]) -> bool {
        let is_behind = |earlier: &Self| Some(self.indexed) < earlier.found || self.found < Some(earlier.indexed);
        earlier.iter().any(|earlier| earlier.id == self.id && is_behind(earlier))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contradiction(indexed: u64, found: Option<u64>) -> Contradiction {
        Contradiction { id: Uuid::nil(), indexed, found }
    }

    #[test]
    fn a_contradiction_persists_until_each_side_has_what_the_other_had() {
        for (earlier, later, persists) in [
            // The table is ahead of the index.
            ((1, Some(2)), (1, Some(2)), true),
            ((1, Some(2)), (1, Some(3)), true),
            ((1, Some(2)), (2, Some(3)), false),
            // The index is ahead of the table.
            ((3, Some(2)), (3, Some(2)), true),
            ((3, Some(2)), (4, Some(3)), false),
            // The table does not have the record, yet or any more.
            ((1, None), (1, None), true),
            ((1, None), (2, Some(1)), false),
        ] {
            let (earlier, later) = (contradiction(earlier.0, earlier.1), contradiction(later.0, later.1));
            assert_eq!(later.persists(&[earlier]), persists, "{earlier:?} {later:?}");
        }
        let other = Contradiction { id: Uuid::max(), ..contradiction(1, None) };
        assert!(!contradiction(1, None).persists(&[other]));
    }
}
