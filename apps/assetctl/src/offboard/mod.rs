//! `assetctl offboard`.

pub mod args;
pub mod plan;

use crate::config::Connection;
use crate::error::{CliError, EXIT_REFUSED, EXIT_SUCCESS, Result};
use crate::http::client::Client;
use crate::http::request::{new_run_id, post_data};
use crate::lookup::{self, is_id, text};
use crate::offboard::args::Offboard;
use crate::offboard::plan::Plan;
use crate::output::{print, print_json};
use reqwest::Url;
use serde_json::{Map, Value, json};
use terminal::print_note;

/// Shows the plan for a user's assets, asks, and executes it.
pub async fn offboard(options: &Offboard, connection: &Connection, is_json: bool) -> Result<u8> {
    let client = Client::new(connection)?;
    let user = user_id(&client, &options.user).await?;
    let body = body(&client, options).await?;
    let path = format!("users/{user}/offboard");
    let mut plan = Plan::default();
    plan.add(post_data(&client, &client.url(&path, &[("dry_run", "true")])?, &body, None).await?);
    if options.dry_run {
        show(&plan, false, is_json)?;
        return Ok(exit_code(&plan));
    }
    if !options.yes {
        let deactivates = !options.keep_active && is_active(&client, &path, &plan).await?;
        if !plan.starts_anything() && !deactivates {
            show(&plan, false, is_json)?;
            print_note("There is nothing to do.");
            return Ok(exit_code(&plan));
        }
        confirm(&plan, deactivates)?;
    }
    let mut done = Plan::default();
    let sent = send(&client, &client.url(&path, &[] as &[(&str, &str)])?, &body, &new_run_id()?, &mut done).await;
    // Started processes are shown, even if the rest has failed.
    if sent.is_ok() || done.has_answers() {
        show(&done, true, is_json)?;
    }
    sent.map(|()| exit_code(&done))
}

/// Only matters, and is only requested, if nothing else is to be done.
async fn is_active(client: &Client, path: &str, plan: &Plan) -> Result<bool> {
    if plan.starts_anything() {
        return Ok(true);
    }
    let unchanged = json!({"deactivate": false});
    let data = post_data(client, &client.url(path, &[("dry_run", "true")])?, &unchanged, None).await?;
    Ok(data["user"]["is_active"] == true)
}

/// An id is checked by the request that uses it.
async fn user_id(client: &Client, user: &str) -> Result<String> {
    if is_id(user) { Ok(user.to_owned()) } else { Ok(text(&lookup::user(client, user).await?["id"]).to_owned()) }
}

pub async fn body(client: &Client, options: &Offboard) -> Result<Value> {
    let mut body = Map::from_iter([("deactivate".to_owned(), Value::Bool(!options.keep_active))]);
    if let Some(slug) = &options.process {
        body.insert("process_id".to_owned(), lookup::process(client, slug).await?["id"].take());
    }
    Ok(body.into())
}

fn show(plan: &Plan, is_done: bool, is_json: bool) -> Result<()> {
    if !plan.unreadable.is_empty() {
        let ids: Vec<&str> = plan.unreadable.iter().map(String::as_str).collect();
        print_note(&format!("warning: nothing starts on assets that the service can't read: {}", ids.join(", ")));
    }
    if is_json {
        return print_json(&plan.as_json(!is_done));
    }
    print(&format!("{}\n\n{}", plan.table(is_done, terminal::width()), plan.summary(is_done)))?;
    let returns = if is_done || !plan.starts_anything() { plan.returns() } else { Vec::new() };
    if !returns.is_empty() {
        print(&format!("\nWhen they are back:\n  {}", returns.join("\n  ")))?;
    }
    let next = if is_done { plan.next_steps() } else { Vec::new() };
    if !next.is_empty() {
        let left = "These assets stay with the user. Do this first, then repeat the command:";
        print(&format!("\n{left}\n  {}", next.join("\n  ")))?;
    }
    if plan.has_more && !is_done {
        print_note("The user has more assets, which are taken in turn.");
    }
    Ok(())
}

/// On standard error, because the result goes to standard output.
fn confirm(plan: &Plan, deactivates: bool) -> Result<()> {
    print_note(&format!("{}\n\n{}", plan.table(false, terminal::width()), plan.summary(false)));
    if plan.has_more {
        print_note("The user has more assets, which are taken in turn.");
    }
    match terminal::ask(&format!("{}? [y/N]", plan.question(deactivates)))? {
        Some(answer) if ["y", "yes"].contains(&answer.to_lowercase().as_str()) => Ok(()),
        Some(_) => Err(CliError::Usage("nothing was started".into())),
        None => Err(CliError::Usage("nothing was started: answer y, or use --yes".into())),
    }
}

/// Sends requests until the service has no more assets of the user, and adds the answers to `done`. `run`: the prefix of their
/// idempotency keys.
pub async fn send(client: &Client, url: &Url, body: &Value, run: &str, done: &mut Plan) -> Result<()> {
    for number in 1.. {
        let answer = post_data(client, url, body, Some(&format!("{run}-{number}"))).await;
        let rest = |error: &CliError| format!("{error}\nA part has started; repeat this for the rest.");
        let answer = answer.map_err(|error| match error {
            error if number == 1 => error,
            CliError::Unanswered(_) => CliError::Unanswered(rest(&error)),
            _ => CliError::Failed(rest(&error)),
        })?;
        let has_started = done.add(answer);
        if !done.has_more {
            break;
        }
        if !has_started {
            return Err(CliError::Failed("the service has more assets, but starts nothing; tell its operator".into()));
        }
    }
    Ok(())
}

fn exit_code(plan: &Plan) -> u8 {
    if plan.refused() == 0 { EXIT_SUCCESS } else { EXIT_REFUSED }
}
