//! An offboarding as `assetctl offboard` does it.

use crate::error::Result;
use crate::lookup::text;
use crate::mcp::answer::quoted;
use crate::mcp::consent::Asker;
use crate::mcp::plan::Preview;
use crate::offboard::{Offboard, Plan, body, send};
use serde_json::{Value, json};

pub async fn preview(asker: &Asker, arguments: &Value) -> Result<Preview> {
    let id = text(&asker.person(&arguments["person"]).await?["id"]).to_owned();
    let user = asker.data(&format!("users/{id}"), &[]).await?;
    let (process, keep_active) = (arguments["process"].as_str().map(str::to_owned), arguments["keep_active"] == true);
    let options = Offboard { user: id.clone(), process, keep_active, yes: true, dry_run: false };
    let body = body(&asker.client, &options).await?;
    let mut plan = Plan::default();
    plan.add(asker.post(&format!("users/{id}/offboard"), &body, None).await?);
    let to = &plan.process["name"];
    let change = |asset: &Value| json!({"asset": asset["asset_tag"], "field": "process", "from": null, "to": to});
    let mut changes: Vec<Value> = plan.started().map(change).collect();
    if user["is_active"] == true && !options.keep_active {
        changes.push(json!({"person": user["email"], "field": "is_active", "from": true, "to": false}));
    }
    // Assets that can't be returned are a part of what to tell.
    if !changes.is_empty() {
        let why_not = |asset: &Value| format!("{}: {}", text(&asset["code"]), text(&asset["detail"]));
        let refusal =
            |asset: &Value| json!({"asset": asset["asset_tag"], "field": "process", "to": null, "why_not": why_not(asset)});
        changes.extend(plan.list("not_started").map(refusal));
    }
    let more = if plan.has_more { " There are more assets, which are taken in turn." } else { "" };
    let effect = format!("{}: {}.{more}", quoted(&plan.user().into()), plan.summary_of(&quoted(&plan.process["name"]), false));
    Ok(Preview {
        seen: json!({"person": user, "plan": plan.as_json(true)}),
        changes,
        effect,
        body: json!({"user": id, "request": body}),
    })
}

pub async fn carry_out(asker: &Asker, preview: &Preview, token: &str) -> Result<(String, Value)> {
    let path = format!("users/{}/offboard", text(&preview.body["user"]));
    let (url, mut done) = (asker.client.url(&path, &[] as &[(&str, &str)])?, Plan::default());
    send(&asker.client, &url, &preview.body["request"], token, &mut done).await?;
    let summary = done.summary_of(&quoted(&done.process["name"]), true);
    Ok((format!("{}: {summary}.", quoted(&done.user().into())), done.as_json(false)))
}
