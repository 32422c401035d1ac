//! `assetctl stats`.

use crate::config::Connection;
use crate::error::{EXIT_SUCCESS, Result};
use crate::http::client::Client;
use crate::http::request::get_data;
use crate::output::{count, print, print_json};
use serde_json::Value;
use terminal::{Column, Table};

pub async fn stats(connection: &Connection, is_json: bool) -> Result<u8> {
    let stats = get_data(&Client::new(connection)?, "stats", &[]).await?;
    if is_json {
        print_json(&stats)?;
    } else {
        print(&summary(&stats, terminal::width()))?;
    }
    Ok(EXIT_SUCCESS)
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
