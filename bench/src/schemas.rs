//! The processor time and memory of compiling a schema at the limit, by the kind of its expensive parts.

use anyhow::{Context, Result, ensure};
use dev_server::cpu_time::cpu_time;
use rig::usage::memory_kilobytes;
use serde_json::{Value, json};
use shared::domain::catalog::custom_fields::FieldsSchema;
use std::io::Write;
use std::time::Duration;

/// The most time that compiling an accepted schema takes in a release build.
const MAX_TIME: Duration = Duration::from_millis(50);
/// The most memory of compiling an accepted schema.
const MAX_KILOBYTES: u64 = 4_000;
/// Runs for each schema. The fastest run counts.
const RUNS: usize = 10;
/// More parts than fit into a schema.
const TOO_MANY: usize = 32 * 1024;

/// Makes a schema with so many expensive parts.
type Make = fn(usize) -> Value;

const KINDS: [(&str, Make); 12] = [
    ("classes of Unicode", |n| json!({"pattern": r"\pL".repeat(n)})),
    ("classes of Unicode, repeated", |n| json!({"pattern": format!(r"[\pL\pM\pN\pP\pS]{{{n}}}")})),
    ("classes of Unicode, in patterns of their own", |n| patterns(n, |n| format!(r"\pL{n}"))),
    ("classes of Unicode without case", |n| json!({"pattern": format!("(?i){}", r"\pL".repeat(n))})),
    ("groups that capture", |n| patterns(n, |n| format!(r"^(\pL{{3}}){n}$"))),
    ("negated classes", |n| patterns(n, |n| format!("[^{n}]+"))),
    ("white space", |n| json!({"pattern": r"\s".repeat(n)})),
    ("letters without case", |n| json!({"pattern": format!("(?i){}", "k".repeat(n))})),
    ("letters, repeated", |n| json!({"pattern": format!("(?:a?){{{n}}}")})),
    ("small patterns", |n| patterns(n, |n| format!("[a-z]{n}"))),
    ("empty rules", |n| json!({"anyOf": vec![json!({}); n]})),
    ("rules that nothing meets", |n| json!({"anyOf": vec![json!({"not": {}}); n]})),
];

fn patterns(count: usize, pattern: fn(usize) -> String) -> Value {
    json!({"anyOf": (0..count).map(|n| json!({"pattern": pattern(n)})).collect::<Vec<_>>()})
}

#[derive(clap::Args)]
pub struct Options {
    /// Measure only this kind, with this many parts. Each kind is measured in a process of its own.
    #[arg(long, hide = true, num_args = 2)]
    only: Option<Vec<usize>>,
}

/// Measures every kind of expensive schema, as large as it is accepted.
pub fn run(options: &Options) -> Result<()> {
    if let Some([kind, parts]) = options.only.as_deref() {
        return measure(KINDS.get(*kind).context("an unknown kind")?.1(*parts));
    }
    let mut out = std::io::stdout();
    writeln!(out, "{:<46}{:>8}{:>10}{:>12}", "at the limit of", "parts", "ms", "kilobytes")?;
    for (number, (name, make)) in KINDS.iter().enumerate() {
        let parts = most_parts(*make);
        let mut child = std::process::Command::new(std::env::current_exe()?);
        let output = child.args(["schemas", "--only", &number.to_string(), &parts.to_string()]).output()?;
        let text = String::from_utf8(output.stdout)?;
        let (micros, kilobytes) = text.trim().split_once(' ').context("no figures")?;
        let (time, kilobytes) = (Duration::from_micros(micros.parse()?), kilobytes.parse::<u64>()?);
        writeln!(out, "{name:<46}{parts:>8}{:>10.1}{kilobytes:>12}", time.as_secs_f64() * 1e3)?;
        let is_cheap = time <= MAX_TIME && kilobytes <= MAX_KILOBYTES;
        ensure!(is_cheap || cfg!(debug_assertions), "{name}: more than {MAX_TIME:?} or {MAX_KILOBYTES} KB");
    }
    Ok(())
}

/// The highest number of parts in an accepted schema.
fn most_parts(make: Make) -> usize {
    let (mut accepted, mut refused) = (0, TOO_MANY);
    while refused - accepted > 1 {
        let middle = accepted.midpoint(refused);
        let is_accepted = FieldsSchema::from_json(&make(middle).to_string()).is_ok();
        *(if is_accepted { &mut accepted } else { &mut refused }) = middle;
    }
    accepted
}

/// Prints the least time that compiling the schema takes, in microseconds, and the most memory, in kilobytes.
fn measure(schema: Value) -> Result<()> {
    // The common parts of all schemas are initialized first.
    FieldsSchema::from_json(r#"{"pattern": "[a-z]\\d"}"#)?;
    let text = schema.to_string();
    let before = memory_kilobytes("self", "VmRSS")?;
    let mut least = Duration::MAX;
    let mut kilobytes = 0;
    for run in 0..RUNS {
        let start = cpu_time();
        FieldsSchema::from_json(&text)?;
        least = least.min(cpu_time() - start);
        if run == 0 {
            kilobytes = memory_kilobytes("self", "VmHWM")?.saturating_sub(before);
        }
    }
    Ok(writeln!(std::io::stdout(), "{} {kilobytes}", least.as_micros())?)
}
