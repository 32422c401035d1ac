//! The plans of this process: each can be applied once, and for some minutes.

use crate::error::{CliError, Result};
use crate::http::request::new_run_id;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The oldest one gives way.
const MAX_PLANS: usize = 100;

/// The answer of a dry run.
pub struct Preview {
    /// What the plan depends on, with versions: an object for each thing, by its name.
    pub seen: Value,
    /// Field by field.
    pub changes: Vec<Value>,
    /// In words.
    pub effect: String,
    /// Of the real request.
    pub body: Value,
}

pub struct Plan {
    pub tool: String,
    pub arguments: Value,
    pub preview: Preview,
    /// The request was sent before, and not answered.
    pub is_sent: bool,
    pub made: Instant,
}

pub struct Plans {
    lifetime: Duration,
    by_token: Mutex<BTreeMap<String, Plan>>,
}

impl Plans {
    pub fn new(lifetime: Duration) -> Self {
        Self { lifetime, by_token: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Plan>> {
        self.by_token.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the token, and for how many seconds it is good.
    pub fn keep(&self, plan: Plan) -> Result<(String, u64)> {
        let (token, mut plans) = (new_run_id()?, self.lock());
        let oldest = plans.iter().min_by_key(|(_, plan)| plan.made).map(|(token, _)| token.clone());
        oldest.filter(|_| plans.len() >= MAX_PLANS).map(|oldest| plans.remove(&oldest));
        plans.insert(token.clone(), plan);
        Ok((token, self.lifetime.as_secs()))
    }

    /// A taken plan can't be taken again, unless it is put back.
    pub fn take(&self, token: &str) -> Result<Plan> {
        let plan = self.lock().remove(token);
        let why =
            if plan.is_some() { "the plan has expired" } else { "no plan of this session has this token, or it was applied" };
        let plan = plan.filter(|plan| !self.left(plan).is_zero());
        plan.ok_or_else(|| CliError::Usage(format!("{why}. This call wrote nothing; plan again")))
    }

    pub fn left(&self, plan: &Plan) -> Duration {
        self.lifetime.saturating_sub(plan.made.elapsed())
    }

    pub fn put_back(&self, token: &str, plan: Plan) {
        self.lock().insert(token.to_owned(), plan);
    }
}
