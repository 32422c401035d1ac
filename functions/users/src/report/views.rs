//! The response for a report.

use crate::handlers::UserView;
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

/// Part of the data about a person. Each resource is in one part, with all history entries about the person.
#[derive(Debug, Serialize, ToSchema)]
pub struct PersonReport {
    /// The user.
    pub user_id: UserId,
    /// The user's current state. Null if deleted.
    #[schema(required)]
    pub user: Option<UserView>,
    /// Time when the erasure was first requested. Null if there was none.
    #[schema(required)]
    pub erased_at: Option<Timestamp>,
    /// Keys bound to the user.
    pub keys: Vec<ReportedKey>,
    /// Current and former assets of the user.
    pub assets: Vec<ReportedAsset>,
    /// Process instances that the person started, worked on or was picked in.
    pub instances: Vec<ReportedInstance>,
    /// Movements that the person started.
    pub movements: Vec<ReportedMovement>,
    /// Signing links for the person.
    pub links: Vec<ReportedLink>,
    /// History entries that name the person, oldest first. An entry can be in two parts.
    pub entries: Vec<ReportedEntry>,
    /// Data kept elsewhere, and for how long.
    pub kept: Vec<KeptData>,
    /// `from` for the next part. Null at the end.
    #[schema(required)]
    pub next: Option<EventId>,
}

/// A key of the person.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReportedKey {
    /// ID.
    pub id: ApiKeyId,
    /// Name, or the last name of a revoked key.
    pub name: String,
    /// Time of the last use, accurate to the hour.
    #[schema(required)]
    pub last_used_at: Option<Timestamp>,
    /// Whether the key was revoked.
    pub is_revoked: bool,
}

/// An asset of the person.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReportedAsset {
    /// ID.
    pub id: AssetId,
    /// Asset tag.
    pub asset_tag: String,
    /// Name, or the last name of a deleted asset.
    pub name: String,
    /// Periods in which the user had the asset.
    pub periods: Vec<ReportedPeriod>,
    /// Notes, if they are about the person.
    #[schema(required)]
    pub notes: Option<String>,
    /// Location. Only on the page.
    #[serde(skip)]
    pub(super) location: Option<String>,
}

/// A period in which the person had an asset.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReportedPeriod {
    /// Start of the assignment.
    pub from: Timestamp,
    /// End of the assignment. Null if the user still has the asset.
    #[schema(required)]
    pub until: Option<Timestamp>,
    /// The names of other people who started and ended the assignment. `None` if the person did. Only on the page.
    #[serde(skip)]
    pub(super) others: [Option<String>; 2],
}

/// The person's role in a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(rename_all = "snake_case")]
pub enum ReportedPart {
    /// Started the process.
    Started,
    /// Was picked in a step.
    Picked,
    /// Had the asset at the start.
    Holder,
    /// Submitted steps.
    Submitted,
    /// Submitted a signature.
    Signed,
}

/// The effect of a process on the asset's holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Received(Timestamp),
    GivenBack(Timestamp),
    /// The process will have one of the effects above once it is completed.
    Open,
    Nothing,
}

impl Effect {
    /// Returns the time when the process was completed.
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
    /// The person's roles in the process.
    pub parts: Vec<ReportedPart>,
    /// The starter's name, if the person started the process. Null otherwise.
    #[schema(required)]
    pub started_by_name: Option<String>,
    /// Step values about the person, by step key.
    pub step_data: BTreeMap<String, Value>,
    /// The person's signatures, and signatures that the person submitted.
    pub signatures: Vec<ReportedSignature>,
    /// Reason for the cancellation, if it is about the person.
    #[schema(required)]
    pub cancel_reason: Option<String>,
    /// Only on the page, like the fields below.
    #[serde(skip)]
    pub(super) effect: Effect,
    #[serde(skip)]
    pub(super) movement_id: Option<MovementId>,
    /// Another person who handed the asset over or took it back.
    #[serde(skip)]
    pub(super) other: Option<String>,
    /// Labels of all steps, by key.
    #[serde(skip)]
    pub(super) labels: BTreeMap<String, String>,
}

/// A signature of the person, or a signature that the person submitted.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReportedSignature {
    /// Key of the step.
    pub step: String,
    /// Name stored with the signature, if the person submitted it.
    #[schema(required)]
    pub name: Option<String>,
    /// The image as a data URL, or the image's path if the data URL is too long for the response. Null if the image was erased
    /// or belongs to another person.
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
    /// The starter's name, if the person started the movement. Null otherwise.
    #[schema(required)]
    pub started_by_name: Option<String>,
}

/// A signing link for the person.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReportedLink {
    /// ID.
    pub id: LinkId,
    /// The process instance. Null for a movement.
    #[schema(required)]
    pub instance_id: Option<InstanceId>,
    /// The movement. Null for a process instance.
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

/// A history entry that names the person.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReportedEntry {
    /// ID of the event.
    pub event_id: EventId,
    /// Time.
    pub at: Timestamp,
    /// Event type.
    #[serde(rename = "type")]
    #[schema(examples("asset.updated"))]
    pub event_type: String,
    /// The resource.
    pub entity_id: Uuid,
    /// Whether the person caused the event.
    pub is_actor: bool,
    /// Values about the person. Null if the values would make the response too long: read the values in the history.
    #[schema(required)]
    pub values: Option<Vec<ReportedValue>>,
}

/// A value in an entry.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReportedValue {
    /// JSON pointer (RFC 6901) into the entry.
    #[schema(examples("/actor/user_name"))]
    pub pointer: String,
    /// The value.
    pub value: Value,
}

/// A kind of data about the person that the report doesn't contain, such as backups.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub struct KeptData {
    /// Kind of data.
    pub what: &'static str,
    /// Details about the person that the data contains.
    pub content: &'static str,
    /// Retention period.
    pub kept_for: &'static str,
    /// How to remove the data earlier.
    pub removed_by: &'static str,
}

impl ReportedEntry {
    /// Includes the values at the `pointers`. Returns `None` if the entry's text is invalid JSON.
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
