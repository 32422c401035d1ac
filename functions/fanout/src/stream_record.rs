//! The event in a record of the table's stream.

use aws_lambda_events::event::dynamodb::EventRecord;
use serde_dynamo::{AttributeValue, Item};
use shared::domain::history::event::Event;
use shared::domain::values::id::TenantId;
use shared::domain::webhooks::NewEvent;
use shared::store::keys::{ENTRY, EVENTS, PK, SK, event_of};

/// The metric in the log lines of events that can't be read.
const UNREADABLE: &str = "unreadable_events";

/// `None` if the record is of something else. An event that can't be read is logged and skipped, since reading it again would
/// not help, and would delay all others.
pub(crate) fn new_event(record: &EventRecord) -> Option<(TenantId, NewEvent)> {
    let keys = &record.change.keys;
    let sort = text(keys, SK).filter(|sort| record.event_name == "INSERT" && sort.starts_with(EVENTS))?;
    let event = text(keys, PK).and_then(|partition| event_of(partition, sort)).and_then(|(tenant_id, id)| {
        let event: Event = serde_json::from_str(text(&record.change.new_image, ENTRY)?).ok()?;
        Some((tenant_id, NewEvent { id, event_type: event.event_type }))
    });
    if event.is_none() {
        // Without its content. The template's metric filters count these lines.
        let sequence_number = record.change.sequence_number.as_deref();
        tracing::error!(metric = UNREADABLE, sequence_number, "an event of the stream can't be read");
    }
    event
}

fn text<'a>(item: &'a Item, name: &str) -> Option<&'a str> {
    match item.inner().get(name)? {
        AttributeValue::S(text) => Some(text),
        _ => None,
    }
}
