//! Identifiers: UUIDv7 (RFC 9562), lower case and hyphenated outside, 22 base62 characters in keys.

use super::base62;
use super::field_error::ValueError;
use super::time::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt::{Debug, Display};
use std::str::FromStr;
use uuid::Uuid;

/// What every kind of identifier can do.
pub trait Id: Copy + Eq + Ord + Debug + Display + FromStr<Err = ValueError> + Send + Sync + 'static {
    /// Wraps a UUID that is known to name this kind of thing.
    fn from_uuid(uuid: Uuid) -> Self;

    /// The bare UUID.
    fn uuid(self) -> Uuid;

    /// A new identifier that sorts by `at`; `random` makes it one of a kind.
    fn new(at: Timestamp, random: [u8; 10]) -> Self {
        Self::from_uuid(uuid::Builder::from_unix_timestamp_millis(at.millis().unsigned_abs(), &random).into_uuid())
    }

    /// The moment that it sorts by (RFC 9562 §5.7).
    fn made_at(self) -> Timestamp {
        Timestamp::from_millis(i64::try_from(self.uuid().as_u128() >> 80).unwrap_or(i64::MAX))
    }

    /// The form that keys of the table use.
    fn short(self) -> String {
        base62::encode(self.uuid().as_u128(), base62::WIDTH)
    }

    /// Reads [`Id::short`].
    fn from_short(text: &str) -> Option<Self> {
        (text.len() == base62::WIDTH)
            .then(|| base62::decode(text))
            .flatten()
            .map(|number| Self::from_uuid(Uuid::from_u128(number)))
    }
}

/// Only the lower-case hyphenated form names anything (contract 1).
fn parse(text: &str) -> Result<Uuid, ValueError> {
    Uuid::try_parse(text)
        .ok()
        .filter(|uuid| uuid.hyphenated().encode_lower(&mut Uuid::encode_buffer()) == text)
        .ok_or_else(|| ValueError::new("must be a UUID, lower case with hyphens"))
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
    /// Names an organisation whose data no other sees.
    TenantId,
    /// Names an asset.
    AssetId,
    /// Names a person of the tenant.
    UserId,
    /// Names an entry of the catalog's asset types.
    AssetTypeId,
    /// Names a manufacturer of the catalog.
    ManufacturerId,
    /// Names a model of the catalog.
    ModelId,
    /// Names a process definition.
    ProcessId,
    /// Names a run of a process on an asset.
    InstanceId,
    /// Names a movement: runs of a process on several assets at once.
    MovementId,
    /// Names an API key; no secret.
    ApiKeyId,
    /// Names a tenant's keys for receipts.
    ReceiptKeysId,
    /// Names one change in the audit trail.
    EventId,
}

/// `#[serde(with = "short")]`: an optional id in the form of keys, for items that an index copies.
pub mod short {
    use super::{Deserialize, Deserializer, Id, Serialize, Serializer};

    /// Writes [`Id::short`] or null.
    ///
    /// # Errors
    ///
    /// The serializer's own.
    pub fn serialize<I: Id, S: Serializer>(id: &Option<I>, serializer: S) -> Result<S::Ok, S::Error> {
        id.map(Id::short).serialize(serializer)
    }

    /// Reads what `serialize` wrote.
    ///
    /// # Errors
    ///
    /// A text that is no id.
    pub fn deserialize<'de, I: Id, D: Deserializer<'de>>(deserializer: D) -> Result<Option<I>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| I::from_short(&text).ok_or_else(|| serde::de::Error::custom("not an id"))).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
