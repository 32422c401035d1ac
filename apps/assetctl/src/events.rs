//! `assetctl events`: what changed in a period, and who changed it.

use crate::config::Connection;
use crate::error::{EXIT_SUCCESS, Result};
use crate::http::client::Client;
use crate::http::request::{get_data, get_document, take};
use crate::list::{self, Form};
use crate::lookup::{is_id, people_with, text, user_named};
use crate::output::{count, print, print_data, print_json};
use crate::selection::in_options;
use crate::show::{assigned, entries, what};
use crate::who::time_of;
use clap::Args;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use terminal::print_note;

/// The service's maximum.
const PAGE: u64 = 100;
const COLUMNS: [&str; 5] = ["at", "asset_tag", "name", "what", "who"];

/// Options of `events`.
#[derive(Debug, Args)]
pub struct Events {
    /// From this day or time on, such as 2026-03-01; days are those of the organization's time zone
    #[arg(long, value_name = "DAY")]
    since: Option<String>,
    /// Up to the end of this day, or up to this time
    #[arg(long, value_name = "DAY")]
    until: Option<String>,
    /// Only changes by this user (an e-mail address, a name or an id), or by the key or the link with this id
    #[arg(long, value_name = "USER")]
    actor: Option<String>,
    /// Only these types, separated by commas: asset.updated, or asset.* for every change of an asset
    #[arg(long, value_name = "TYPES")]
    types: Option<String>,
    /// Show at most this many events, from the oldest on
    #[arg(long, value_name = "NUMBER", value_parser = list::at_least_one)]
    limit: Option<u64>,
    /// How the events are printed [default: table]
    #[arg(long, value_enum)]
    format: Option<Form>,
}

/// Prints all pages of the feed.
pub async fn events(options: &Events, connection: &Connection, is_json: bool) -> Result<u8> {
    let form = list::form(options.format, is_json)?;
    let client = Client::new(connection)?.with_exact_numbers();
    let query = query(options, &client).await?;
    let (events, has_more) = read(&client, &query, options.limit.unwrap_or(u64::MAX)).await.map_err(in_options)?;
    if form == Form::Json {
        print_json(&json!({"events": events}))?;
        return Ok(EXIT_SUCCESS);
    }
    let events = Value::from(events);
    let people = people_with(&client, assigned(&events)).await?;
    let rows: Vec<Value> = entries(&events).map(|event| row(event, &people)).collect();
    if form == Form::Csv {
        print_data(list::csv(&rows, &COLUMNS)?.trim_end_matches("\r\n"))?;
        return Ok(EXIT_SUCCESS);
    }
    print(&list::table(&rows, &COLUMNS).render(terminal::width()))?;
    let more = if has_more { ", and there are more" } else { "" };
    print_note(&format!("{}{more}", count(rows.len() as u64, "event")));
    Ok(EXIT_SUCCESS)
}

async fn query(options: &Events, client: &Client) -> Result<Vec<(&'static str, String)>> {
    let mut query: Vec<_> = options.types.iter().map(|types| ("types", types.clone())).collect();
    let has_time = options.since.is_some() || options.until.is_some();
    let zone = if has_time { get_data(client, "me", &[]).await?["tenant"]["time_zone"].clone() } else { Value::Null };
    for (name, time) in [("since", &options.since), ("until", &options.until)] {
        if let Some(time) = time {
            query.push((name, time_of(time, name == "until", &zone)?));
        }
    }
    if let Some(actor) = &options.actor {
        let id = if is_id(actor) { actor.clone() } else { text(&user_named(client, actor).await?["id"]).to_owned() };
        query.push(("actor_id", id));
    }
    Ok(query)
}

/// At most `limit` events, the oldest first, and whether there are more.
async fn read(client: &Client, query: &[(&str, String)], limit: u64) -> Result<(Vec<Value>, bool)> {
    let (mut events, mut after) = (Vec::new(), None::<String>);
    loop {
        let size = PAGE.min(limit - events.len() as u64).to_string();
        let pairs = query.iter().map(|(name, value)| (*name, value.as_str()));
        let pairs = pairs.chain([("limit", size.as_str())]).chain(after.as_deref().map(|after| ("after", after)));
        let (mut page, _) = get_document(client, "events", &pairs.collect::<Vec<_>>()).await?;
        if let Value::Array(read) = take(&mut page, "data") {
            events.extend(read);
        }
        let next = page["meta"]["after"].as_str().map(str::to_owned);
        let has_more = page["meta"]["has_more"] == true && next != after;
        if !has_more || events.len() as u64 >= limit {
            return Ok((events, has_more));
        }
        after = next;
    }
}

fn row(event: &Value, people: &BTreeMap<String, String>) -> Value {
    let actor = &event["actor"];
    let who = actor["user_name"].as_str().unwrap_or(text(&actor["key_name"]));
    json!({
        "at": event["at"], "asset_tag": event["entity_tag"], "name": event["entity_name"], "what": what(event, people), "who": who,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_what_changed_and_who_changed_it() {
        let change = json!({"assigned_to": {"old": null, "new": "u1"}});
        let mut event = json!({"at": "2026-03-05T10:00:00.000Z", "type": "asset.updated", "entity_tag": "AST-1",
            "entity_name": "Laptop", "actor": {"user_name": "Grace", "key_name": "k"}, "changes": change});
        let people = BTreeMap::from([("u1".to_owned(), "Ada <ada@example.com>".to_owned())]);
        let line =
            |event: &Value| list::table(&[row(event, &people)], &COLUMNS).render(None).lines().next_back().unwrap().to_owned();
        assert_eq!(line(&event), "2026-03-05 10:00  AST-1      Laptop  assigned_to: none → Ada  Grace");
        event["type"] = "user.created".into();
        event["actor"]["user_name"] = Value::Null;
        event["entity_tag"] = Value::Null;
        assert_eq!(line(&event), "2026-03-05 10:00             Laptop  user.created  k");
    }
}
