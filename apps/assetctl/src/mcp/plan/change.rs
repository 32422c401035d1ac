//! A change of fields of up to 100 assets, by batches.

use crate::error::{CliError, Result};
use crate::http::request::{get_document, object, take, unreadable};
use crate::lookup::{self, text};
use crate::mcp::answer::{differences, first, in_words};
use crate::mcp::assets::{named, row_of_owner};
use crate::mcp::consent::Asker;
use crate::mcp::plan::Preview;
use crate::mcp::tools::texts;
use crate::output::count;
use serde_json::{Map, Value, json};

/// The operations of one batch, which all take effect or none.
const MAX_OPERATIONS: usize = 20;
/// The prefix of a single custom field.
const CUSTOM_FIELD: &str = "custom_fields.";

/// The body of a PATCH.
async fn body(asker: &Asker, set: &Value) -> Result<Value> {
    let (mut body, mut single) = (Map::new(), Map::new());
    for (name, value) in set.as_object().into_iter().flatten() {
        match name.strip_prefix(CUSTOM_FIELD) {
            Some(field) => single.insert(field.to_owned(), value.clone()),
            None if name == "assigned_to" && value.is_string() => {
                body.insert(name.clone(), asker.person(value).await?["id"].clone())
            }
            None => body.insert(name.clone(), value.clone()),
        };
    }
    if !single.is_empty() {
        body.insert("custom_fields_patch".to_owned(), single.into());
    }
    Ok(body.into())
}

pub async fn preview(asker: &Asker, arguments: &Value) -> Result<Preview> {
    let fields = body(asker, &arguments["set"]).await?;
    let (mut seen, mut operations) = (Map::new(), Vec::new());
    for name in &texts(&arguments["assets"]) {
        let id = text(&lookup::asset(&asker.client, name).await?["id"]).to_owned();
        let (mut document, etag) = get_document(&asker.client, &format!("assets/{id}"), &[]).await?;
        let (mut asset, etag) = (object(take(&mut document, "data"))?, etag.ok_or_else(unreadable)?);
        if seen.contains_key(text(&asset["asset_tag"])) {
            continue;
        }
        operations.push(json!({"op": "update", "id": id, "if_match": etag, "body": fields}));
        // A renamed type makes another tag, and the same version.
        asset["version"] = etag.split('-').next().unwrap_or_default().trim_matches('"').into();
        seen.insert(text(&asset["asset_tag"]).to_owned(), asset);
    }
    let batches = operations.chunks(MAX_OPERATIONS).map(|operations| json!({"operations": operations}));
    let (batches, mut answers): (Vec<Value>, Vec<Value>) = (batches.collect(), Vec::new());
    for batch in &batches {
        answers.extend(asker.post("assets/batch", batch, None).await?.as_array().cloned().unwrap_or_default());
    }
    let (mut changes, mut words): (Vec<Value>, Vec<Value>) = (Vec::new(), Vec::new());
    for (before, answer) in seen.values().zip(&answers) {
        let mut fields = differences(before, &answer["data"]);
        for change in fields.iter_mut().filter(|change| change["field"] == "assigned_to") {
            change["from"] = asker.name_of(&change["from"]).await?;
            change["to"] = asker.name_of(&change["to"]).await?;
        }
        if !fields.is_empty() {
            words.push(Value::from(format!("{}: {}", named(before), in_words(&fields))));
        }
        fields.into_iter().for_each(|change| add(&mut changes, change, &before["asset_tag"]));
    }
    let parts = if batches.len() > 1 {
        format!(" Applied {MAX_OPERATIONS} by {MAX_OPERATIONS}, each all or none.")
    } else {
        String::new()
    };
    let effect = match words.as_slice() {
        [] => "the assets have these values already.".to_owned(),
        [one] => format!("{}.", text(one)),
        all => format!("{} assets{}{parts}", all.len(), first(&all.into(), 3, |words| text(words).to_owned())),
    };
    Ok(Preview { seen: seen.into(), changes, effect, body: batches.into() })
}

/// Adds the change of an asset. Equal changes of several assets are one, with all their tags.
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

pub async fn carry_out(asker: &Asker, preview: &Preview, token: &str) -> Result<(String, Value)> {
    let batches = preview.body.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut done: Vec<Value> = Vec::new();
    for (batch, number) in batches.iter().zip(1..) {
        let key = if batches.len() == 1 { token.to_owned() } else { format!("{token}-{number}") };
        let answers = asker.post("assets/batch", batch, Some(&key)).await;
        let answers = answers.map_err(|error| match error {
            error if done.is_empty() => error,
            CliError::Unanswered(_) => CliError::Unanswered(partly(&done, &error)),
            _ => CliError::Failed(format!("{}; plan again for the rest", partly(&done, &error))),
        })?;
        done.extend(answers.as_array().into_iter().flatten().map(|answer| row_of_owner(&answer["data"])));
    }
    Ok((preview.effect.clone(), done.into()))
}

fn partly(done: &[Value], error: &CliError) -> String {
    let last = done.last().map_or("-", |asset| text(&asset["asset_tag"]));
    format!("{error}\nThe first {}, up to {last}, are changed", count(done.len() as u64, "asset"))
}
