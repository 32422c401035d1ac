//! Changes in two steps: a plan is a dry run with a token, and `apply` sends the real request. Each plan can be applied once,
//! within some minutes, by this process.

mod change;
mod handover;
mod offboarding;

use crate::error::{CliError, Result};
use crate::http::request::new_run_id;
use crate::lookup::text;
use crate::mcp::answer::{Answer, clean, differences, in_words, rows};
use crate::mcp::consent::Asker;
use serde_json::Value;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// Characters of a long text in the list of changes.
const MAX_VALUE: usize = 300;

async fn preview(asker: &Asker, tool: &str, arguments: &Value) -> Result<Preview> {
    match tool {
        "plan_change" => change::preview(asker, arguments).await,
        "plan_handover" => handover::preview(asker, arguments).await,
        _ => offboarding::preview(asker, arguments).await,
    }
}

/// Decides what would change, and writes nothing.
pub async fn plan(asker: &Asker, plans: &Plans, tool: &str, arguments: Value) -> Result<Answer> {
    let preview = preview(asker, tool, &arguments).await?;
    let effect = preview.effect.clone();
    let rest = |shown| format!("{} more changes have no room here: plan fewer assets to see them", preview.changes.len() - shown);
    let mut data = rows("changes", preview.changes.iter().map(shortened).collect(), false, rest);
    data.insert("effect".to_owned(), effect.as_str().into());
    if preview.changes.is_empty() {
        return Ok(Answer::new(format!("Nothing to do: {effect}"), data));
    }
    let expires = Instant::now() + plans.lifetime;
    let token = new_run_id()?;
    plans.put(&token, Plan { tool: tool.to_owned(), arguments, preview, is_sent: false, expires }).await;
    let seconds = plans.lifetime.as_secs();
    let line = format!("Planned, not written yet: {effect} The plan can be applied within {seconds} seconds.");
    data.extend([("token".to_owned(), token.into()), ("expires_in_seconds".to_owned(), seconds.into())]);
    Ok(Answer::new(line, data))
}

/// A change with room for others beside it.
fn shortened(change: &Value) -> Value {
    let mut change = change.clone();
    for name in ["from", "to"] {
        if change[name].to_string().len() > MAX_VALUE {
            change[name] = clean(change[name].take(), MAX_VALUE);
        }
    }
    change
}

/// Applies a plan that was taken out of the store, and puts it back if no answer comes.
pub async fn apply(asker: &Asker, plans: &Plans, token: &str, mut plan: Plan) -> Result<Answer> {
    match carry_out(asker, token, &mut plan).await {
        Err(CliError::Unanswered(detail)) => {
            plans.put(token, plan).await;
            Err(CliError::Unanswered(format!("{detail}\nApply the same token again: it takes effect only once.")))
        }
        applied => applied,
    }
}

/// Sends the real request.
async fn carry_out(asker: &Asker, token: &str, plan: &mut Plan) -> Result<Answer> {
    let again = async |plan: &Plan| preview(asker, &plan.tool, &plan.arguments).await;
    // Once it was sent, its idempotency key and its versions keep it from taking effect twice.
    if !plan.is_sent {
        let now = again(plan).await?.seen;
        if now != plan.preview.seen {
            return Ok(changed(&plan.preview.seen, &now));
        }
    }
    plan.is_sent = true;
    let sent = match plan.tool.as_str() {
        "plan_change" => change::carry_out(asker, &plan.preview, token).await,
        "plan_handover" => handover::carry_out(asker, &plan.arguments, token).await,
        _ => offboarding::carry_out(asker, &plan.preview, token).await,
    };
    match sent {
        Ok((line, data)) => Ok(Answer::new(format!("Done: {line}"), [("applied", true.into()), ("result", data)])),
        Err(CliError::Answered { status: 412, .. }) => Ok(changed(&plan.preview.seen, &again(plan).await?.seen)),
        Err(error) => Err(error),
    }
}

/// The refusal of a plan that others were faster than.
fn changed(seen: &Value, now: &Value) -> Answer {
    let mut all = Vec::new();
    for thing in differences(seen, now) {
        let mut fields = differences(&thing["from"], &thing["to"]);
        for field in &mut fields {
            field["field"] = format!("{} {}", text(&thing["field"]), text(&field["field"])).into();
        }
        all.extend(fields);
    }
    let what = if all.is_empty() { "its version".to_owned() } else { in_words(&all) };
    let line = format!("Not applied, because it changed since the plan: {what}. Plan again.");
    Answer::new(line, [("applied", false.into()), ("differences", all.into())])
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_refusal_says_what_else_than_the_version_changed() {
        let seen = json!({"AST-1": {"status": "in_stock", "version": "3", "updated_at": "then"}});
        let mut now = json!({"AST-1": {"status": "in_stock", "version": "4", "updated_at": "now"}});
        assert_eq!(changed(&seen, &now).line, "Not applied, because it changed since the plan: its version. Plan again.");
        now["AST-1"]["status"] = "returned".into();
        let refused = changed(&seen, &now);
        assert!(refused.line.contains("plan: \"AST-1 status\": \"in_stock\" → \"returned\". Plan"), "{}", refused.line);
        assert_eq!(refused.data["differences"], json!([{"field": "AST-1 status", "from": "in_stock", "to": "returned"}]));
    }
}
