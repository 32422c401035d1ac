//! Receipts: a permanent account of a completed process instance or movement, based on the histories of instances, assets and
//! users. Anyone can verify a receipt without the service. A movement's receipt has the common parts of its instances once, and
//! each asset with its history.

use crate::assets::asset::Status;
use crate::history::chain::{BrokenLink, Chain, ChainError, ChainHead, HistoryEntry};
use crate::history::event::{Actor, Event};
use crate::history::past::replay;
use crate::people;
use crate::processes::instance::{Instance, InstanceStatus, State};
use crate::processes::movement::Movement;
use crate::processes::process::{Step, StepKind};
use crate::record::Stored;
use crate::values::id::{AssetId, EventId, Id, InstanceId, MovementId, ProcessId, TenantId, UserId};
use crate::values::text::{Name, Notes};
use crate::values::time::Timestamp;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use utoipa::ToSchema;
use uuid::Uuid;

/// Identifies the receipt's format. A different format gets a different identifier.
pub const FORMAT: &str = "asset-lifecycle-receipt/1";
/// Like [`FORMAT`], for movements.
pub const MOVEMENT_FORMAT: &str = "asset-lifecycle-movement-receipt/1";

/// Receipt of a completed process instance. The content never changes, except for erasures.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Receipt {
    /// `asset-lifecycle-receipt/1`.
    pub format: &'static str,
    /// The tenant.
    #[schema(value_type = String, format = Uuid)]
    pub tenant_id: TenantId,
    /// The process instance.
    pub instance_id: InstanceId,
    /// The movement that the process instance is part of.
    #[schema(required)]
    pub movement_id: Option<MovementId>,
    /// The asset when the process instance was completed.
    pub asset: ReceiptAsset,
    /// The process definition when the process instance was started.
    pub process: ReceiptProcess,
    /// When the process instance was started.
    pub started_at: Timestamp,
    /// Who started the process instance.
    pub started_by: Actor,
    /// When the process instance was completed.
    pub completed_at: Timestamp,
    /// All steps, in order.
    pub steps: Vec<ReceiptStep>,
    /// All events of the process instance, oldest first. The history has the same hashes.
    pub events: Vec<ReceiptEvent>,
    /// Erased people: pseudonyms replace their names and any text about them. Absent if there are none.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    #[schema(value_type = Vec<UserId>, required = false)]
    pub erased_people: BTreeSet<Uuid>,
}

/// The asset of a receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ReceiptAsset {
    /// Identifier.
    pub id: AssetId,
    /// Asset tag.
    pub asset_tag: String,
    /// Display name.
    pub name: String,
    /// Serial number.
    #[schema(required)]
    pub serial_number: Option<String>,
    /// Location.
    #[schema(required)]
    pub location: Option<String>,
    /// Manufacturer.
    #[schema(required)]
    pub manufacturer: Option<String>,
    /// Model.
    #[schema(required)]
    pub model: Option<String>,
}

/// The process definition of a receipt.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ReceiptProcess {
    /// Identifier.
    pub id: ProcessId,
    /// Display name.
    pub name: Name,
    /// Status of the asset after the process.
    pub target_status: Status,
}

/// A step of a receipt.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ReceiptStep {
    /// The step and its value.
    #[serde(flatten)]
    pub submitted: MovementReceiptStep,
    /// The event that recorded the value.
    pub event_id: EventId,
}

/// An event of a receipt's process instance.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ReceiptEvent {
    /// Identifier.
    pub id: EventId,
    /// The version of the process instance after the event.
    pub version: u64,
    /// The type of the event.
    #[serde(rename = "type")]
    pub event_type: String,
    /// The hash of the event in the history.
    pub hash: String,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReceiptError {
    #[error("the process instance is {0}")]
    NotCompleted(InstanceStatus),
    #[error("a history is invalid: {}", .0.reason)]
    BrokenLink(BrokenLink),
    #[error("the process instances of the movement were completed with different values")]
    Differs,
}

impl Receipt {
    /// Builds the receipt from the histories of the instance, its asset and the picked users, each complete and oldest first.
    ///
    /// # Errors
    ///
    /// Returns [`ReceiptError::NotCompleted`] unless the process instance is completed, and [`ReceiptError::BrokenLink`] if one
    /// of the histories is invalid.
    pub fn new(
        tenant_id: TenantId,
        stored: &Stored<Instance>,
        instance_history: &[HistoryEntry],
        asset_history: &[HistoryEntry],
        user_histories: &BTreeMap<UserId, Vec<HistoryEntry>>,
    ) -> Result<Self, ReceiptError> {
        let instance = &stored.value;
        let State::Completed { at: completed_at } = instance.state else {
            return Err(ReceiptError::NotCompleted(instance.status()));
        };
        let head = ChainHead { version: stored.version, last_hash: stored.last_hash.clone() };
        let events = verified_events(instance_history, Some(head))?;
        let started = events.first().ok_or_else(|| missing(1))?;
        let step_count = instance.steps.as_slice().len();
        let steps = instance.steps.as_slice().iter().enumerate().map(|(index, step)| {
            let completes = |event: &&Event| completes_step(event, index, index + 1 == step_count);
            let completion = events.iter().find(completes).ok_or_else(|| missing(stored.version))?;
            receipt_step(instance, step, (&events, instance_history), completion, user_histories)
        });
        let steps = steps.collect::<Result<_, _>>()?;
        Ok(Self {
            format: FORMAT,
            tenant_id,
            instance_id: instance.id,
            movement_id: instance.movement_id,
            asset: asset_at_completion(instance, &verified_events(asset_history, None)?),
            process: ReceiptProcess {
                id: instance.process_id,
                name: instance.process_name.clone(),
                target_status: instance.target_status,
            },
            started_at: stored.created_at,
            started_by: started.actor.clone(),
            completed_at,
            steps,
            events: receipt_events(instance_history, &events),
            erased_people: erased_people(instance_history, &events, user_histories)?,
        })
    }
}

fn receipt_step(
    instance: &Instance,
    step: &Step,
    (events, history): (&[Event], &[HistoryEntry]),
    completion: &Event,
    user_histories: &BTreeMap<UserId, Vec<HistoryEntry>>,
) -> Result<ReceiptStep, ReceiptError> {
    let value = instance.step_values.as_map().get(&step.key).cloned().unwrap_or(Value::Null);
    let submission = submission(events, history, &step.key, &value).unwrap_or(completion);
    let user = value.as_str().filter(|_| step.kind == StepKind::UserPicker).and_then(|id| id.parse::<UserId>().ok());
    let user_name = match user.and_then(|id| user_histories.get(&id)) {
        Some(user_history) => display_name_at(user_history, submission.at)?,
        None => None,
    };
    let submitted = MovementReceiptStep {
        step: step.clone(),
        value,
        user_name,
        submitted_at: submission.at,
        submitted_by: submission.actor.clone(),
        closed_at: completion.at,
        closed_by: completion.actor.clone(),
    };
    Ok(ReceiptStep { submitted, event_id: submission.id })
}

fn receipt_events(history: &[HistoryEntry], events: &[Event]) -> Vec<ReceiptEvent> {
    let shown = |(entry, event): (&HistoryEntry, &Event)| ReceiptEvent {
        id: event.id,
        version: event.version,
        event_type: event.event_type.clone(),
        hash: entry.hash.clone(),
    };
    history.iter().zip(events).map(shown).collect()
}

fn missing(version: u64) -> ReceiptError {
    ReceiptError::BrokenLink(BrokenLink { event_id: None, version, reason: ChainError::Missing })
}

/// Verifies a history and returns its events. Without `head`, the record may have been deleted.
fn verified_events(history: &[HistoryEntry], head: Option<ChainHead>) -> Result<Vec<Event>, ReceiptError> {
    let mut chain = Chain::new(head);
    let mut events = Vec::new();
    for (version, entry) in (1..).zip(history) {
        chain.add(version, entry);
        let unreadable = BrokenLink { event_id: Some(entry.id), version, reason: ChainError::Unreadable };
        events.push(serde_json::from_str(&entry.text).map_err(|_| ReceiptError::BrokenLink(unreadable))?);
    }
    let beyond = chain.is_beyond().then(|| BrokenLink { event_id: None, version: chain.next(), reason: ChainError::WrongHead });
    match chain.finish().broken.or(beyond) {
        Some(broken) if broken.reason != ChainError::Gone => Err(ReceiptError::BrokenLink(broken)),
        _ => Ok(events),
    }
}

/// Returns the last event that set the step's current value; `None` if that is null. Erased values are compared by their
/// commitments, because several texts can have become the same pseudonym.
fn submission<'a>(events: &'a [Event], history: &[HistoryEntry], key: &str, value: &Value) -> Option<&'a Event> {
    let sets_value = |event: &Event, entry: &HistoryEntry| {
        let new = event.changes.get("step_data").and_then(|change| change.get("new")?.get(key));
        new == Some(value) && entry.commitments.is_changed(&event.changes, &format!("step_data/{key}"))
    };
    let mut entries = events.iter().zip(history).filter(|_| !value.is_null());
    entries.rfind(|(event, entry)| sets_value(event, entry)).map(|(event, _)| event)
}

/// Returns the people whose data was erased from the history of an instance or movement, or of the picked users.
fn erased_people(
    history: &[HistoryEntry],
    events: &[Event],
    user_histories: &BTreeMap<UserId, Vec<HistoryEntry>>,
) -> Result<BTreeSet<Uuid>, ReceiptError> {
    let mut erased = erased_in(history, events);
    for (user, history) in user_histories {
        let events = verified_events(history, None)?;
        erased.extend(erased_in(history, &events).take(&user.uuid()));
    }
    Ok(erased)
}

fn erased_in(history: &[HistoryEntry], events: &[Event]) -> BTreeSet<Uuid> {
    let entries: Vec<_> = events.iter().zip(history.iter().map(|entry| &entry.commitments)).collect();
    people::erased_people(&entries)
}

/// Whether the event moved on from this step or, for the last step, completed the process instance.
fn completes_step(event: &Event, index: usize, is_last: bool) -> bool {
    let change = |field: &str, side: &str| event.changes.get(field).and_then(|change| change.get(side));
    // Completion leaves `current_step` at the last step.
    match is_last {
        true => change("status", "new").and_then(Value::as_str) == Some("completed"),
        false => change("current_step", "old").and_then(Value::as_u64) == Some(index as u64),
    }
}

fn ends_instance(event: &Event) -> bool {
    let status = event.changes.get("status").and_then(|change| change["new"].as_str());
    status.is_some_and(|status| status != "in_progress")
}

/// Returns the asset right after the event that ended the process instance on it.
fn asset_at_completion(instance: &Instance, asset_events: &[Event]) -> ReceiptAsset {
    let id = instance.id.to_string();
    let ends = |event: &Event| event.changes.get("running_instance_id").is_some_and(|change| change["old"] == id.as_str());
    let count = asset_events.iter().position(ends).map_or(asset_events.len(), |index| index + 1);
    let fields = replay(asset_events.iter().take(count));
    let text = |field: &str| fields.get(field).and_then(Value::as_str).map(str::to_owned);
    ReceiptAsset {
        id: instance.asset_id,
        asset_tag: instance.asset_tag.clone(),
        name: text("name").unwrap_or_else(|| instance.asset_name.to_string()),
        serial_number: text("serial_number"),
        location: text("location"),
        manufacturer: text("manufacturer"),
        model: text("model"),
    }
}

fn display_name_at(history: &[HistoryEntry], at: Timestamp) -> Result<Option<String>, ReceiptError> {
    let events = verified_events(history, None)?;
    // Clocks differ between servers, but a picked user existed, so the first event always counts.
    let past = events.iter().enumerate().filter(|(index, event)| *index == 0 || event.at <= at).map(|(_, event)| event);
    Ok(replay(past).get("display_name").and_then(Value::as_str).map(str::to_owned))
}

/// Receipt of a movement that has ended. The content never changes, except for erasures.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct MovementReceipt {
    /// `asset-lifecycle-movement-receipt/1`.
    pub format: &'static str,
    /// The tenant.
    #[schema(value_type = String, format = Uuid)]
    pub tenant_id: TenantId,
    /// The movement.
    pub movement_id: MovementId,
    /// The movement's number.
    #[schema(examples("MOV-000001"))]
    pub number: String,
    /// The process definition when the movement was started.
    pub process: ReceiptProcess,
    /// When the movement was started.
    pub started_at: Timestamp,
    /// Who started the movement.
    pub started_by: Actor,
    /// When the movement was completed.
    pub completed_at: Timestamp,
    /// All steps, in order, as submitted for all assets together.
    pub steps: Vec<MovementReceiptStep>,
    /// The process instances, one per asset, including instances that were cancelled individually.
    pub instances: Vec<ReceiptInstance>,
    /// All events of the movement itself, oldest first.
    pub events: Vec<ReceiptEvent>,
    /// Erased people: pseudonyms replace their names and any text about them. Absent if there are none.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    #[schema(value_type = Vec<UserId>, required = false)]
    pub erased_people: BTreeSet<Uuid>,
}

/// A step of a movement's receipt.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct MovementReceiptStep {
    /// The definition of the step.
    pub step: Step,
    /// The submitted value; null if there is none. The value of a signature is `{"sha256", "bytes"}` of its image, with `"typed":
    /// true` if the image shows a typed name, and the `"statement"` that the signer read, if it was a translation.
    #[schema(required, value_type = Option<Value>)]
    pub value: Value,
    /// Display name that the picked user had when the value was submitted.
    #[schema(required)]
    pub user_name: Option<String>,
    /// When the value was submitted, possibly before its step was the current one.
    pub submitted_at: Timestamp,
    /// Who submitted the value: an API key, or the signer of a signing link.
    pub submitted_by: Actor,
    /// When the step was completed.
    pub closed_at: Timestamp,
    /// Who completed the step.
    pub closed_by: Actor,
}

/// A process instance of a movement's receipt.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ReceiptInstance {
    /// Identifier.
    pub instance_id: InstanceId,
    /// `completed` or `cancelled`.
    pub status: InstanceStatus,
    /// The asset when the process instance ended.
    pub asset: ReceiptAsset,
    /// When the process instance ended.
    pub ended_at: Timestamp,
    /// Who ended the process instance.
    pub ended_by: Actor,
    /// The reason for the cancellation.
    #[schema(required)]
    pub cancel_reason: Option<Notes>,
    /// IDs of the events that recorded the steps' values, in the order of the steps. Empty if the process instance was cancelled.
    pub step_event_ids: Vec<EventId>,
    /// All events of the process instance, oldest first. The history has the same hashes.
    pub events: Vec<ReceiptEvent>,
}

#[derive(Debug)]
pub struct InstancePart {
    instance: ReceiptInstance,
    /// `None` unless the process instance was completed.
    receipt: Option<Receipt>,
    erased_people: BTreeSet<Uuid>,
}

impl InstancePart {
    /// Builds the part from a process instance that has ended, and from the histories of the instance, its asset and the picked
    /// users, each complete and oldest first.
    ///
    /// # Errors
    ///
    /// Returns [`ReceiptError::NotCompleted`] if the process instance is in progress, and [`ReceiptError::BrokenLink`] if one of
    /// the histories is invalid.
    pub fn new(
        tenant_id: TenantId,
        stored: &Stored<Instance>,
        instance_history: &[HistoryEntry],
        asset_history: &[HistoryEntry],
        user_histories: &BTreeMap<UserId, Vec<HistoryEntry>>,
    ) -> Result<Self, ReceiptError> {
        let instance = &stored.value;
        let (instance_id, status) = (instance.id, instance.status());
        match &instance.state {
            State::InProgress { .. } => Err(ReceiptError::NotCompleted(status)),
            State::Completed { at } => {
                let receipt = Receipt::new(tenant_id, stored, instance_history, asset_history, user_histories)?;
                let last = receipt.steps.last().ok_or_else(|| missing(stored.version))?;
                let instance = ReceiptInstance {
                    instance_id,
                    status,
                    asset: receipt.asset.clone(),
                    ended_at: *at,
                    ended_by: last.submitted.closed_by.clone(),
                    cancel_reason: None,
                    step_event_ids: receipt.steps.iter().map(|step| step.event_id).collect(),
                    events: receipt.events.clone(),
                };
                Ok(Self { instance, erased_people: receipt.erased_people.clone(), receipt: Some(receipt) })
            }
            State::Cancelled { at, reason, .. } => {
                let head = ChainHead { version: stored.version, last_hash: stored.last_hash.clone() };
                let events = verified_events(instance_history, Some(head))?;
                let ends = |event: &&Event| ends_instance(event);
                let ending = events.iter().find(ends).ok_or_else(|| missing(stored.version))?;
                let instance = ReceiptInstance {
                    instance_id,
                    status,
                    asset: asset_at_completion(instance, &verified_events(asset_history, None)?),
                    ended_at: *at,
                    ended_by: ending.actor.clone(),
                    cancel_reason: reason.clone(),
                    step_event_ids: Vec::new(),
                    events: receipt_events(instance_history, &events),
                };
                let erased_people = erased_people(instance_history, &events, &BTreeMap::new())?;
                Ok(Self { instance, receipt: None, erased_people })
            }
        }
    }
}

impl MovementReceipt {
    /// Builds the receipt from the movement's history, complete and oldest first, and the parts of all its process instances.
    ///
    /// # Errors
    ///
    /// Returns [`ReceiptError::NotCompleted`] if no process instance was completed, [`ReceiptError::Differs`] if they were
    /// completed with different values, and [`ReceiptError::BrokenLink`] if the history is invalid.
    pub fn new(
        tenant_id: TenantId,
        movement: &Stored<Movement>,
        movement_history: &[HistoryEntry],
        parts: Vec<InstancePart>,
    ) -> Result<Self, ReceiptError> {
        let head = ChainHead { version: movement.version, last_hash: movement.last_hash.clone() };
        let events = verified_events(movement_history, Some(head))?;
        let mut erased_people = erased_people(movement_history, &events, &BTreeMap::new())?;
        let (mut instances, mut common) = (Vec::new(), None);
        for InstancePart { instance, receipt, erased_people: erased } in parts {
            instances.push(instance);
            erased_people.extend(erased);
            let Some(receipt) = receipt else { continue };
            let steps: Vec<MovementReceiptStep> = receipt.steps.into_iter().map(|step| step.submitted).collect();
            let (_, _, first_steps) =
                common.get_or_insert_with(|| (receipt.process, (receipt.started_by, receipt.completed_at), steps.clone()));
            if *first_steps != steps {
                return Err(ReceiptError::Differs);
            }
        }
        let none_completed = ReceiptError::NotCompleted(InstanceStatus::Cancelled);
        let (process, (started_by, completed_at), steps) = common.ok_or(none_completed)?;
        Ok(Self {
            format: MOVEMENT_FORMAT,
            tenant_id,
            movement_id: movement.value.id,
            number: movement.value.number.clone(),
            process,
            started_at: movement.created_at,
            started_by,
            completed_at,
            steps,
            instances,
            events: receipt_events(movement_history, &events),
            erased_people,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{chained, event};
    use serde_json::json;

    /// Builds a history of changes that are one second apart.
    fn history(changes: &[Value]) -> Vec<HistoryEntry> {
        let event_type = |version| if version == 1 { "user.created" } else { "user.updated" };
        chained((1..).zip(changes).map(|(version, changes)| event(version, event_type(version), changes)))
    }

    #[test]
    fn a_users_name_is_the_one_of_that_time() {
        let name = |old: Value, new: &str| json!({"display_name": {"old": old, "new": new}});
        let all = history(&[
            name(Value::Null, "a"),
            name(json!("a"), "b"),
            json!({"role": {"old": 1, "new": 2}}),
            name(json!("b"), "c"),
        ]);
        for (seconds, expected) in [(0, "a"), (1, "a"), (2, "b"), (3, "b"), (4, "c"), (99, "c")] {
            let name = display_name_at(&all, Timestamp::from_millis(seconds * 1000));
            assert_eq!(name, Ok(Some(expected.to_owned())), "{seconds}");
        }
        assert_eq!(display_name_at(&[], Timestamp::from_millis(0)).map_err(|_| ()), Err(()), "an empty history");
        assert!(matches!(display_name_at(&all[1..], Timestamp::from_millis(0)), Err(ReceiptError::BrokenLink(_))));
    }

    #[test]
    fn a_step_is_completed_by_the_event_that_moved_on_from_it() {
        let step = |old: Value, new: u64| json!({"current_step": {"old": old, "new": new}});
        let done = json!({"status": {"old": "in_progress", "new": "completed"}});
        let entries = history(&[step(Value::Null, 0), step(json!(0), 1), step(json!(1), 2), done]);
        let events = verified_events(&entries, None).expect("a valid history");
        let versions: Vec<Option<u64>> = (0..3)
            .map(|index| events.iter().find(|event| completes_step(event, index, index == 2)).map(|event| event.version))
            .collect();
        assert_eq!(versions, [Some(2), Some(3), Some(4)]);
    }
}
