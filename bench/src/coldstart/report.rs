//! Prints the figures and compares them with the goals.

use super::Figures;
use crate::statistics;
use anyhow::Result;
use std::io::Write;

fn percentile(values: &[f64], percent: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    statistics::percentile(&sorted, percent)
}

fn median(values: &[f64]) -> f64 {
    percentile(values, 50)
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// A line for each function.
pub fn print_report(functions: &[(&str, &str)], figures: &[Figures], starts: usize) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{starts} starts per function; median times in ms, unless p90 or p99; cpu: CPU time; - warm: first minus warm"
    )?;
    writeln!(
        out,
        "{:<10}{:>6}{:>7}{:>6}{:>6}{:>7}{:>7}{:>7}{:>7}{:>8}{:>8}{:>11}",
        "", "init", "ratio", "p90", "cpu", "first", "- warm", "cpu", "warm", "p99", "MiB", "MB zip"
    )?;
    let baseline = median(&figures[0].init);
    for ((name, _), row) in functions.iter().zip(figures) {
        let (init, first, warm) = (median(&row.init), median(&row.first), median(&row.warm));
        writeln!(
            out,
            "{name:<10}{init:>6.2}{:>7.2}{:>6.2}{:>6.2}{first:>7.2}{:>7.2}{:>7.2}{warm:>7.2}{:>8.2}{:>8.1}{:>11}",
            init / baseline,
            percentile(&row.init, 90),
            median(&row.init_cpu),
            first - warm,
            median(&row.first_cpu),
            percentile(&row.warm, 99),
            median(&row.memory),
            format!("{:.1}/{:.1}", megabytes(row.size), megabytes(row.zipped_size)),
        )?;
    }
    Ok(())
}

/// Missed goals of docs/adr/0011, with the measured values.
pub fn missed_goals(functions: &[(&str, &str)], figures: &[Figures]) -> Vec<String> {
    let baseline = median(&figures[0].init);
    let mut missed = Vec::new();
    for ((name, _), row) in functions.iter().zip(figures).skip(1) {
        let goals = [
            ("init time, as a multiple of the minimal function's", median(&row.init) / baseline, 1.75),
            ("first request minus warm request, ms", median(&row.first) - median(&row.warm), 4.0),
            ("CPU time of the first request, ms", median(&row.first_cpu), 2.5),
            ("zipped binary, MB", megabytes(row.zipped_size), 8.0),
        ];
        let exceeded = goals.iter().filter(|(_, value, goal)| value > goal);
        missed.extend(exceeded.map(|(label, value, goal)| format!("{name}: {label}: {value:.2} (goal: {goal})")));
    }
    missed
}
