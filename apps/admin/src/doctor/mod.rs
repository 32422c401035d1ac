//! `admin doctor`: checks the table, its indexes and its settings, and whether the account can run enough Lambda instances.

mod concurrency;

use crate::environment;
use crate::output::{Field, Output, cell};
use anyhow::Result;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use aws_sdk_dynamodb::types::{
    ContinuousBackupsDescription, IndexStatus, PointInTimeRecoveryStatus, StreamViewType, TableDescription, TableStatus,
    TimeToLiveDescription, TimeToLiveStatus,
};
use serde_json::{Value, json};
use shared::services::system_clock;
use shared::store::keys::{EXPIRES, HISTORY, LIST_INDEX};
use shared::store::{Store, configure_client};
use terminal::Column;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Fine,
    /// Something is missing or too small.
    Problem,
    /// AWS didn't answer.
    Unknown,
    Skipped,
}

#[derive(Debug, PartialEq, Eq)]
struct Finding {
    subject: String,
    state: State,
    /// Includes the remedy for a problem.
    text: String,
}

impl Finding {
    fn new(subject: impl Into<String>, state: State, text: impl Into<String>) -> Self {
        Self { subject: subject.into(), state, text: text.into() }
    }

    /// Reports the problem `lacking` unless `is_fine`.
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

/// Checks the table and the account. `limit` is the account's limit on Lambda instances, `parameters` are the stack's parameters
/// that differ from the template's defaults. The exit code is 0 if no problem was found and everything could be read.
pub async fn run(name: &str, limit: Option<u64>, parameters: &[(String, u64)]) -> Result<Output> {
    let concurrency = concurrency::check(parameters.to_vec(), limit)?;
    let config = environment::load().await?;
    let client = Client::from_conf(configure_client(aws_sdk_dynamodb::config::Builder::from(&config)).build());
    let mut findings = check(&client, name).await;
    findings.push(concurrency);
    let open = findings.iter().filter(|finding| matches!(finding.state, State::Problem | State::Unknown)).count();
    let rows: Vec<Value> = findings.iter().map(Finding::row).collect();
    Ok(Output::nested(json!({"table": name, "findings": rows, "open": open}), "findings", FIELDS).with_success(open == 0))
}

/// Checks the table. If the table is missing, reports only that.
async fn check(client: &Client, name: &str) -> Vec<Finding> {
    let described = match client.describe_table().table_name(name).send().await {
        Ok(described) => described.table.unwrap_or_else(|| TableDescription::builder().build()),
        Err(error) if error.as_service_error().is_some_and(|error| error.is_resource_not_found_exception()) => {
            let text =
                "This account and region have no such table. Deploy the stack, and pass its output TableName with --table.";
            return vec![Finding::new("table", State::Problem, text)];
        }
        Err(error) => return vec![unknown("table", &error, "dynamodb:DescribeTable")],
    };
    let mut findings = vec![reachable(client, name, &described).await];
    findings.extend([LIST_INDEX, HISTORY].map(|name| index(&described, name)));
    findings.push(match client.describe_time_to_live().table_name(name).send().await {
        Ok(described) => expiry(described.time_to_live_description.as_ref()),
        Err(error) => unknown("time to live", &error, "dynamodb:DescribeTimeToLive"),
    });
    findings.push(stream(&described));
    findings.push(match client.describe_continuous_backups().table_name(name).send().await {
        Ok(described) => recovery(described.continuous_backups_description.as_ref()),
        Err(error) => unknown("point-in-time recovery", &error, "dynamodb:DescribeContinuousBackups"),
    });
    findings.push(Finding::of(
        "deletion protection",
        described.deletion_protection_enabled == Some(true),
        "The table is protected.",
        "A single call can delete the table. Protect it: aws dynamodb update-table --deletion-protection-enabled.",
    ));
    findings
}

fn unknown(subject: &str, error: &impl ProvideErrorMetadata, action: &str) -> Finding {
    let cause = [error.code(), error.message()].into_iter().flatten().collect::<Vec<_>>().join(": ");
    let cause = if cause.is_empty() { "no response" } else { &cause };
    Finding::new(subject, State::Unknown, format!("It can't be read; this needs {action}: {cause}"))
}

async fn reachable(client: &Client, name: &str, described: &TableDescription) -> Finding {
    if described.table_status != Some(TableStatus::Active) {
        let status = described.table_status.as_ref().map_or("unknown", TableStatus::as_str);
        return Finding::new("table", State::Problem, format!("Its status is {status}. Wait until it is ACTIVE."));
    }
    match Store::new(client.clone(), name, system_clock()).ping().await {
        Ok(()) => Finding::new("table", State::Fine, "It responds."),
        Err(error) => Finding::new("table", State::Unknown, format!("It can't be read; this needs dynamodb:GetItem: {error}")),
    }
}

fn index(described: &TableDescription, name: &str) -> Finding {
    let subject = format!("index {name}");
    let Some(index) = described.global_secondary_indexes().iter().find(|index| index.index_name() == Some(name)) else {
        return Finding::new(subject, State::Problem, "It is missing. Deploy this release's template.");
    };
    let is_active = index.index_status.as_ref().is_none_or(|status| *status == IndexStatus::Active);
    Finding::of(subject, is_active, "It is active.", "It is not active yet. Wait: lists and histories fail until then.")
}

fn expiry(described: Option<&TimeToLiveDescription>) -> Finding {
    let is_enabled = described.is_some_and(|described| {
        let is_on = matches!(described.time_to_live_status, Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling));
        is_on && described.attribute_name() == Some(EXPIRES)
    });
    let lacking = format!(
        "Counters and stored responses never expire. Enable it: aws dynamodb update-time-to-live --time-to-live-specification \
         Enabled=true,AttributeName={EXPIRES}."
    );
    Finding::of("time to live", is_enabled, "Expired items are removed.", &lacking)
}

fn stream(described: &TableDescription) -> Finding {
    let view = described.stream_specification().and_then(|stream| stream.stream_view_type());
    let lacking = "The table has no stream with new images, so webhooks receive no events. For a restored table, see the \
        runbook's section \"Restore\".";
    Finding::of("stream", view == Some(&StreamViewType::NewImage), "It contains new images.", lacking)
}

fn recovery(described: Option<&ContinuousBackupsDescription>) -> Finding {
    let status = described.and_then(|backups| backups.point_in_time_recovery_description()?.point_in_time_recovery_status());
    Finding::of(
        "point-in-time recovery",
        status == Some(&PointInTimeRecoveryStatus::Enabled),
        "The table can be restored.",
        "Lost data can't be restored. Enable it: aws dynamodb update-continuous-backups --point-in-time-recovery-specification \
         PointInTimeRecoveryEnabled=true.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_sdk_dynamodb::types::{ContinuousBackupsStatus, PointInTimeRecoveryDescription};

    #[test]
    fn a_table_must_be_restorable() {
        let backups = |status: PointInTimeRecoveryStatus| {
            let recovery = PointInTimeRecoveryDescription::builder().point_in_time_recovery_status(status).build();
            let backups = ContinuousBackupsDescription::builder().continuous_backups_status(ContinuousBackupsStatus::Enabled);
            backups.point_in_time_recovery_description(recovery).build().expect("a description")
        };
        assert_eq!(recovery(Some(&backups(PointInTimeRecoveryStatus::Enabled))).state, State::Fine);
        assert_eq!(recovery(Some(&backups(PointInTimeRecoveryStatus::Disabled))).state, State::Problem);
        assert_eq!(recovery(None).state, State::Problem);
    }
}
