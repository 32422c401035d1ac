//! Changes in two steps: a plan is a dry run with a token, and `apply` sends the real request. Each plan can be applied once,
//! within a few minutes, by this process. Changes, handovers and offboardings work as on the command line, but a handover's link
//! is a secret that only the command line shows.

use crate::error::{CliError, Result};
use crate::handover::{Handover, Order, RunOptions, Running};
use crate::http::{new_run_id, take};
use crate::lookup::{self, id_of, items, person, text, user_named};
use crate::mcp::Access;
use crate::mcp::answer::{Answer, clean, differences, first, in_words, quoted, rows};
use crate::mcp::questions::{name_of, named, texts};
use crate::offboard::{self as offboarding, DRY_RUN, send};
use crate::output::quote;
use crate::selection::{normal, renamed};
use crate::set::{Change, accepted};
use serde_json::{Map, Value, json};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// Longer values in the list of changes are cut off after this many characters.
const MAX_VALUE: usize = 300;
/// With more plans, the oldest one is dropped.
const MAX_PLANS: usize = 100;

/// The result of a dry run.
pub struct Preview {
    /// Records that the plan depends on, with their versions: objects by name.
    pub seen: Value,
    /// Changed fields with their old and new values.
    pub changes: Vec<Value>,
    pub effect: String,
    pub body: Value,
}

pub struct Plan {
    pub tool: String,
    pub arguments: Value,
    pub preview: Preview,
    /// Whether the request was sent before, without a response.
    pub is_sent: bool,
    pub expires: Instant,
}

pub struct Plans {
    pub lifetime: Duration,
    /// Plans by token, oldest first.
    plans: Mutex<VecDeque<(String, Plan)>>,
}

impl Plans {
    pub fn new(lifetime: Duration) -> Self {
        Self { lifetime, plans: Mutex::default() }
    }

    /// Takes a plan out of the store, so that it can't be applied twice.
    pub async fn take(&self, token: &str) -> Result<Plan> {
        let mut plans = self.plans.lock().await;
        let is_named = |(own, plan): &(String, Plan)| own == token && plan.expires > Instant::now();
        let plan = plans.iter().position(is_named).and_then(|place| plans.remove(place));
        let why = "no plan of this session has this token, or the plan was applied or has expired";
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

async fn preview(access: &Access, tool: &str, arguments: &Value) -> Result<Preview> {
    match tool {
        "plan_change" => preview_change(access, arguments).await,
        "plan_handover" => preview_handover(access, arguments).await,
        _ => preview_offboarding(access, arguments).await,
    }
}

/// Plans changes with a dry run, and stores the plan under a new token.
pub async fn plan(access: &Access, plans: &Plans, tool: &str, arguments: Value) -> Result<Answer> {
    let preview = preview(access, tool, &arguments).await?;
    let effect = preview.effect.clone();
    let rest = |shown| format!("{} more changes don't fit here: plan fewer assets to see them", preview.changes.len() - shown);
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

/// Shortens a long change, so that other changes fit beside it.
fn shortened(change: &Value) -> Value {
    let mut change = change.clone();
    for name in ["from", "to"] {
        if change[name].to_string().len() > MAX_VALUE {
            change[name] = clean(change[name].take(), MAX_VALUE);
        }
    }
    change
}

/// Applies a plan taken out of the store. Puts the plan back if the service doesn't respond.
pub async fn apply(access: &Access, plans: &Plans, token: &str, mut plan: Plan) -> Result<Answer> {
    match carry_out(access, token, &mut plan).await {
        Err(CliError::Unanswered(detail)) => {
            plans.put(token, plan).await;
            Err(CliError::Unanswered(format!("{detail}\nApply the same token again: it takes effect only once.")))
        }
        applied => applied,
    }
}

/// Sends the real request.
async fn carry_out(access: &Access, token: &str, plan: &mut Plan) -> Result<Answer> {
    let again = async |plan: &Plan| preview(access, &plan.tool, &plan.arguments).await;
    // Once the request is sent, the idempotency key and the versions prevent a second effect.
    if !plan.is_sent {
        let now = again(plan).await?.seen;
        if now != plan.preview.seen {
            return Ok(changed(&plan.preview.seen, &now));
        }
    }
    plan.is_sent = true;
    let sent = match plan.tool.as_str() {
        "plan_change" => change(access, &plan.preview, token).await,
        "plan_handover" => hand_over(access, &plan.arguments, token).await,
        _ => offboard(access, &plan.preview, token).await,
    };
    match sent {
        Ok((line, data)) => Ok(Answer::new(format!("Done: {line}"), [("applied", true.into()), ("result", data)])),
        Err(CliError::Answered { status: 412, .. }) => Ok(changed(&plan.preview.seen, &again(plan).await?.seen)),
        Err(error) => Err(error),
    }
}

/// Returns the error for a plan that is out of date.
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
    let line = format!("Not applied, because something changed since the plan: {what}. Plan again.");
    Answer::new(line, [("applied", false.into()), ("differences", all.into())])
}

async fn preview_change(access: &Access, arguments: &Value) -> Result<Preview> {
    let mut values = arguments["set"].as_object().cloned().unwrap_or_default();
    if let Some(person) = values.get_mut("assigned_to").filter(|person| person.is_string()) {
        *person = user_named(&access.client, text(person)).await?["id"].clone();
    }
    let assets = lookup::assets(&access.client, &texts(&arguments["assets"])).await?;
    let change = Change::to_values(&access.client, assets.clone(), values.clone());
    let outcomes = accepted(&change, None).await.map_err(|error| renamed(error, |name| format!("set.{name}")))?;
    let (mut changes, mut words): (Vec<Value>, Vec<Value>) = (Vec::new(), Vec::new());
    for (before, outcome) in assets.iter().zip(&outcomes) {
        let change = |change: &Value| json!({"field": change["field"], "from": change["old"], "to": change["new"]});
        let mut fields: Vec<Value> = items(&outcome["changes"]).iter().map(change).collect();
        for change in fields.iter_mut().filter(|change| change["field"] == "assigned_to") {
            change["from"] = name_of(access, &change["from"]).await?;
            change["to"] = name_of(access, &change["to"]).await?;
        }
        if !fields.is_empty() {
            words.push(Value::from(format!("{}: {}", named(before), in_words(&fields))));
        }
        fields.into_iter().for_each(|change| add(&mut changes, change, &before["asset_tag"]));
    }
    let effect = match words.as_slice() {
        [] => "the assets have these values already.".to_owned(),
        [one] => format!("{}.", text(one)),
        all => format!("{} assets{}", all.len(), first(all, 3, |words| text(words).to_owned())),
    };
    let seen: Map<String, Value> = assets.iter().map(|asset| (text(&asset["asset_tag"]).to_owned(), asset.clone())).collect();
    Ok(Preview { seen: seen.into(), changes, effect, body: json!({"assets": assets, "set": values}) })
}

/// Adds a change to an asset. Equal changes to several assets are merged into one change with all their tags.
fn add(changes: &mut Vec<Value>, mut change: Value, tag: &Value) {
    let is_equal = |other: &&mut Value| ["field", "from", "to"].iter().all(|name| other[*name] == change[*name]);
    match changes.iter_mut().find(is_equal) {
        Some(other) => {
            let mut tags = other["assets"].as_array().cloned().unwrap_or_else(|| vec![take(other, "asset")]);
            tags.push(tag.clone());
            other["assets"] = tags.into();
            other.as_object_mut().map(|members| members.shift_remove("asset"));
        }
        None => {
            change["asset"] = tag.clone();
            changes.push(change);
        }
    }
}

async fn change(access: &Access, preview: &Preview, token: &str) -> Result<(String, Value)> {
    let (assets, values) = (items(&preview.body["assets"]), preview.body["set"].as_object().cloned().unwrap_or_default());
    let outcomes = accepted(&Change::to_values(&access.client, assets.to_vec(), values), Some(token)).await?;
    let row = |(asset, outcome): (&Value, &Value)| json!({"asset_tag": asset["asset_tag"], "outcome": outcome["outcome"]});
    Ok((preview.effect.clone(), assets.iter().zip(&outcomes).map(row).collect()))
}

fn all_quoted(tags: &[&str]) -> String {
    tags.iter().map(|tag| quoted(&(*tag).into())).collect::<Vec<_>>().join(", ")
}

async fn handover_options(access: &Access, arguments: &Value, dry_run: bool) -> Result<Handover> {
    let to = id_of(&user_named(&access.client, text(&arguments["person"])).await?);
    let (assets, tick, prepare) = (texts(&arguments["assets"]), texts(&arguments["tick"]), arguments["prepare"] == true);
    let process = arguments["process"].as_str().unwrap_or("employee-onboarding").to_owned();
    let location = arguments["place"].as_str().map(str::to_owned);
    Ok(Handover { assets, to, process, prepare, location, run: RunOptions { tick, dry_run, ..RunOptions::default() } })
}

async fn preview_handover(access: &Access, arguments: &Value) -> Result<Preview> {
    let options = handover_options(access, arguments, true).await?;
    let order = Order::read(&access.client, options.errand(), String::new()).await?;
    let running = order.begin().await?;
    let (process, on) = (&running.0["process_name"], running.members("asset_tag"));
    let left = if running.can_finish(false) { String::new() } else { running.open_labels() };
    let state = json!({"name": process, "id": running.0["id"], "status": running.0["status"], "steps_left": left});
    let tags: Vec<&str> = order.assets.iter().map(|asset| text(&asset["asset_tag"])).collect();
    let mut seen: Map<String, Value> = tags.iter().map(ToString::to_string).zip(order.assets.iter().cloned()).collect();
    seen.extend([("person".to_owned(), order.user.clone()), ("process".to_owned(), state)]);
    let start = |tag: &str, process: &Value| json!({"asset": tag, "field": "process", "from": null, "to": process});
    let mut changes: Vec<Value> = if running.0["id"].is_null() {
        on.iter().map(|tag| start(tag, process)).collect()
    } else {
        // For a running process, a dry run returns the future state.
        let before = Running::read(&access.client, &running.path()).await?.open_labels();
        let go_on = |tag: &&str| json!({"asset": tag, "field": "steps_left", "from": before, "to": left});
        on.iter().filter(|_| before != left).map(go_on).collect()
    };
    if let Some(place) = &options.location {
        let moved = order.assets.iter().filter(|asset| asset["location"] != normal(place));
        let moved = moved.map(
            |asset| json!({"asset": asset["asset_tag"], "field": "location", "from": asset["location"], "to": normal(place)}),
        );
        changes.extend(moved);
    }
    let then = if running.0["process_id"] != order.process["id"] {
        // A dry run ends after the preparation.
        let process = &order.process["name"];
        changes.extend(tags.iter().map(|tag| start(tag, process)));
        format!("then {} on {}", quoted(process), all_quoted(&tags))
    } else if left.is_empty() {
        "no step is left".to_owned()
    } else {
        format!("then left: {}", quoted(&left.as_str().into()))
    };
    let at = options.location.as_deref().map_or(String::new(), |place| format!(" at {}", quoted(&normal(place).into())));
    let effect = format!("{} on {} for {}{at}, {then}.", quoted(process), all_quoted(&on), quoted(&person(&order.user).into()));
    Ok(Preview { seen: seen.into(), changes, effect, body: Value::Null })
}

async fn hand_over(access: &Access, arguments: &Value, token: &str) -> Result<(String, Value)> {
    let options = handover_options(access, arguments, false).await?;
    let mut order = Order::read(&access.client, options.errand(), token.to_owned()).await?;
    let running = order.finish(order.begin().await?).await?;
    order.place().await?;
    let (process, tags, status) = (&running.0["process_name"], running.members("asset_tag"), text(&running.0["status"]));
    let mut data = json!({"process": process, "status": status, "assets": tags, "steps_left": running.open_labels()});
    let mut line = format!("{} is {status} on {}.", quoted(process), all_quoted(&tags));
    if running.open_steps().iter().any(|step| step["type"] == "signature") {
        let tags = tags.iter().map(|tag| quote(tag)).collect::<Vec<_>>().join(" ");
        let (to, process) = (quote(text(&order.user["email"])), quote(&options.process));
        let command = format!("assetctl handover {tags} --to {to} --process {process}");
        // A command with quotes could end the quotation, so the text only refers to it.
        let is_plain = !command.contains(['\'', '"']);
        let shown = if is_plain { &command } else { "the command for_the_link_run" };
        line.push_str(&format!(" For the link to sign, run: {shown}"));
        data["for_the_link_run"] = command.into();
    }
    Ok((line, data))
}

async fn preview_offboarding(access: &Access, arguments: &Value) -> Result<Preview> {
    let id = id_of(&user_named(&access.client, text(&arguments["person"])).await?);
    let user = access.client.data(&format!("users/{id}"), &[]).await?;
    let keep_active = arguments["keep_active"] == true;
    let body = offboarding::body(&access.client, arguments["process"].as_str(), keep_active).await?;
    let mut plan = offboarding::Plan::default();
    plan.add(access.client.post_document(&format!("users/{id}/offboard"), DRY_RUN, &body, None).await?);
    let to = &plan.process["name"];
    let change = |asset: &Value| json!({"asset": asset["asset_tag"], "field": "process", "from": null, "to": to});
    let mut changes: Vec<Value> = plan.started().map(change).collect();
    if user["is_active"] == true && !keep_active {
        changes.push(json!({"person": user["email"], "field": "is_active", "from": true, "to": false}));
    }
    // The plan also lists the assets that can't be returned, with the reasons.
    if !changes.is_empty() {
        let why_not = |asset: &Value| format!("{}: {}", text(&asset["code"]), text(&asset["detail"]));
        let refusal =
            |asset: &Value| json!({"asset": asset["asset_tag"], "field": "process", "to": null, "why_not": why_not(asset)});
        changes.extend(plan.list("not_started").map(refusal));
    }
    let more = if plan.has_more { format!(" {}", offboarding::MORE) } else { String::new() };
    let effect = format!("{}: {}.{more}", quoted(&plan.user().into()), plan.summary(&quoted(&plan.process["name"]), false));
    Ok(Preview {
        seen: json!({"person": user, "plan": plan.as_json(true)}),
        changes,
        effect,
        body: json!({"user": id, "request": body}),
    })
}

async fn offboard(access: &Access, preview: &Preview, token: &str) -> Result<(String, Value)> {
    let path = format!("users/{}/offboard", text(&preview.body["user"]));
    let mut done = offboarding::Plan::default();
    send(&access.client, &path, &preview.body["request"], token, &mut done).await?;
    let summary = done.summary(&quoted(&done.process["name"]), true);
    Ok((format!("{}: {summary}.", quoted(&done.user().into())), done.as_json(false)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_changed_fields() {
        let seen = json!({"AST-1": {"status": "in_stock", "version": "3", "updated_at": "then"}});
        let mut now = json!({"AST-1": {"status": "in_stock", "version": "4", "updated_at": "now"}});
        assert_eq!(changed(&seen, &now).line, "Not applied, because something changed since the plan: its version. Plan again.");
        now["AST-1"]["status"] = "returned".into();
        let refused = changed(&seen, &now);
        assert!(refused.line.contains("plan: \"AST-1 status\": \"in_stock\" → \"returned\". Plan"), "{}", refused.line);
        assert_eq!(refused.data["differences"], json!([{"field": "AST-1 status", "from": "in_stock", "to": "returned"}]));
    }
}
