//! Receipts: a permanent account of a completed process instance, which others can verify without the service.

mod history;
mod movement;

pub use movement::{InstancePart, MOVEMENT_FORMAT, MovementReceipt, MovementReceiptStep, ReceiptInstance};

use crate::actor::Actor;
use crate::assets::asset::Status;
use crate::history::chain::{BrokenLink, ChainHead, HistoryEntry};
use crate::history::event::Event;
use crate::processes::instance::{Instance, InstanceStatus, State};
use crate::processes::process::{Step, StepKind};
use crate::record::Stored;
use crate::values::id::{AssetId, EventId, InstanceId, MovementId, ProcessId, TenantId, UserId};
use crate::values::text::Name;
use crate::values::time::Timestamp;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use utoipa::ToSchema;

/// A different format gets a different identifier.
pub const FORMAT: &str = "asset-lifecycle-receipt/1";

/// The receipt of a completed process instance. Its content is the same whenever it is requested, except for what is erased.
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
    /// The asset, as it was when the process instance was completed.
    pub asset: ReceiptAsset,
    /// The process definition, as it was when the process instance was started.
    pub process: ReceiptProcess,
    /// When the process instance was started.
    pub started_at: Timestamp,
    /// Who started it.
    pub started_by: Actor,
    /// When it was completed.
    pub completed_at: Timestamp,
    /// All steps, in order.
    pub steps: Vec<ReceiptStep>,
    /// All events of the process instance, oldest first. The history shows the same hashes.
    pub events: Vec<ReceiptEvent>,
    /// The people who were erased since: pseudonyms stand in place of their names and of texts about them. Left out if there are
    /// none.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    #[schema(value_type = Vec<UserId>, required = false)]
    pub erased_people: BTreeSet<UserId>,
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
    /// Where it was.
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
    /// The status that the asset got.
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
    /// A history that the receipt is based on is not valid.
    #[error("a history is not valid: {}", .0.reason)]
    BrokenLink(BrokenLink),
    /// The process instances of a movement were completed with different values.
    #[error("the process instances of the movement were completed with different values")]
    Differs,
}

impl Receipt {
    /// From the instance's own history, its asset's, and those of the users who were picked, each complete and oldest first.
    ///
    /// # Errors
    ///
    /// Returns [`ReceiptError::NotCompleted`] unless the process instance is completed, and [`ReceiptError::BrokenLink`] if one
    /// of the histories is not valid.
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
        let events = history::verified_events(instance_history, Some(head))?;
        let started = events.first().ok_or_else(|| history::missing(1))?;
        let step_count = instance.steps.as_slice().len();
        let steps = instance.steps.as_slice().iter().enumerate().map(|(index, step)| {
            let completes = |event: &&Event| history::completes_step(event, index, index + 1 == step_count);
            let completion = events.iter().find(completes).ok_or_else(|| history::missing(stored.version))?;
            receipt_step(instance, step, (&events, instance_history), completion, user_histories)
        });
        let steps = steps.collect::<Result<_, _>>()?;
        Ok(Self {
            format: FORMAT,
            tenant_id,
            instance_id: instance.id,
            movement_id: instance.movement_id,
            asset: history::asset_at_completion(instance, &history::verified_events(asset_history, None)?),
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
            erased_people: history::erased_people(instance_history, &events, user_histories)?,
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
    let submission = history::submission(events, history, &step.key, &value).unwrap_or(completion);
    let user = value.as_str().filter(|_| step.kind == StepKind::UserPicker).and_then(|id| id.parse::<UserId>().ok());
    let user_name = match user.and_then(|id| user_histories.get(&id)) {
        Some(user_history) => history::display_name_at(user_history, submission.at)?,
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
