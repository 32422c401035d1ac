//! The views of a report.

use crate::wire::UserView;
use serde::Serialize;
use serde_json::Value;
use shared::domain::history::chain::HistoryEntry;
use shared::domain::history::event::Event;
use shared::domain::processes::instance::InstanceStatus;
use shared::domain::values::id::{ApiKeyId, AssetId, EventId, InstanceId, LinkId, MovementId, UserId};
use shared::domain::values::json;
use shared::domain::values::time::Timestamp;
use std::collections::BTreeMap;
use utoipa::ToSchema;
use uuid::Uuid;

/// A part of the data about a person. Each resource is in one part, with all entries of its history about the person.
#[derive(Debug, Serialize, ToSchema)]
pub struct PersonReport {
    /// The user.
    pub user_id: UserId,
    /// The user as it is now. Null if it was deleted.
    #[schema(required)]
    pub user: Option<UserView>,
    /// When the erasure was first requested. Null if it was not.
    #[schema(required)]
    pub erased_at: Option<Timestamp>,
    /// Keys that are bound to the user.
    pub keys: Vec<ReportedKey>,
    /// Assets that the user has or had.
    pub assets: Vec<ReportedAsset>,
    /// Process instances that the person started, worked on or was picked in.
    pub instances: Vec<ReportedInstance>,
    /// Movements that the person started.
    pub movements: Vec<ReportedMovement>,
    /// Signing links for the person.
    pub links: Vec<ReportedLink>,
    /// Entries of histories that name the person, oldest first. An entry can be in two parts.
    pub entries: Vec<ReportedEntry>,
    /// Data kept elsewhere, and for how long.
    pub kept: Vec<KeptData>,
    /// The `from` of the next part. Null at the end.
    #[schema(required)]
    pub next: Option<EventId>,
}

/// A key of the person.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReportedKey {
    /// ID.
    pub id: ApiKeyId,
    /// Name; last name of a revoked key.
    pub name: String,
    /// Time of the last use, to the hour.
    #[schema(required)]
    pub last_used_at: Option<Timestamp>,
    /// Whether it was revoked.
    pub is_revoked: bool,
}

/// An asset of the person.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReportedAsset {
    /// ID.
    pub id: AssetId,
    /// Asset tag.
    pub asset_tag: String,
    /// Name; last name of a deleted asset.
    pub name: String,
    /// When the user had it.
    pub periods: Vec<ReportedPeriod>,
    /// Its notes, if they are about the person.
    #[schema(required)]
    pub notes: Option<String>,
    /// Where it is. Only on the page.
    #[serde(skip)]
    pub(super) location: Option<String>,
}

/// A time in which the person had an asset.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReportedPeriod {
    /// The assignment.
    pub from: Timestamp,
    /// Its end. Null if the user has the asset.
    #[schema(required)]
    pub until: Option<Timestamp>,
    /// Who began it, and who ended it, unless it was the person. Only on the page.
    #[serde(skip)]
    pub(super) others: [Option<String>; 2],
}

/// The person's part in a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(rename_all = "snake_case")]
pub enum ReportedPart {
    /// Started it.
    Started,
    /// Was picked in a step.
    Picked,
    /// Had the asset at the start.
    Holder,
    /// Submitted steps.
    Submitted,
    /// Signed.
    Signed,
}

/// The effect of a process on the holder of the asset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// The person received it.
    Received(Timestamp),
    /// The person gave it back.
    GivenBack(Timestamp),
    /// One of both, once the process is completed.
    Open,
    /// Nothing for the person.
    Nothing,
}

impl Effect {
    /// The time of the completion.
    pub(super) fn at(self) -> Option<Timestamp> {
        match self {
            Self::Received(at) | Self::GivenBack(at) => Some(at),
            Self::Open | Self::Nothing => None,
        }
    }
}

/// A process instance that the person took part in.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReportedInstance {
    /// ID.
    pub id: InstanceId,
    /// Name of the process.
    pub process_name: String,
    /// The asset.
    pub asset_id: AssetId,
    /// Tag of the asset at the start.
    pub asset_tag: String,
    /// Name of the asset at the start.
    pub asset_name: String,
    /// Status.
    pub status: InstanceStatus,
    /// Time of the start.
    pub started_at: Timestamp,
    /// The person's parts in it.
    pub parts: Vec<ReportedPart>,
    /// Name of the starter, if that is the person.
    #[schema(required)]
    pub started_by_name: Option<String>,
    /// Values of steps that are about the person, by the keys of the steps.
    pub step_data: BTreeMap<String, Value>,
    /// Signatures of the person, or submitted by the person.
    pub signatures: Vec<ReportedSignature>,
    /// Reason for the cancellation, if it is about the person.
    #[schema(required)]
    pub cancel_reason: Option<String>,
    /// Only on the page, like the following fields.
    #[serde(skip)]
    pub(super) effect: Effect,
    #[serde(skip)]
    pub(super) movement_id: Option<MovementId>,
    /// Who handed the asset over or took it back, if somebody else than the person did.
    #[serde(skip)]
    pub(super) other: Option<String>,
    /// Labels of all steps, by key.
    #[serde(skip)]
    pub(super) labels: BTreeMap<String, String>,
}

/// A signature of the person, or that the person submitted.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReportedSignature {
    /// Key of the step.
    pub step: String,
    /// The name that is kept with it, if the person submitted it.
    #[schema(required)]
    pub name: Option<String>,
    /// The image as a data URL, or its path if it is too long for the response. Null if it was erased, or is another person's.
    #[schema(required)]
    pub image: Option<String>,
}

/// A movement that the person started.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReportedMovement {
    /// ID.
    pub id: MovementId,
    /// Number.
    pub number: String,
    /// Name of the process.
    pub process_name: String,
    /// Time of the start.
    pub started_at: Timestamp,
    /// Name of the starter, if that is the person.
    #[schema(required)]
    pub started_by_name: Option<String>,
}

/// A signing link for the person.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReportedLink {
    /// ID.
    pub id: LinkId,
    /// The process instance; null for a movement.
    #[schema(required)]
    pub instance_id: Option<InstanceId>,
    /// The movement; null for a process instance.
    #[schema(required)]
    pub movement_id: Option<MovementId>,
    /// The signer's name.
    pub name: String,
    /// The signer's e-mail address.
    #[schema(required)]
    pub email: Option<String>,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of the first opening.
    #[schema(required)]
    pub opened_at: Option<Timestamp>,
    /// Time of the last step.
    #[schema(required)]
    pub used_at: Option<Timestamp>,
}

/// An entry of a history that names the person.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReportedEntry {
    /// ID of the event.
    pub event_id: EventId,
    /// Time.
    pub at: Timestamp,
    /// What happened.
    #[serde(rename = "type")]
    #[schema(examples("asset.updated"))]
    pub event_type: String,
    /// The resource.
    pub entity_id: Uuid,
    /// Whether the person did it.
    pub is_actor: bool,
    /// Values about the person. Null if the history has more of them than fit a response: read them there.
    #[schema(required)]
    pub values: Option<Vec<ReportedValue>>,
}

/// A value in an entry.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReportedValue {
    /// JSON pointer (RFC 6901) in the entry.
    #[schema(examples("/actor/user_name"))]
    pub pointer: String,
    /// The value.
    pub value: Value,
}

/// Data that is kept elsewhere.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub struct KeptData {
    /// What it is.
    pub what: &'static str,
    /// Its content about the person.
    pub content: &'static str,
    /// How long it is kept.
    pub kept_for: &'static str,
    /// What removes it earlier.
    pub removed_by: &'static str,
}

impl ReportedEntry {
    /// With the values at these pointers. `None` if the entry's text can't be read.
    pub(super) fn new(person: UserId, entry: &HistoryEntry, event: &Event, pointers: &[String]) -> Option<Self> {
        let text = json::parse(&entry.text).ok()?;
        let value = |pointer: &String| Some(ReportedValue { pointer: pointer.clone(), value: text.pointer(pointer)?.clone() });
        Some(Self {
            event_id: event.id,
            at: event.at,
            event_type: event.event_type.clone(),
            entity_id: event.entity_id,
            is_actor: event.actor.user_id == Some(person),
            values: Some(pointers.iter().filter_map(value).collect()),
        })
    }
}
