//! Finds assets, users, processes and types by the names that people use.

use crate::error::{CliError, Result};
use crate::http::{Client, Query, object, unreadable};
use crate::selection::nearest;
use domain::people::called::{self, Called};
use indicatif::ProgressBar;
use serde_json::Value;
use std::collections::BTreeMap;

/// A longer name, in characters, is not searched for.
const MAX_CHARS: usize = 200;
/// Maximum number of candidates in an error.
const MAX_CANDIDATES: usize = 5;

/// Finds an asset. `name` is a tag, a serial number that only one asset has, an ID, or what a scanner types for a label.
pub async fn asset(client: &Client, name: &str) -> Result<Value> {
    find_asset(client, name).await?.ok_or_else(|| no_asset(name))
}

/// Finds assets, in this order and without duplicates. Names are as in [`asset`].
pub async fn assets(client: &Client, names: &[String]) -> Result<Vec<Value>> {
    let bar = ProgressBar::new_spinner().with_message("finding assets");
    let mut assets: Vec<Value> = Vec::new();
    for name in names {
        bar.tick();
        let found = asset(client, name).await?;
        if !assets.iter().any(|known| known["id"] == found["id"]) {
            assets.push(found);
        }
    }
    bar.finish_and_clear();
    Ok(assets)
}

/// Returns the error for a name that no asset has.
pub fn no_asset(name: &str) -> CliError {
    let id = if is_id(name) { "the ID, " } else { "" };
    CliError::Failed(format!("no asset has {id}the tag or the serial number {name}"))
}

/// Like [`asset`], but returns `None` if no asset has the name.
pub async fn find_asset(client: &Client, name: &str) -> Result<Option<Value>> {
    if name.trim().is_empty() {
        return Ok(None);
    }
    let found = client.data("assets", &[("code", name)]).await?;
    match items(&found) {
        [] => Ok(None),
        [one] => object(one.clone()).map(Some),
        several => {
            let tags: Vec<&str> = several.iter().map(|asset| text(&asset["asset_tag"])).collect();
            Err(CliError::Failed(format!("several assets have the serial number {name}: {}", tags.join(", "))))
        }
    }
}

/// Finds a user. `user` is an ID, an e-mail address, or a name that only one active user has.
pub async fn user(client: &Client, user: &str) -> Result<Value> {
    if user.contains('@') {
        let users = client.data("users", &[("email", user)]).await?;
        return only(users)?.ok_or_else(|| CliError::Failed(format!("no user has the e-mail address {user}")));
    }
    let id = match is_id(user) {
        true => user.to_owned(),
        false => {
            let found = user_called(client, user).await?;
            found.map_err(|detail| CliError::Failed(terminal::clean(&detail)))?
        }
    };
    client.object(&format!("users/{id}"), &[]).await
}

/// Like [`user`], but also finds inactive users by name. `name` is an ID, an e-mail address, `Ada <ada@example.com>`, a unique
/// display name in either word order, or search text that matches only one user.
pub async fn user_named(client: &Client, name: &str) -> Result<Value> {
    let name = name.rsplit_once('<').and_then(|(_, address)| address.strip_suffix('>')).unwrap_or(name).trim();
    if is_id(name) || name.contains('@') {
        return user(client, name).await;
    }
    let (words, _) = called::words(name);
    let words = if words.is_empty() { name } else { words.as_str() };
    let found = client.data("users", &[("q", words), ("limit", "10")]).await?;
    let is_same = |user: &&Value| called::name_key(text(&user["display_name"])) == called::name_key(name);
    let same: Vec<&Value> = items(&found).iter().filter(is_same).collect();
    match (same.as_slice(), items(&found)) {
        ([one], _) => object((*one).clone()),
        ([], [one]) => object(one.clone()),
        (_, []) => Err(CliError::Failed(format!("no user has the name {name}"))),
        (_, all) => {
            let people = all.iter().map(person).collect::<Vec<_>>().join(", ");
            Err(CliError::Failed(format!("several users match {name}; give an e-mail address: {people}")))
        }
    }
}

pub async fn process(client: &Client, slug: &str) -> Result<Value> {
    let is_slug = !slug.is_empty() && slug.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
    if is_slug && let Some(process) = only(client.data("processes", &[("slug", slug)]).await?)? {
        return Ok(process);
    }
    let all = client.data("processes", &[("limit", "100")]).await?;
    let slugs: Vec<&str> = items(&all).iter().filter_map(|process| process["slug"].as_str()).collect();
    let known = if slugs.is_empty() { "none".to_owned() } else { slugs.join(", ") };
    Err(CliError::Failed(format!("unknown process {slug}; known: {known}")))
}

/// Returns the asset type with this code or name, or the only similar type.
pub async fn asset_type(client: &Client, name: &str) -> Result<Value> {
    let coded = client.data("catalog/asset-types", &[("code", name)]).await?;
    let named = client.data("catalog/asset-types", &[("q", name)]).await?;
    let named = items(&named);
    let is_same = |one: &&Value| text(&one["name"]).to_lowercase() == name.to_lowercase();
    let only = || named.first().filter(|_| named.len() == 1);
    let found = coded.get(0).or_else(|| named.iter().find(is_same)).or_else(only);
    if let Some(found) = found {
        return object(found.clone());
    }
    let candidates = match named {
        [] => client.rows("catalog/asset-types", Query::new(), u64::MAX).await?.rows,
        named => named.to_vec(),
    };
    let mut similar = nearest(name, candidates.iter().map(|one| text(&one["name"])));
    similar.truncate(MAX_CANDIDATES);
    let similar = if similar.is_empty() { String::new() } else { format!("; similar: {}", similar.join(", ")) };
    Err(CliError::Failed(format!("no single asset type has the code or name {name}{similar}")))
}

/// Returns the only row of a list with a unique filter; fails if the service sends several.
fn only(list: Value) -> Result<Option<Value>> {
    match items(&list) {
        [] => Ok(None),
        [one] if one["id"].is_string() => Ok(Some(one.clone())),
        several => Err(CliError::Failed(format!("the service answered with {} records instead of one", several.len()))),
    }
}

/// Returns [`person`] for the user with this ID; the ID itself if the user is deleted, or if the key has no access to users.
pub async fn person_with(client: &Client, id: &str) -> Result<String> {
    match client.data(&format!("users/{id}"), &[]).await {
        Ok(user) => Ok(person(&user)),
        Err(CliError::Answered { status: 403 | 404, .. }) => Ok(terminal::clean(id)),
        Err(error) => Err(error),
    }
}

/// Returns [`person_with`] for these users, by ID.
pub async fn people_with<'a>(client: &Client, ids: impl Iterator<Item = &'a str>) -> Result<BTreeMap<String, String>> {
    let mut people = BTreeMap::new();
    for id in ids {
        if !people.contains_key(id) {
            people.insert(id.to_owned(), person_with(client, id).await?);
        }
    }
    Ok(people)
}

/// Returns [`person`] for all users, by ID; empty if the key has no access to users.
pub async fn everybody(client: &Client) -> Result<BTreeMap<String, String>> {
    match client.rows("users", Query::new(), u64::MAX).await {
        Err(CliError::Answered { status: 403, .. }) => Ok(BTreeMap::new()),
        users => Ok(users?.rows.iter().map(|user| (id_of(user), person(user))).collect()),
    }
}

/// Formats a user as `Ada <ada@example.com>`, on one line.
pub fn person(user: &Value) -> String {
    terminal::clean(&format!("{} <{}>", text(&user["display_name"]), text(&user["email"])))
}

/// Formats an asset as `AST-000007 My laptop`, on one line.
pub fn tag_and_name(asset: &Value) -> String {
    terminal::clean(&format!("{} {}", text(&asset["asset_tag"]), text(&asset["name"])))
}

/// Returns a string, or `-` if the value isn't one.
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("-")
}

/// Returns the items of an array; none if the value isn't an array.
pub fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

pub fn id_of(record: &Value) -> String {
    text(&record["id"]).to_owned()
}

pub fn is_id(text: &str) -> bool {
    let hyphens = [8, 13, 18, 23];
    let fits = |(place, byte): (usize, u8)| if hyphens.contains(&place) { byte == b'-' } else { byte.is_ascii_hexdigit() };
    text.len() == 36 && text.bytes().enumerate().all(fits)
}

/// Returns the ID of the only active user with this name, or an error with the candidates.
async fn user_called(client: &Client, name: &str) -> Result<Result<String, String>> {
    let (words, longest) = called::words(name);
    let only = |users: &[Called], similar: &[Called]| called::only(name, users, similar).map(|user| user.id.clone());
    if words.is_empty() || name.chars().count() > MAX_CHARS || name.contains(char::is_control) {
        return Ok(only(&[], &[]));
    }
    let users = users_with(client, &words).await?;
    let similar = match longest {
        Some(word) if users.is_empty() => users_with(client, word).await?,
        _ => Vec::new(),
    };
    Ok(only(&users, &similar))
}

/// Returns the users whose name or e-mail address contains all of these words.
async fn users_with(client: &Client, words: &str) -> Result<Vec<Called>> {
    let found = client.rows("users", vec![("q".to_owned(), words.to_owned())], u64::MAX).await?;
    found.rows.into_iter().map(|user| serde_json::from_value(user).map_err(|_| unreadable())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_is_not_mistaken_for_an_id() {
        assert!(is_id("0190163d-8694-739b-aea5-966c26f8ad90"));
        for tag in ["AST-000001", "0190163d8694739baea5966c26f8ad90", "0190163d-8694-739b-aea5-966c26f8ad9-", ""] {
            assert!(!is_id(tag), "{tag}");
        }
    }
}
