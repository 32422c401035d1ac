//! Changes in two steps: a plan is a dry run with a token, and `apply` sends the real request.

mod change;
mod handover;
mod offboarding;
pub mod store;

use crate::error::{CliError, Result};
use crate::mcp::answer::{Answer, differences, in_words};
use crate::mcp::asker::Asker;
use serde_json::{Value, json};
use std::time::Instant;
use store::{Plan, Plans, Preview};

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
    let data = [("changes", preview.changes.clone().into()), ("effect", effect.as_str().into())];
    if preview.changes.is_empty() {
        return Ok(Answer::new(format!("Nothing to do: {effect}"), data));
    }
    let plan = Plan { tool: tool.to_owned(), arguments, preview, is_sent: false, made: Instant::now() };
    let (token, seconds) = plans.keep(plan)?;
    let line = format!("Planned, not written yet: {effect} The plan can be applied within {seconds} seconds.");
    Ok(Answer::new(line, [("token", token.into()), ("expires_in_seconds", seconds.into())].into_iter().chain(data)))
}

/// Sends the real request of a plan that was taken out of the store.
pub async fn apply(asker: &Asker, plans: &Plans, token: &str, mut plan: Plan) -> Result<Answer> {
    let (seen, refused) = (plan.preview.seen.clone(), async || preview(asker, &plan.tool, &plan.arguments).await);
    // Once it was sent, its idempotency key and its versions keep it from taking effect twice.
    if !plan.is_sent {
        let now = refused().await?.seen;
        if now != seen {
            return Ok(changed(&seen, &now));
        }
    }
    let sent = match plan.tool.as_str() {
        "plan_change" => change::carry_out(asker, &plan.preview, token).await,
        "plan_handover" => handover::carry_out(asker, &plan.arguments, token).await,
        _ => offboarding::carry_out(asker, &plan.preview, token).await,
    };
    match sent {
        Ok((line, data)) => Ok(Answer::new(format!("Done: {line}"), [("applied", true.into()), ("result", data)])),
        Err(CliError::Answered { status: 412, .. }) => Ok(changed(&seen, &refused().await?.seen)),
        Err(CliError::Unanswered(detail)) => {
            plan.is_sent = true;
            plans.put_back(token, plan);
            let text = format!("{detail}\nIt may have taken effect. Apply the same token again: it takes effect only once.");
            Err(CliError::Unanswered(text))
        }
        Err(error) => Err(error),
    }
}

/// The refusal of a plan that others were faster than.
fn changed(seen: &Value, now: &Value) -> Answer {
    let (mut all, mut words) = (Vec::new(), Vec::new());
    for thing in differences(seen, now) {
        let fields = differences(&thing["from"], &thing["to"]);
        words.push(format!("{}: {}", thing["field"].as_str().unwrap_or_default(), in_words(&fields)));
        let one = |of: Value| json!({"of": thing["field"], "field": of["field"], "planned_on": of["from"], "now": of["to"]});
        all.extend(fields.into_iter().map(one));
    }
    let what = if words.is_empty() { "its version".to_owned() } else { words.join("; ") };
    let line = format!("Not applied, because it changed since the plan: {what}. Plan again.");
    Answer { is_refused: true, ..Answer::new(line, [("applied", false.into()), ("differences", all.into())]) }
}
