//! Events: the history of a record has one event per change, each with the hash of the previous one. The hash covers salted
//! digests instead of personal values, so values can be erased later without breaking the chain (docs/adr/0021-people.md).
//!
//! The digests follow SD-JWT (RFC 9901 §4.2): the SHA-256 of `["<salt>","<name>",<value>]` in base64url, in the array `_sd` of
//! the object that has the value.
//!
//! Also the actor of a change, and the pseudonyms that replace an erased person's name, address and texts.

use crate::people::Person;
use crate::record::Kind;
use crate::values::id::{ApiKeyId, EventId, Id, LinkId, UserId};
use crate::values::string_enum::string_enum;
use crate::values::time::Timestamp;
use crate::values::{hex, json};
use base64_simd::URL_SAFE_NO_PAD;
use fields::compared::name_key;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

string_enum! {
    /// What happened to a record.
    Verb {
        Created = "created",
        Updated = "updated",
        Deleted = "deleted",
        /// An asset was scanned. The feed only returns this type if a request names it.
        Seen = "seen",
    }
}

impl Verb {
    /// The verbs that all kinds of records have in common.
    pub(crate) const COMMON: [Self; 3] = [Self::Created, Self::Updated, Self::Deleted];

    /// Returns the type as text, such as `asset.created`.
    pub fn event_type(self, kind: Kind) -> String {
        format!("{kind}.{self}")
    }
}

/// The two parts of an event's type, such as `asset.created`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventType {
    /// `None` for a kind that is unknown to this version of the service. The same applies to `verb`.
    pub kind: Option<Kind>,
    pub verb: Option<Verb>,
}

impl EventType {
    /// Parses a type; `None` if the text is not of the form `noun.verb`.
    pub fn parse(text: &str) -> Option<Self> {
        let (noun, verb) = text.split_once('.')?;
        Some(Self { kind: noun.parse().ok(), verb: verb.parse().ok() })
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
    pub fn is_scan(&self) -> bool {
        self.event_type == Verb::Seen.event_type(Kind::Asset) && !self.changes.contains_key("location")
    }
}

pub fn scans(events: &[Event]) -> u64 {
    events.iter().filter(|event| event.is_scan()).count() as u64
}

/// Returns the canonical JSON of a value (RFC 8785).
///
/// # Errors
///
/// Returns an error if a number is not finite.
pub fn canonical(value: &impl Serialize) -> Result<String, serde_json::Error> {
    serde_json_canonicalizer::to_string(value)
}

/// Returns the hash of an event's canonical JSON: SHA-256 in lower-case hexadecimal.
pub fn hash(canonical: &str) -> String {
    hex::sha256(canonical)
}

/// Length of a salt: 128 bits (RFC 9901 §9.3).
pub const SALT_BYTES: usize = 16;
const DIGEST_BYTES: usize = 32;
/// The member with an object's digests (RFC 9901 §4.2.4.1).
const DIGESTS: &str = "_sd";

/// How an entry commits to one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Commitment {
    /// The entry still has the value.
    Salt([u8; SALT_BYTES]),
    /// The value was erased. The entry has a pseudonym instead.
    Digest([u8; DIGEST_BYTES]),
}

impl Commitment {
    /// Returns the stored form. Salts and digests have different lengths.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Salt(salt) => salt,
            Self::Digest(digest) => digest,
        }
    }

    /// Reads the stored form; `None` if the length is wrong.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let salt = bytes.try_into().ok().map(Self::Salt);
        salt.or_else(|| bytes.try_into().ok().map(Self::Digest))
    }

    fn digest(&self, name: &str, value: &Value) -> serde_json::Result<String> {
        Ok(match self {
            Self::Digest(digest) => URL_SAFE_NO_PAD.encode_to_string(digest),
            Self::Salt(salt) => URL_SAFE_NO_PAD.encode_to_string(salted(salt, name, value)?),
        })
    }
}

/// Returns the salted digest of a value. `name` must not need escaping.
fn salted(salt: &[u8; SALT_BYTES], name: &str, value: &Value) -> serde_json::Result<[u8; DIGEST_BYTES]> {
    let disclosure = format!(r#"["{}","{name}",{}]"#, URL_SAFE_NO_PAD.encode_to_string(salt), canonical(value)?);
    Ok(Sha256::digest(URL_SAFE_NO_PAD.encode_to_string(disclosure)).into())
}

/// The commitments of an entry, by JSON Pointer (RFC 6901) of the value. The pointers need no escaping: names of fields and steps
/// consist of letters, digits and `_`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Commitments(BTreeMap<String, Commitment>);

impl FromIterator<(String, Commitment)> for Commitments {
    fn from_iter<I: IntoIterator<Item = (String, Commitment)>>(commitments: I) -> Self {
        Self(commitments.into_iter().collect())
    }
}

impl Commitments {
    /// Reads the serialized form. `None` unless each member has a salt or a digest of the right length.
    pub fn read(shown: &Value) -> Option<Self> {
        let commitment = |shown: &Value| {
            let (member, text) = shown.as_object()?.iter().next()?;
            let commitment = Commitment::from_bytes(&URL_SAFE_NO_PAD.decode_to_vec(text.as_str()?).ok()?)?;
            let is_named =
                matches!((member.as_str(), commitment), ("salt", Commitment::Salt(_)) | ("digest", Commitment::Digest(_)));
            is_named.then_some(commitment)
        };
        shown.as_object()?.iter().map(|(pointer, shown)| Some((pointer.clone(), commitment(shown)?))).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Commitment)> {
        self.0.iter().map(|(pointer, commitment)| (pointer.as_str(), commitment))
    }

    /// Sets the same salt for the old and the new value where they are equal. After an erasure, the equal digests then still show
    /// that the value didn't change.
    #[must_use]
    pub fn with_unchanged(mut self, entry: &Value) -> Self {
        let same = |(pointer, commitment): (&String, &Commitment)| Some((equal_new_value(entry, pointer)?, *commitment));
        let unchanged: Vec<_> = self.0.iter().filter_map(same).collect();
        self.0.extend(unchanged);
        self
    }

    /// Whether `changes` change a field such as `notes` or `step_data/sign`. Erased texts look the same, but their digests
    /// differ.
    pub fn is_changed(&self, changes: &Map<String, Value>, field: &str) -> bool {
        let digest = |side: &str| match self.0.get(&pointer_to(side, field)) {
            Some(Commitment::Digest(digest)) => Some(digest),
            _ => None,
        };
        let [old, new] = ["old", "new"].map(|side| value_of(changes, side, field));
        old != new || digest("old").zip(digest("new")).is_some_and(|(old, new)| old != new)
    }

    /// Returns the pointers to pseudonyms written by an erasure's entry: new values that equal the old ones, because the old ones
    /// were erased at the same time.
    fn written_by_erasure(&self, entry: &Value) -> BTreeSet<String> {
        self.erased().filter_map(|pointer| equal_new_value(entry, pointer)).collect()
    }

    pub fn erased(&self) -> impl Iterator<Item = &str> {
        self.iter().filter(|(_, commitment)| matches!(commitment, Commitment::Digest(_))).map(|(pointer, _)| pointer)
    }

    /// Returns an entry's canonical JSON (RFC 8785) for hashing: each committed value is removed, and its digest is added to a
    /// sorted list in the parent object.
    ///
    /// Returns `None` if the entry has no value at one of the pointers.
    fn hashed(&self, mut entry: Value) -> Option<String> {
        let mut digests: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (pointer, commitment) in self.iter() {
            let (parent, name) = pointer.rsplit_once('/')?;
            let value = entry.pointer_mut(parent)?.as_object_mut()?.shift_remove(name)?;
            digests.entry(parent).or_default().push(commitment.digest(name, &value).ok()?);
        }
        for (parent, mut digests) in digests {
            digests.sort_unstable();
            entry.pointer_mut(parent)?.as_object_mut()?.insert(DIGESTS.to_owned(), digests.into());
        }
        canonical(&entry).ok()
    }

    /// Returns the hash of an entry. Without commitments, it is the hash of `text`, the entry's canonical JSON.
    ///
    /// Returns `None` if the entry has no value at one of the pointers.
    pub fn hash_of(&self, entry: Cow<'_, Value>, text: &str) -> Option<String> {
        if self.is_empty() { Some(hash(text)) } else { self.hashed(entry.into_owned()).map(|hashed| hash(&hashed)) }
    }

    /// Replaces each value for which `pseudonym` returns a string, and drops its salt. Returns the number of erased values.
    pub fn erase(&mut self, entry: &mut Value, pseudonym: impl Fn(&str) -> Option<String>) -> usize {
        let mut erased = 0;
        let written = self.written_by_erasure(entry);
        for (pointer, commitment) in &mut self.0 {
            if written.contains(pointer) {
                continue;
            }
            let (Commitment::Salt(salt), Some(value)) = (*commitment, entry.pointer_mut(pointer)) else { continue };
            let (Some(text), Some((_, name))) = (pseudonym(pointer), pointer.rsplit_once('/')) else { continue };
            let Ok(digest) = salted(&salt, name, value) else { continue };
            (*value, *commitment) = (Value::String(text), Commitment::Digest(digest));
            erased += 1;
        }
        erased
    }
}

/// Serialized as `{"salt"}`, or as `{"digest"}` for an erased value.
impl Serialize for Commitments {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let shown = |commitment: &Commitment| {
            let text = URL_SAFE_NO_PAD.encode_to_string(commitment.as_bytes());
            match commitment {
                Commitment::Salt(_) => json!({"salt": text}),
                Commitment::Digest(_) => json!({"digest": text}),
            }
        };
        serializer.collect_map(self.iter().map(|(pointer, commitment)| (pointer, shown(commitment))))
    }
}

/// Returns the pointers to the old and new values of personal `fields` in an entry's changes.
pub fn pointers_of_changes(changes: &Map<String, Value>, fields: &[&str]) -> Vec<String> {
    let mut pointers = Vec::new();
    for (field, inner) in
        fields.iter().map(|field| field.split_once('/').map_or((*field, None), |(field, inner)| (field, Some(inner))))
    {
        for side in ["old", "new"] {
            let Some(value) = changes.get(field).map(|change| &change[side]) else { continue };
            match (inner, value) {
                (Some(_), Value::Object(values)) => {
                    let personal = values.iter().filter(|(_, value)| is_text_or_signature(value));
                    pointers.extend(personal.map(|(name, _)| format!("/changes/{field}/{side}/{name}")));
                }
                (None, value) if !value.is_null() => pointers.push(format!("/changes/{field}/{side}")),
                _ => {}
            }
        }
    }
    pointers
}

/// Splits a pointer to a changed value into its side, `old` or `new`, and its field, such as `step_data/sign`.
pub fn side_and_field(pointer: &str) -> Option<(&str, String)> {
    let mut names = pointer.strip_prefix("/changes/")?.splitn(3, '/');
    let (field, side, inner) = (names.next()?, names.next()?, names.next());
    Some((side, inner.map_or_else(|| field.to_owned(), |inner| format!("{field}/{inner}"))))
}

/// Returns the value of a field such as `notes` or `step_data/sign` on one side of the changes.
pub fn value_of<'a>(changes: &'a Map<String, Value>, side: &str, field: &str) -> Option<&'a Value> {
    let (field, inner) = field.split_at(field.find('/').unwrap_or(field.len()));
    changes.get(field)?.get(side)?.pointer(inner)
}

/// Returns the pointer to the new value, if `pointer` leads to an equal old one.
fn equal_new_value(entry: &Value, pointer: &str) -> Option<String> {
    let (_, field) = side_and_field(pointer).filter(|(side, _)| *side == "old")?;
    let new = pointer_to("new", &field);
    (entry.pointer(pointer) == entry.pointer(&new)).then_some(new)
}

fn pointer_to(side: &str, field: &str) -> String {
    match field.split_once('/') {
        Some((field, inner)) => format!("/changes/{field}/{side}/{inner}"),
        None => format!("/changes/{field}/{side}"),
    }
}

/// Whether a value can be personal. IDs can't: without its record, an ID identifies nobody.
fn is_text_or_signature(value: &Value) -> bool {
    value.is_object() || value.as_str().is_some_and(|text| text.parse::<Uuid>().is_err())
}

/// Who made a change, with the names at the time of the change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Actor {
    /// API key used; null for the operator's command line and for signing links.
    #[schema(required)]
    pub key_id: Option<ApiKeyId>,
    /// Name of the key; `signing link` for a signing link.
    pub key_name: String,
    /// The key's user, or the signer if the signer is a user; null for tenant keys.
    #[schema(required)]
    pub user_id: Option<UserId>,
    /// Display name of that user, or the signer's name.
    #[schema(required)]
    pub user_name: Option<String>,
    /// Signing link used; absent for other changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, format = Uuid, required = false)]
    pub link_id: Option<LinkId>,
}

impl Actor {
    pub fn operator() -> Self {
        Self { key_id: None, key_name: "operator".into(), user_id: None, user_name: None, link_id: None }
    }

    pub fn signer(link: LinkId, name: &str, user: Option<UserId>) -> Self {
        let user_name = Some(name.to_owned());
        Self { key_id: None, key_name: "signing link".into(), user_id: user, user_name, link_id: Some(link) }
    }

    /// Returns JSON Pointers to the personal data within a history entry.
    pub fn personal_pointers(&self) -> Vec<String> {
        let user_name = self.user_name.is_some().then_some("/actor/user_name");
        // Keys bound to a user are often named after the user.
        let key_name = (self.user_id.is_some() && self.key_id.is_some()).then_some("/actor/key_name");
        [user_name, key_name].into_iter().flatten().map(str::to_owned).collect()
    }

    /// Returns a copy without personal data, for use outside histories.
    #[must_use]
    pub fn nameless(&self) -> Self {
        let key_name = if self.personal_pointers().is_empty() { self.key_name.clone() } else { "key of a user".to_owned() };
        Self { key_name, user_name: None, ..self.clone() }
    }

    /// Returns the actor that disables failing webhooks.
    pub fn webhook_delivery() -> Self {
        Self { key_name: "webhook delivery".into(), ..Self::operator() }
    }
}

/// A pseudonym ends with this many characters of the user's ID: 47 random bits.
const SUFFIX: usize = 8;

const PREFIX: &str = "Erased user ";
/// Domain of pseudonymous addresses, which can't receive mail (RFC 2606 §2).
const DOMAIN: &str = "erased.invalid";

/// Returns `Erased user` and the end of the ID of the user or, for a guest, of the link. Always the same for a person.
pub fn pseudonym(person: impl Into<Person>) -> String {
    let id = EventId::from_uuid(person.into().uuid()).short();
    format!("{PREFIX}{}", &id[id.len() - SUFFIX..])
}

/// Returns a pseudonymous address, unique per user, as e-mail addresses must be.
pub fn pseudonymous_email(user: UserId) -> String {
    format!("erased-{}@{DOMAIN}", user.short())
}

/// Whether an address is reserved for pseudonyms: a user with a pseudonymous address would block an erasure. Ignores case, width
/// and the kind of full stop (UTS 46), so look-alikes are reserved, too.
pub fn is_reserved(email: &str) -> bool {
    let compared = name_key(email).replace('。', ".");
    let domain = compared.rsplit('@').next().unwrap_or_default().trim_end_matches('.');
    domain.strip_suffix(DOMAIN).is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

/// Whether a string looks like a pseudonym. This doesn't prove an erasure: anyone can type such a string.
pub fn is_pseudonym(text: &str) -> bool {
    let is_name =
        text.strip_prefix(PREFIX).is_some_and(|end| end.len() == SUFFIX && end.bytes().all(|it| it.is_ascii_alphanumeric()));
    let is_address = || text.strip_suffix(DOMAIN).is_some_and(|local| local.ends_with('@'));
    is_name || (text.starts_with("erased-") && is_address())
}

/// Returns the pseudonym for the value at a path such as `email`.
pub fn replacement(person: Person, path: &str) -> String {
    match person {
        Person::User(user) if path.contains("email") && !path.contains("step_data") => pseudonymous_email(user),
        person => pseudonym(person),
    }
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
    }

    fn entry() -> (Value, Commitments) {
        let entry = json!({"actor": {"user_name": "Ada", "key_id": 1}, "changes": {"email": {"old": null, "new": "a@b.c"}}});
        let salt = |byte| Commitment::Salt([byte; SALT_BYTES]);
        let salts = [("/actor/user_name", salt(1)), ("/changes/email/new", salt(2))];
        (entry, salts.into_iter().map(|(pointer, salt)| (pointer.to_owned(), salt)).collect())
    }

    #[test]
    fn the_hash_covers_digests_and_no_values() {
        let (entry, commitments) = entry();
        let hashed = commitments.hashed(entry).expect("all values");
        assert!(!hashed.contains("Ada") && !hashed.contains("a@b.c"), "{hashed}");
        assert!(hashed.contains(r#""actor":{"_sd":[""#), "{hashed}");
        assert!(!hashed.contains(r#""new""#), "{hashed}");
    }

    #[test]
    fn an_erased_value_leaves_the_hash_as_it_was_and_its_salt_is_gone() {
        let (mut entry, mut commitments) = entry();
        let before = commitments.hashed(entry.clone());
        let erased = |pointer: &str| pointer.starts_with("/actor").then(|| "Erased".to_owned());
        assert_eq!(commitments.erase(&mut entry, erased), 1);
        assert_eq!(commitments.erase(&mut entry, erased), 0, "once");
        assert_eq!((&entry["actor"]["user_name"], commitments.hashed(entry.clone())), (&json!("Erased"), before.clone()));
        let salted = commitments.iter().filter(|(_, commitment)| matches!(commitment, Commitment::Salt(_)));
        assert_eq!(salted.map(|(pointer, _)| pointer).collect::<Vec<_>>(), ["/changes/email/new"]);
        // The remaining values can't be forged: a different value has a different hash.
        entry["changes"]["email"]["new"] = json!("x@b.c");
        assert_ne!(commitments.hashed(entry), before);
    }

    #[test]
    fn a_value_that_is_missing_is_noticed() {
        let (mut entry, commitments) = entry();
        entry["actor"] = json!({});
        assert_eq!(commitments.hashed(entry), None);
    }

    #[test]
    fn changes_have_their_values_on_both_sides() {
        let user = Uuid::nil().to_string();
        let changes = json!({
            "notes": {"old": null, "new": "x"},
            "step_data": {"old": {"a": "1", "user": user}, "new": {"a": "1", "user": user, "sign": {"bytes": 1}, "list": ["x"]}},
        });
        let pointers = pointers_of_changes(changes.as_object().expect("an object"), &["notes", "step_data/*", "name"]);
        let expected = ["notes/new", "step_data/old/a", "step_data/new/a", "step_data/new/sign"];
        assert_eq!(pointers, expected.map(|end| format!("/changes/{end}")));
    }

    #[test]
    fn the_digests_say_what_was_changed_by_a_person_who_is_erased() {
        let mut entry = json!({"changes": {
            "step_data": {"old": {"a": "first", "b": "kept"}, "new": {"a": "second", "b": "kept"}},
            "notes": {"old": null, "new": "x"},
        }});
        let changes = |entry: &Value| entry["changes"].as_object().cloned().expect("an object");
        let pointers = pointers_of_changes(&changes(&entry), &["step_data/*", "notes"]);
        let salts = (0..).zip(pointers).map(|(byte, pointer)| (pointer, Commitment::Salt([byte; SALT_BYTES])));
        let mut commitments = salts.collect::<Commitments>().with_unchanged(&entry);
        for erased in [0, 5] {
            let found =
                ["step_data/a", "step_data/b", "notes", "other"].map(|name| commitments.is_changed(&changes(&entry), name));
            assert_eq!((found, commitments.erased().count()), ([true, false, true, false], erased));
            commitments.erase(&mut entry, |_| Some("Erased".to_owned()));
        }
        assert_eq!(entry["changes"]["step_data"]["old"], entry["changes"]["step_data"]["new"]);
    }

    #[test]
    fn what_is_stored_is_told_by_its_length() {
        for commitment in [Commitment::Salt([7; 16]), Commitment::Digest([7; 32])] {
            assert_eq!(Commitment::from_bytes(commitment.as_bytes()), Some(commitment));
        }
        assert_eq!(Commitment::from_bytes(&[7; 20]), None);
    }
}
