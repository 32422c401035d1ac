//! Selects assets by tags, IDs or filters.

use crate::error::{CliError, Result};
use crate::http::{Client, Query, unreadable};
use crate::lookup::{self, id_of, items};
use crate::output::Format;
use clap::Args;
use fields::compared::lower;
use indicatif::ProgressBar;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;
use strsim::osa_distance;
use terminal::print_note;

/// Filter value for assets without a user or a place.
pub const NONE: &str = "none";

/// Parameters that are not filters.
pub const NO_FILTERS: [&str; 12] =
    ["after", "bom", "depth", "dry_run", "expand", "format", "group_by", "ids", "layout", "limit", "page", "sort"];

#[derive(Debug, Args)]
pub struct Filters {
    /// Any filter of the list: --filter warranty_before=2027-01-01
    #[arg(long = "filter", value_name = "NAME=VALUE", value_parser = list_filter)]
    filters: Vec<(String, String)>,
    /// Short for --filter status=STATUS
    #[arg(long)]
    status: Option<String>,
    /// Search for text; short for --filter q=TEXT
    #[arg(long, value_name = "TEXT")]
    q: Option<String>,
}

impl Filters {
    pub fn query(&self) -> Query {
        self.filters.iter().cloned().chain(given([("status", &self.status), ("q", &self.q)])).collect()
    }
}

fn given<const N: usize>(filters: [(&str, &Option<String>); N]) -> impl Iterator<Item = (String, String)> {
    filters.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)))
}

#[derive(Debug, Args)]
pub struct AssetFilters {
    /// Assets at this place and everywhere below it; `none` for assets without a place
    #[arg(long, value_name = "PLACE")]
    location: Option<String>,
    /// Assets of the type with this code
    #[arg(long = "type", value_name = "CODE")]
    asset_type: Option<String>,
    /// Assets of this manufacturer
    #[arg(long, value_name = "NAME")]
    manufacturer: Option<String>,
    /// Assets of this user: an e-mail address, a name or an ID; `none` for unassigned assets
    #[arg(long, value_name = "USER")]
    person: Option<String>,
    /// Assets with this value of a custom field: --custom cost_center=0815
    #[arg(long, value_name = "NAME=VALUE", value_parser = filter)]
    custom: Vec<(String, String)>,
    /// The assets because of which lists can't filter, sort or group by this custom field
    #[arg(long, value_name = "NAME")]
    unlisted_field: Option<String>,
    #[command(flatten)]
    others: Filters,
}

impl AssetFilters {
    /// Returns the filters as parameters. Resolves the person to a user ID.
    pub async fn query(&self, client: &Client) -> Result<Query> {
        let mut query = self.others.query();
        query.extend(
            self.values().chain(given([("asset_type_code", &self.asset_type), ("unlisted_field", &self.unlisted_field)])),
        );
        if let Some(person) = &self.person {
            let id = match person.as_str() {
                NONE => NONE.to_owned(),
                person => id_of(&lookup::user_named(client, person).await?),
            };
            query.push(("assigned_to".to_owned(), id));
        }
        Ok(query)
    }

    /// Returns the fields to filter by, with the required values.
    fn values(&self) -> impl Iterator<Item = (String, String)> {
        let custom = self.custom.iter().map(|(name, value)| (format!("custom_fields.{name}"), value.clone()));
        given([("location", &self.location), ("manufacturer", &self.manufacturer)]).chain(custom)
    }
}

/// Normalizes a location as the service does: `Berlin/3rd floor` becomes `Berlin / 3rd floor`.
pub fn normal(place: &str) -> String {
    let words = |level: &str| level.split_whitespace().collect::<Vec<_>>().join(" ");
    place.split('/').map(words).filter(|level| !level.is_empty()).collect::<Vec<_>>().join(" / ")
}

/// Escapes the value of a filter: `\,` is a comma, `\none` the place `none`, and `\\none` the place `\none`.
pub fn escaped(value: &str) -> String {
    if value.trim_start_matches('\\') == NONE { format!("\\{value}") } else { value.replace(',', "\\,") }
}

/// Returns the known names, most similar first.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let (name, mut known): (_, Vec<&str>) = (lower(name), known.into_iter().collect());
    known.sort_by_cached_key(|other| {
        let other = lower(other);
        (!other.contains(&name), osa_distance(&other, &name))
    });
    known
}

/// Returns what the service says about a location without assets, without the full stop.
pub async fn no_asset_at(client: &Client, place: &str) -> Result<String> {
    let page = client.page("assets", &[("location", escaped(place).as_str()), ("limit", "1")]).await?;
    let hint = hint(&page.meta).map(|hint| hint.trim_end_matches('.').to_owned());
    Ok(hint.unwrap_or_else(|| format!("No asset is recorded at {place}")))
}

/// Returns the service's sentence about an empty list: what no asset has, and the nearest that assets have.
pub fn hint(meta: &Value) -> Option<&str> {
    meta["hint"].as_str()
}

/// Replaces the names of parameters in an error with the names of options.
pub fn in_options(error: CliError) -> CliError {
    renamed(error, option_of)
}

/// Replaces the names of parameters in an error, and leaves parameters that are not filters out of its lists of known ones.
pub fn renamed(error: CliError, name: impl Fn(&str) -> String) -> CliError {
    let CliError::Usage(detail) = error else { return error };
    let renamed = |line: &str| match line.strip_prefix("  ").and_then(|line| line.split_once(": ")) {
        Some((parameter, detail)) => format!("  {}: {}", name(parameter), with_filters_only(detail)),
        None => line.to_owned(),
    };
    CliError::Usage(detail.lines().map(renamed).collect::<Vec<_>>().join("\n"))
}

fn with_filters_only(detail: &str) -> String {
    const KNOWN: &str = "unknown parameter; known: ";
    let Some((start, known)) = detail.split_once(KNOWN) else { return detail.to_owned() };
    let filters: Vec<&str> = known.split(", ").filter(|name| !NO_FILTERS.contains(name)).collect();
    format!("{start}{KNOWN}{}", filters.join(", "))
}

fn option_of(parameter: &str) -> String {
    match parameter {
        "asset_type_code" => "--type".to_owned(),
        "assigned_to" => "--person".to_owned(),
        "group_by" => "--by".to_owned(),
        "unlisted_field" => "--unlisted-field".to_owned(),
        "actor_id" => "--actor".to_owned(),
        "location" | "manufacturer" | "status" | "q" | "sort" | "depth" | "types" | "since" | "until" => format!("--{parameter}"),
        other => match other.strip_prefix("custom_fields.") {
            Some(name) => format!("--custom {name}"),
            None => format!("--filter {other}"),
        },
    }
}

/// Returns the codes of all asset types; empty if the key has no access to them.
async fn codes(client: &Client) -> Vec<String> {
    let types = client.data("catalog/asset-types", &[("limit", "100")]).await.unwrap_or_default();
    let codes: BTreeSet<&str> = items(&types).iter().filter_map(|one| one["code"].as_str()).collect();
    codes.into_iter().map(str::to_owned).collect()
}

impl AssetFilters {
    /// Like [`in_options`], but also adds the existing codes to an error about the type.
    pub async fn explain(&self, client: &Client, error: CliError) -> CliError {
        let mut error = in_options(error);
        if let CliError::Usage(detail) = &mut error
            && detail.contains("\n  --type: ")
        {
            let codes = codes(client).await;
            detail.push_str(&if codes.is_empty() { String::new() } else { format!("\nThere are {}.", codes.join(", ")) });
        }
        error
    }
}

/// The fields of an asset needed for a label.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Asset {
    pub id: String,
    pub asset_tag: String,
}

/// Returns the assets with these names, in this order and without duplicates. Names are as in [`lookup::asset`].
pub async fn named(client: &Client, names: &[String]) -> Result<Vec<Asset>> {
    let found = lookup::assets(client, names).await?;
    found.into_iter().map(|asset| serde_json::from_value(asset).map_err(|_| unreadable())).collect()
}

/// Returns the matching assets, sorted by tag in natural order: AST-999 comes before AST-1000.
pub async fn matching(client: &Client, filters: &Filters) -> Result<Vec<Asset>> {
    let (bar, mut assets) = (ProgressBar::new_spinner().with_message("finding assets"), Vec::new());
    let parts = client.parts("assets/export", filters.query(), Format::Ndjson, |part| {
        for line in part.body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            assets.push(serde_json::from_slice(line).map_err(|_| unreadable())?);
        }
        bar.tick();
        if !part.unreadable.is_empty() {
            print_note(&format!("warning: no labels for assets that the service can't read: {}", part.unreadable.join(", ")));
        }
        Ok(())
    });
    parts.await.map_err(in_options)?;
    bar.finish_and_clear();
    assets.sort_by_cached_key(|asset: &Asset| in_order(&asset.asset_tag));
    Ok(assets)
}

/// Returns the sort key of a tag: text in lower case, and runs of digits by their length without leading zeros, then by their
/// digits.
fn in_order(tag: &str) -> (Vec<(String, usize, String)>, String) {
    let (mut parts, mut rest) = (Vec::new(), tag);
    while !rest.is_empty() {
        let (words, digits) = rest.split_at(rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len()));
        let (digits, others) = digits.split_at(digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len()));
        let number = digits.trim_start_matches('0');
        parts.push((words.to_lowercase(), number.len(), number.to_owned()));
        rest = others;
    }
    (parts, tag.to_owned())
}

fn list_filter(text: &str) -> Result<(String, String), String> {
    let (name, value) = filter(text)?;
    match NO_FILTERS.contains(&name.as_str()) {
        true => Err(format!("{name} is not a filter; --help lists the other options")),
        false => Ok((name, value)),
    }
}

fn filter(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("must be NAME=VALUE, such as status=in_use")?;
    Ok((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_options() {
        let detail = "answered 422: 4\n  asset_type_code: must be: 2\n  custom_fields.a b: is\n  status: must\n  foo: unknown";
        let expected = "answered 422: 4\n  --type: must be: 2\n  --custom a b: is\n  --status: must\n  --filter foo: unknown";
        assert_eq!(in_options(CliError::Usage(detail.into())).to_string(), expected);
    }

    #[test]
    fn error_about_an_unknown_filter_lists_only_filters() {
        let detail = "answered 422\n  foo: unknown parameter; known: limit, q, page, location, sort";
        let expected = "answered 422\n  --filter foo: unknown parameter; known: q, location";
        assert_eq!(in_options(CliError::Usage(detail.into())).to_string(), expected);
    }

    #[test]
    fn a_place_is_one_value_of_a_filter() {
        assert_eq!(escaped("Berlin, Mitte / 3"), "Berlin\\, Mitte / 3");
        let others = ["none", "\\none", "None", "Nonesuch"].map(escaped);
        assert_eq!(others, ["\\none", "\\\\none", "None", "Nonesuch"]);
    }

    #[test]
    fn the_most_similar_names_come_first() {
        assert_eq!(nearest("KÖLM", ["Berlin", "Köln / 1st floor", "Köln"]), ["Köln", "Berlin", "Köln / 1st floor"]);
        assert_eq!(nearest("kind", ["id", "name", "asset_kind"])[0], "asset_kind");
    }

    #[test]
    fn tags_are_in_the_order_of_their_numbers() {
        let mut tags = ["AST-1000", "B-1", "ast-999", "AST-10-2", "AST-9", "AST-10-10", "AST", "AST-09", "7"];
        tags.sort_by_cached_key(|tag| in_order(tag));
        assert_eq!(tags, ["7", "AST", "AST-09", "AST-9", "AST-10-2", "AST-10-10", "ast-999", "AST-1000", "B-1"]);
    }
}
