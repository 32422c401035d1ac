//! Records by the names that people have for them.

use crate::error::{CliError, Result};
use crate::http::client::Client;
use crate::http::request::{get_data, get_object, object};
use crate::people::Directory;
use serde_json::Value;
use std::collections::BTreeMap;

/// `name` is an id, a tag or, if there is neither, a serial number that only one asset has.
pub async fn asset(client: &Client, name: &str) -> Result<Value> {
    find_asset(client, name).await?.ok_or_else(|| no_asset(name))
}

/// The error of a name that no asset has.
pub fn no_asset(name: &str) -> CliError {
    let id = if is_id(name) { "the id, " } else { "" };
    CliError::Failed(format!("no asset has {id}the tag or the serial number {name}"))
}

/// As [`asset`], or `None`.
pub async fn find_asset(client: &Client, name: &str) -> Result<Option<Value>> {
    // A tag and a serial number can have the form of an id.
    let by_id = is_id(name).then(|| format!("assets/{name}"));
    // Dots would lead to another path.
    let by_tag = (!name.bytes().all(|byte| byte == b'.')).then(|| format!("assets/by-tag/{}", path_segment(name)));
    for path in by_id.into_iter().chain(by_tag) {
        match get_object(client, &path, &[]).await {
            Err(error) if error.is_missing() => {}
            found => return found.map(Some),
        }
    }
    let same_serial = match name.trim().is_empty() {
        true => Value::Null,
        false => get_data(client, "assets", &[("serial_number", name)]).await?,
    };
    match same_serial.as_array().map(Vec::as_slice).unwrap_or_default() {
        [] => Ok(None),
        [one] => object(one.clone()).map(Some),
        several => {
            let tags: Vec<&str> = several.iter().map(|asset| text(&asset["asset_tag"])).collect();
            Err(CliError::Failed(format!("several assets have the serial number {name}: {}", tags.join(", "))))
        }
    }
}

/// `user` is an id, an e-mail address, or the name of only one active user.
pub async fn user(client: &Client, user: &str) -> Result<Value> {
    if is_id(user) {
        return get_object(client, &format!("users/{user}"), &[]).await;
    }
    if !user.contains('@') {
        let found = Directory::Service(client).find(user).await?;
        let id = found.map_err(|detail| CliError::Failed(terminal::clean(&detail)))?;
        return get_object(client, &format!("users/{id}"), &[]).await;
    }
    let users = get_data(client, "users", &[("email", user)]).await?;
    only(users)?.ok_or_else(|| CliError::Failed(format!("no user has the e-mail address {user}")))
}

/// `name` is an e-mail address, an id, all of `Ada <ada@example.com>`, or a name that only one user has.
pub async fn user_named(client: &Client, name: &str) -> Result<Value> {
    let name = name.rsplit_once('<').and_then(|(_, address)| address.strip_suffix('>')).unwrap_or(name).trim();
    if is_id(name) || name.contains('@') {
        return user(client, name).await;
    }
    let found = get_data(client, "users", &[("q", name), ("limit", "10")]).await?;
    let all: Vec<&Value> = found.as_array().into_iter().flatten().collect();
    let is_same = |user: &&Value| text(&user["display_name"]).to_lowercase() == name.to_lowercase();
    let same: Vec<&Value> = all.iter().copied().filter(is_same).collect();
    match (same.as_slice(), all.as_slice()) {
        ([one], _) | ([], [one]) => object((*one).clone()),
        (_, []) => Err(CliError::Failed(format!("no user has the name {name}"))),
        (_, all) => {
            let people = all.iter().map(|user| person(user)).collect::<Vec<_>>().join(", ");
            Err(CliError::Failed(format!("several users match {name}, name one by e-mail address: {people}")))
        }
    }
}

/// A process definition.
pub async fn process(client: &Client, slug: &str) -> Result<Value> {
    let is_slug = !slug.is_empty() && slug.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
    if is_slug && let Some(process) = only(get_data(client, "processes", &[("slug", slug)]).await?)? {
        return Ok(process);
    }
    let all = get_data(client, "processes", &[("limit", "100")]).await?;
    let slugs: Vec<&str> = all.as_array().into_iter().flatten().filter_map(|process| process["slug"].as_str()).collect();
    let known = if slugs.is_empty() { "none".to_owned() } else { slugs.join(", ") };
    Err(CliError::Failed(format!("unknown process {slug}; known: {known}")))
}

/// The id of the asset type with this code or name, or of the only one that is similar.
pub async fn asset_type(client: &Client, name: &str) -> Result<String> {
    let coded = get_data(client, "catalog/asset-types", &[("code", name)]).await?;
    let named = get_data(client, "catalog/asset-types", &[("q", name)]).await?;
    let all = || named.as_array().into_iter().flatten();
    let is_same = |one: &&Value| text(&one["name"]).to_lowercase() == name.to_lowercase();
    let only = || named.get(0).filter(|_| named.get(1).is_none());
    let names = || all().map(|one| text(&one["name"])).collect::<Vec<_>>().join(", ");
    let missing = || CliError::Failed(format!("no single asset type has the code or name {name}; similar: {}", names()));
    let found = coded.get(0).or_else(|| all().find(is_same)).or_else(only);
    found.map(|one| text(&one["id"]).to_owned()).ok_or_else(missing)
}

/// The list is filtered by a unique value.
fn only(list: Value) -> Result<Option<Value>> {
    match list.as_array().map(Vec::as_slice).unwrap_or_default() {
        [] => Ok(None),
        [one] if one["id"].is_string() => Ok(Some(one.clone())),
        several => Err(CliError::Failed(format!("the service answered with {} things instead of one", several.len()))),
    }
}

/// The user with an id, as [`person`] shows them; the id itself if the user is deleted, or the key may not read users.
pub async fn person_with(client: &Client, id: &str) -> Result<String> {
    match get_data(client, &format!("users/{id}"), &[]).await {
        Ok(user) => Ok(person(&user)),
        Err(CliError::Answered { status: 403 | 404, .. }) => Ok(terminal::clean(id)),
        Err(error) => Err(error),
    }
}

/// The users with these ids, as [`person_with`] shows them.
pub async fn people_with<'a>(client: &Client, ids: impl Iterator<Item = &'a str>) -> Result<BTreeMap<String, String>> {
    let mut people = BTreeMap::new();
    for id in ids {
        if !people.contains_key(id) {
            people.insert(id.to_owned(), person_with(client, id).await?);
        }
    }
    Ok(people)
}

/// All users by their ids, as [`person`] shows them; none if the key may not read users.
pub async fn everybody(client: &Client) -> Result<BTreeMap<String, String>> {
    let mut people = BTreeMap::new();
    for page in 1_u32.. {
        let query = [("limit", "100"), ("page", &page.to_string())];
        let users = match get_data(client, "users", &query).await {
            Err(CliError::Answered { status: 403, .. }) => break,
            users => users?,
        };
        let all = users.as_array().map(Vec::as_slice).unwrap_or_default();
        people.extend(all.iter().map(|user| (text(&user["id"]).to_owned(), person(user))));
        if all.len() < 100 {
            break;
        }
    }
    Ok(people)
}

/// `Ada <ada@example.com>`, on one line.
#[must_use]
pub fn person(user: &Value) -> String {
    terminal::clean(&format!("{} <{}>", text(&user["display_name"]), text(&user["email"])))
}

/// `AST-000007 My laptop`, on one line.
#[must_use]
pub fn tag_and_name(asset: &Value) -> String {
    terminal::clean(&format!("{} {}", text(&asset["asset_tag"]), text(&asset["name"])))
}

/// `-` for anything that is no text.
#[must_use]
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("-")
}

#[must_use]
pub fn is_id(text: &str) -> bool {
    let hyphens = [8, 13, 18, 23];
    let fits = |(place, byte): (usize, u8)| if hyphens.contains(&place) { byte == b'-' } else { byte.is_ascii_hexdigit() };
    text.len() == 36 && text.bytes().enumerate().all(fits)
}

/// A tag can have any visible character.
fn path_segment(text: &str) -> String {
    let encode = |byte: u8| {
        if byte.is_ascii_alphanumeric() || b"-_".contains(&byte) { char::from(byte).into() } else { format!("%{byte:02X}") }
    };
    text.bytes().map(encode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_stays_one_segment_of_a_path() {
        assert_eq!(path_segment("AST-1_b"), "AST-1_b");
        assert_eq!(path_segment("A/1?#%é"), "A%2F1%3F%23%25%C3%A9");
    }

    #[test]
    fn tags_are_not_ids() {
        assert!(is_id("0190163d-8694-739b-aea5-966c26f8ad90"));
        for tag in ["AST-000001", "0190163d8694739baea5966c26f8ad90", "0190163d-8694-739b-aea5-966c26f8ad9-", ""] {
            assert!(!is_id(tag), "{tag}");
        }
    }
}
