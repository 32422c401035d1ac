//! The audit trail: one entry for each change, chained by hashes for each thing changed (contract 6).

use super::hex;
use super::id::{ApiKeyId, EventId, UserId};
use super::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Who made a change. Names are as they were at the time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Actor {
    /// The key that was used; `None` for the operator's command line.
    #[schema(required)]
    pub key_id: Option<ApiKeyId>,
    /// The key's name.
    pub key_name: String,
    /// The user that the key is bound to.
    #[schema(required)]
    pub user_id: Option<UserId>,
    /// That user's display name.
    #[schema(required)]
    pub user_name: Option<String>,
}

impl Actor {
    /// The operator, working on the table itself.
    #[must_use]
    pub fn operator() -> Self {
        Self { key_id: None, key_name: "operator".into(), user_id: None, user_name: None }
    }
}

/// A field's value before and after; `null` where there was or is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Before.
    pub old: Value,
    /// After.
    pub new: Value,
}

/// One entry of the audit trail.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Sorts by time.
    pub id: EventId,
    /// When.
    pub at: Timestamp,
    /// What happened, such as `asset.updated`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it happened to.
    pub entity_id: uuid::Uuid,
    /// The version that the change made, from 1.
    pub version: u64,
    /// Who.
    pub actor: Actor,
    /// What changed, by field.
    pub changes: Map<String, Value>,
    /// The hash of the entry before; `None` for the first of its chain.
    pub previous_hash: Option<String>,
}

impl Event {
    /// The entry as RFC 8785 writes it: one text for one meaning, which is what gets hashed and stored.
    ///
    /// # Errors
    ///
    /// A number that is not finite, which JSON can't hold in the first place.
    pub fn canonical(&self) -> Result<String, serde_json::Error> {
        serde_json_canonicalizer::to_string(self)
    }
}

/// SHA-256 of a canonical entry, in lower-case hexadecimal.
#[must_use]
pub fn hash(canonical: &str) -> String {
    hex::sha256(canonical)
}

/// What differs between two states of a thing; a field that one of them lacks counts as null.
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
    fn only_what_differs_is_a_change() {
        let (old, new) = (json!({"a": 1, "b": null, "c": "x"}), json!({"a": 1, "c": "y", "d": [1]}));
        let (Value::Object(old), Value::Object(new)) = (old, new) else { unreachable!() };
        assert_eq!(Value::Object(changes(&old, &new)), json!({"c": {"old": "x", "new": "y"}, "d": {"old": null, "new": [1]}}));
        assert!(changes(&new, &new).is_empty());
    }

    #[test]
    fn the_hash_is_of_the_canonical_text() {
        let event = Event {
            id: "01890a5d-ac96-774b-bcce-b302099a8057".parse().expect("an id"),
            at: Timestamp::from_millis(0),
            kind: "asset.created".into(),
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
}
