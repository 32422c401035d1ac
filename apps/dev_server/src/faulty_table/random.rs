//! Random numbers that one seed repeats.

use shared::store::Random;
use std::sync::{Arc, Mutex, PoisonError};

/// A source of random numbers (SplitMix64) that returns the same sequence for the same seed.
#[derive(Debug)]
pub struct SeededRandom(Mutex<u64>);

impl SeededRandom {
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(seed))
    }

    pub fn next(&self) -> u64 {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// 0 if `limit` is 0.
    pub fn below(&self, limit: u64) -> u64 {
        if limit == 0 { 0 } else { self.next() % limit }
    }

    /// True `per_mille` times in a thousand. Takes no number if it never does, so that one weakness alone leaves the others'
    /// numbers as they are.
    pub fn chance(&self, per_mille: u64) -> bool {
        per_mille > 0 && self.below(1000) < per_mille
    }

    /// This one's next number seeds the other.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self::new(self.next())
    }

    #[must_use]
    pub fn into_store_random(self) -> Random {
        let random = Arc::new(self);
        Arc::new(move |bytes| {
            for chunk in bytes.chunks_mut(8) {
                chunk.copy_from_slice(&random.next().to_le_bytes()[..chunk.len()]);
            }
            Ok(())
        })
    }
}
