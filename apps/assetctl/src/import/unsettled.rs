//! The chunks that are read but not settled, and which of them may be sent.
//!
//! A chunk waits for every earlier one that shares a value by which rows are matched, or which is unique: the rows then take
//! effect in the file's order, and of two for the same thing, the later one wins. Chunks behind it go ahead.

use crate::import::chunks::Chunk;
use std::collections::{BTreeMap, HashSet};
use std::time::Instant;

/// In chunks, of at most 1 MB each.
pub const CAPACITY: usize = 24;

#[derive(Debug, Default)]
pub struct Unsettled(BTreeMap<u64, Pending>);

#[derive(Debug)]
struct Pending {
    chunk: Chunk,
    is_under_way: bool,
    not_before: Option<Instant>,
    /// Failed attempts since the last progress.
    attempts: u32,
    unavailable: Option<usize>,
}

impl Unsettled {
    /// No more chunks should be read.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.0.len() >= CAPACITY
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn add(&mut self, chunk: Chunk) {
        let pending = Pending { is_under_way: false, not_before: None, attempts: 0, unavailable: None, chunk };
        self.0.insert(pending.chunk.number, pending);
    }

    #[must_use]
    pub fn chunk(&self, number: u64) -> Option<&Chunk> {
        self.0.get(&number).map(|pending| &pending.chunk)
    }

    /// Marks the first chunk that may be sent as under way.
    pub fn start_next(&mut self, now: Instant) -> Option<&Chunk> {
        let mut keys: HashSet<u64> = HashSet::new();
        let number = self.0.iter().find_map(|(number, pending)| {
            let is_free = !pending.chunk.keys.iter().any(|key| keys.contains(key));
            let is_due = !pending.is_under_way && pending.not_before.is_none_or(|time| time <= now);
            keys.extend(&pending.chunk.keys);
            (is_free && is_due).then_some(*number)
        })?;
        let pending = self.0.get_mut(&number)?;
        pending.is_under_way = true;
        Some(&pending.chunk)
    }

    #[must_use]
    pub fn next_time(&self) -> Option<Instant> {
        self.0.values().filter(|pending| !pending.is_under_way).filter_map(|pending| pending.not_before).min()
    }

    /// `rows` must be tried again. Returns whether there are fewer than before.
    pub fn note_unavailable(&mut self, number: u64, rows: usize) -> bool {
        let Some(pending) = self.0.get_mut(&number) else { return false };
        let is_progress = pending.unavailable.unwrap_or(pending.chunk.sent().count()) > rows;
        pending.unavailable = Some(rows);
        if is_progress {
            pending.attempts = 0;
        }
        is_progress
    }

    pub fn failed(&mut self, number: u64) -> u32 {
        self.0.get_mut(&number).map_or(0, |pending| {
            pending.attempts += 1;
            pending.attempts
        })
    }

    pub fn retry(&mut self, number: u64, at: Instant) {
        if let Some(pending) = self.0.get_mut(&number) {
            pending.is_under_way = false;
            pending.not_before = Some(at);
        }
    }

    pub fn remove(&mut self, number: u64) -> Option<Chunk> {
        self.0.remove(&number).map(|pending| pending.chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn chunk(number: u64, keys: &[u64]) -> Chunk {
        Chunk { number, body: Vec::new(), rows: Vec::new(), keys: keys.to_vec(), raw_length: 0 }
    }

    fn numbers(unsettled: &mut Unsettled, now: Instant) -> Vec<u64> {
        std::iter::from_fn(|| unsettled.start_next(now).map(|chunk| chunk.number)).collect()
    }

    #[test]
    fn chunks_that_share_a_value_keep_their_order_and_others_go_ahead() {
        let (mut unsettled, now) = (Unsettled::default(), Instant::now());
        for (number, keys) in [(0, &[1, 2][..]), (1, &[2, 3]), (2, &[3]), (3, &[4]), (4, &[])] {
            unsettled.add(chunk(number, keys));
        }
        assert_eq!(numbers(&mut unsettled, now), [0, 3, 4]);
        unsettled.remove(3);
        assert_eq!(numbers(&mut unsettled, now), [0; 0]);
        unsettled.remove(0);
        assert_eq!(numbers(&mut unsettled, now), [1]);
        unsettled.remove(1);
        assert_eq!(numbers(&mut unsettled, now), [2]);
    }

    #[test]
    fn a_chunk_that_is_repeated_still_holds_back_those_behind_it() {
        let (mut unsettled, now) = (Unsettled::default(), Instant::now());
        unsettled.add(chunk(0, &[1]));
        unsettled.add(chunk(1, &[1]));
        assert_eq!(numbers(&mut unsettled, now), [0]);
        let later = now + Duration::from_secs(1);
        assert_eq!(unsettled.failed(0), 1);
        unsettled.retry(0, later);
        assert_eq!(numbers(&mut unsettled, now), [0; 0]);
        assert_eq!(unsettled.next_time(), Some(later));
        assert_eq!(numbers(&mut unsettled, later), [0]);
    }

    #[test]
    fn only_so_many_are_kept() {
        let mut unsettled = Unsettled::default();
        for number in 0..CAPACITY as u64 {
            assert!(!unsettled.is_full());
            unsettled.add(chunk(number, &[]));
        }
        assert!(unsettled.is_full());
    }
}
