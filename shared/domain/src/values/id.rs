//! Identifiers: UUIDv7 (RFC 9562), in lower case with hyphens in the API, and as 22 base62 characters in table keys.

use crate::values::base62;
use crate::values::field_error::{ErrorCode, ValueError};
use crate::values::time::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt::{Debug, Display};
use std::str::FromStr;
use uuid::Uuid;

pub trait Id: Copy + Eq + Ord + Debug + Display + FromStr<Err = ValueError> + Send + Sync + 'static {
    /// Converts a UUID that is known to identify this kind of record.
    fn from_uuid(uuid: Uuid) -> Self;

    fn uuid(self) -> Uuid;

    /// Creates an identifier that sorts by `at`; `random` makes it unique.
    fn new(at: Timestamp, random: [u8; 10]) -> Self {
        Self::from_uuid(uuid::Builder::from_unix_timestamp_millis(at.millis().unsigned_abs(), &random).into_uuid())
    }

    /// Returns the time of creation, which the identifier sorts by (RFC 9562 §5.7).
    fn timestamp(self) -> Timestamp {
        Timestamp::from_millis(i64::try_from(self.uuid().as_u128() >> 80).unwrap_or(i64::MAX))
    }

    /// Returns 22 base62 characters, as in table keys.
    fn short(self) -> String {
        base62::encode(self.uuid().as_u128(), base62::WIDTH)
    }

    fn from_short(text: &str) -> Option<Self> {
        (text.len() == base62::WIDTH)
            .then(|| base62::decode(text))
            .flatten()
            .map(|number| Self::from_uuid(Uuid::from_u128(number)))
    }
}

/// Parses the lower-case, hyphenated form. Other spellings of a UUID are not identifiers.
fn parse(text: &str) -> Result<Uuid, ValueError> {
    Uuid::try_parse(text)
        .ok()
        .filter(|uuid| uuid.hyphenated().encode_lower(&mut Uuid::encode_buffer()) == text)
        .ok_or_else(|| ValueError::coded(ErrorCode::UnknownReference, "must be a UUID, lower case with hyphens"))
}

macro_rules! typed_ids {
    ($($(#[$doc:meta])* $name:ident,)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, utoipa::ToSchema)]
        #[schema(value_type = String, format = Uuid)]
        pub struct $name(Uuid);

        impl Id for $name {
            fn from_uuid(uuid: Uuid) -> Self { Self(uuid) }
            fn uuid(self) -> Uuid { self.0 }
        }
        impl Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { Display::fmt(&self.0, f) }
        }
        impl Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { write!(f, "{}({})", stringify!($name), self.0) }
        }
        impl FromStr for $name {
            type Err = ValueError;
            fn from_str(text: &str) -> Result<Self, ValueError> { parse(text).map(Self) }
        }
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> { serializer.collect_str(self) }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}

typed_ids! {
    /// Identifies a tenant.
    TenantId,
    /// Identifies an asset.
    AssetId,
    /// Identifies a user.
    UserId,
    /// Identifies an asset type of the catalog.
    AssetTypeId,
    /// Identifies a manufacturer of the catalog.
    ManufacturerId,
    /// Identifies a model of the catalog.
    ModelId,
    /// Identifies a process definition.
    ProcessId,
    /// Identifies a process instance.
    InstanceId,
    /// Identifies a movement.
    MovementId,
    /// Identifies an API key. Not secret.
    ApiKeyId,
    /// Identifies a signing link. Not secret.
    LinkId,
    /// Identifies a webhook.
    WebhookId,
    /// Identifies the receipt keys of a tenant.
    ReceiptKeysId,
    /// Identifies an event of the history.
    EventId,
}

/// `#[serde(with = "short")]` writes an optional identifier in its short form, for items that are copied to an index.
pub mod short {
    use super::{Deserialize, Deserializer, Id, Serialize, Serializer};

    /// Writes [`Id::short`] or null.
    ///
    /// # Errors
    ///
    /// Returns the serializer's error.
    pub fn serialize<I: Id, S: Serializer>(id: &Option<I>, serializer: S) -> Result<S::Ok, S::Error> {
        id.map(Id::short).serialize(serializer)
    }

    /// Reads a short identifier or null.
    ///
    /// # Errors
    ///
    /// Returns an error for text that is not a short identifier.
    pub fn deserialize<'de, I: Id, D: Deserializer<'de>>(deserializer: D) -> Result<Option<I>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| I::from_short(&text).ok_or_else(|| serde::de::Error::custom("not an id"))).transpose()
    }
}

/// Chooses a free slot for a record of a limited kind; `None` if all slots are taken. Each such record takes a slot, a unique
/// number below the limit, so there can't be more records. The random end of the ID selects the slot, so concurrent creations
/// rarely compete for the same one.
pub fn choose_slot(free: &[u8], id: impl Id) -> Option<u8> {
    let random = id.uuid().as_bytes().last().copied().unwrap_or_default();
    free.get(usize::from(random) % free.len().max(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn only_the_lower_case_hyphenated_form_is_an_id() {
        let id = AssetId::new(Timestamp::from_millis(1_800_000_000_000), [7; 10]);
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!(id.uuid().get_version_num(), 7);
        for wrong in [id.to_string().to_uppercase(), id.uuid().simple().to_string(), format!("{{{id}}}"), String::new()] {
            assert!(wrong.parse::<AssetId>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_short_form_reads_back_and_sorts_by_time() {
        let early = AssetId::new(Timestamp::from_millis(1_800_000_000_000), [255; 10]);
        let late = AssetId::new(Timestamp::from_millis(1_800_000_000_001), [0; 10]);
        assert_eq!(AssetId::from_short(&early.short()), Some(early));
        assert!(early.short() < late.short());
    }

    #[test]
    fn every_free_slot_is_chosen_and_no_other() {
        let slots = |free: &[u8]| {
            let ids = (0..=u8::MAX).map(|random| LinkId::new(Timestamp::from_millis(0), [random; 10]));
            ids.map(|id| choose_slot(free, id)).collect::<BTreeSet<_>>()
        };
        assert_eq!(slots(&[]), BTreeSet::from([None]));
        assert_eq!(slots(&[3, 99]), BTreeSet::from([Some(3), Some(99)]));
        assert_eq!(slots(&(0..100).collect::<Vec<_>>()).len(), 100);
    }
}
