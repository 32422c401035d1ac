//! The selection of assets by tags, ids or filters.

use crate::error::{CliError, Result};
use crate::http::client::Client;
use crate::http::patience;
use crate::http::request::{get, get_data};
use clap::Args;
use indicatif::ProgressBar;
use serde::Deserialize;
use std::collections::HashSet;
use terminal::print_note;

const NDJSON: &str = "application/x-ndjson";

/// Which of the records are meant: filters of the list.
#[derive(Debug, Args)]
pub struct Filters {
    /// A filter of the list: --filter warranty_before=2027-01-01
    #[arg(long = "filter", value_name = "NAME=VALUE", value_parser = filter)]
    filters: Vec<(String, String)>,
    /// Those with this status: --filter status=STATUS
    #[arg(long)]
    status: Option<String>,
    /// Those that a search finds: --filter q=TEXT
    #[arg(long, value_name = "TEXT")]
    q: Option<String>,
}

impl Filters {
    /// As in a query.
    pub fn pairs(&self) -> impl Iterator<Item = (String, String)> {
        let named = [("status", &self.status), ("q", &self.q)];
        let named = named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)));
        self.filters.iter().cloned().chain(named)
    }
}

/// The fields of an asset that a label needs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Asset {
    pub id: String,
    pub asset_tag: String,
}

/// `names` are tags or ids. Each asset comes once, in their order.
///
/// # Errors
///
/// Returns [`CliError::Failed`] that names the tags that no asset has or the first unknown ID, or when the service doesn't
/// answer.
pub async fn named(client: &Client, names: &[String]) -> Result<Vec<Asset>> {
    let bar = ProgressBar::new_spinner().with_message("finding assets");
    let (mut assets, mut ids, mut unknown) = (Vec::new(), HashSet::new(), Vec::new());
    for name in names {
        bar.tick();
        let found = if is_id(name) {
            vec![get_data(client, &format!("assets/{name}"), &[]).await?]
        } else {
            get_data(client, "assets", &[("asset_tag", name)]).await?.as_array().cloned().unwrap_or_default()
        };
        let found = found.into_iter().map(serde_json::from_value).collect::<std::result::Result<Vec<Asset>, _>>();
        match found.map_err(|error| unreadable(&error))? {
            found if found.is_empty() => unknown.push(name.as_str()),
            found => assets.extend(found.into_iter().filter(|asset| ids.insert(asset.id.clone()))),
        }
    }
    bar.finish_and_clear();
    match unknown.as_slice() {
        [] => Ok(assets),
        unknown => Err(CliError::Failed(format!("no asset has the tag {}; tags are case-sensitive", unknown.join(", ")))),
    }
}

/// The oldest first.
pub async fn matching(client: &Client, filters: &Filters) -> Result<Vec<Asset>> {
    let mut query = vec![("format".to_owned(), "ndjson".to_owned())];
    query.extend(filters.pairs());
    let mut url = client.url("assets/export", &query)?;
    let bar = ProgressBar::new_spinner().with_message("finding assets");
    let mut assets = Vec::new();
    loop {
        let reply = get(client, &url, NDJSON, patience::DEFAULT).await?;
        let lines = reply.body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        for line in lines {
            assets.push(serde_json::from_slice(line).map_err(|error| unreadable(&error))?);
        }
        bar.tick();
        if !reply.unreadable.is_empty() {
            print_note(&format!("warning: no labels for assets that the service can't read: {}", reply.unreadable.join(", ")));
        }
        match reply.next {
            Some(link) => url = client.follow(&url, &link)?,
            None => break,
        }
    }
    bar.finish_and_clear();
    Ok(assets)
}

#[must_use]
pub fn is_id(text: &str) -> bool {
    let hyphens = [8, 13, 18, 23];
    let fits = |(place, byte): (usize, u8)| if hyphens.contains(&place) { byte == b'-' } else { byte.is_ascii_hexdigit() };
    text.len() == 36 && text.bytes().enumerate().all(fits)
}

fn unreadable(error: &serde_json::Error) -> CliError {
    CliError::Failed(format!("can't read the service's answer; check --base-url: {error}"))
}

fn filter(text: &str) -> std::result::Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("must be NAME=VALUE, such as status=in_use")?;
    Ok((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_not_ids() {
        assert!(is_id("0190163d-8694-739b-aea5-966c26f8ad90"));
        for tag in ["AST-000001", "0190163d8694739baea5966c26f8ad90", "0190163d-8694-739b-aea5-966c26f8ad9-", ""] {
            assert!(!is_id(tag), "{tag}");
        }
    }
}
