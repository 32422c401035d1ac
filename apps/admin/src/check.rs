//! Cross-checks a tenant's items, repairs what can be derived from the records, and removes records that can't be read.

use crate::output::{Field, Output, cell, progress};
use crate::tenants::mark_dry_run;
use anyhow::{Result, bail};
use chrono::TimeDelta;
use indicatif::ProgressBar;
use queue::Sqs;
use serde_json::{Value, json};
use shared::domain::record::Kind;
use shared::domain::webhooks::{DeliveryRequest, Message};
use shared::queue::Queue;
use shared::store::{CheckMode, CheckReport, Finding, PendingDeliveries, Removal, StoreError, Writer};
use terminal::Column;
use uuid::Uuid;

/// Delay after which a delivery's message counts as lost.
const OVERDUE: TimeDelta = TimeDelta::hours(1);

/// Checks a tenant and, with [`CheckMode::Repair`], repairs it where possible. The exit code is 0 if no finding is left open.
pub async fn tenant(store: &Writer, mode: CheckMode, retry_queue: Option<Sqs>) -> Result<Output> {
    let bar = progress(ProgressBar::new_spinner(), "{spinner} {pos} events, {elapsed}")?;
    let CheckReport { records, events, mut findings } = store.check_items(mode, |done| bar.set_position(done)).await?;
    bar.finish_and_clear();
    if records == 0 && events == 0 && findings.is_empty() {
        bail!("tenant {} not found; `admin tenant list` shows all tenants", store.id());
    }
    // An error must not hide the repairs above.
    match overdue_deliveries(store, mode, retry_queue).await {
        Ok(overdue) => findings.extend(overdue),
        Err(error) => findings.push(Finding {
            subject: "the deliveries to webhooks".to_owned(),
            problem: format!("they can't be read: {:#}", anyhow::Error::from(error)),
            repair: Err("check again".to_owned()),
            is_repaired: false,
        }),
    }
    let open = findings.iter().filter(|finding| !finding.is_repaired).count();
    let repairable = findings.iter().filter(|finding| !finding.is_repaired && finding.repair.is_ok()).count();
    let rows: Vec<Value> = findings.into_iter().map(row).collect();
    let value = json!({
        "tenant_id": store.id(), "records": records, "events": events, "findings": rows, "open": open, "repairable": repairable
    });
    Ok(Output::nested(value, "findings", FIELDS).with_success(open == 0))
}

const FIELDS: &[Field] = &[
    (Column::text("SUBJECT"), |row| cell(&row["subject"])),
    (Column::text("PROBLEM"), |row| cell(&row["problem"])),
    (Column::text("REPAIR"), |row| {
        let text = if row["repair"].is_null() { format!("none: {}", cell(&row["obstacle"])) } else { cell(&row["repair"]) };
        if row["repaired"] == true { format!("{text} (done)") } else { text }
    }),
];

/// Finds pending deliveries that are more overdue than a queue can be late, or whose record can't be read.
async fn overdue_deliveries(store: &Writer, mode: CheckMode, retry_queue: Option<Sqs>) -> Result<Vec<Finding>, StoreError> {
    let latest = store.now().plus(-OVERDUE);
    let PendingDeliveries { requests: mut overdue, unreadable } = store.pending_deliveries().await?;
    overdue.retain(|request| request.due.is_some_and(|due| due <= latest));
    let again = || "requeues its message".to_owned();
    let (repair, is_repaired) = match (mode, retry_queue) {
        (CheckMode::ReadOnly, _) => (Ok(again()), false),
        (CheckMode::Repair, None) => (Err("pass the retry queue with --retry-queue".to_owned()), false),
        (CheckMode::Repair, Some(queue)) => {
            let sent = queue.send_retry(overdue.iter().map(|request| Message::Delivery(request.clone()).into()).collect());
            match sent.await {
                Ok(()) => (Ok(again()), true),
                Err(error) => (Err(format!("its message can't be sent: {:#}", anyhow::Error::from(error))), false),
            }
        }
    };
    let unreadable = unreadable.into_iter().map(|(webhook_id, event_id)| Finding {
        subject: format!("delivery {event_id} to webhook {webhook_id}"),
        problem: "its record can't be read".to_owned(),
        repair: Err("it gets no more attempts, and its record expires".to_owned()),
        is_repaired: false,
    });
    let finding = |DeliveryRequest { webhook_id, event_id, due, .. }: DeliveryRequest| Finding {
        subject: format!("delivery {event_id} to webhook {webhook_id}"),
        problem: format!("its attempt at {} is overdue", due.unwrap_or(latest)),
        repair: repair.clone(),
        is_repaired,
    };
    Ok(overdue.into_iter().map(finding).chain(unreadable).collect())
}

fn row(Finding { subject, problem, repair, is_repaired }: Finding) -> Value {
    let (repair, obstacle) = (repair.as_ref().ok(), repair.as_ref().err());
    json!({"subject": subject, "problem": problem, "repair": repair, "obstacle": obstacle, "repaired": is_repaired})
}

pub async fn remove(store: &Writer, kind: Kind, id: Uuid) -> Result<Output> {
    let (noun, tenant) = (kind.as_str(), store.id());
    match store.remove_unreadable(kind, id).await? {
        Removal::Removed => {
            let value = json!({"tenant_id": tenant, "kind": noun, "id": id, "removed": !store.is_dry_run()});
            Ok(mark_dry_run(value, store.is_dry_run(), &[]).into())
        }
        Removal::Missing => bail!("{noun} {id} not found in tenant {tenant}"),
        Removal::Tenant => {
            bail!("the tenant's own record can't be removed: nothing works without it; restore its item from a backup")
        }
        Removal::Readable => bail!("{noun} {id} can be read; delete it over the API"),
        Removal::Changing => bail!("{noun} {id} is changing; try again"),
    }
}
