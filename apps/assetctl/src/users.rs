//! `assetctl user`: adds and changes users, reports the data about a person, and erases it.

use crate::config::Connection;
use crate::error::{CliError, EXIT_SUCCESS, Result};
use crate::http::{Client, new_run_id, unreadable, wrong_parameter};
use crate::lookup::{id_of, is_id, person, text, user_named};
use crate::offboard::DRY_RUN;
use crate::output::{confirm, persist, print_json, temporary_beside, to_json};
use crate::set::{self, assignment};
use clap::{Args, Subcommand};
use domain::import::Kind;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use terminal::{examples, print, print_note, record};

#[derive(Debug, Subcommand)]
pub enum User {
    /// Add a user
    #[command(after_help = examples("assetctl user add ada@example.com \"Ada Lovelace\"\nassetctl user add bob@example.com Bob --role technician --dry-run"))]
    Add(Add),
    /// Change a user's fields: email, display_name, role, is_active
    #[command(after_help = examples("assetctl user change ada@example.com role=technician\nassetctl user change \"Ada Lovelace\" is_active=false --dry-run"))]
    Change(Change),
    /// Report all data about a user, even a deleted one
    #[command(after_help = examples("assetctl user report ada@example.com --output ada.html\nassetctl user report ada@example.com | jq .entries"))]
    Report(Report),
    /// Erase a person for good: a pseudonym replaces everything that names the person
    #[command(after_help = examples("assetctl user erase ada@example.com --dry-run"))]
    Erase(Erase),
}

#[derive(Debug, Args)]
pub struct Add {
    /// E-mail address
    email: String,
    /// Display name
    name: String,
    /// Role: viewer, helpdesk, technician or admin [default: viewer]
    #[arg(long)]
    role: Option<String>,
    /// Check the user, and write nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Args)]
pub struct Change {
    /// The user: an e-mail address, a name or an ID
    user: String,
    /// New values of fields
    #[arg(required = true, value_name = "FIELD=VALUE", value_parser = assignment)]
    fields: Vec<(String, String)>,
    /// Show what would change, and write nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Args)]
pub struct Report {
    /// The user: an e-mail address, a name, or an ID, which can also belong to a deleted user
    user: String,
    /// Write to this file instead of standard output: a page to print if it ends in .html, otherwise JSON
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Erase {
    /// The user, who must be inactive: an e-mail address, a name, or an ID, which can also belong to a deleted user
    user: String,
    /// Don't ask for confirmation
    #[arg(long)]
    yes: bool,
    /// Count what would be erased, and erase nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
}

pub async fn user(command: &User, connection: &Connection, is_json: bool) -> Result<u8> {
    let client = Client::new(connection)?;
    match command {
        User::Add(options) => add(&client, options, is_json).await,
        User::Change(options) => {
            let user = user_named(&client, &options.user).await?;
            let change = set::Change::to(&client, Kind::Users, vec![user], options.fields.clone());
            set::carry_out(&change, options.dry_run, BTreeMap::new(), is_json).await
        }
        User::Report(options) => report(&client, options, is_json).await,
        User::Erase(options) => erase(&client, options, is_json).await,
    }
}

async fn add(client: &Client, options: &Add, is_json: bool) -> Result<u8> {
    let Add { email, name, role, dry_run } = options;
    let mut body = json!({"email": email, "display_name": name});
    if let Some(role) = role {
        body["role"] = role.as_str().into();
    }
    let added = match dry_run {
        true => client.post("users", DRY_RUN, &body, None).await,
        false => client.post("users", &[], &body, Some(&new_run_id()?)).await,
    };
    let user = added.map_err(wrong_parameter)?;
    if is_json {
        print_json(&json!({"user": user, "dry_run": dry_run}))?;
    } else {
        let verb = if *dry_run { "Would add" } else { "Added" };
        print(&format!("{verb} {}, {}", person(&user), text(&user["role"])))?;
    }
    Ok(EXIT_SUCCESS)
}

/// Returns the ID and the name of a user. An ID isn't looked up, because a deleted user has a report, too.
async fn id_and_name(client: &Client, name: &str) -> Result<(String, String)> {
    if is_id(name) {
        return Ok((name.to_owned(), format!("the user {name}")));
    }
    let user = user_named(client, name).await?;
    Ok((id_of(&user), person(&user)))
}

async fn report(client: &Client, options: &Report, is_json: bool) -> Result<u8> {
    let (id, name) = id_and_name(client, &options.user).await?;
    let is_page = |path: &Path| path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("html"));
    let is_page = options.output.as_deref().is_some_and(is_page);
    let (path, mut report, mut pages, mut next) = (format!("users/{id}/report"), Map::new(), Vec::new(), None);
    loop {
        let from: Option<String> = next.take();
        let mut query: Vec<(&str, &str)> = from.iter().map(|from| ("from", from.as_str())).collect();
        let part = client.object(&path, &query).await?;
        if is_page {
            query.push(("format", "html"));
            pages.push(client.get(client.url(&path, &query)?, "text/html").await?.body);
        }
        next = part["next"].as_str().filter(|next| from.as_deref() != Some(*next)).map(str::to_owned);
        add_part(&mut report, part);
        if next.is_none() {
            break;
        }
    }
    let Some(output) = &options.output else {
        print_json(&report.into())?;
        return Ok(EXIT_SUCCESS);
    };
    if !is_page {
        pages.push(to_json(&report.into()).into_bytes());
    }
    let mut files = Vec::new();
    for (page, number) in pages.iter().zip(1..) {
        let path = if number == 1 { output.clone() } else { output.with_extension(format!("{number}.html")) };
        let mut file = temporary_beside(&path)?;
        file.write_all(page)?;
        persist(file, &path)?;
        files.push(path.display().to_string());
    }
    if is_json {
        print_json(&json!({"user_id": id, "files": files}))?;
    } else {
        print_note(&format!("Wrote the report about {name} to {}", files.join(", ")));
    }
    Ok(EXIT_SUCCESS)
}

/// Appends the lists of another part of a report. An entry can be in two parts.
fn add_part(report: &mut Map<String, Value>, part: Value) {
    let Value::Object(part) = part else { return };
    for (name, value) in part {
        match (report.get_mut(&name), value) {
            (Some(Value::Array(items)), Value::Array(more)) => {
                let known: BTreeSet<String> = items.iter().map(Value::to_string).collect();
                items.extend(more.into_iter().filter(|item| !known.contains(&item.to_string())));
            }
            (_, value) => {
                report.insert(name, value);
            }
        }
    }
}

async fn erase(client: &Client, options: &Erase, is_json: bool) -> Result<u8> {
    let (id, name) = id_and_name(client, &options.user).await?;
    let (path, body) = (format!("users/{id}/erase"), json!({}));
    let mut erasure = client.post_noting(&path, DRY_RUN, &body, None, "Nothing is erased yet.").await?;
    if options.dry_run {
        return show_erasure(&erasure, true, is_json);
    }
    if !options.yes {
        print_note(&in_words(&erasure, true));
        let question = format!("Erase {name} for good?");
        match confirm(&question)? {
            Some(true) => {}
            Some(false) => return Err(CliError::Usage("nothing was erased".into())),
            None => return Err(CliError::Usage("nothing was erased: answer y, or use --yes".into())),
        }
    }
    let (run, mut removed) = (new_run_id()?, Map::new());
    for number in 1.. {
        let key = format!("{run}-{number}");
        let sent = client.post_noting(&path, &[], &body, Some(&key), "Repeat the command if it ends before.").await;
        erasure = sent.map_err(|error| match number {
            1 => error,
            _ => CliError::Failed(format!("{error}\nA part is erased; repeat the command for the rest.")),
        })?;
        for (what, number) in erasure["removed"].as_object().into_iter().flatten() {
            let sum = removed.get(what).and_then(Value::as_u64).unwrap_or_default() + number.as_u64().unwrap_or_default();
            removed.insert(what.clone(), sum.into());
        }
        if erasure["done"].as_bool().ok_or_else(unreadable)? {
            break;
        }
    }
    erasure["removed"] = removed.into();
    show_erasure(&erasure, false, is_json)
}

fn show_erasure(erasure: &Value, is_dry_run: bool, is_json: bool) -> Result<u8> {
    match is_json {
        true => print_json(&json!({"erasure": erasure, "dry_run": is_dry_run}))?,
        false => {
            print(&in_words(erasure, is_dry_run))?;
        }
    }
    Ok(EXIT_SUCCESS)
}

fn in_words(erasure: &Value, is_dry_run: bool) -> String {
    let removed = erasure["removed"].as_object().into_iter().flatten();
    let removed = removed.filter(|(_, number)| **number != 0).map(|(what, number)| format!("{what}: {number}"));
    let removed = Some(removed.collect::<Vec<_>>().join(", ")).filter(|text| !text.is_empty()).unwrap_or("nothing".to_owned());
    let at_least = if is_dry_run && erasure["done"] != true { "at least " } else { "" };
    let verb = if is_dry_run { "Would erase" } else { "Erased" };
    record([(verb, format!("{at_least}{removed}")), ("Pseudonym", text(&erasure["pseudonym"]).to_owned())], terminal::width())
}
