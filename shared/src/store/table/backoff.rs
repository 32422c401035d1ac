//! The time before another attempt.

use crate::store::Store;
use std::time::Duration;

/// Attempts of what others can disturb, if nothing says otherwise.
pub(crate) const MAX_ROUNDS: u32 = 6;
/// The first pause is at most this long, and each further one twice as long.
const FIRST_PAUSE_MILLIS: u64 = 10;
/// The number of times that the pause doubles: to 640 ms at most.
const MAX_DOUBLINGS: u32 = 6;

impl Store {
    /// `least`, and up to as much again at random: what failed together does not come back together.
    #[must_use]
    pub fn jittered(&self, least: Duration) -> Duration {
        // Without random bytes there is no jitter.
        let random = u16::from_le_bytes(self.random().unwrap_or_default());
        least + least * u32::from(random) / u32::from(u16::MAX)
    }
}

/// Waits a random time before another attempt, to separate competing writers: up to 10 ms after round 0, 20 ms after
/// round 1, and so on up to 640 ms.
pub(crate) async fn pause(store: &Store, round: u32) {
    let longest = FIRST_PAUSE_MILLIS << round.min(MAX_DOUBLINGS);
    // Without random bytes every rival waits equally long.
    let bytes = store.random().unwrap_or_default();
    tokio::time::sleep(Duration::from_millis(1 + u64::from(u16::from_le_bytes(bytes)) % longest)).await;
}
