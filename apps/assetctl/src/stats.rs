//! `assetctl stats`.

use crate::config::Connection;
use crate::error::{CliError, EXIT_SUCCESS, Result};
use crate::http::client::Client;
use crate::http::request::get_data;
use crate::lookup::{everybody, text};
use crate::output::{count, print, print_json};
use crate::selection::AssetFilters;
use clap::Args;
use serde_json::Value;
use std::collections::BTreeMap;
use terminal::{Column, Table};

/// Options of `stats`.
#[derive(Debug, Args)]
pub struct Stats {
    /// Count groups of assets, and add up their prices: status, asset_type, manufacturer, model, location, assigned_to or custom_fields.NAME
    #[arg(long, value_name = "FIELD")]
    by: Option<String>,
    /// Levels of places that make a group [default: 1]
    #[arg(long, value_name = "LEVELS", requires = "by", value_parser = clap::value_parser!(u64).range(1..=8))]
    depth: Option<u64>,
    /// Of which assets
    #[command(flatten)]
    filters: AssetFilters,
}

/// Prints the statistics, or groups of assets.
pub async fn stats(options: &Stats, connection: &Connection, is_json: bool) -> Result<u8> {
    let client = Client::new(connection)?;
    let mut query = options.filters.pairs(&client).await?;
    query.extend(options.by.iter().map(|field| ("group_by".to_owned(), field.clone())));
    query.extend(options.depth.iter().map(|depth| ("depth".to_owned(), depth.to_string())));
    let query: Vec<(&str, &str)> = query.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let stats = match get_data(&client, "stats", &query).await {
        Err(error) => return Err(with_custom_field(options.filters.explain(&client, error).await, options.by.as_deref())),
        stats => stats?,
    };
    if stats["assets"]["total"] == 0 || stats["groups"].as_array().is_some_and(Vec::is_empty) {
        options.filters.explain_nothing(&client).await;
    }
    match &options.by {
        _ if is_json => print_json(&stats)?,
        None => print(&summary(&stats, terminal::width()))?,
        Some(field) => {
            let people = if field == "assigned_to" { everybody(&client).await? } else { BTreeMap::new() };
            print(&groups(field, &stats, &people).render(terminal::width()))?;
        }
    }
    Ok(EXIT_SUCCESS)
}

/// Says how to name a custom field, if the error is about the groups.
fn with_custom_field(error: CliError, by: Option<&str>) -> CliError {
    match (error, by) {
        (CliError::Usage(detail), Some(by)) if detail.contains("\n  --by: ") && !by.contains('.') => {
            CliError::Usage(format!("{detail}\nFor the custom field {by}: --by custom_fields.{by}"))
        }
        (error, _) => error,
    }
}

/// A row for each group, one for the rest, and one for all. `people` are by id.
fn groups(field: &str, stats: &Value, people: &BTreeMap<String, String>) -> Table {
    let title = field.trim_start_matches("custom_fields.").to_uppercase().replace('_', " ");
    let mut table = Table::new(&[Column::named(&title), Column::number("ASSETS"), Column::number("PURCHASE PRICE")]);
    let (mut assets, mut value) = (0, Vec::new());
    let mut add = |name: String, group: &Value| {
        let (number, price) = (group["count"].as_u64().unwrap_or_default(), text(&group["purchase_price"]));
        assets += number;
        value.push(price.to_owned());
        table.add([name, number.to_string(), price.to_owned()]);
    };
    for group in stats["groups"].as_array().into_iter().flatten() {
        let name = match (&group["value"], group["id"].as_str()) {
            (value, Some(id)) => people.get(id).map_or_else(|| value.as_str().unwrap_or(id), String::as_str),
            (value, None) => value.as_str().unwrap_or("(none)"),
        };
        add(name.to_owned(), group);
    }
    let rest = &stats["rest"];
    if let Some(groups) = rest["groups"].as_u64().filter(|groups| *groups > 0) {
        add(format!("({})", count(groups, "smaller group")), rest);
    }
    table.add(["Total".to_owned(), assets.to_string(), sum(value.iter().map(String::as_str))]);
    table
}

/// The exact sum of decimal texts, with at least two fractional digits.
fn sum<'a>(prices: impl Iterator<Item = &'a str>) -> String {
    const FRACTION: usize = 4;
    let units = |price: &str| {
        let (whole, fraction) = price.split_once('.').unwrap_or((price, ""));
        format!("{whole}{fraction:0<FRACTION$}").parse::<i128>().unwrap_or_default()
    };
    let digits = format!("{:05}", prices.map(units).sum::<i128>());
    let (whole, fraction) = digits.split_at(digits.len() - FRACTION);
    format!("{whole}.{:0<2}", fraction.trim_end_matches('0'))
}

fn summary(stats: &Value, width: Option<usize>) -> String {
    let (assets, instances) = (&stats["assets"], &stats["instances"]);
    let number = |name: &str| assets[name].as_u64().unwrap_or_default();
    let heading = format!("{}: {} assigned, {} not", count(number("total"), "asset"), number("assigned"), number("unassigned"));
    let warranty = |name: &str| assets["warranty"][name].as_u64().unwrap_or_default().to_string();
    let warranties = [
        ("has ended", "ended"),
        ("ends within 30 days", "within_30"),
        ("ends within 60 days", "within_60"),
        ("ends within 90 days", "within_90"),
    ];
    let mut ends = Table::new(&[Column::text("WARRANTY"), Column::number("ASSETS")]);
    warranties.iter().for_each(|(title, name)| ends.add([(*title).to_owned(), warranty(name)]));
    let mut statuses = Table::new(&[Column::text("STATUS"), Column::number("ASSETS"), Column::number("VALUE")]);
    for (status, count) in members(&assets["by_status"]) {
        let value = assets["value_by_status"][status].as_str().unwrap_or("-").to_owned();
        statuses.add([status.to_owned(), count, value]);
    }
    let tables = [
        Some(statuses),
        counts("KIND", "ASSETS", &assets["by_kind"]),
        counts("TYPE", "ASSETS", &assets["by_type"]),
        counts("MANUFACTURER", "ASSETS", &assets["by_manufacturer"]),
        Some(ends),
        counts("PROCESS INSTANCES", "COUNT", &instances["by_status"]),
        counts("PROCESS", "INSTANCES", &instances["by_process"]),
    ];
    let tables = tables.into_iter().flatten().map(|table| table.render(width));
    std::iter::once(heading).chain(tables).collect::<Vec<_>>().join("\n\n")
}

/// `counts` is an object from name to count.
fn members(counts: &Value) -> impl Iterator<Item = (&str, String)> {
    counts.as_object().into_iter().flatten().map(|(name, count)| (name.as_str(), count.to_string()))
}

fn counts(title: &'static str, number: &'static str, counts: &Value) -> Option<Table> {
    let mut table = Table::new(&[Column::text(title), Column::number(number)]);
    members(counts).for_each(|(name, count)| table.add([if name.is_empty() { "(none)" } else { name }.to_owned(), count]));
    (!table.is_empty()).then_some(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn groups_end_with_the_rest_and_the_total() {
        let stats = json!({
            "groups": [
                {"value": "Berlin", "count": 12, "purchase_price": "10000.5"}, {"value": null, "count": 3, "purchase_price": "0.00"},
                {"value": null, "id": "u1", "count": 1, "purchase_price": "0.0301"}, {"id": "u2", "count": 1, "purchase_price": "1.00"}
            ],
            "rest": {"groups": 2, "count": 4, "purchase_price": "7.00"}
        });
        let expected = "\
COST CENTER         ASSETS  PURCHASE PRICE
Berlin                  12         10000.5
(none)                   3            0.00
Ada                      1          0.0301
u2                       1            1.00
(2 smaller groups)       4            7.00
Total                   21      10008.5301";
        let people = BTreeMap::from([("u1".to_owned(), "Ada".to_owned())]);
        assert_eq!(groups("custom_fields.cost_center", &stats, &people).render(Some(80)), expected);
        let none = groups("location", &json!({"groups": [], "rest": {"groups": 0}}), &people).render(None);
        assert_eq!(none, "LOCATION  ASSETS  PURCHASE PRICE\nTotal          0            0.00");
    }

    #[test]
    fn prices_are_added_exactly() {
        for (prices, expected) in [
            (&["0.1", "0.2"][..], "0.30"),
            (&["999999999999.9999", "0.0001"], "1000000000000.00"),
            (&["12", "-"], "12.00"),
            (&[], "0.00"),
        ] {
            assert_eq!(sum(prices.iter().copied()), expected);
        }
    }

    #[test]
    fn every_count_is_in_a_table() {
        let stats = json!({
            "assets": {
                "total": 4, "assigned": 1, "unassigned": 3, "by_status": {"in_stock": 3, "in_use": 1},
                "by_kind": {"physical": 4, "logical": 0}, "by_type": {"": 1, "ノートパソコン": 3}, "by_manufacturer": {},
                "value_by_status": {"in_stock": "3747.00", "in_use": "0"},
                "warranty": {"ended": 1, "within_30": 0, "within_60": 2, "within_90": 2}
            },
            "instances": {"by_status": {"in_progress": 2}, "by_process": {"Employee Onboarding": 2}}
        });
        let expected = "\
4 assets: 1 assigned, 3 not

STATUS    ASSETS    VALUE
in_stock       3  3747.00
in_use         1        0

KIND      ASSETS
physical       4
logical        0

TYPE            ASSETS
(none)               1
ノートパソコン       3

WARRANTY             ASSETS
has ended                 1
ends within 30 days       0
ends within 60 days       2
ends within 90 days       2

PROCESS INSTANCES  COUNT
in_progress            2

PROCESS              INSTANCES
Employee Onboarding          2";
        assert_eq!(summary(&stats, Some(80)), expected);
    }
}
