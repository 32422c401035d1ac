//! Says what the table lacks, and whether the account may run enough Lambda instances.

mod concurrency;
mod table;

use crate::environment;
use crate::output::{Field, Output, cell};
use anyhow::Result;
use aws_sdk_dynamodb::Client;
use serde_json::{Value, json};
use shared::store::client;
use terminal::Column;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Fine,
    /// Something is missing or too small.
    Problem,
    /// AWS did not say.
    Unknown,
    Skipped,
}

#[derive(Debug, PartialEq, Eq)]
struct Finding {
    subject: String,
    state: State,
    /// With the remedy of a problem.
    text: String,
}

impl Finding {
    fn new(subject: impl Into<String>, state: State, text: impl Into<String>) -> Self {
        Self { subject: subject.into(), state, text: text.into() }
    }

    /// The problem is `lacking` unless `is_fine`.
    fn of(subject: impl Into<String>, is_fine: bool, fine: &str, lacking: &str) -> Self {
        if is_fine { Self::new(subject, State::Fine, fine) } else { Self::new(subject, State::Problem, lacking) }
    }

    fn row(&self) -> Value {
        let state = match self.state {
            State::Fine => "ok",
            State::Problem => "problem",
            State::Unknown => "unknown",
            State::Skipped => "not checked",
        };
        json!({"subject": self.subject, "state": state, "text": self.text})
    }
}

const FIELDS: &[Field] = &[
    (Column::new("SUBJECT"), |row| cell(&row["subject"])),
    (Column::new("STATE"), |row| cell(&row["state"])),
    (Column::text("FOUND"), |row| cell(&row["text"])),
];

/// `limit` is that of the account's Lambda instances, `parameters` are those of the stack that aren't the template's defaults.
/// The exit code is 0 if no problem was found and everything could be read.
pub async fn run(name: &str, limit: Option<u64>, parameters: &[(String, u64)]) -> Result<Output> {
    let concurrency = concurrency::check(parameters.to_vec(), limit)?;
    let config = environment::load().await?;
    let client = Client::from_conf(client::configure(aws_sdk_dynamodb::config::Builder::from(&config)).build());
    let mut findings = table::check(&client, name).await;
    findings.push(concurrency);
    let open = findings.iter().filter(|finding| matches!(finding.state, State::Problem | State::Unknown)).count();
    let rows: Vec<Value> = findings.iter().map(Finding::row).collect();
    Ok(Output::nested(json!({"table": name, "findings": rows, "open": open}), "findings", FIELDS).with_success(open == 0))
}
