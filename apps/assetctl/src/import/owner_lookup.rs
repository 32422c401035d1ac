//! Looks up the users that a file has by their names.

use crate::error::Result;
use crate::http::client::Client;
use crate::http::request::{JSON, get, unreadable};
use crate::import::args::Import;
use crate::import::columns::owners::{Owner, Owners, User, search};
use crate::import::columns::{Columns, OWNER_NAME, Target};
use crate::import::source::Source;
use crate::output::count;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::time::Duration;
use terminal::Notice;

/// The service's maximum.
const LIMIT: usize = 100;
/// Longer texts are no names.
const MAX_CHARS: usize = 200;

#[derive(Deserialize)]
struct Page {
    data: Vec<User>,
}

/// Asks for each name once, however many rows have it. Without a column of names, nothing is sent.
pub async fn find_owners(client: &Client, source: &Source, options: &Import, columns: &Columns) -> Result<Owners> {
    let (names, mut owners) = (names(source, options, columns)?, Owners::default());
    let _notice =
        (!names.is_empty()).then(|| Notice::show(&format!("Looking up {} of users", count(names.len() as u64, "name"))));
    let patience = Duration::from_secs(options.give_up_after);
    for name in &names {
        owners.add(name, find(client, name, patience).await?);
    }
    Ok(owners)
}

/// All that rows have after `--map-value`.
fn names(source: &Source, options: &Import, columns: &Columns) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    let mut targets = columns.targets.iter().zip(&source.names);
    let is_owner = |target: &Target| matches!(target, Target::Field(field) if field == OWNER_NAME);
    let Some((_, column)) = targets.find(|(target, _)| is_owner(target)) else { return Ok(names) };
    let mut rows = source.rows(options, columns)?;
    while let Some(row) = rows.next()? {
        let cell = row.original.text(&source.names, column).unwrap_or_default();
        // One that is ambiguous is the row's error.
        let name = columns.fields.values.translate(column, &cell).unwrap_or_default().trim();
        if !name.is_empty() && name != "\\N" {
            names.insert(name.to_owned());
        }
    }
    Ok(names)
}

async fn find(client: &Client, name: &str, patience: Duration) -> Result<Owner> {
    let (words, longest) = search(name);
    if words.is_empty() || name.chars().count() > MAX_CHARS || name.contains(char::is_control) {
        return Ok(Owner::decide(name, &[], &[]));
    }
    let users = users(client, &words, patience).await?;
    let similar = match longest {
        Some(word) if users.is_empty() => self::users(client, word, patience).await?,
        _ => Vec::new(),
    };
    Ok(Owner::decide(name, &users, &similar))
}

/// All whose name or e-mail address has these words.
async fn users(client: &Client, words: &str, patience: Duration) -> Result<Vec<User>> {
    let mut users = Vec::new();
    for page in 1_u32.. {
        let query = [("q", words), ("page", &page.to_string()), ("limit", &LIMIT.to_string())];
        let reply = get(client, &client.url("users", &query)?, JSON, patience).await?;
        let Page { data } = serde_json::from_slice(&reply.body).map_err(|_| unreadable())?;
        let is_last = data.len() < LIMIT;
        users.extend(data);
        if is_last {
            break;
        }
    }
    Ok(users)
}
