//! Sample records for unit tests.

use crate::assets::asset::{Asset, Status};
use crate::history::chain::HistoryEntry;
use crate::history::event::{self, Actor, Commitments, Event};
use crate::processes::instance::{Instance, Starter};
use crate::processes::process::{Process, ProcessStatus, Steps};
use crate::record::Stored;
use crate::values::id::{AssetId, EventId, Id, InstanceId, ProcessId, UserId, WebhookId};
use crate::values::signature_image::data_url;
use crate::values::text::Notes;
use crate::values::time::Timestamp;
use crate::webhooks::Webhook;
use serde_json::{Value, json};
use uuid::Uuid;

pub(crate) fn time(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

pub(crate) fn at(seconds: i64) -> Timestamp {
    time(seconds * 1000)
}

pub(crate) fn user(number: u128) -> UserId {
    UserId::from_uuid(Uuid::from_u128(number))
}

/// Returns an unassigned asset in preparation.
pub(crate) fn asset(number: u128) -> Asset {
    let id = AssetId::from_uuid(Uuid::from_u128(number));
    let fields =
        json!({"id": id, "asset_tag": "AST-000001", "name": "Laptop", "status": Status::Preparing, "custom_fields": "{}"});
    serde_json::from_value(fields).expect("an asset")
}

/// Returns an active process from `preparing` to `in_use`.
pub(crate) fn process(steps: &Value) -> Process {
    Process {
        id: ProcessId::from_uuid(Uuid::from_u128(1000)),
        name: "Handover".parse().expect("a name"),
        slug: "handover".parse().expect("a slug"),
        description: Notes::default(),
        trigger_status: Status::Preparing,
        target_status: Status::InUse,
        is_system: false,
        status: ProcessStatus::Active,
        steps: Steps::from_json(&steps.to_string()).expect("steps"),
    }
}

pub(crate) fn instance(number: u128, process: &Process) -> Instance {
    let starter = Starter { key_id: None, name: "Key".into() };
    let id = InstanceId::from_uuid(Uuid::from_u128(number));
    Instance::start(id, process, &asset(1), &starter).expect("can be started").0
}

/// Returns a webhook for all events.
pub(crate) fn webhook() -> Webhook {
    let webhook = json!({
        "id": WebhookId::new(at(0), [1; 10]), "url": "https://example.com/hook", "events": ["*"], "is_active": true,
        "description": "", "active_since": at(0), "slot": 0, "secret": "AAAA"
    });
    serde_json::from_value(webhook).expect("a webhook")
}

/// Returns a record at its first version.
pub(crate) fn stored<T>(value: T) -> Stored<T> {
    let (at, last_event) = (at(1), EventId::new(time(0), [0; 10]));
    Stored { value, version: 1, created_at: at, updated_at: at, last_hash: String::new(), last_event }
}

/// Returns the data URL of a PNG with a black row and a white row.
pub(crate) fn signature(width: u32) -> String {
    let mut bytes = Vec::new();
    let encoder = png::Encoder::new(&mut bytes, width, 2);
    let pixels = [vec![0; width as usize], vec![255; width as usize]].concat();
    encoder.write_header().expect("a header").write_image_data(&pixels).expect("data");
    data_url(&bytes)
}

/// Returns an event by the operator, `version` seconds after the start of 1970.
pub(crate) fn event(version: u64, event_type: &str, changes: &Value) -> Event {
    let at = at(version.cast_signed());
    Event {
        id: EventId::new(at, [0; 10]),
        at,
        event_type: event_type.to_owned(),
        entity_id: Uuid::from_u128(99),
        version,
        actor: Actor::operator(),
        changes: changes.as_object().cloned().expect("an object"),
        previous_hash: None,
    }
}

pub(crate) fn chained(events: impl IntoIterator<Item = Event>) -> Vec<HistoryEntry> {
    let mut previous_hash = None;
    let entries = events.into_iter().map(|event| {
        let event = Event { previous_hash: previous_hash.take(), ..event };
        let text = event::canonical(&event).expect("finite");
        let hash = event::hash(&text);
        previous_hash = Some(hash.clone());
        HistoryEntry { id: event.id, text, commitments: Commitments::default(), hash }
    });
    entries.collect()
}
