//! The keys of all items in the table, which are built only here (docs/adr/0002-table.md).
//!
//! The partition key is always `T#<tenant>`, also in the indexes, so no expression can reach another tenant's items. Request
//! counters and deliveries are in separate partitions, whose keys start with `T#<tenant>`. The only other partition is the
//! operator's tenant registry, which contains only IDs.
//!
//! Events are sorted by time in the table, and by record and version in the index `history`. Sort keys of the index `list_index`
//! have a letter for the section and the number of a bucket, such as `A07`.

use crate::domain::history::event::{Commitment, Commitments};
use crate::domain::people::Person;
use crate::domain::processes::instance::ImageName;
use crate::domain::record::{IdempotentRequest, Kind, Unique};
use crate::domain::values::id::{AssetId, EventId, Id, TenantId, UserId, WebhookId};
use crate::domain::values::time::Timestamp;
use crate::domain::values::{base62, hex};
use crate::domain::webhooks::DeliveryStatus;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use chrono::TimeDelta;
use serde_json::json;
use std::collections::HashMap;
use std::fmt;
use uuid::Uuid;

pub type Item = HashMap<String, AttributeValue>;

pub const PK: &str = "PK";
pub const SK: &str = "SK";
/// The sort key of the index `list_index`.
pub const LS: &str = "LS";
/// The sort key of the index `history`.
pub const HS: &str = "HS";
/// The index that in-memory list indexes are loaded from.
pub const LIST_INDEX: &str = "list_index";
/// The index that finds the events of one record.
pub const HISTORY: &str = "history";
/// The attribute with the Unix time, in seconds, at which an item expires. DynamoDB can take days to delete the item.
pub const EXPIRES: &str = "expires";
/// The attribute of an event with its text, from which its hash is computed.
pub const ENTRY: &str = "entry";
/// The attribute of an event with its commitments: salts or digests by pointer.
pub const COMMITMENTS: &str = "commitments";
/// The attribute with an item's type, for people browsing the table.
pub const TYPE: &str = "type";

/// Longer values are hashed in sort keys, which DynamoDB limits to 1,024 bytes.
const MAX_VALUE_BYTES: usize = 512;
pub const MARKERS: &str = "UNIQ#";
pub const STEPS: &str = "STEPS#";
pub const SCHEMAS: &str = "SCHEMA#";
pub const SIGNATURES: &str = "SIGNATURE#";
pub const STORED_RESPONSES: &str = "IDEMPOTENCY#";
pub const COUNTERS: &str = "SEQUENCE#";
pub const REFERENCES: &str = "REFERENCES#";
pub const TOMBSTONES: &str = "DELETED#";
pub const ERASURES: &str = "ERASURE#";
const REGISTRY: &str = "REGISTRY";
const REGISTRY_PREFIX: &str = "T#";

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    pk: String,
    sk: String,
}

impl Key {
    #[must_use]
    pub fn item(&self) -> Item {
        Item::from([(PK.to_owned(), AttributeValue::S(self.pk.clone())), (SK.to_owned(), AttributeValue::S(self.sk.clone()))])
    }

    #[must_use]
    pub fn of(item: &Item) -> Option<Self> {
        let text = |name| item.get(name).and_then(|value| value.as_s().ok()).cloned();
        Some(Self { pk: text(PK)?, sk: text(SK)? })
    }

    #[must_use]
    pub fn sort(&self) -> &str {
        &self.sk
    }
}

/// The format of the AWS CLI's `--key` option.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", json!({(PK): {"S": self.pk}, (SK): {"S": self.sk}}))
    }
}

/// Builds keys of one tenant.
#[derive(Debug, Clone)]
pub struct Keys {
    pk: String,
}

const fn prefix(kind: Kind) -> &'static str {
    match kind {
        Kind::Tenant => "TENANT",
        Kind::ApiKey => "KEY#",
        Kind::Asset => "ASSET#",
        Kind::User => "USER#",
        Kind::AssetType => "TYPE#",
        Kind::Manufacturer => "MANUFACTURER#",
        Kind::Model => "MODEL#",
        Kind::Process => "PROCESS#",
        Kind::Instance => "INSTANCE#",
        Kind::Movement => "MOVEMENT#",
        Kind::ReceiptKeys => "RECEIPTKEYS",
        Kind::Link => "LINK#",
        Kind::Webhook => "WEBHOOK#",
    }
}

impl Keys {
    #[must_use]
    pub fn of(tenant: TenantId) -> Self {
        Self { pk: format!("T#{}", tenant.short()) }
    }

    #[must_use]
    pub fn partition(&self) -> AttributeValue {
        AttributeValue::S(self.pk.clone())
    }

    pub(in crate::store) fn sibling(&self, sort_key: &str) -> Key {
        self.key(sort_key.to_owned())
    }

    fn key(&self, sk: String) -> Key {
        Key { pk: self.pk.clone(), sk }
    }

    /// `ASSET#<id>` and so on: a record. A tenant has one `TENANT` and one `RECEIPTKEYS`, without an ID in the key.
    #[must_use]
    pub fn record(&self, kind: Kind, id: Uuid) -> Key {
        match kind {
            Kind::Tenant | Kind::ReceiptKeys => self.key(prefix(kind).to_owned()),
            _ => self.key(format!("{}{}", prefix(kind), short(id))),
        }
    }

    #[must_use]
    pub fn prefix(kind: Kind) -> AttributeValue {
        AttributeValue::S(prefix(kind).to_owned())
    }

    /// `STEPS#<hash>`: the steps of process definitions and instances.
    #[must_use]
    pub fn steps(&self, hash: &str) -> Key {
        self.key(format!("{STEPS}{hash}"))
    }

    /// `SCHEMA#<hash>`: a schema of asset types.
    #[must_use]
    pub fn schema(&self, hash: &str) -> Key {
        self.key(format!("{SCHEMAS}{hash}"))
    }

    /// `ERASURE#<user or link>`: the progress of a person's erasure.
    #[must_use]
    pub fn erasure(&self, person: Person) -> Key {
        self.key(format!("{ERASURES}{}", short(person.uuid())))
    }

    /// `REFERENCES#<kind>#<id>`: the number of references to a record, and the attributes that references can require.
    #[must_use]
    pub fn references(&self, kind: Kind, id: Uuid) -> Key {
        self.key(format!("{REFERENCES}{}#{}", kind.as_str(), short(id)))
    }

    /// `DELETED#<kind>#<id>`: the tombstone of a deleted record.
    #[must_use]
    pub fn tombstone(&self, kind: Kind, id: Uuid) -> Key {
        self.key(format!("{TOMBSTONES}{}#{}", kind.as_str(), short(id)))
    }

    /// `UNIQ#<kind>.<field>#<value>`: the marker that reserves a unique value.
    #[must_use]
    pub fn unique(&self, kind: Kind, unique: &Unique) -> Key {
        let value = if unique.value.len() > MAX_VALUE_BYTES {
            format!("sha256:{}", hex::sha256(&unique.value))
        } else {
            unique.value.clone()
        };
        self.key(format!("{MARKERS}{}.{}#{value}", kind.as_str(), unique.field))
    }

    /// `SEQUENCE#<tag with {N} for its number>`: a counter of asset tags.
    #[must_use]
    pub fn counter(&self, counter: &str) -> Key {
        self.key(format!("{COUNTERS}{counter}"))
    }

    /// `NUMBER#MOVEMENT`: the counter of movements.
    #[must_use]
    pub fn movement_counter(&self) -> Key {
        self.key("NUMBER#MOVEMENT".to_owned())
    }

    /// `SERIAL#<hash of the normalized serial number>`: the claim of an upsert that has recently created an asset.
    #[must_use]
    pub fn serial_claim(&self, serial: &str) -> Key {
        self.key(format!("SERIAL#{}", hex::sha256(serial)))
    }

    /// `SIGNATURE#<instance or movement>#<step key>#<hash>`: the image of a signature. A different image has a different key.
    #[must_use]
    pub fn signature(&self, name: &ImageName) -> Key {
        self.key(format!("{SIGNATURES}{}#{}#{}", short(name.owner), name.step, name.hash))
    }

    /// `<minute>` in the partition `T#<tenant>#RATE#<credential>`: the number of requests in that minute with an API key, with
    /// any of its secrets, or with a signing link.
    ///
    /// If the operator limits the whole tenant, its requests are counted under the tenant's ID.
    ///
    /// Each credential has a separate partition for counters, so that counting and the tenant's other writes don't slow each
    /// other down. IDs have a fixed length and contain no `#`, so the partition can't belong to another tenant.
    #[must_use]
    pub fn rate(&self, credential: Uuid, minute: i64) -> Key {
        Key { pk: format!("{}#RATE#{}", self.pk, short(credential)), sk: minute.to_string() }
    }

    /// `CEILING` in the partition of the tenant's own counters, `T#<tenant>#RATE#<tenant>`: the operator's limit for all of the
    /// tenant's requests.
    #[must_use]
    pub fn ceiling(&self, tenant: Uuid) -> Key {
        Key { sk: "CEILING".to_owned(), ..self.rate(tenant, 0) }
    }

    /// `IDEMPOTENCY#<credential>#<hash of the idempotency key>`: the stored response to a request.
    #[must_use]
    pub fn stored_response(&self, idempotency: &IdempotentRequest) -> Key {
        self.key(format!("{STORED_RESPONSES}{}#{}", short(idempotency.by), idempotency.key.hash()))
    }

    /// Returns the prefix of unique markers whose value starts with the value of `unique`.
    #[must_use]
    pub fn markers(kind: Kind, unique: &Unique) -> AttributeValue {
        AttributeValue::S(format!("{MARKERS}{}.{}#{}", kind.as_str(), unique.field, unique.value))
    }
}

fn short(id: Uuid) -> String {
    EventId::from_uuid(id).short()
}

#[must_use]
pub fn tenant(key: &Key) -> Option<TenantId> {
    key.pk.strip_prefix("T#").and_then(TenantId::from_short)
}

#[must_use]
pub fn record_id(kind: Kind, key: &Key) -> Option<Uuid> {
    record_id_of_sort_key(kind, &key.sk)
}

#[must_use]
pub fn record_id_of_sort_key(kind: Kind, sort_key: &str) -> Option<Uuid> {
    sort_key.strip_prefix(prefix(kind)).and_then(EventId::from_short).map(Id::uuid)
}

#[must_use]
pub fn tombstone_prefix(kind: Kind) -> AttributeValue {
    AttributeValue::S(format!("{TOMBSTONES}{}#", kind.as_str()))
}

/// Parses the kind and the ID of a deleted record from its tombstone's key. The kind is `None` if it is unknown to this version
/// of the service.
#[must_use]
pub fn deleted_record(tombstone: &Key) -> Option<(Option<Kind>, Uuid)> {
    let (noun, id) = tombstone.sk.strip_prefix(TOMBSTONES)?.split_once('#')?;
    let kind = noun.parse().ok();
    Some((kind, EventId::from_short(id)?.uuid()))
}

#[must_use]
pub fn registry_partition() -> AttributeValue {
    AttributeValue::S(REGISTRY.to_owned())
}

#[must_use]
pub fn registry_prefix() -> AttributeValue {
    AttributeValue::S(REGISTRY_PREFIX.to_owned())
}

#[must_use]
pub fn registry(tenant: TenantId) -> Key {
    Key { pk: REGISTRY.to_owned(), sk: format!("{REGISTRY_PREFIX}{}", tenant.short()) }
}

#[must_use]
pub fn registered_tenant(key: &Key) -> Option<TenantId> {
    key.sk.strip_prefix(REGISTRY_PREFIX).and_then(TenantId::from_short)
}

/// Returns a key that no item has. Reading it shows whether the table responds.
#[must_use]
pub fn health_check() -> Key {
    Key { pk: "NOTHING".to_owned(), sk: "NOTHING".to_owned() }
}

pub const EVENTS: &str = "EVENT#";
const VERSION_DIGITS: usize = 10;
/// The highest version that has a key in the index `history`.
pub const LAST_VERSION: u64 = 9_999_999_999;

impl Keys {
    /// `EVENT#<id>`: one event.
    #[must_use]
    pub fn event(&self, id: EventId) -> Key {
        self.key(format!("{EVENTS}{}", id.short()))
    }

    /// Returns the sort key, in the index `history`, of the event that created this version of a record.
    ///
    /// Leading zeros make versions sort numerically, so a page of a history is a key range.
    #[must_use]
    pub fn history(record: Uuid, version: u64) -> AttributeValue {
        AttributeValue::S(format!("{}#{version:0VERSION_DIGITS$}", EventId::from_uuid(record).short()))
    }

    /// Parses the version and the event from an item of the index `history`.
    #[must_use]
    pub fn history_row(item: &Item) -> Option<(u64, EventId)> {
        let (_, version) = history_entry(item.get(HS)?)?;
        Some((version, event_id(&Key::of(item)?)?))
    }

    /// Returns the range of sort keys for events with IDs created at `since` or later.
    #[must_use]
    pub fn events_since(since: Timestamp) -> (AttributeValue, AttributeValue) {
        let first = EventId::new(since, [0; 10]).short();
        (AttributeValue::S(format!("{EVENTS}{first}")), AttributeValue::S(format!("{EVENTS}~")))
    }

    /// Returns the range of sort keys for events with IDs created at `from` or later and before `end`; `None` if it is empty.
    #[must_use]
    pub fn events_in(from: Timestamp, end: Timestamp) -> Option<(AttributeValue, AttributeValue)> {
        Self::events_between(Some(Self::last_event_before(from)), end)
    }

    /// Returns the highest possible ID of an event created before `end`.
    #[must_use]
    pub fn last_event_before(end: Timestamp) -> EventId {
        EventId::new(end.plus(TimeDelta::milliseconds(-1)), [u8::MAX; 10])
    }

    /// Returns the range of sort keys for events after `after` with IDs created before `end`; `None` if it is empty.
    #[must_use]
    pub fn events_between(after: Option<EventId>, end: Timestamp) -> Option<(AttributeValue, AttributeValue)> {
        // No event's key sorts between the key of `after` and that key with a `~`.
        let from = after.map_or_else(|| EVENTS.to_owned(), |after| format!("{EVENTS}{}~", after.short()));
        let to = format!("{EVENTS}{}", EventId::new(end, [0; 10]).short());
        (from < to).then_some((AttributeValue::S(from), AttributeValue::S(to)))
    }
}

/// Parses the record and the version from a sort key of the index `history`.
#[must_use]
pub fn history_entry(key: &AttributeValue) -> Option<(Uuid, u64)> {
    let (record, version) = key.as_s().ok()?.split_once('#')?;
    Some((EventId::from_short(record)?.uuid(), version.parse().ok()?))
}

#[must_use]
pub fn event_id(key: &Key) -> Option<EventId> {
    key.sort().strip_prefix(EVENTS).and_then(EventId::from_short)
}

#[must_use]
pub fn event_of(partition: &str, sort: &str) -> Option<(TenantId, EventId)> {
    let key = Key { pk: partition.to_owned(), sk: sort.to_owned() };
    Some((tenant(&key)?, event_id(&key)?))
}

#[must_use]
pub fn commitments_of(item: &Item) -> Commitments {
    let stored = item.get(COMMITMENTS).and_then(|commitments| commitments.as_m().ok());
    let commitment = |(pointer, value): (&String, &AttributeValue)| {
        let pointer = if pointer.starts_with('/') { pointer.clone() } else { format!("{CHANGES}{pointer}") };
        Some((pointer, Commitment::from_bytes(value.as_b().ok()?.as_ref())?))
    };
    stored.into_iter().flatten().filter_map(commitment).collect()
}

/// The prefix of most pointers, which isn't stored, to keep entries small.
const CHANGES: &str = "/changes/";

/// Returns the attribute for an event's commitments; `None` if there are no commitments.
#[must_use]
pub fn commitments_attribute(commitments: &Commitments) -> Option<AttributeValue> {
    let stored = commitments.iter().map(|(pointer, commitment)| {
        (pointer.strip_prefix(CHANGES).unwrap_or(pointer).to_owned(), AttributeValue::B(Blob::new(commitment.as_bytes())))
    });
    (!commitments.is_empty()).then(|| AttributeValue::M(stored.collect()))
}

const BUCKET_DIGITS: usize = 2;
/// Number of buckets per section of the index `list_index`.
pub const BUCKETS: usize = 62 * 62;

/// The first letter of the keys of events that assign an asset to a user.
const ASSIGNMENTS: char = 'H';

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    Assets,
    Users,
    OpenInstances,
    EndedInstances,
    Movements,
}

impl Section {
    /// Returns the section for a kind's records that have ended, or for its other records; `None` for kinds that are not in the
    /// index.
    #[must_use]
    pub fn of(kind: Kind, is_ended: bool) -> Option<Self> {
        match kind {
            Kind::Asset => Some(Self::Assets),
            Kind::User => Some(Self::Users),
            Kind::Instance if is_ended => Some(Self::EndedInstances),
            Kind::Instance => Some(Self::OpenInstances),
            Kind::Movement => Some(Self::Movements),
            _ => None,
        }
    }

    fn letter(self) -> char {
        match self {
            Self::Assets => 'A',
            Self::Users => 'U',
            Self::OpenInstances => 'I',
            Self::EndedInstances => 'J',
            Self::Movements => 'M',
        }
    }

    /// Returns the sort key of a bucket, such as `A07`.
    #[must_use]
    pub fn bucket(self, number: usize) -> AttributeValue {
        AttributeValue::S(format!("{}{}", self.letter(), base62::encode(number as u128, BUCKET_DIGITS)))
    }

    /// Parses a bucket's number; `None` for a key of a different section.
    #[must_use]
    pub fn bucket_number(self, key: &AttributeValue) -> Option<usize> {
        let digits = key.as_s().ok()?.strip_prefix(self.letter())?;
        usize::try_from(base62::decode(digits)?).ok()
    }
}

impl Keys {
    /// Returns a record's sort key in the index `list_index`; `None` for kinds that are not in the index.
    ///
    /// Index keys need not be unique, and a section is always read completely. So keys are short, to save cost, and random, to
    /// spread a tenant's writes.
    #[must_use]
    pub fn list_index(kind: Kind, id: Uuid, is_ended: bool) -> Option<AttributeValue> {
        let bucket = usize::try_from(id.as_u128() % BUCKETS as u128).unwrap_or_default();
        Some(Section::of(kind, is_ended)?.bucket(bucket))
    }

    /// Returns the sort key of an event that assigns an asset to a user: `H<user><asset>`.
    #[must_use]
    pub fn assignment(user: UserId, asset: AssetId) -> AttributeValue {
        AttributeValue::S(format!("{ASSIGNMENTS}{}{}", user.short(), asset.short()))
    }

    /// Returns the prefix of the sort keys of all assignments to a user.
    #[must_use]
    pub fn assignments(user: UserId) -> AttributeValue {
        AttributeValue::S(format!("{ASSIGNMENTS}{}", user.short()))
    }

    #[must_use]
    pub fn assigned_asset(key: &AttributeValue) -> Option<AssetId> {
        let ids = key.as_s().ok()?.strip_prefix(ASSIGNMENTS)?;
        AssetId::from_short(ids.get(base62::WIDTH..)?)
    }
}

const DELIVERIES: &str = "DELIVERY#";
const HEALTH: &str = "HEALTH";
/// The prefix of the keys of deliveries in the index `list_index`.
const BY_STATUS: char = 'D';

impl Keys {
    /// `T#<tenant>#HOOK#<webhook>`: the partition of a webhook's deliveries and its health, in the table and in the index
    /// `list_index`. Deliveries don't use the capacity of the tenant's own partition. As with request counters, the partition
    /// can't belong to another tenant.
    #[must_use]
    pub fn webhook_partition(&self, webhook: WebhookId) -> AttributeValue {
        AttributeValue::S(self.of_webhook(webhook, String::new()).pk)
    }

    fn of_webhook(&self, webhook: WebhookId, sk: String) -> Key {
        Key { pk: format!("{}#HOOK#{}", self.pk, webhook.short()), sk }
    }

    /// `DELIVERY#<event>`: the delivery of an event to a webhook.
    #[must_use]
    pub fn delivery(&self, webhook: WebhookId, event: EventId) -> Key {
        self.of_webhook(webhook, format!("{DELIVERIES}{}", event.short()))
    }

    /// Returns the prefix of the keys of deliveries, which are sorted by event.
    #[must_use]
    pub fn delivery_prefix() -> AttributeValue {
        AttributeValue::S(DELIVERIES.to_owned())
    }

    /// `D#<status>#<event>` in the index `list_index`: the delivery of an event. The index contains no deliveries with the status
    /// delivered.
    #[must_use]
    pub fn delivery_status(status: DeliveryStatus, event: EventId) -> AttributeValue {
        AttributeValue::S(format!("{BY_STATUS}#{status}#{}", event.short()))
    }

    #[must_use]
    pub fn delivery_status_prefix(status: DeliveryStatus) -> AttributeValue {
        AttributeValue::S(format!("{BY_STATUS}#{status}#"))
    }

    /// `HEALTH`: since when a webhook's deliveries fail, and whether they are slow.
    #[must_use]
    pub fn webhook_health(&self, webhook: WebhookId) -> Key {
        self.of_webhook(webhook, HEALTH.to_owned())
    }

    /// `REPLAYS`: the replays of the tenant's webhooks.
    #[must_use]
    pub fn replays(&self) -> Key {
        self.key("REPLAYS".to_owned())
    }
}

#[must_use]
pub fn delivered_event(key: &Key) -> Option<EventId> {
    EventId::from_short(key.sort().strip_prefix(DELIVERIES)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::values::id::{ApiKeyId, Id, TenantId};
    use crate::domain::values::time::Timestamp;

    #[test]
    fn the_key_of_a_long_unique_value_fits() {
        let keys = Keys::of(TenantId::new(Timestamp::from_millis(0), [0; 10]));
        let long = Unique { field: "name", value: "ä".repeat(255 * 3), reserved_after_deletion: false };
        assert!(keys.unique(Kind::Manufacturer, &long).sort().len() < 1024);
        let short = Unique { field: "email", value: "a@b.c".into(), reserved_after_deletion: false };
        assert_eq!(keys.unique(Kind::User, &short).sort(), "UNIQ#user.email#a@b.c");
    }

    #[test]
    fn request_counters_are_in_a_partition_of_their_key_and_tenant() {
        let at = Timestamp::from_millis(0);
        let (tenant, other) = (TenantId::new(at, [0; 10]), TenantId::new(at, [1; 10]));
        let api_key = ApiKeyId::new(at, [2; 10]);
        let partition = |tenant| Keys::of(tenant).rate(api_key.uuid(), 7).pk;
        let api_key = api_key.short();
        assert_eq!(partition(tenant), format!("{}#RATE#{api_key}", Keys::of(tenant).pk));
        assert!(!partition(other).starts_with(&Keys::of(tenant).pk));
        assert_eq!(Keys::of(tenant).rate(Uuid::nil(), 7).sk, "7");
    }

    #[test]
    fn a_deleted_record_can_be_read_from_its_tombstones_key() {
        let keys = Keys::of(TenantId::new(Timestamp::from_millis(0), [0; 10]));
        let id = Uuid::from_u128(77);
        assert_eq!(deleted_record(&keys.tombstone(Kind::ReceiptKeys, id)), Some((Some(Kind::ReceiptKeys), id)));
        assert_eq!(deleted_record(&keys.record(Kind::Asset, id)), None);
    }

    #[test]
    fn the_aws_cli_takes_a_key_as_it_is_shown() {
        let key = Key { pk: "T#1".into(), sk: "UNIQ#\"a\"".into() };
        assert_eq!(key.to_string(), r#"{"PK":{"S":"T#1"},"SK":{"S":"UNIQ#\"a\""}}"#);
    }

    #[test]
    fn a_registered_tenant_can_be_read_from_its_key() {
        let tenant = TenantId::new(Timestamp::from_millis(5), [3; 10]);
        assert_eq!(registered_tenant(&registry(tenant)), Some(tenant));
    }

    #[test]
    fn history_rows_sort_by_version_and_can_be_read() {
        let keys = Keys::of(TenantId::new(Timestamp::from_millis(0), [0; 10]));
        let event = EventId::new(Timestamp::from_millis(7), [7; 10]);
        let mut row = keys.event(event).item();
        row.insert(HS.to_owned(), Keys::history(Uuid::from_u128(9), 12));
        assert_eq!(Keys::history_row(&row), Some((12, event)));
        let sort = |version| Keys::history(Uuid::from_u128(9), version).as_s().cloned().ok();
        assert!(sort(9) < sort(10) && sort(999) < sort(1_000_000_000));
    }

    #[test]
    fn the_key_of_an_event_names_its_tenant() {
        let (tenant, event) =
            (TenantId::new(Timestamp::from_millis(0), [1; 10]), EventId::new(Timestamp::from_millis(7), [7; 10]));
        let keys = Keys::of(tenant);
        let of = |key: &Key| event_of(&key.pk, &key.sk);
        assert_eq!(of(&keys.event(event)), Some((tenant, event)));
        assert_eq!(of(&keys.rate(event.uuid(), 1)), None);
        assert_eq!(event_of("REGISTRY", &keys.event(event).sk), None);
    }

    #[test]
    fn events_after_an_event_begin_with_the_next_one() {
        let at = Timestamp::from_millis;
        let event = EventId::new(at(1000), [9; 10]);
        let key = |id: EventId| format!("{EVENTS}{}", id.short());
        let (from, to) = Keys::events_between(Some(event), at(2000)).expect("a range");
        let (from, to) = (from.as_s().expect("text"), to.as_s().expect("text"));
        assert!(*from > key(event) && *from < key(EventId::from_uuid(Uuid::from_u128(event.uuid().as_u128() + 1))));
        assert!(*to > key(EventId::new(at(1999), [255; 10])) && *to <= key(EventId::new(at(2000), [0; 10])));
        assert_eq!(Keys::events_between(Some(event), at(1000)), None);
        assert!(Keys::events_between(None, at(1000)).is_some());
        let last = Keys::last_event_before(at(2000));
        assert!(last >= EventId::new(at(1999), [255; 10]) && last < EventId::new(at(2000), [0; 10]));
    }

    #[test]
    fn assignments_are_in_no_section_and_name_their_asset() {
        let (user, asset) = (UserId::from_uuid(Uuid::from_u128(7)), AssetId::from_uuid(Uuid::from_u128(u128::MAX)));
        let key = Keys::assignment(user, asset);
        assert_eq!(Keys::assigned_asset(&key), Some(asset));
        let text = |key: &AttributeValue| key.as_s().cloned().unwrap_or_default();
        assert!(text(&key).starts_with(&text(&Keys::assignments(user))));
        let sections = [Section::Assets, Section::Users, Section::OpenInstances, Section::EndedInstances, Section::Movements];
        assert!(sections.iter().all(|section| section.bucket_number(&key).is_none() && section.letter() != ASSIGNMENTS));
        assert_eq!(Keys::assigned_asset(&Section::Assets.bucket(3)), None);
    }

    #[test]
    fn deliveries_are_in_their_webhooks_partition_in_the_order_of_their_events() {
        let at = Timestamp::from_millis;
        let keys = Keys::of(TenantId::new(at(0), [0; 10]));
        let webhook = WebhookId::new(at(1), [1; 10]);
        let (early, late) = (EventId::new(at(5), [255; 10]), EventId::new(at(6), [0; 10]));
        let sort = |event| keys.delivery(webhook, event).sort().to_owned();
        let text = |value: &AttributeValue| value.as_s().cloned().unwrap_or_default();
        assert!(sort(early) < sort(late) && sort(early).starts_with(&text(&Keys::delivery_prefix())));
        let partition = format!("{}#HOOK#{}", text(&keys.partition()), webhook.short());
        assert_eq!(text(&keys.webhook_partition(webhook)), partition);
        assert_eq!([keys.delivery(webhook, late).pk, keys.webhook_health(webhook).pk], [partition.clone(), partition]);
        let status = text(&Keys::delivery_status(DeliveryStatus::Pending, early));
        assert!(status.starts_with(&text(&Keys::delivery_status_prefix(DeliveryStatus::Pending))));
        assert!(!status.starts_with(&text(&Keys::delivery_status_prefix(DeliveryStatus::Failed))));
        assert_eq!(delivered_event(&keys.delivery(webhook, late)), Some(late));
        assert_eq!(delivered_event(&keys.event(late)), None);
    }
}
