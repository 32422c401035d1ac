//! Receipts of movements: the common parts of their instances once, and each asset with its own history.

use super::{Receipt, ReceiptAsset, ReceiptError, ReceiptEvent, ReceiptProcess, history, receipt_events};
use crate::actor::Actor;
use crate::history::chain::{ChainHead, HistoryEntry};
use crate::history::event::Event;
use crate::processes::instance::{Instance, InstanceStatus, State};
use crate::processes::movement::Movement;
use crate::processes::process::Step;
use crate::record::Stored;
use crate::values::id::{EventId, InstanceId, MovementId, TenantId, UserId};
use crate::values::text::Notes;
use crate::values::time::Timestamp;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use utoipa::ToSchema;

/// A different format gets a different identifier.
pub const MOVEMENT_FORMAT: &str = "asset-lifecycle-movement-receipt/1";

/// The receipt of a movement that has ended. Its content is the same whenever it is requested, except for what is erased.
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
    /// The process definition, as it was when the movement was started.
    pub process: ReceiptProcess,
    /// When the movement was started.
    pub started_at: Timestamp,
    /// Who started it.
    pub started_by: Actor,
    /// When it was completed.
    pub completed_at: Timestamp,
    /// All steps, in order, as they were submitted for all assets together.
    pub steps: Vec<MovementReceiptStep>,
    /// The process instances, one for each asset. Those that were cancelled have their own end.
    pub instances: Vec<ReceiptInstance>,
    /// All events of the movement itself, oldest first.
    pub events: Vec<ReceiptEvent>,
    /// The people who were erased since: pseudonyms stand in place of their names and of texts about them. Left out if there are
    /// none.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    #[schema(value_type = Vec<UserId>, required = false)]
    pub erased_people: BTreeSet<UserId>,
}

/// A step of a movement's receipt.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct MovementReceiptStep {
    /// The step as it was defined.
    pub step: Step,
    /// The submitted value; null if there is none. A signature is given as `{"sha256", "bytes"}` of its image, with
    /// `"typed": true` if the image shows a name that was typed, not drawn, and the `"statement"` that the signer read, if that
    /// is a translation of the step's.
    #[schema(required, value_type = Option<Value>)]
    pub value: Value,
    /// The display name that a picked user had at that time.
    #[schema(required)]
    pub user_name: Option<String>,
    /// When the value was submitted. Values may be submitted before their step is the current one.
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
    /// The asset, as it was when the process instance ended.
    pub asset: ReceiptAsset,
    /// When the process instance ended.
    pub ended_at: Timestamp,
    /// Who ended it.
    pub ended_by: Actor,
    /// The reason for the cancellation.
    #[schema(required)]
    pub cancel_reason: Option<Notes>,
    /// The event that recorded each step's value, in the order of the steps. Empty if the process instance was cancelled.
    pub step_event_ids: Vec<EventId>,
    /// All events of the process instance, oldest first. The history shows the same hashes.
    pub events: Vec<ReceiptEvent>,
}

/// One process instance and its histories, as a movement's receipt shows them.
#[derive(Debug)]
pub struct InstancePart {
    instance: ReceiptInstance,
    /// `None` unless the process instance was completed.
    receipt: Option<Receipt>,
    erased_people: BTreeSet<UserId>,
}

impl InstancePart {
    /// From a process instance that has ended, its own history, its asset's, and those of the users who were picked, each
    /// complete and oldest first.
    ///
    /// # Errors
    ///
    /// Returns [`ReceiptError::NotCompleted`] if the process instance is in progress, and [`ReceiptError::BrokenLink`] if one of
    /// the histories is not valid.
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
                let last = receipt.steps.last().ok_or_else(|| history::missing(stored.version))?;
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
                let events = history::verified_events(instance_history, Some(head))?;
                let ends = |event: &&Event| history::ends_instance(event);
                let ending = events.iter().find(ends).ok_or_else(|| history::missing(stored.version))?;
                let instance = ReceiptInstance {
                    instance_id,
                    status,
                    asset: history::asset_at_completion(instance, &history::verified_events(asset_history, None)?),
                    ended_at: *at,
                    ended_by: ending.actor.clone(),
                    cancel_reason: reason.clone(),
                    step_event_ids: Vec::new(),
                    events: receipt_events(instance_history, &events),
                };
                let erased_people = history::erased_people(instance_history, &events, &BTreeMap::new())?;
                Ok(Self { instance, receipt: None, erased_people })
            }
        }
    }
}

impl MovementReceipt {
    /// From the movement's own history, complete and oldest first, and the parts of all its process instances.
    ///
    /// # Errors
    ///
    /// Returns [`ReceiptError::NotCompleted`] if no process instance was completed, [`ReceiptError::Differs`] if they were
    /// completed with different values, and [`ReceiptError::BrokenLink`] if the history is not valid.
    pub fn new(
        tenant_id: TenantId,
        movement: &Stored<Movement>,
        movement_history: &[HistoryEntry],
        parts: Vec<InstancePart>,
    ) -> Result<Self, ReceiptError> {
        let head = ChainHead { version: movement.version, last_hash: movement.last_hash.clone() };
        let events = history::verified_events(movement_history, Some(head))?;
        let mut erased_people = history::erased_people(movement_history, &events, &BTreeMap::new())?;
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
