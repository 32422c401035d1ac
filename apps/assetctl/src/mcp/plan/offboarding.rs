//! An offboarding as `assetctl offboard` does it.

use crate::error::Result;
use crate::http::request::post_data;
use crate::lookup::text;
use crate::mcp::answer::quoted;
use crate::mcp::asker::Asker;
use crate::mcp::plan::store::Preview;
use crate::offboard::args::Offboard;
use crate::offboard::plan::Plan;
use crate::offboard::{body, send};
use serde_json::{Value, json};

pub async fn preview(asker: &Asker, arguments: &Value) -> Result<Preview> {
    let id = text(&asker.person(&arguments["person"]).await?["id"]).to_owned();
    let user = asker.data(&format!("users/{id}"), &[]).await?;
    let (process, keep_active) = (arguments["process"].as_str().map(str::to_owned), arguments["keep_active"] == true);
    let options = Offboard { user: id.clone(), process, keep_active, yes: true, dry_run: false };
    let body = body(&asker.client, &options).await?;
    let mut plan = Plan::default();
    plan.add(
        post_data(&asker.client, &asker.client.url(&format!("users/{id}/offboard"), &[("dry_run", "true")])?, &body, None)
            .await?,
    );
    let all = plan.as_json(true);
    let mut changes = Vec::new();
    if user["is_active"] == true && !options.keep_active {
        changes.push(json!({"person": user["email"], "field": "is_active", "from": true, "to": false}));
    }
    let moved = all["movements"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|movement| movement["assets"].as_array().into_iter().flatten());
    let started = moved.chain(all["instances"].as_array().into_iter().flatten());
    let change = |asset: &Value| json!({"asset": asset["asset_tag"], "name": asset["asset_name"], "field": "process", "from": null, "to": all["process"]["name"]});
    changes.extend(started.map(change));
    let more = if plan.has_more { " There are more assets, which are taken in turn." } else { "" };
    let effect = format!("{}: {}.{more}", quoted(&plan.user().into()), plan.summary(false));
    // Assets that can't be returned are a part of what was seen, and of what to tell.
    let refused = all["not_started"].as_array().into_iter().flatten();
    let refusal = |asset: &Value| json!({"asset": asset["asset_tag"], "name": asset["asset_name"], "field": "process", "from": null, "to": null, "why_not": format!("{}: {}", text(&asset["code"]), text(&asset["detail"]))});
    if !changes.is_empty() {
        changes.extend(refused.map(refusal));
    }
    let seen = json!({"person": user, "plan": all});
    Ok(Preview { seen, changes, effect, body: json!({"user": id, "request": body}) })
}

pub async fn carry_out(asker: &Asker, preview: &Preview, token: &str) -> Result<(String, Value)> {
    let path = format!("users/{}/offboard", text(&preview.body["user"]));
    let (url, mut done) = (asker.client.url(&path, &[] as &[(&str, &str)])?, Plan::default());
    send(&asker.client, &url, &preview.body["request"], token, &mut done).await?;
    let mut data = done.as_json(false);
    data.as_object_mut().map(|members| members.shift_remove("dry_run"));
    Ok((format!("{}: {}.", quoted(&done.user().into()), done.summary(true)), data))
}
