//! A handover as `assetctl handover` does it, up to the signature. Its link is a secret that only that command shows.

use crate::error::Result;
use crate::handover::order::Order;
use crate::handover::running::Running;
use crate::handover::{Handover, RunOptions};
use crate::import::columns::suggest::quote;
use crate::lookup::{person, text};
use crate::mcp::answer::quoted;
use crate::mcp::consent::Asker;
use crate::mcp::plan::Preview;
use crate::mcp::tools::texts;
use serde_json::{Map, Value, json};

fn all_quoted(tags: &[&str]) -> String {
    tags.iter().map(|tag| quoted(&(*tag).into())).collect::<Vec<_>>().join(", ")
}

async fn options(asker: &Asker, arguments: &Value, dry_run: bool) -> Result<Handover> {
    let to = text(&asker.person(&arguments["person"]).await?["id"]).to_owned();
    let (assets, tick, prepare) = (texts(&arguments["assets"]), texts(&arguments["tick"]), arguments["prepare"] == true);
    let process = arguments["process"].as_str().unwrap_or("employee-onboarding").to_owned();
    Ok(Handover { assets, to, process, prepare, run: RunOptions { tick, dry_run, ..RunOptions::default() } })
}

pub async fn preview(asker: &Asker, arguments: &Value) -> Result<Preview> {
    let options = options(asker, arguments, true).await?;
    let order = Order::read(&asker.client, options.errand(), String::new()).await?;
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
        // A dry run of what has begun returns where it would be.
        let before = Running::read(&asker.client, &running.path()).await?.open_labels();
        let go_on = |tag: &&str| json!({"asset": tag, "field": "steps_left", "from": before, "to": left});
        on.iter().filter(|_| before != left).map(go_on).collect()
    };
    let then = if running.0["process_id"] != order.process["id"] {
        // A dry run ends with the preparation.
        let process = &order.process["name"];
        changes.extend(tags.iter().map(|tag| start(tag, process)));
        format!("then {} on {}", quoted(process), all_quoted(&tags))
    } else if left.is_empty() {
        "no step is left".to_owned()
    } else {
        format!("then left: {}", quoted(&left.as_str().into()))
    };
    let effect = format!("{} on {} for {}, {then}.", quoted(process), all_quoted(&on), quoted(&person(&order.user).into()));
    Ok(Preview { seen: seen.into(), changes, effect, body: Value::Null })
}

pub async fn carry_out(asker: &Asker, arguments: &Value, token: &str) -> Result<(String, Value)> {
    let options = options(asker, arguments, false).await?;
    let order = Order::read(&asker.client, options.errand(), token.to_owned()).await?;
    let running = order.begin().await?.finish(&asker.client, false, &[]).await?;
    let (process, tags, status) = (&running.0["process_name"], running.members("asset_tag"), text(&running.0["status"]));
    let mut data = json!({"process": process, "status": status, "assets": tags, "steps_left": running.open_labels()});
    let mut line = format!("{} is {status} on {}.", quoted(process), all_quoted(&tags));
    if running.open_steps().iter().any(|step| step["type"] == "signature") {
        let tags = tags.iter().map(|tag| quote(tag)).collect::<Vec<_>>().join(" ");
        let (to, process) = (quote(text(&order.user["email"])), quote(&options.process));
        let command = format!("assetctl handover {tags} --to {to} --process {process}");
        // What a shell has to quote would end a quotation here.
        let is_plain = !command.contains(['\'', '"']);
        line.push_str(&format!(
            " For the link to sign, run: {}",
            if is_plain { &command } else { "the command for_the_link_run" }
        ));
        data["for_the_link_run"] = command.into();
    }
    Ok((line, data))
}
