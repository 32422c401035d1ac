//! Sample records for unit tests.

use crate::assets::asset::{Asset, Status};
use crate::history::chain::HistoryEntry;
use crate::history::event::Commitments;
use crate::history::event::{self, Event};
use crate::processes::instance::{Instance, Starter};
use crate::processes::process::{Process, ProcessStatus, Steps};
use crate::values::id::{AssetId, Id, InstanceId, ProcessId, UserId};
use crate::values::text::Notes;
use crate::values::time::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

/// Returns a time in milliseconds after 1970.
pub(crate) fn time(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
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

/// Chains each event to the previous one.
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
