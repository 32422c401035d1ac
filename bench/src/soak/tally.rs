//! Counts of a soak test.

use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Counts of responses, and what must not have happened.
#[derive(Default)]
pub struct Tally {
    pub requests: u64,
    /// The number of responses by error code, or `success`.
    pub responses: BTreeMap<String, u64>,
    pub violations: Vec<String>,
}

impl Tally {
    pub fn count(&mut self, response: &Value) {
        self.requests += 1;
        *self.responses.entry(response["code"].as_str().unwrap_or("success").to_owned()).or_default() += 1;
    }
}

/// A tally that all clients add to.
#[derive(Default)]
pub struct SharedTally(Mutex<Tally>);

impl SharedTally {
    pub fn lock(&self) -> MutexGuard<'_, Tally> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn take(&self) -> Tally {
        std::mem::take(&mut *self.lock())
    }

    pub fn add_violation(&self, violation: String) {
        self.lock().violations.push(violation);
    }
}
