//! The table that is printed, and what it should show.

use super::{BROAD, COLD, SEARCH, Taken, WHOLE};
use anyhow::{Result, bail};
use serde::Serialize;
use std::io::Write;
use std::time::Duration;

/// One line.
#[derive(Serialize)]
pub struct Row {
    assets: usize,
    scenario: &'static str,
    round_trips: usize,
    read_units: f64,
    p50_ms: f64,
    p99_ms: f64,
    /// How many times as fast as reading the index whole.
    ratio: f64,
    /// What the directory takes for each asset beside its text.
    bytes_per_asset: Option<f64>,
}

impl Row {
    /// What a scenario took, beside reading the index whole.
    pub fn new(assets: usize, scenario: &'static str, taken: &Taken, whole: &Taken, bytes_per_asset: Option<f64>) -> Self {
        let (p50, whole) = (quantile(&taken.times, 0.5), quantile(&whole.times, 0.5));
        Self {
            assets,
            scenario,
            round_trips: taken.cost.round_trips,
            read_units: taken.cost.read_units,
            p50_ms: p50,
            p99_ms: quantile(&taken.times, 0.99),
            ratio: whole / p50,
            bytes_per_asset,
        }
    }

    fn warm(&self) -> bool {
        ![WHOLE, COLD].contains(&self.scenario)
    }
}

/// In milliseconds, of sorted times.
fn quantile(sorted: &[Duration], share: f64) -> f64 {
    let place = (sorted.len() as f64 * share) as usize;
    sorted.get(place.min(sorted.len() - 1)).map_or(f64::NAN, |time| time.as_secs_f64() * 1000.0)
}

/// All lines.
#[derive(Default)]
pub struct Report {
    pub rows: Vec<Row>,
}

impl Report {
    /// Prints the head of the table.
    pub fn head(&self) -> Result<()> {
        let mut out = std::io::stdout().lock();
        writeln!(
            out,
            "| assets | scenario | round trips | read units | p50 ms | p99 ms | × whole index | bytes an asset beside text |"
        )?;
        writeln!(out, "|---:|---|---:|---:|---:|---:|---:|---:|")?;
        Ok(())
    }

    /// Adds a line and prints it.
    pub fn add(&mut self, row: Row) -> Result<()> {
        let bytes = row.bytes_per_asset.map_or(String::new(), |bytes| format!("{bytes:.0}"));
        writeln!(
            std::io::stdout(),
            "| {} | {} | {} | {:.1} | {:.2} | {:.2} | {:.1} | {bytes} |",
            row.assets,
            row.scenario,
            row.round_trips,
            row.read_units,
            row.p50_ms,
            row.p99_ms,
            row.ratio
        )?;
        self.rows.push(row);
        Ok(())
    }

    /// Prints each goal and whether it was met. What was counted must be met; times are this machine's.
    pub fn goals(&self) -> Result<()> {
        let mut out = std::io::stdout().lock();
        let mut missed = 0;
        let mut goal = |what: String, met: bool, counted: bool| {
            missed += usize::from(counted && !met);
            writeln!(out, "{} {what}", if met { "met   " } else { "MISSED" })
        };
        writeln!(std::io::stdout())?;
        let most = |rows: &mut dyn Iterator<Item = f64>| rows.fold(0.0, f64::max);
        let warm = || self.rows.iter().filter(|row| row.warm());
        let (trips, units) = (most(&mut warm().map(|row| row.round_trips as f64)), most(&mut warm().map(|row| row.read_units)));
        goal(
            format!("a warm list takes {trips} round trips and {units} read units at most (2 and 30)"),
            trips <= 2.0 && units <= 30.0,
            true,
        )?;
        let beside = most(&mut self.rows.iter().filter_map(|row| row.bytes_per_asset));
        goal(format!("the directory takes {beside:.0} bytes an asset beside its text (200)"), beside <= 200.0, true)?;
        let large = || self.rows.iter().filter(|row| row.assets == 100_000);
        if let Some(cold) = large().find(|row| row.scenario == COLD) {
            let units = cold.read_units;
            goal(format!("at 100,000 the first list takes {units} read units (4,500)"), units <= 4500.0, true)?;
            let least = large().filter(|row| row.warm()).map(|row| row.ratio).fold(f64::INFINITY, f64::min);
            goal(format!("at 100,000 a warm list is {least:.0} times as fast as the whole index (50)"), least >= 50.0, false)?;
        }
        // The same lists in the same order, whatever the last page is called.
        let flat = |row: &&Row| row.warm() && row.scenario != BROAD;
        let small = self.rows.iter().filter(|row| row.assets == 1_000).filter(flat);
        let pairs = large().filter(flat).zip(small).map(|(large, small)| large.p50_ms / small.p50_ms);
        let slower = pairs.fold(0.0, f64::max);
        if slower > 0.0 {
            goal(
                format!(
                    "a warm list at 100,000 takes at most {slower:.2} times as long as the same at 1,000 (2; but for {BROAD})"
                ),
                slower <= 2.0,
                false,
            )?;
        }
        if let Some(search) = self.rows.iter().find(|row| row.assets == 1_000_000 && row.scenario == SEARCH) {
            goal(format!("at 1,000,000 a search takes {:.1} ms (30)", search.p50_ms), search.p50_ms < 30.0, false)?;
        }
        if missed > 0 {
            bail!("{missed} of the counted goals missed");
        }
        Ok(())
    }
}
