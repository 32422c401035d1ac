//! Slots: each record of a limited kind takes a unique number below the limit, so there can't be more records.

use crate::values::id::Id;

/// Chooses a free slot by the random end of the ID, so concurrent creations rarely compete for the same one. `None` if all slots
/// are taken.
#[must_use]
pub fn choose(free: &[u8], id: impl Id) -> Option<u8> {
    let random = id.uuid().as_bytes().last().copied().unwrap_or_default();
    free.get(usize::from(random) % free.len().max(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::choose;
    use crate::values::id::{Id, LinkId};
    use crate::values::time::Timestamp;
    use std::collections::BTreeSet;

    #[test]
    fn every_free_slot_is_chosen_and_no_other() {
        let slots = |free: &[u8]| {
            let ids = (0..=u8::MAX).map(|random| LinkId::new(Timestamp::from_millis(0), [random; 10]));
            ids.map(|id| choose(free, id)).collect::<BTreeSet<_>>()
        };
        assert_eq!(slots(&[]), BTreeSet::from([None]));
        assert_eq!(slots(&[3, 99]), BTreeSet::from([Some(3), Some(99)]));
        assert_eq!(slots(&(0..100).collect::<Vec<_>>()).len(), 100);
    }
}
