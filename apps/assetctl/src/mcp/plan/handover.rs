//! A handover as `assetctl handover` does it, up to the signature. Its link is a secret that only that command shows.

use crate::error::Result;
use crate::handover::args::Handover;
use crate::handover::order::Order;
use crate::lookup::{person, text};
use crate::mcp::answer::quoted;
use crate::mcp::asker::Asker;
use crate::mcp::plan::store::Preview;
use crate::mcp::tools::texts;
use serde_json::{Map, Value, json};

async fn options(asker: &Asker, arguments: &Value, dry_run: bool) -> Result<Handover> {
    let to = text(&asker.person(&arguments["person"]).await?["id"]).to_owned();
    let (assets, tick, prepare) = (texts(&arguments["assets"]), texts(&arguments["tick"]), arguments["prepare"] == true);
    let process = arguments["process"].as_str().unwrap_or("employee-onboarding").to_owned();
    Ok(Handover { assets, to, process, tick, prepare, wait: false, timeout: 0, qr: false, dry_run })
}

fn tags<'a>(order: &'a Order<'_>) -> Vec<&'a str> {
    order.assets.iter().map(|asset| text(&asset["asset_tag"])).collect()
}

pub async fn preview(asker: &Asker, arguments: &Value) -> Result<Preview> {
    let options = options(asker, arguments, true).await?;
    let order = Order::read(&asker.client, &options, String::new()).await?;
    let running = order.begin().await?;
    let (process, left) = (&running.0["process_name"], running.open_labels());
    let state = json!({"name": process, "id": running.0["id"], "status": running.0["status"], "steps_left": left});
    let mut seen: Map<String, Value> = tags(&order).into_iter().map(str::to_owned).zip(order.assets.iter().cloned()).collect();
    seen.extend([("person".to_owned(), order.user.clone()), ("process".to_owned(), state)]);
    // A real id: nothing would start, and nothing is submitted before somebody has signed.
    let is_waiting = running.open_steps().first().is_none_or(|step| step["type"] == "signature");
    let change = |tag: &&str| json!({"asset": tag, "field": "process", "from": null, "to": process, "steps_left": left});
    let changes = if is_waiting && !running.0["id"].is_null() { Vec::new() } else { tags(&order).iter().map(change).collect() };
    let next =
        if left.is_empty() { "no step is left".to_owned() } else { format!("then left: {}", quoted(&left.as_str().into())) };
    let to = quoted(&person(&order.user).into());
    let effect = format!("{} on {} for {to}, {next}.", quoted(process), tags(&order).join(", "));
    Ok(Preview { seen: seen.into(), changes, effect, body: Value::Null })
}

pub async fn carry_out(asker: &Asker, arguments: &Value, token: &str) -> Result<(String, Value)> {
    let options = options(asker, arguments, false).await?;
    let order = Order::read(&asker.client, &options, token.to_owned()).await?;
    let running = order.begin().await?.complete(&asker.client).await?;
    let (process, tags, status) = (&running.0["process_name"], tags(&order), text(&running.0["status"]));
    let mut data = json!({"process": process, "status": status, "assets": tags, "steps_left": running.open_labels()});
    let mut line = format!("{} is {status} on {}.", quoted(process), tags.join(", "));
    if running.open_steps().iter().any(|step| step["type"] == "signature") {
        let (tags, to, process) = (tags.join(" "), text(&order.user["email"]), &options.process);
        let command = format!("assetctl handover {tags} --to {to} --process {process}");
        line.push_str(&format!(" For the link to sign, run: {command}"));
        data["for_the_link_run"] = command.into();
    }
    Ok((line, data))
}
