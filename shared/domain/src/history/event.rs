//! Events: the history of a record is one event for each change, each with the hash of the one before.

use crate::record::Kind;
use crate::values::hex;
use crate::values::id::{ApiKeyId, EventId, LinkId, UserId};
use crate::values::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Who made a change, with the names of that time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Actor {
    /// The API key that was used; null for the operator's command line and for a signing link.
    #[schema(required)]
    pub key_id: Option<ApiKeyId>,
    /// The name of the key; `signing link` for a link.
    pub key_name: String,
    /// The user that the key is bound to, or the signer, if that is a user; null for a key of the tenant.
    #[schema(required)]
    pub user_id: Option<UserId>,
    /// The display name of that user, or the signer's name.
    #[schema(required)]
    pub user_name: Option<String>,
    /// The signing link that was used. Only events that were caused through a link have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, format = Uuid, required = false)]
    pub link_id: Option<LinkId>,
}

impl Actor {
    #[must_use]
    pub fn operator() -> Self {
        Self { key_id: None, key_name: "operator".into(), user_id: None, user_name: None, link_id: None }
    }

    #[must_use]
    pub fn signer(link: LinkId, name: &str, user: Option<UserId>) -> Self {
        let user_name = Some(name.to_owned());
        Self { key_id: None, key_name: "signing link".into(), user_id: user, user_name, link_id: Some(link) }
    }

    /// The operator's check, which repairs a restored table.
    #[must_use]
    pub fn repair() -> Self {
        Self { key_name: "operator (repair)".into(), ..Self::operator() }
    }

    /// The delivery of events, which disables webhooks that nobody receives.
    #[must_use]
    pub fn webhook_delivery() -> Self {
        Self { key_name: "webhook delivery".into(), ..Self::operator() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Created,
    Updated,
    Deleted,
}

impl Verb {
    pub(crate) const ALL: [Self; 3] = [Self::Created, Self::Updated, Self::Deleted];

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
        }
    }
}

/// The parts of an event's type: `asset.created` says that an asset was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventType {
    /// The kind of record; `None` if this version of the service does not know it.
    pub kind: Option<Kind>,
    /// `None` if this version of the service does not know it.
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

/// One change of a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    pub id: EventId,
    /// The time of the request.
    pub at: Timestamp,
    /// The type of the event, such as `asset.updated`. Text, since a later version of the service may add types; see
    /// [`EventType`].
    #[serde(rename = "type")]
    pub event_type: String,
    /// The changed record.
    pub entity_id: uuid::Uuid,
    /// The version of the record after the change, starting at 1.
    pub version: u64,
    pub actor: Actor,
    /// The changed fields, each with its `old` and `new` value.
    pub changes: Map<String, Value>,
    /// The hash of the record's previous event; `None` for the first.
    pub previous_hash: Option<String>,
}

impl Event {
    /// Returns the canonical JSON of the event (RFC 8785), which is hashed and stored.
    ///
    /// # Errors
    ///
    /// Returns an error if a number is not finite, which no event contains.
    pub fn canonical(&self) -> Result<String, serde_json::Error> {
        serde_json_canonicalizer::to_string(self)
    }
}

/// Returns the hash of an event's canonical JSON: SHA-256 in lower-case hexadecimal.
#[must_use]
pub fn hash(canonical: &str) -> String {
    hex::sha256(canonical)
}

/// Returns the fields that differ between two states of a record, each with its `old` and `new` value. A missing field
/// counts as null.
#[must_use]
pub fn changes(old: &Map<String, Value>, new: &Map<String, Value>) -> Map<String, Value> {
    let mut fields: Vec<&String> = old.keys().chain(new.keys()).collect();
    fields.sort_unstable();
    fields.dedup();
    fields
        .into_iter()
        .filter_map(|field| {
            let value = |state: &Map<String, Value>| state.get(field).cloned().unwrap_or(Value::Null);
            let (old, new) = (value(old), value(new));
            (old != new).then(|| (field.clone(), serde_json::json!({ "old": old, "new": new })))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_fields_that_differ_are_changes() {
        let (old, new) = (json!({"a": 1, "b": null, "c": "x"}), json!({"a": 1, "c": "y", "d": [1]}));
        let (Value::Object(old), Value::Object(new)) = (old, new) else { unreachable!() };
        assert_eq!(Value::Object(changes(&old, &new)), json!({"c": {"old": "x", "new": "y"}, "d": {"old": null, "new": [1]}}));
        assert!(changes(&new, &new).is_empty());
    }

    #[test]
    fn an_event_type_is_split_into_kind_and_verb() {
        let parts = |kind, verb| Some(EventType { kind, verb });
        for &kind in Kind::ALL {
            for verb in Verb::ALL {
                assert_eq!(EventType::parse(&verb.event_type(kind)), parts(Some(kind), Some(verb)));
            }
        }
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
        let canonical = event.canonical().expect("finite");
        assert_eq!(
            canonical,
            r#"{"actor":{"key_id":null,"key_name":"operator","user_id":null,"user_name":null},"at":"1970-01-01T00:00:00.000Z","changes":{"z":1.5,"ä":"é"},"entity_id":"00000000-0000-0000-0000-000000000000","id":"01890a5d-ac96-774b-bcce-b302099a8057","previous_hash":null,"type":"asset.created","version":1}"#
        );
        assert_eq!(hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn only_an_actor_with_a_signing_link_names_it() {
        let link = "01890a5d-ac96-774b-bcce-b302099a8057";
        let signer = Actor::signer(link.parse().expect("an id"), "Ada", None);
        for (actor, text) in [
            (Actor::operator(), r#"{"key_id":null,"key_name":"operator","user_id":null,"user_name":null}"#.to_owned()),
            (
                signer,
                format!(r#"{{"key_id":null,"key_name":"signing link","user_id":null,"user_name":"Ada","link_id":"{link}"}}"#),
            ),
        ] {
            assert_eq!(serde_json::to_string(&actor).expect("JSON"), text);
            assert_eq!(serde_json::from_str::<Actor>(&text).expect("an actor"), actor);
        }
    }
}
