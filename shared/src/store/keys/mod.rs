//! The keys of the table's items. All keys are made here, and nowhere else (docs/adr/0002-table.md).
//!
//! The partition key is always `T#<tenant>`, also in the indexes, so no expression can reach another tenant's items.
//! Request counters and deliveries are in separate partitions, whose keys begin with it. The exception is the operator's
//! registry of tenants, which contains only ids.

mod events;
mod list_index;
mod webhooks;

pub use events::{EVENTS, LAST_VERSION, commitments_attribute, commitments_of, event_id, event_of, history_entry};
pub use list_index::{BUCKETS, Section};
pub use webhooks::delivered_event;

use crate::domain::processes::instance::ImageName;
use crate::domain::record::{Kind, Unique};
use crate::domain::request::IdempotentRequest;
use crate::domain::values::hex;
use crate::domain::values::id::{EventId, Id, TenantId, UserId};
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::json;
use std::collections::HashMap;
use std::fmt;
use uuid::Uuid;

/// In the SDK's representation.
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
/// The attribute with the Unix time in seconds from which DynamoDB may delete an item. It may take days to do so.
pub const EXPIRES: &str = "expires";
/// The attribute of an event with its text, from which its hash is computed.
pub const ENTRY: &str = "entry";
/// The attribute of an event with its commitments: salts or digests by pointer.
pub const COMMITMENTS: &str = "commitments";
/// The attribute with an item's type, for people who look at the table.
pub const TYPE: &str = "type";

/// Longer values are hashed in sort keys, for which DynamoDB allows 1,024 bytes.
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

/// As the AWS CLI's option `--key` takes it.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", json!({(PK): {"S": self.pk}, (SK): {"S": self.sk}}))
    }
}

/// Keys of one tenant, and of no other.
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

    /// `ASSET#<id>` and so on: a record. A tenant has one `TENANT` and one `RECEIPTKEYS`, whatever their ids are.
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

    /// `ERASURE#<user>`: how far the erasure of a person has come.
    #[must_use]
    pub fn erasure(&self, user: UserId) -> Key {
        self.key(format!("{ERASURES}{}", user.short()))
    }

    /// `REFERENCES#<kind>#<id>`: the number of references to a record, and the attributes that references can require.
    #[must_use]
    pub fn references(&self, kind: Kind, id: Uuid) -> Key {
        self.key(format!("{REFERENCES}{}#{}", kind.noun(), short(id)))
    }

    /// `DELETED#<kind>#<id>`: the tombstone of a deleted record.
    #[must_use]
    pub fn tombstone(&self, kind: Kind, id: Uuid) -> Key {
        self.key(format!("{TOMBSTONES}{}#{}", kind.noun(), short(id)))
    }

    /// `UNIQ#<kind>.<field>#<value>`: the marker that reserves a unique value.
    #[must_use]
    pub fn unique(&self, kind: Kind, unique: &Unique) -> Key {
        let value = if unique.value.len() > MAX_VALUE_BYTES {
            format!("sha256:{}", hex::sha256(&unique.value))
        } else {
            unique.value.clone()
        };
        self.key(format!("{MARKERS}{}.{}#{value}", kind.noun(), unique.field))
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

    /// `SERIAL#<serial number as it is compared, hashed>`: the asset that an upsert has created lately.
    #[must_use]
    pub fn serial_claim(&self, serial: &str) -> Key {
        self.key(format!("SERIAL#{}", hex::sha256(serial)))
    }

    /// `SIGNATURE#<instance or movement>#<step key>#<hash>`: the image of a signature. Another image has another key.
    #[must_use]
    pub fn signature(&self, name: &ImageName) -> Key {
        self.key(format!("{SIGNATURES}{}#{}#{}", short(name.owner), name.step, name.hash))
    }

    /// `<minute>` in the partition `T#<tenant>#RATE#<credential>`: the number of requests with that API key, whichever of its
    /// secrets they have, or with that signing link, in that minute.
    ///
    /// The requests of the whole tenant have the tenant's id instead, if the operator limits them.
    ///
    /// Each credential has a partition for its counters, so that neither counting nor the tenant's own writes slow down the
    /// other. Ids have a fixed length and contain no `#`, so it is no other tenant's partition.
    #[must_use]
    pub fn rate(&self, credential: Uuid, minute: i64) -> Key {
        Key { pk: format!("{}#RATE#{}", self.pk, short(credential)), sk: minute.to_string() }
    }

    /// `CEILING` in the partition of the tenant's own counters, `T#<tenant>#RATE#<tenant>`: the operator's limit for all
    /// requests of the tenant together.
    #[must_use]
    pub fn ceiling(&self, tenant: Uuid) -> Key {
        Key { sk: "CEILING".to_owned(), ..self.rate(tenant, 0) }
    }

    /// `IDEMPOTENCY#<credential>#<idempotency key, hashed>`: the stored response to a request.
    #[must_use]
    pub fn stored_response(&self, idempotency: &IdempotentRequest) -> Key {
        self.key(format!("{STORED_RESPONSES}{}#{}", short(idempotency.by), idempotency.key.hash()))
    }

    /// The prefix of unique markers whose value begins with `unique`'s.
    #[must_use]
    pub fn markers(kind: Kind, unique: &Unique) -> AttributeValue {
        AttributeValue::S(format!("{MARKERS}{}.{}#{}", kind.noun(), unique.field, unique.value))
    }
}

fn short(id: Uuid) -> String {
    EventId::from_uuid(id).short()
}

/// The tenant of the partition.
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

/// The prefix of the sort keys of deleted records' tombstones.
#[must_use]
pub fn tombstone_prefix(kind: Kind) -> AttributeValue {
    AttributeValue::S(format!("{TOMBSTONES}{}#", kind.noun()))
}

/// The kind is `None` if this version of the service does not know it.
#[must_use]
pub fn deleted_record(tombstone: &Key) -> Option<(Option<Kind>, Uuid)> {
    let (noun, id) = tombstone.sk.strip_prefix(TOMBSTONES)?.split_once('#')?;
    let kind = Kind::ALL.iter().copied().find(|kind| kind.noun() == noun);
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

/// No item has this key. Reading it shows whether the table responds.
#[must_use]
pub fn health_check() -> Key {
    Key { pk: "NOTHING".to_owned(), sk: "NOTHING".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::values::id::ApiKeyId;
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
}
