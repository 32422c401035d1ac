//! Questions about people, numbers and recent changes.

use crate::error::{CliError, Result};
use crate::http::request::get_document;
use crate::lookup::{self, is_id, text};
use crate::mcp::answer::{self, Answer, in_words, quoted};
use crate::mcp::asker::{Asker, filters};
use crate::mcp::assets::change;
use crate::output::count;
use crate::show;
use crate::who::time_of;
use serde_json::{Value, json};

/// Neither keys nor links nor webhooks.
const KINDS: &str = "asset.*,user.*,instance.*,movement.*,process.*,asset_type.*,manufacturer.*,model.*,tenant.*";
/// The latest changes that one request returns: many of a new organization's first ones were made by nobody.
const LIMIT: &str = "50";

pub async fn people(asker: &Asker, arguments: &Value) -> Result<Answer> {
    let row = |user: &Value| {
        let (name, email, role) = (&user["display_name"], &user["email"], &user["role"]);
        json!({"name": name, "email": email, "role": role, "active": user["is_active"], "id": user["id"]})
    };
    let query = filters(arguments, &[("words", "q"), ("role", "role"), ("active", "is_active")]);
    let data = asker.list("users", query, &arguments["skip"], "people", row).await?;
    let first = answer::first(&data["people"], 5, |user| format!("{} {}", quoted(&user["name"]), quoted(&user["email"])));
    let people = if data["total"] == 1 { "1 person".to_owned() } else { format!("{} people", data["total"]) };
    Ok(Answer::new(format!("{people} found{first}"), data))
}

pub async fn statistics(asker: &Asker) -> Result<Answer> {
    let stats = asker.data("stats", &[]).await?;
    let assets = &stats["assets"];
    let (ended, soon) = (&assets["warranty"]["ended"], &assets["warranty"]["within_30"]);
    let (total, assigned) = (count(assets["total"].as_u64().unwrap_or_default(), "asset"), &assets["assigned"]);
    let line = format!("{total}, {assigned} assigned. Warranties: {ended} ended, {soon} end within 30 days.");
    Ok(Answer::new(line, stats.as_object().cloned().unwrap_or_default()))
}

/// Made with the organization itself, by the operator: its settings, its first key, and the processes that all begin with.
fn is_set_up(event: &Value) -> bool {
    let actor = &event["actor"];
    let is_operator = actor["key_id"].is_null() && actor["user_id"].is_null() && actor["link_id"].is_null();
    is_operator && ["tenant.created", "key.created", "process.created"].contains(&text(&event["type"]))
}

pub async fn changes(asker: &Asker, arguments: &Value) -> Result<Answer> {
    let (argument, zone) = (|name: &str| arguments[name].as_str(), &asker.me["tenant"]["time_zone"]);
    if argument("after").or(argument("since")).is_none() {
        return Err(CliError::Usage("give since, or after to go on".into()));
    }
    let mut query = vec![("limit", LIMIT.to_owned()), ("types", argument("types").unwrap_or(KINDS).to_owned())];
    query.extend(argument("after").map(|after| ("after", after.to_owned())));
    for (name, is_end) in [("since", false), ("until", true)] {
        if let Some(time) = argument(name) {
            query.push((name, time_of(time, is_end, zone)?));
        }
    }
    match argument("by") {
        Some(id) if is_id(id) => query.push(("actor_id", id.to_owned())),
        Some(_) => query.push(("actor_id", text(&asker.person(&arguments["by"]).await?["id"]).to_owned())),
        None => {}
    }
    if let Some(name) = argument("asset") {
        query.push(("entity_id", text(&lookup::asset(&asker.client, name).await?["id"]).to_owned()));
    }
    let query: Vec<(&str, &str)> = query.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let (document, _) = get_document(&asker.client, "events", &query).await?;
    let events: Vec<&Value> = show::entries(&document["data"]).filter(|event| !is_set_up(event)).collect();
    let people = lookup::people_with(&asker.client, show::assigned(&document["data"])).await?;
    let one = |event: &&Value| {
        let mut row = change(event, &people);
        (row["tag"], row["name"]) = (event["entity_tag"].clone(), event["entity_name"].clone());
        row
    };
    let (has_more, end) = (document["meta"]["has_more"] == true, &document["meta"]["after"]);
    // The service has read on beyond the last event that it returned.
    let next = |shown: usize| text(if shown < events.len() { &events[shown - 1]["id"] } else { end });
    let rest = |shown| format!("call again with the same arguments, and after={}", next(shown));
    let mut data = answer::rows("changes", events.iter().map(one).collect(), has_more, rest);
    let first = answer::first(&data["changes"], 2, |row| {
        let fields = row["fields"].as_array().map_or(String::new(), |fields| format!(" ({})", in_words(fields)));
        let tag = if row["tag"].is_null() { String::new() } else { format!(" {}", quoted(&row["tag"])) };
        let (name, by, at) = (quoted(&row["name"]), quoted(&row["by"]), terminal::time(text(&row["at"])));
        format!("{}{tag} {name}{fields} by {by} at {at} UTC", text(&row["event"]))
    });
    let shown = show::entries(&data["changes"]).count();
    data.insert("next_after".to_owned(), next(shown).into());
    Ok(Answer::new(format!("{}{first}", count(shown as u64, "change")), data))
}
