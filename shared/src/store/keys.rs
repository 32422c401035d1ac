//! Every key of the table is made here, and nowhere else (docs/adr/0002).
//!
//! The partition key is always `T#<tenant>`, in the indexes too, so that no expression can reach another
//! tenant's items. The exception is the operator's registry of tenants, which holds ids only.

use crate::domain::base62;
use crate::domain::hex;
use crate::domain::id::{ApiKeyId, EventId, Id, TenantId};
use crate::domain::instance::ImageName;
use crate::domain::record::{Kind, Unique};
use crate::domain::request::IdempotentRequest;
use crate::domain::time::Timestamp;
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::HashMap;
use uuid::Uuid;

/// Attributes of an item, as the SDK has them.
pub type Item = HashMap<String, AttributeValue>;

/// The partition key's attribute.
pub const PK: &str = "PK";
/// The sort key's attribute.
pub const SK: &str = "SK";
/// The sort key of the index `list_index`: what lists are made from.
pub const LS: &str = "LS";
/// The sort key of the index `history`: the events of one thing.
pub const HS: &str = "HS";
/// The index that directories are loaded from.
pub const LIST_INDEX: &str = "list_index";
/// When DynamoDB may delete an item by itself, as Unix time in seconds; up to days later it is still there.
pub const EXPIRES: &str = "expires";
/// The index that the history of one thing is found by.
pub const HISTORY: &str = "history";
/// Says what an item is, for whoever looks at the table.
pub const TYPE: &str = "type";

/// Sort keys longer than this are hashed; DynamoDB takes 1,024 bytes.
const LONGEST_VALUE: usize = 512;

/// The key of one item.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    pk: String,
    sk: String,
}

impl Key {
    /// The key's two attributes.
    #[must_use]
    pub fn item(&self) -> Item {
        Item::from([(PK.to_owned(), AttributeValue::S(self.pk.clone())), (SK.to_owned(), AttributeValue::S(self.sk.clone()))])
    }

    /// The key that an item carries.
    #[must_use]
    pub fn of(item: &Item) -> Option<Self> {
        let text = |name| item.get(name).and_then(|value| value.as_s().ok()).cloned();
        Some(Self { pk: text(PK)?, sk: text(SK)? })
    }

    /// The sort key.
    #[must_use]
    pub fn sort(&self) -> &str {
        &self.sk
    }
}

/// Makes the keys of one tenant, and of no other.
#[derive(Debug, Clone)]
pub struct Keys {
    pk: String,
}

/// What the sort keys of a kind begin with.
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
    }
}

impl Keys {
    /// The keys of `tenant`.
    #[must_use]
    pub fn of(tenant: TenantId) -> Self {
        Self { pk: format!("T#{}", tenant.short()) }
    }

    /// The partition key.
    #[must_use]
    pub fn partition(&self) -> AttributeValue {
        AttributeValue::S(self.pk.clone())
    }

    fn key(&self, sk: String) -> Key {
        Key { pk: self.pk.clone(), sk }
    }

    /// `ASSET#<id>` and the like; a tenant has one `TENANT` and one `RECEIPTKEYS`, whatever their ids.
    #[must_use]
    pub fn record(&self, kind: Kind, id: Uuid) -> Key {
        match kind {
            Kind::Tenant | Kind::ReceiptKeys => self.key(prefix(kind).to_owned()),
            Kind::ApiKey => self.key(format!("{}{}", prefix(kind), ApiKeyId::from_uuid(id).short())),
            _ => self.key(format!("{}{}", prefix(kind), EventId::from_uuid(id).short())),
        }
    }

    /// What the sort keys of every item of a kind begin with.
    #[must_use]
    pub fn prefix(kind: Kind) -> AttributeValue {
        AttributeValue::S(prefix(kind).to_owned())
    }

    /// `UNIQ#<kind>.<field>#<value>`: the marker that a value is taken.
    #[must_use]
    pub fn unique(&self, kind: Kind, unique: &Unique) -> Key {
        let value = if unique.value.len() > LONGEST_VALUE {
            format!("sha256:{}", hex::sha256(&unique.value))
        } else {
            unique.value.clone()
        };
        self.key(format!("UNIQ#{}.{}#{value}", kind.noun(), unique.field))
    }

    /// `SEQUENCE#<tag with {N} for its number>`: a counter of tags.
    #[must_use]
    pub fn counter(&self, counter: &str) -> Key {
        self.key(format!("{COUNTERS}{counter}"))
    }

    /// `NUMBER#MOVEMENT`: the counter of movements.
    #[must_use]
    pub fn movement_counter(&self) -> Key {
        self.key("NUMBER#MOVEMENT".to_owned())
    }

    /// `SIGNATURE#<run or movement>#<step key>#<hash>`: a signature's image. One that takes its place is another item.
    #[must_use]
    pub fn signature(&self, name: &ImageName) -> Key {
        self.key(format!("SIGNATURE#{}#{}#{}", EventId::from_uuid(name.owner).short(), name.step, name.hash))
    }

    /// `EVENT#<id>`: one change.
    #[must_use]
    pub fn event(&self, id: EventId) -> Key {
        self.key(format!("{EVENTS}{}", id.short()))
    }

    /// `RATE#<API key>#<minute>#<secret>`: how many requests came with that secret in that minute. A stranger who knows
    /// a key's id, but not its secret, uses up nothing of its limit.
    #[must_use]
    pub fn rate(&self, key: ApiKeyId, minute: i64, secret: &str) -> Key {
        self.key(format!("RATE#{}#{minute}#{}", key.short(), secret.get(..16).unwrap_or(secret)))
    }

    /// `IDEMPOTENCY#<API key>#<idempotency key, hashed>`: the answer to a request that may come again.
    #[must_use]
    pub fn stored_response(&self, claim: &IdempotentRequest) -> Key {
        self.key(format!("IDEMPOTENCY#{}#{}", claim.by.short(), claim.key.hash()))
    }

    /// Where the event that made this version stands in the index `history`. Versions sort as numbers, so that the
    /// newest tells how many there are, and a page of the history is a range.
    #[must_use]
    pub fn history(entity: Uuid, version: u64) -> AttributeValue {
        AttributeValue::S(format!("{}#{version:0VERSION_WIDTH$}", EventId::from_uuid(entity).short()))
    }

    /// The version and the event that a row of the index `history` names.
    #[must_use]
    pub fn history_row(row: &Item) -> Option<(u64, EventId)> {
        let version = row.get(HS)?.as_s().ok()?.split_once('#')?.1.parse().ok()?;
        Some((version, event_of(&Key::of(row)?)?))
    }

    /// The keys of every event whose id was made at `since` or later: from the first to the second.
    #[must_use]
    pub fn events_since(since: Timestamp) -> (AttributeValue, AttributeValue) {
        let first = EventId::new(since, [0; 10]).short();
        (AttributeValue::S(format!("{EVENTS}{first}")), AttributeValue::S(format!("{EVENTS}~")))
    }

    /// The keys of events after `after`, or of all, whose id was made before `end`: from the first to the second;
    /// `None` when there can be none.
    #[must_use]
    pub fn events_between(after: Option<EventId>, end: Timestamp) -> Option<(AttributeValue, AttributeValue)> {
        // Nothing stands between an id's key and the same with one more character.
        let from = after.map_or_else(|| EVENTS.to_owned(), |after| format!("{EVENTS}{}~", after.short()));
        let to = format!("{EVENTS}{}", EventId::new(end, [0; 10]).short());
        (from < to).then_some((AttributeValue::S(from), AttributeValue::S(to)))
    }

    /// Where a thing stands in the index `list_index`; `None` for kinds that need no directory. Keys of an index need
    /// not differ, and the index is read whole: a short one costs less, and at random it spreads a tenant's writes.
    #[must_use]
    pub fn list_index(kind: Kind, id: Uuid) -> Option<AttributeValue> {
        let bucket = usize::try_from(id.as_u128() % BUCKETS as u128).unwrap_or_default();
        list_index_letter(kind).map(|_| Self::bucket(kind, bucket))
    }

    /// `A07`: the bucket of assets with that number.
    #[must_use]
    pub fn bucket(kind: Kind, number: usize) -> AttributeValue {
        let letter = list_index_letter(kind).unwrap_or('-');
        AttributeValue::S(format!("{letter}{}", base62::encode(number as u128, BUCKET_WIDTH)))
    }

    /// The number of the bucket that a key of the index `list_index` names.
    #[must_use]
    pub fn bucket_number(key: &AttributeValue) -> Option<usize> {
        usize::try_from(base62::decode(key.as_s().ok()?.get(1..)?)?).ok()
    }
}

/// How many digits the number of a bucket has.
const BUCKET_WIDTH: usize = 2;
/// How many buckets the index `list_index` has for each kind.
pub const BUCKETS: usize = 62 * 62;

/// What the keys of a kind begin with in the index `list_index`.
fn list_index_letter(kind: Kind) -> Option<char> {
    match kind {
        Kind::Asset => Some('A'),
        Kind::User => Some('U'),
        Kind::Instance => Some('I'),
        Kind::Movement => Some('M'),
        _ => None,
    }
}

/// The id of the record that a key of its kind is of.
#[must_use]
pub fn recorded(kind: Kind, key: &Key) -> Option<Uuid> {
    owner(kind, &key.sk)
}

/// The id of the record of a kind whose sort key this is, as markers name their owner.
#[must_use]
pub fn owner(kind: Kind, sort: &str) -> Option<Uuid> {
    sort.strip_prefix(prefix(kind)).and_then(EventId::from_short).map(Id::uuid)
}

/// What the sort keys of events begin with.
const EVENTS: &str = "EVENT#";

/// The event that a key is of.
#[must_use]
pub fn event_of(key: &Key) -> Option<EventId> {
    key.sk.strip_prefix(EVENTS).and_then(EventId::from_short)
}

/// How many digits a version has in the index `history`.
const VERSION_WIDTH: usize = 10;
/// The last version that there is room for.
pub const LAST_VERSION: u64 = 9_999_999_999;

/// What the sort keys of counters begin with.
pub const COUNTERS: &str = "SEQUENCE#";

/// The partition of the operator's registry.
#[must_use]
pub fn registry_partition() -> AttributeValue {
    AttributeValue::S("REGISTRY".to_owned())
}

/// The registry's item for a tenant.
#[must_use]
pub fn registry(tenant: TenantId) -> Key {
    Key { pk: "REGISTRY".to_owned(), sk: format!("T#{}", tenant.short()) }
}

/// The tenant that a registry item stands for.
#[must_use]
pub fn registered(key: &Key) -> Option<TenantId> {
    key.sk.strip_prefix("T#").and_then(TenantId::from_short)
}

/// A key that no item has, to read when it only matters whether the table answers.
#[must_use]
pub fn nothing() -> Key {
    Key { pk: "NOTHING".to_owned(), sk: "NOTHING".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_value_still_makes_a_key() {
        let keys = Keys::of(TenantId::new(Timestamp::from_millis(0), [0; 10]));
        let long = Unique { field: "name", value: "ä".repeat(255 * 3), reserved_after_deletion: false };
        assert!(keys.unique(Kind::Manufacturer, &long).sort().len() < 1024);
        let short = Unique { field: "email", value: "a@b.c".into(), reserved_after_deletion: false };
        assert_eq!(keys.unique(Kind::User, &short).sort(), "UNIQ#user.email#a@b.c");
    }

    #[test]
    fn rows_of_the_history_sort_by_version_and_read_back() {
        let keys = Keys::of(TenantId::new(Timestamp::from_millis(0), [0; 10]));
        let event = EventId::new(Timestamp::from_millis(7), [7; 10]);
        let mut row = keys.event(event).item();
        row.insert(HS.to_owned(), Keys::history(Uuid::from_u128(9), 12));
        assert_eq!(Keys::history_row(&row), Some((12, event)));
        let sort = |version| Keys::history(Uuid::from_u128(9), version).as_s().cloned().ok();
        assert!(sort(9) < sort(10) && sort(999) < sort(1_000_000_000));
    }

    #[test]
    fn events_after_one_begin_with_the_next() {
        let at = Timestamp::from_millis;
        let event = EventId::new(at(1000), [9; 10]);
        let key = |id: EventId| format!("{EVENTS}{}", id.short());
        let (from, to) = Keys::events_between(Some(event), at(2000)).expect("a range");
        let (from, to) = (from.as_s().expect("text"), to.as_s().expect("text"));
        assert!(*from > key(event) && *from < key(EventId::from_uuid(Uuid::from_u128(event.uuid().as_u128() + 1))));
        assert!(*to > key(EventId::new(at(1999), [255; 10])) && *to <= key(EventId::new(at(2000), [0; 10])));
        assert_eq!(Keys::events_between(Some(event), at(1000)), None);
        assert!(Keys::events_between(None, at(1000)).is_some());
    }

    #[test]
    fn a_registered_tenant_reads_back() {
        let tenant = TenantId::new(Timestamp::from_millis(5), [3; 10]);
        assert_eq!(registered(&registry(tenant)), Some(tenant));
    }
}
