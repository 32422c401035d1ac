//! What lists cost and how long they take, by the number of a tenant's assets.

mod fill;
mod report;

use crate::service::Service;
use anyhow::{Result, ensure};
use aws_sdk_dynamodb::types::AttributeValue;
use local::meter::Cost;
use local::server::TABLE;
use report::{Report, Row};
use shared::store::keys::{Keys, LIST_INDEX};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The command line.
#[derive(clap::Args)]
pub struct Options {
    /// How many assets the tenants have.
    #[arg(long, value_delimiter = ',', default_value = "1000,10000,100000", value_name = "N,…")]
    sizes: Vec<usize>,
    /// A tenant with 1,000,000 assets as well; takes minutes and some 4 GB of memory.
    #[arg(long)]
    million: bool,
    /// How often each warm list is asked for.
    #[arg(long, default_value_t = 300, value_name = "N")]
    samples: usize,
    /// Write the same as data to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// What is read without the directory, to compare with.
pub const WHOLE: &str = "reading the index whole";
/// The first list of a function instance.
pub const COLD: &str = "the first list on an instance";
/// A search that has to look at every asset.
pub const SEARCH: &str = "a search for nothing";

/// A search that finds a third of all assets, which must then be sorted by name: dearer the more there are.
pub const BROAD: &str = "a third of all, by name";

/// The lists: what they are called, and their queries.
fn lists(size: usize) -> Vec<(&'static str, String)> {
    let last = size.div_ceil(20);
    vec![
        ("page 1", String::new()),
        (if last >= 5000 { "page 5,000" } else { "the last page" }, format!("?page={}", last.min(5000))),
        (SEARCH, "?q=nosuchthing".to_owned()),
        ("status and kind", "?status=in_use&kind=physical".to_owned()),
        (BROAD, "?q=latitude%20room&sort=name".to_owned()),
    ]
}

/// Runs it, and prints the table as it goes.
///
/// # Errors
///
/// The service failed, or a list took more round trips or read units than it may.
pub async fn run(options: Options) -> Result<()> {
    let mut report = Report::default();
    report.head()?;
    let million = options.million.then_some(1_000_000);
    for size in options.sizes.iter().copied().chain(million) {
        ensure!(size >= 100, "a tenant needs at least 100 assets here");
        measure(&mut report, size, options.samples.max(1)).await?;
    }
    if let Some(file) = &options.json {
        std::fs::write(file, serde_json::to_vec_pretty(&report.rows)?)?;
    }
    report.goals()
}

async fn measure(report: &mut Report, size: usize, samples: usize) -> Result<()> {
    let service = Service::start().await?;
    let text = fill::fill(&service, size).await?;
    // The catalog was just made: its events are still read for as long as others may be late.
    service.wait(120_000);
    let few = (200_000 / size).clamp(2, 20);

    let whole = sample(&service, few, async || whole_index(&service, size).await).await?;
    report.add(Row::new(size, WHOLE, &whole, &whole, None))?;

    let cold = sample(&service, few, async || {
        service.store.forget_list_indexes();
        page(&service, "", size).await
    });
    let cold = cold.await?;
    let beside = service.store.list_index_bytes().saturating_sub(text) as f64 / size as f64;
    report.add(Row::new(size, COLD, &cold, &whole, Some(beside)))?;

    for (name, query) in lists(size) {
        let warm = sample(&service, samples, async || page(&service, &query, size).await).await?;
        report.add(Row::new(size, name, &warm, &whole, None))?;
    }
    Ok(())
}

/// What one way to list took, time and again.
pub struct Taken {
    pub times: Vec<Duration>,
    /// The dearest.
    pub cost: Cost,
}

async fn sample(service: &Service, count: usize, once: impl AsyncFn() -> Result<()>) -> Result<Taken> {
    let mut taken = Taken { times: Vec::new(), cost: Cost::default() };
    for _ in 0..count {
        service.meter.take();
        let began = Instant::now();
        once().await?;
        taken.times.push(began.elapsed());
        let cost = service.meter.take();
        taken.cost.round_trips = taken.cost.round_trips.max(cost.round_trips);
        taken.cost.read_units = taken.cost.read_units.max(cost.read_units);
    }
    taken.times.sort_unstable();
    Ok(taken)
}

async fn page(service: &Service, query: &str, size: usize) -> Result<()> {
    let answer = service.send("GET", &format!("/assets{query}"), "").await?;
    let total = answer["meta"]["total"].as_u64().unwrap_or_default();
    if query.contains("nosuchthing") {
        ensure!(total == 0, "a search for nothing found {total}");
    } else {
        ensure!(total > 0 && answer["data"].as_array().is_some_and(|data| !data.is_empty()), "a page is empty: {query}");
        ensure!(query.contains("=in_use") || query.contains("q=") || total == size as u64, "{total} of {size} assets");
    }
    Ok(())
}

/// The naive way, at its cheapest: every line of the index, one page after the other, nothing made of them.
async fn whole_index(service: &Service, size: usize) -> Result<()> {
    let query = service.dynamo.query().table_name(TABLE).index_name(LIST_INDEX);
    let mut pages = query
        .key_condition_expression("PK = :pk AND begins_with(LS, :letter)")
        .expression_attribute_values(":pk", Keys::of(service.tenant).partition())
        .expression_attribute_values(":letter", AttributeValue::S("A".to_owned()))
        .into_paginator()
        .send();
    let mut count = 0;
    while let Some(page) = pages.next().await {
        count += page?.items().len();
    }
    ensure!(count == size, "the index has {count} of {size} assets");
    Ok(())
}
