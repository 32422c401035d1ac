//! The plans of this process: each can be applied once, and for some minutes.

use crate::error::{CliError, Result};
use serde_json::Value;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

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
    pub expires: Instant,
}

pub struct Plans {
    pub lifetime: Duration,
    /// By their tokens, the oldest first.
    plans: Mutex<VecDeque<(String, Plan)>>,
}

impl Plans {
    pub fn new(lifetime: Duration) -> Self {
        Self { lifetime, plans: Mutex::default() }
    }

    /// A taken plan can't be taken again, unless it is put back.
    pub async fn take(&self, token: &str) -> Result<Plan> {
        let mut plans = self.plans.lock().await;
        let is_named = |(own, plan): &(String, Plan)| own == token && plan.expires > Instant::now();
        let plan = plans.iter().position(is_named).and_then(|place| plans.remove(place));
        let why = "no plan of this session has this token, or it was applied, or has expired";
        plan.map(|(_, plan)| plan).ok_or_else(|| CliError::Usage(format!("{why}. This call wrote nothing; plan again")))
    }

    pub async fn put(&self, token: &str, plan: Plan) {
        let mut plans = self.plans.lock().await;
        if plans.len() >= MAX_PLANS {
            plans.pop_front();
        }
        plans.push_back((token.to_owned(), plan));
    }
}
