//! Receipts: what a completed run says of itself, once and for all, so that others can check it without us.

use super::asset::Status;
use super::chain::{BrokenLink, Chain, ChainError, ChainHead, Entry};
use super::event::{Actor, Event};
use super::id::{AssetId, EventId, InstanceId, MovementId, ProcessId, TenantId, UserId};
use super::instance::{Instance, InstanceStatus, State};
use super::process::{Step, StepKind};
use super::record::Stored;
use super::text::Name;
use super::time::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Names the form of a receipt; another form gets another name.
pub const FORMAT: &str = "asset-lifecycle-receipt/1";

/// What a completed run says of itself. Nothing in it depends on when it is asked for.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Receipt {
    /// `asset-lifecycle-receipt/1`.
    pub format: &'static str,
    /// Whose run it was.
    #[schema(value_type = String, format = Uuid)]
    pub tenant_id: TenantId,
    /// Which run.
    pub instance_id: InstanceId,
    /// The movement that it was part of.
    #[schema(required)]
    pub movement_id: Option<MovementId>,
    /// The asset, as it was when the run was completed.
    pub asset: ReceiptAsset,
    /// The process, as it was when the run was started.
    pub process: ReceiptProcess,
    /// When it was started.
    pub started_at: Timestamp,
    /// Who started it.
    pub started_by: Actor,
    /// When it was completed.
    pub completed_at: Timestamp,
    /// Every step, in order.
    pub steps: Vec<ReceiptStep>,
    /// Every change of the run, oldest first: what the history must show, too.
    pub events: Vec<ReceiptEvent>,
}

/// The asset of a receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ReceiptAsset {
    /// Identifier.
    pub id: AssetId,
    /// Its tag.
    pub asset_tag: String,
    /// Its name.
    pub name: String,
    /// Its serial number.
    #[schema(required)]
    pub serial_number: Option<String>,
    /// Its manufacturer.
    #[schema(required)]
    pub manufacturer: Option<String>,
    /// Its model.
    #[schema(required)]
    pub model: Option<String>,
}

/// The process of a receipt.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ReceiptProcess {
    /// Identifier.
    pub id: ProcessId,
    /// Its name.
    pub name: Name,
    /// The status that the asset got.
    pub target_status: Status,
}

/// A step of a receipt.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ReceiptStep {
    /// What was asked.
    pub step: Step,
    /// What was submitted; of a signature `{"sha256", "bytes"}`; null when there was nothing.
    #[schema(required, value_type = Option<Value>)]
    pub value: Value,
    /// The name of the user who was picked, as it was then.
    #[schema(required)]
    pub user_name: Option<String>,
    /// When the value was submitted; values may be sent ahead of their step.
    pub submitted_at: Timestamp,
    /// Who submitted it.
    pub submitted_by: Actor,
    /// The change that it was.
    pub event_id: EventId,
    /// When the step was closed.
    pub closed_at: Timestamp,
    /// Who closed it.
    pub closed_by: Actor,
}

/// A change of a receipt's run.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ReceiptEvent {
    /// Identifier.
    pub id: EventId,
    /// The version that it made.
    pub version: u64,
    /// What happened.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its hash in the history.
    pub hash: String,
}

/// Why there is no receipt.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReceiptError {
    /// The run is not completed.
    #[error("the run is {0}")]
    NotCompleted(InstanceStatus),
    /// A history that it is made from does not hold.
    #[error("a history does not hold: {}", .0.reason)]
    BrokenLink(BrokenLink),
}

/// The users picked in a run: their ids are answers of its pickers.
pub fn picked(run: &Instance) -> impl Iterator<Item = UserId> {
    let pickers = run.steps.as_slice().iter().filter(|step| step.kind == StepKind::UserPicker);
    pickers.filter_map(|step| run.answers.as_map().get(&step.key)?.as_str()?.parse().ok())
}

impl Receipt {
    /// The receipt of a run, from its own history, its asset's, and those of the users picked; each whole and oldest
    /// first.
    ///
    /// # Errors
    ///
    /// Why there is none.
    pub fn of(
        tenant_id: TenantId,
        run: &Stored<Instance>,
        history: &[Entry],
        asset: &[Entry],
        users: &BTreeMap<UserId, Vec<Entry>>,
    ) -> Result<Self, ReceiptError> {
        let instance = &run.value;
        let State::Completed { at: completed_at } = instance.state else {
            return Err(ReceiptError::NotCompleted(instance.status()));
        };
        let head = ChainHead { version: run.version, last_hash: run.last_hash.clone() };
        let events = sound(history, Some(head))?;
        let missing = |version| ReceiptError::BrokenLink(BrokenLink { event_id: None, version, reason: ChainError::Missing });
        let first = events.first().ok_or(missing(1))?;
        let mut steps = Vec::new();
        let all = instance.steps.as_slice();
        for (place, step) in all.iter().enumerate() {
            let closing =
                events.iter().find(|event| submits(event, place, place + 1 == all.len())).ok_or(missing(run.version))?;
            let value = instance.answers.as_map().get(&step.key).cloned().unwrap_or(Value::Null);
            let event = events.iter().rfind(|event| gives(event, &step.key, &value)).unwrap_or(closing);
            let user = value.as_str().filter(|_| step.kind == StepKind::UserPicker).and_then(|id| id.parse::<UserId>().ok());
            let user_name = match user.and_then(|id| users.get(&id)) {
                Some(history) => name_at(history, event.at)?,
                None => None,
            };
            let (submitted_at, submitted_by, event_id) = (event.at, event.actor.clone(), event.id);
            let (closed_at, closed_by) = (closing.at, closing.actor.clone());
            let step = step.clone();
            steps.push(ReceiptStep { step, value, user_name, submitted_at, submitted_by, event_id, closed_at, closed_by });
        }
        let hashes = history.iter().zip(&events);
        Ok(Self {
            format: FORMAT,
            tenant_id,
            instance_id: instance.id,
            movement_id: instance.movement_id,
            asset: asset_after(instance, &sound(asset, None)?),
            process: ReceiptProcess {
                id: instance.process_id,
                name: instance.process_name.clone(),
                target_status: instance.target_status,
            },
            started_at: run.created_at,
            started_by: first.actor.clone(),
            completed_at,
            steps,
            events: hashes
                .map(|(entry, event)| ReceiptEvent {
                    id: event.id,
                    version: event.version,
                    kind: event.kind.clone(),
                    hash: entry.hash.clone(),
                })
                .collect(),
        })
    }

    /// The receipt as RFC 8785 writes it: what is signed.
    ///
    /// # Errors
    ///
    /// A number that is not finite, which a receipt does not hold.
    pub fn canonical(&self) -> Result<String, serde_json::Error> {
        serde_json_canonicalizer::to_string(self)
    }
}

/// The events of a history that holds, as far as it goes: whatever it is of may be gone since.
fn sound(history: &[Entry], head: Option<ChainHead>) -> Result<Vec<Event>, ReceiptError> {
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

/// Whether an event of a run gave a step the value that it has.
fn gives(event: &Event, key: &str, value: &Value) -> bool {
    let Some(change) = event.changes.get("step_data").filter(|_| !value.is_null()) else { return false };
    change["new"].get(key) == Some(value) && change["old"].get(key) != Some(value)
}

/// Whether an event of a run is the submission of its step `place`: it opened the next, or completed the run.
fn submits(event: &Event, place: usize, is_last: bool) -> bool {
    let change = |field: &str, side: &str| event.changes.get(field).and_then(|change| change.get(side));
    // The completion leaves the open step's index on the last.
    match is_last {
        true => change("status", "new").and_then(Value::as_str) == Some("completed"),
        false => change("current_step", "old").and_then(Value::as_u64) == Some(place as u64),
    }
}

/// What fields held after these events.
fn replay<'a>(events: impl Iterator<Item = &'a Event>) -> Map<String, Value> {
    let mut fields = Map::new();
    for (field, change) in events.flat_map(|event| &event.changes) {
        fields.insert(field.clone(), change.get("new").cloned().unwrap_or(Value::Null));
    }
    fields
}

/// The asset just after the change by which the run let go of it.
fn asset_after(run: &Instance, events: &[Event]) -> ReceiptAsset {
    let id = run.id.to_string();
    let released = |event: &Event| event.changes.get("running_instance_id").is_some_and(|change| change["old"] == id.as_str());
    let end = events.iter().position(released).map_or(events.len(), |place| place + 1);
    let fields = replay(events.iter().take(end));
    let text = |field: &str| fields.get(field).and_then(Value::as_str).map(str::to_owned);
    ReceiptAsset {
        id: run.asset_id,
        asset_tag: run.asset_tag.clone(),
        name: text("name").unwrap_or_else(|| run.asset_name.to_string()),
        serial_number: text("serial_number"),
        manufacturer: text("manufacturer"),
        model: text("model"),
    }
}

/// The name that a user had then.
fn name_at(history: &[Entry], at: Timestamp) -> Result<Option<String>, ReceiptError> {
    let events = sound(history, None)?;
    // Whoever was picked was there, whatever the clocks said.
    let known = events.iter().enumerate().filter(|(place, event)| *place == 0 || event.at <= at).map(|(_, event)| event);
    Ok(replay(known).get("display_name").and_then(Value::as_str).map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::event;
    use crate::domain::id::Id;
    use serde_json::json;
    use uuid::Uuid;

    /// A history of these changes, a second apart.
    fn history(changes: &[Value]) -> Vec<Entry> {
        let mut previous: Option<String> = None;
        let made = (1..).zip(changes).map(|(version, changes)| {
            let id = EventId::new(Timestamp::from_millis(version * 1000), [0; 10]);
            let event = Event {
                id,
                at: Timestamp::from_millis(version * 1000),
                kind: if version == 1 { "user.created" } else { "user.updated" }.to_owned(),
                entity_id: Uuid::nil(),
                version: version.unsigned_abs(),
                actor: Actor::operator(),
                changes: changes.as_object().cloned().expect("an object"),
                previous_hash: previous.clone(),
            };
            let text = event.canonical().expect("finite");
            let hash = event::hash(&text);
            previous = Some(hash.clone());
            Entry { id, text, hash }
        });
        made.collect()
    }

    #[test]
    fn a_name_is_that_of_the_moment() {
        let name = |old: Value, new: &str| json!({"display_name": {"old": old, "new": new}});
        let all = history(&[
            name(Value::Null, "a"),
            name(json!("a"), "b"),
            json!({"role": {"old": 1, "new": 2}}),
            name(json!("b"), "c"),
        ]);
        for (seconds, expected) in [(0, "a"), (1, "a"), (2, "b"), (3, "b"), (4, "c"), (99, "c")] {
            assert_eq!(name_at(&all, Timestamp::from_millis(seconds * 1000)), Ok(Some(expected.to_owned())), "{seconds}");
        }
        assert_eq!(name_at(&[], Timestamp::from_millis(0)).map_err(|_| ()), Err(()), "a history without a beginning");
        assert!(matches!(name_at(&all[1..], Timestamp::from_millis(0)), Err(ReceiptError::BrokenLink(_))));
    }

    #[test]
    fn a_submission_is_known_by_what_it_opened() {
        let step = |old: Value, new: u64| json!({"current_step": {"old": old, "new": new}});
        let done = json!({"status": {"old": "in_progress", "new": "completed"}});
        let entries = history(&[step(Value::Null, 0), step(json!(0), 1), step(json!(1), 2), done]);
        let events = sound(&entries, None).expect("a whole history");
        let found: Vec<Option<u64>> = (0..3)
            .map(|place| events.iter().find(|event| submits(event, place, place == 2)).map(|event| event.version))
            .collect();
        assert_eq!(found, [Some(2), Some(3), Some(4)]);
    }
}
