//! Events: the history of a record has one event per change, each with the hash of the previous one.

use crate::actor::Actor;
use crate::record::Kind;
use crate::values::hex;
use crate::values::id::EventId;
use crate::values::json;
use crate::values::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Created,
    Updated,
    Deleted,
    /// An asset was scanned. The feed only returns this type if a request names it.
    Seen,
}

impl Verb {
    /// The verbs of every kind of record.
    pub(crate) const COMMON: [Self; 3] = [Self::Created, Self::Updated, Self::Deleted];
    const ALL: [Self; 4] = [Self::Created, Self::Updated, Self::Deleted, Self::Seen];

    /// The text, such as `asset.created`.
    #[must_use]
    pub fn event_type(self, kind: Kind) -> String {
        format!("{}.{}", kind.noun(), self.as_str())
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Deleted => "deleted",
            Self::Seen => "seen",
        }
    }
}

/// The two parts of an event's type, such as `asset.created`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventType {
    /// The kind of record; `None` if unknown to this version of the service.
    pub kind: Option<Kind>,
    /// `None` if unknown to this version of the service.
    pub verb: Option<Verb>,
}

impl EventType {
    /// `None` if the text is not of the form `noun.verb`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (noun, verb) = text.split_once('.')?;
        let kind = Kind::ALL.iter().copied().find(|kind| kind.noun() == noun);
        let verb = Verb::ALL.into_iter().find(|known| known.as_str() == verb);
        Some(Self { kind, verb })
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    pub id: EventId,
    /// The time of the request.
    pub at: Timestamp,
    /// The type of the event, such as `asset.updated`. Kept as text because later versions of the service can add types; see
    /// [`EventType`].
    #[serde(rename = "type")]
    pub event_type: String,
    pub entity_id: uuid::Uuid,
    /// The version of the record after the change, starting at 1.
    pub version: u64,
    pub actor: Actor,
    /// The changed fields, each with its `old` and `new` value.
    #[serde(deserialize_with = "json::deserialize_object")]
    pub changes: Map<String, Value>,
    /// The hash of the record's previous event; `None` for the first.
    pub previous_hash: Option<String>,
}

impl Event {
    /// Whether the event only records a scan, without moving the asset.
    fn is_scan(&self) -> bool {
        self.event_type == Verb::Seen.event_type(Kind::Asset) && !self.changes.contains_key("location")
    }
}

/// The number of events that only record a scan.
#[must_use]
pub fn scans(events: &[Event]) -> u64 {
    events.iter().filter(|event| event.is_scan()).count() as u64
}

/// The canonical JSON of a value (RFC 8785).
///
/// # Errors
///
/// Returns an error if a number is not finite.
pub fn canonical(value: &impl Serialize) -> Result<String, serde_json::Error> {
    serde_json_canonicalizer::to_string(value)
}

/// Returns the hash of an event's canonical JSON: SHA-256 in lower-case hexadecimal.
#[must_use]
pub fn hash(canonical: &str) -> String {
    hex::sha256(canonical)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_event_type_is_split_into_kind_and_verb() {
        let parts = |kind, verb| Some(EventType { kind, verb });
        for &kind in Kind::ALL {
            for verb in Verb::COMMON {
                assert_eq!(EventType::parse(&verb.event_type(kind)), parts(Some(kind), Some(verb)));
            }
        }
        assert_eq!(EventType::parse("asset.seen"), parts(Some(Kind::Asset), Some(Verb::Seen)));
        assert_eq!(Verb::Created.event_type(Kind::Asset), "asset.created");
        assert_eq!(EventType::parse("drone.deleted"), parts(None, Some(Verb::Deleted)));
        assert_eq!(EventType::parse("asset.painted"), parts(Some(Kind::Asset), None));
        assert_eq!(EventType::parse("asset.updated.twice"), parts(Some(Kind::Asset), None));
        assert_eq!(EventType::parse("asset"), None);
    }

    #[test]
    fn the_hash_is_that_of_the_canonical_json() {
        let event = Event {
            id: "01890a5d-ac96-774b-bcce-b302099a8057".parse().expect("an id"),
            at: Timestamp::from_millis(0),
            event_type: "asset.created".into(),
            entity_id: uuid::Uuid::nil(),
            version: 1,
            actor: Actor::operator(),
            changes: Map::from_iter([("z".to_owned(), json!(1.50)), ("ä".to_owned(), json!("é"))]),
            previous_hash: None,
        };
        let text = canonical(&event).expect("finite");
        assert_eq!(
            text,
            r#"{"actor":{"key_id":null,"key_name":"operator","user_id":null,"user_name":null},"at":"1970-01-01T00:00:00.000Z","changes":{"z":1.5,"ä":"é"},"entity_id":"00000000-0000-0000-0000-000000000000","id":"01890a5d-ac96-774b-bcce-b302099a8057","previous_hash":null,"type":"asset.created","version":1}"#
        );
        assert_eq!(hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
