//! A change of fields of up to 20 assets, all or none: an atomic batch.

use crate::error::Result;
use crate::http::request::{get_document, unreadable};
use crate::lookup::{self, text};
use crate::mcp::answer::{differences, first, in_words};
use crate::mcp::asker::Asker;
use crate::mcp::assets::{named, row_of_owner};
use crate::mcp::plan::store::Preview;
use crate::mcp::tools::texts;
use serde_json::{Map, Value, json};

pub async fn preview(asker: &Asker, arguments: &Value) -> Result<Preview> {
    let mut fields = arguments["set"].as_object().cloned().unwrap_or_default();
    if let Some(to) = fields.get_mut("assigned_to").filter(|to| to.is_string()) {
        *to = asker.person(to).await?["id"].take();
    }
    let (mut seen, mut operations) = (Map::new(), Vec::new());
    for name in &texts(&arguments["assets"]) {
        let id = text(&lookup::asset(&asker.client, name).await?["id"]).to_owned();
        let (mut document, etag) = get_document(&asker.client, &format!("assets/{id}"), &[]).await?;
        let (mut asset, etag) = (document["data"].take(), etag.ok_or_else(unreadable)?);
        if seen.contains_key(text(&asset["asset_tag"])) {
            continue;
        }
        operations.push(json!({"op": "update", "id": id, "if_match": etag, "body": fields}));
        // A renamed type makes another tag, and the same version.
        asset["version"] = etag.split('-').next().unwrap_or_default().trim_matches('"').into();
        seen.insert(text(&asset["asset_tag"]).to_owned(), asset);
    }
    let body = json!({"atomic": true, "operations": operations});
    let answers = asker.post("assets/batch", &body, None).await?;
    let (mut changes, mut words) = (Vec::new(), Vec::new());
    for (before, answer) in seen.values().zip(answers.as_array().into_iter().flatten()) {
        let mut fields = differences(before, &answer["data"]);
        for change in fields.iter_mut().filter(|change| change["field"] == "assigned_to") {
            change["from"] = asker.name_of(&change["from"]).await?;
            change["to"] = asker.name_of(&change["to"]).await?;
        }
        if !fields.is_empty() {
            words.push(Value::from(format!("{}: {}", named(before), in_words(&fields))));
        }
        fields.iter_mut().for_each(|change| change["asset"] = before["asset_tag"].clone());
        changes.extend(fields);
    }
    let effect = match words.as_slice() {
        [] => "the assets have these values already.".to_owned(),
        [one] => format!("{}.", text(one)),
        all => format!("{} assets{}", all.len(), first(&all.into(), 3, |words| text(words).to_owned())),
    };
    Ok(Preview { seen: seen.into(), changes, effect, body })
}

pub async fn carry_out(asker: &Asker, preview: &Preview, token: &str) -> Result<(String, Value)> {
    let answers = asker.post("assets/batch", &preview.body, Some(token)).await?;
    let rows = answers.as_array().into_iter().flatten().map(|answer| &answer["data"]);
    Ok((preview.effect.clone(), rows.map(row_of_owner).collect()))
}
