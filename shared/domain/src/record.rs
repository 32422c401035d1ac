//! The common parts of all records: a kind, a version, a history, unique values, references to other records, and changes to
//! fields.
//!
//! Also the request headers for changes: idempotency keys, with stored responses, and the expected versions (`If-Match`).

use crate::keys::api_key::{BearerToken, Credential};
use crate::processes::instance::ImageName;
use crate::processes::process::Steps;
use crate::values::field_error::ValueError;
use crate::values::hex;
use crate::values::id::{EventId, Id};
use crate::values::string_enum::string_enum;
use crate::values::time::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::str::FromStr;
use uuid::Uuid;

string_enum! {
    /// The kind of a record, with the name in event types, such as `asset` in `asset.created`. The table has one item per record.
    Kind {
        Tenant = "tenant",
        ApiKey = "key",
        Asset = "asset",
        User = "user",
        AssetType = "asset_type",
        Manufacturer = "manufacturer",
        Model = "model",
        Process = "process",
        Instance = "instance",
        Movement = "movement",
        /// All receipt keys of a tenant.
        ReceiptKeys = "receipt_keys",
        Link = "link",
        Webhook = "webhook",
    }
}

/// A value that only one record of its kind can have in a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unique {
    /// The field's name in the API.
    pub field: &'static str,
    /// The field's value, case-folded if the field is case-insensitive.
    pub value: String,
    pub reserved_after_deletion: bool,
}

/// A reference from one record to another. The referenced record can't be deleted while the reference exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The referring field's name in the API.
    pub field: &'static str,
    pub kind: Kind,
    pub id: Uuid,
    pub requirements: Vec<Requirement>,
}

/// An attribute's required value in the referenced record. Only checked for new references: a newly assigned user must be active,
/// but stays assigned when deactivated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    pub attribute: &'static str,
    pub value: RequiredValue,
}

impl Requirement {
    pub fn text(attribute: &'static str, text: impl ToString) -> Self {
        Self { attribute, value: RequiredValue::Text(text.to_string()) }
    }

    pub fn flag(attribute: &'static str, flag: bool) -> Self {
        Self { attribute, value: RequiredValue::Bool(flag) }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequiredValue {
    Text(String),
    Bool(bool),
}

impl Reference {
    /// Creates a reference that only requires the record to exist.
    pub fn new(field: &'static str, kind: Kind, id: Uuid) -> Self {
        Self { field, kind, id, requirements: Vec::new() }
    }

    #[must_use]
    pub fn requiring(mut self, requirement: Requirement) -> Self {
        self.requirements.push(requirement);
        self
    }
}

/// A record with an item in the table.
pub trait Record: Clone + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static {
    const KIND: Kind;
    /// Fields in the history that can be about people, such as `email`. `step_data/*` stands for each text and signature in
    /// `step_data`. The history commits to the values of these fields, so that the values can be erased.
    const PERSONAL_FIELDS: &'static [&'static str] = &[];
    type Id: Id;

    fn id(&self) -> Self::Id;

    /// Returns the fields as shown in the history, without secrets. Implementations destructure `self` completely, so a new field
    /// can't be forgotten.
    fn history_fields(&self) -> Map<String, Value>;

    /// Whether the API shows this field in the history. A change to hidden fields alone doesn't update `updated_at`.
    fn is_shown(_field: &str) -> bool {
        true
    }

    /// Returns the number of versions that `If-Match` ignores, such as versions that only record a scan.
    fn uncounted_versions(&self) -> u64 {
        0
    }

    /// Sets the fields that contain the times of changes. `at` is the time of the change from `before`.
    fn stamp(&mut self, _before: &Self, _at: Timestamp) {}

    /// Returns further values that lists need, as one string, because the secondary index `list_index` has few attributes.
    fn listed(&self) -> Option<String> {
        None
    }

    /// Whether the record will never change again, so that lists of open records can skip it.
    fn is_ended(&self) -> bool {
        false
    }

    fn unique(&self) -> Vec<Unique> {
        Vec::new()
    }

    /// Returns the attributes that references can require, with this record's values; `None` if no record can refer to this kind.
    fn referenceable_attributes(&self) -> Option<Vec<Requirement>> {
        None
    }

    fn references(&self) -> Vec<Reference> {
        Vec::new()
    }
}

/// Collects the fields that [`Record::history_fields`] returns.
pub(crate) fn fields<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    fields.into_iter().map(|(field, value)| (field.to_owned(), value)).collect()
}

#[derive(Debug, Clone)]
pub struct Stored<T> {
    pub value: T,
    pub version: u64,
    pub created_at: Timestamp,
    /// Time of the last change to a field that the API shows.
    pub updated_at: Timestamp,
    pub last_hash: String,
    pub last_event: EventId,
}

impl<T: Record> Stored<T> {
    /// Returns the version that entity tags contain and `If-Match` compares.
    pub fn tag_version(&self) -> RecordVersion {
        let number = self.version.saturating_sub(self.value.uncounted_versions());
        RecordVersion { record: self.value.id().uuid(), number }
    }

    pub fn changes_to(&self, next: &T) -> Map<String, Value> {
        changes(&self.value.history_fields(), &next.history_fields())
    }
}

/// Returns the fields that differ between two states of a record, each with its `old` and `new` value. A missing field
/// counts as null.
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

/// One nullable field of a PATCH.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Patch<T> {
    #[default]
    Absent,
    /// `null`, which clears the field.
    Null,
    Value(T),
}

impl<T> Patch<T> {
    pub fn or(self, current: Option<T>) -> Option<T> {
        match self {
            Self::Absent => current,
            Self::Null => None,
            Self::Value(value) => Some(value),
        }
    }

    /// Drops the field if its value equals `current`.
    #[must_use]
    pub fn unless(self, current: Option<&T>) -> Self
    where
        T: PartialEq,
    {
        match &self {
            Self::Null if current.is_none() => Self::Absent,
            Self::Value(value) if current == Some(value) => Self::Absent,
            _ => self,
        }
    }

    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Absent | Self::Null => None,
        }
    }

    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }
}

/// Declares a change to a record: the struct, and the method that returns the record with the change applied. Each field is
/// `set`, or `set_or_clear` if it can also become empty. Missing fields stay unchanged. The method ignores the fields after
/// `and`, which have other rules.
macro_rules! record_change {
    (
        $(#[doc = $doc:literal])* $change:ident of $vis:vis $record:ident::$method:ident {
            $($need:ident $field:ident: $type:ty,)*
        } $(and { $($rest:tt)* })?
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Default)]
        pub struct $change {
            $(pub $field: record_change!(@type $need $type),)*
            $($($rest)*)?
        }

        impl $record {
            #[must_use]
            $vis fn $method(&self, change: &$change) -> Self {
                let ($change { $($field,)* .. }, mut next) = (change.clone(), self.clone());
                $(record_change!(@apply $need next $field);)*
                next
            }
        }
    };
    (@type set $type:ty) => { Option<$type> };
    (@type set_or_clear $type:ty) => { $crate::record::Patch<$type> };
    (@apply set $next:ident $field:ident) => { $next.$field = $field.unwrap_or($next.$field) };
    (@apply set_or_clear $next:ident $field:ident) => { $next.$field = $field.or($next.$field) };
}

pub(crate) use record_change;

/// The header `Idempotency-Key`: 1 to 255 printable ASCII characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey(String);

impl FromStr for IdempotencyKey {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let printable = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        if printable && (1..=255).contains(&text.len()) {
            Ok(Self(text.to_owned()))
        } else {
            Err(ValueError::form("must be 1 to 255 printable ASCII characters"))
        }
    }
}

impl IdempotencyKey {
    /// Returns a string of fixed length for keys in the table.
    pub fn hash(&self) -> String {
        hex::sha256(&self.0)
    }
}

/// A request with an idempotency key. The same key sent with a different credential identifies a different request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotentRequest {
    /// The API key or signing link that sent the request.
    pub by: Uuid,
    pub key: IdempotencyKey,
    /// HMAC of path, query and body, under the credential's secret. A different request with the same idempotency key has a
    /// different fingerprint, and is rejected. The fingerprint is an HMAC, so that readers of the table can't check guesses about
    /// the body, such as an erased person's data.
    pub fingerprint: String,
}

impl IdempotentRequest {
    /// Returns change number `index` of the request as a separate request, with a separate stored response.
    #[must_use]
    pub fn part(&self, index: usize) -> Self {
        // No other request has this key, because NUL is not printable.
        Self { key: IdempotencyKey(format!("{}\0{index}", self.key.0)), ..self.clone() }
    }

    pub fn new<C: Credential>(by: &BearerToken<C>, key: IdempotencyKey, path: &str, body: &[u8]) -> Self {
        Self { by: by.id.uuid(), key, fingerprint: by.secret.authenticate(&[path.as_bytes(), &[0], body]) }
    }
}

/// A response stored together with the changes of its request, to replay for a retry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredResponse {
    pub status: u16,
    pub location: Option<String>,
    /// The record's version, in the header `ETag`.
    pub tagged: Option<RecordVersion>,
    /// The body without secrets. Paths replace signature images, and hashes replace steps.
    pub body: String,
    /// The paths that replace images in `body`, each with the name of its image.
    pub images: Vec<(String, ImageName)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<String>,
    /// Whether the request's changes are committed one by one, each with its stored response. If so, this response only marks the
    /// start of the request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_in_parts: bool,
    /// Whether the response contains a person's ID, but no personal data. Erasures keep such a response.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_nameless: bool,
}

pub const ERASED: &str =
    "The request took effect, but its stored response was deleted because it named a person erased since then.";

/// Returns the placeholder for steps in a stored body. No submitted value is an object, so nothing else has this form.
fn steps_by_hash(hash: &str) -> String {
    format!(r#""steps":{{"hash":"{hash}"}}"#)
}

impl StoredResponse {
    pub fn new(status: u16, body: String) -> Self {
        Self { status, body, ..Self::default() }
    }

    /// Creates the marker for the start of a request whose changes are committed one by one.
    pub fn of_request_in_parts() -> Self {
        Self { is_in_parts: true, ..Self::new(200, String::new()) }
    }

    /// Creates the replacement for a response that named a person erased since then. Only a part of a request uses the body; a
    /// whole request gets an error instead.
    pub fn erased() -> Self {
        Self::new(409, json!({"code": "CONFLICT", "detail": ERASED}).to_string())
    }

    /// Replaces `steps` in the body with their hash, because the table already has the steps.
    #[must_use]
    pub fn naming(mut self, steps: &Steps) -> Self {
        let hash = steps.hash();
        let shown = format!(r#""steps":{}"#, String::from(steps.clone()));
        self.body = self.body.replace(&shown, &steps_by_hash(&hash));
        self.steps.push(hash);
        self
    }

    /// Returns the body with the steps restored. `text` is the JSON of the steps.
    pub fn with_steps(&self, hash: &str, text: &str) -> String {
        self.body.replace(&steps_by_hash(hash), &format!(r#""steps":{text}"#))
    }
}

/// A version of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordVersion {
    pub record: Uuid,
    pub number: u64,
}

/// The versions that a change expects, from the header `If-Match` (RFC 9110 §13.1.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExpectedVersions {
    /// `*`: any version.
    Any,
    /// Tags that this service made, and whether others are weak.
    Tags(Vec<VersionTag>, bool),
}

/// The parts of an entity tag that name a version of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionTag {
    number: u64,
    /// Start of the hash of the record's ID.
    record: String,
}

/// What a request expects of a record before it changes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expected {
    /// From `If-Match`.
    pub versions: Option<ExpectedVersions>,
    /// The record's `updated_at` when the client read it.
    pub updated_at: Option<Timestamp>,
}

/// Why a record isn't as a request expects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mismatch {
    /// The record has another version, or none.
    Version,
    /// The tags in `If-Match` are of other records.
    OtherRecord,
    /// `If-Match` has a weak tag, which matches no version (RFC 9110 §8.8.3.2).
    WeakTag,
    /// The record was changed since the client read it.
    Changed(ChangedSince),
}

/// The last change of a record, which a client doesn't know yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedSince {
    pub kind: Kind,
    pub id: Uuid,
    pub at: Timestamp,
    /// Name of the user or key, if it is known.
    pub by: Option<String>,
}

impl ExpectedVersions {
    /// Parses a list of entity tags of the form `"version-record-body"`. Weak tags and other forms match no version.
    ///
    /// # Errors
    ///
    /// Returns an error if the header is not a list of entity tags.
    pub fn parse(text: &str) -> Result<Self, ValueError> {
        if text.trim() == "*" {
            return Ok(Self::Any);
        }
        let tags = entity_tags(text)?;
        let has_weak = tags.iter().any(|tag| tag.starts_with("W/"));
        Ok(Self::Tags(tags.into_iter().filter_map(VersionTag::parse).collect(), has_weak))
    }

    /// # Errors
    ///
    /// Returns why the record's version is not among the expected ones.
    pub fn check(&self, version: RecordVersion) -> Result<(), Mismatch> {
        let Self::Tags(tags, has_weak) = self else { return Ok(()) };
        let record = record_hash(version.record);
        match tags.as_slice() {
            tags if tags.iter().any(|tag| tag.number == version.number && tag.record == record) => Ok(()),
            _ if *has_weak => Err(Mismatch::WeakTag),
            [_, ..] if tags.iter().all(|tag| tag.record != record) => Err(Mismatch::OtherRecord),
            _ => Err(Mismatch::Version),
        }
    }
}

impl Expected {
    /// # Errors
    ///
    /// Returns why the record isn't as expected.
    pub fn check<T: Record>(&self, stored: &Stored<T>) -> Result<(), Mismatch> {
        self.versions.as_ref().map_or(Ok(()), |versions| versions.check(stored.tag_version()))?;
        match self.updated_at {
            Some(read) if read != stored.updated_at => {
                let (kind, id) = (T::KIND, stored.value.id().uuid());
                Err(Mismatch::Changed(ChangedSince { kind, id, at: stored.updated_at, by: None }))
            }
            _ => Ok(()),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Precondition {
    pub record_id: Uuid,
    pub expected: Expected,
}

/// Number of hexadecimal digits of the body's hash in an entity tag.
const TAG_BODY_DIGITS: usize = 16;
/// Number of hexadecimal digits of the hash of the record's ID in an entity tag.
const TAG_RECORD_DIGITS: usize = 12;

/// Returns the strong entity tag of a response body that shows this version of a record. It contains the body's hash, so it
/// changes whenever the body does.
pub fn entity_tag(version: RecordVersion, body: &[u8]) -> String {
    let RecordVersion { record, number } = version;
    format!("\"{number}-{}-{}\"", record_hash(record), &hex::sha256(body)[..TAG_BODY_DIGITS])
}

fn record_hash(record: Uuid) -> String {
    hex::sha256(record.as_bytes())[..TAG_RECORD_DIGITS].to_owned()
}

impl VersionTag {
    /// Parses an entity tag; `None` if the tag didn't come from [`entity_tag`].
    fn parse(tag: &str) -> Option<Self> {
        let (version, hashes) = tag.strip_prefix('"')?.strip_suffix('"')?.split_once('-')?;
        let (record, body) = hashes.split_once('-')?;
        let is_hash = |text: &str, digits| text.len() == digits && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let is_own = is_hash(record, TAG_RECORD_DIGITS) && is_hash(body, TAG_BODY_DIGITS);
        let number = version.parse::<u64>().ok().filter(|number| is_own && number.to_string() == version)?;
        Some(Self { number, record: record.to_owned() })
    }
}

/// Whether the header `If-None-Match` contains a tag, by weak comparison (RFC 9110 §13.1.2).
///
/// # Errors
///
/// Returns an error if the header is not a list of entity tags.
pub fn if_none_match_contains(header: &str, tag: &str) -> Result<bool, ValueError> {
    if header.trim() == "*" {
        return Ok(true);
    }
    Ok(entity_tags(header)?.iter().any(|listed| listed.strip_prefix("W/").unwrap_or(listed) == tag))
}

/// Splits a list of entity tags, such as `"a", W/"b"`. Empty elements are ignored (RFC 9110 §5.6.1.2).
fn entity_tags(text: &str) -> Result<Vec<&str>, ValueError> {
    let invalid = || ValueError::form("must be * or a list of entity tags, such as \"3-9f86d081884c-1f0e9a2b4c5d6e7f\"");
    let mut tags = Vec::new();
    let mut rest = text.trim_start_matches(is_separator).trim_end();
    while !rest.is_empty() {
        let opening = if rest.starts_with("W/") { 2 } else { 0 };
        let inner = rest.get(opening..).and_then(|quoted| quoted.strip_prefix('"')).ok_or_else(invalid)?;
        let closing = inner.find('"').ok_or_else(invalid)?;
        let (tag, after) = rest.split_at(opening + closing + 2);
        tags.push(tag);
        let after = after.trim_start();
        if !after.is_empty() && !after.starts_with(',') {
            return Err(invalid());
        }
        rest = after.trim_start_matches(is_separator);
    }
    if tags.is_empty() { Err(invalid()) } else { Ok(tags) }
}

fn is_separator(c: char) -> bool {
    c == ',' || c.is_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::api_key::Secret;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn only_fields_that_differ_are_changes() {
        let (old, new) = (json!({"a": 1, "b": null, "c": "x"}), json!({"a": 1, "c": "y", "d": [1]}));
        let (Value::Object(old), Value::Object(new)) = (old, new) else { unreachable!() };
        assert_eq!(Value::Object(changes(&old, &new)), json!({"c": {"old": "x", "new": "y"}, "d": {"old": null, "new": [1]}}));
        assert!(changes(&new, &new).is_empty());
    }

    proptest! {
        #[test]
        fn an_absent_field_stays_null_clears_it_and_a_value_sets_it(current: Option<u8>, value: u8) {
            prop_assert_eq!(Patch::Absent.or(current), current);
            prop_assert_eq!(Patch::Null.or(current), None);
            prop_assert_eq!(Patch::Value(value).or(current), Some(value));
            for patch in [Patch::Absent, Patch::Null, Patch::Value(value)] {
                let is_unchanged = patch.clone().or(current) == current;
                prop_assert_eq!(patch.unless(current.as_ref()).is_absent(), is_unchanged);
            }
        }
    }

    #[test]
    fn an_idempotency_key_is_printable_ascii() {
        for good in ["a", " ~", &"x".repeat(255)] {
            assert!(good.parse::<IdempotencyKey>().is_ok(), "{good}");
        }
        for bad in ["", "ä", "a\tb", "\u{7f}", &"x".repeat(256)] {
            assert!(bad.parse::<IdempotencyKey>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_list_of_entity_tags_is_split_as_the_rfc_defines_it() {
        assert_eq!(entity_tags(r#""a""#), Ok(vec![r#""a""#]));
        assert_eq!(entity_tags(r#" "a,b" ,W/"c",  "" "#), Ok(vec![r#""a,b""#, r#"W/"c""#, r#""""#]));
        for with_empty in [r#""a","#, r#""a" ,"#, r#","a""#, r#" , "a", ,"#] {
            assert_eq!(entity_tags(with_empty), Ok(vec![r#""a""#]), "{with_empty}");
        }
        for bad in ["", ",", "a", r#""a"#, r#""a" "b""#, r#"w/"a""#, "W/", "ä"] {
            assert!(entity_tags(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_entity_tag_matches_the_version_of_its_own_record() {
        let of = |record: u128, number| RecordVersion { record: Uuid::from_u128(record), number };
        let version = of(7, 12);
        let tag = entity_tag(version, b"body");
        let check = |header: &str, version| ExpectedVersions::parse(header).expect(header).check(version);
        assert_eq!(check(&tag, version), Ok(()));
        assert_eq!(check(&tag, of(7, 1)), Err(Mismatch::Version));
        assert_eq!(check(&tag, of(8, 12)), Err(Mismatch::OtherRecord));
        assert_eq!(check(&format!("W/{tag}"), version), Err(Mismatch::WeakTag));
        assert_eq!(check(&format!("W/{tag}, {tag}"), version), Ok(()));
        assert_eq!(check(&format!("\"old\", {tag}"), version), Ok(()));
        let (_, hashes) = tag.trim_matches('"').split_once('-').expect("a tag");
        for foreign in ["12-x", &format!("012-{hashes}"), &format!("+12-{hashes}"), &format!("12-{}", hashes.to_uppercase())] {
            assert_eq!(check(&format!("\"{foreign}\""), version), Err(Mismatch::Version), "{foreign}");
        }
        assert_eq!(check("*", version), Ok(()));
        assert_eq!(if_none_match_contains(&format!("\"x\", W/{tag}"), &tag), Ok(true));
        for other in [entity_tag(version, b"other"), entity_tag(of(8, 12), b"body")] {
            assert_eq!(if_none_match_contains(&other, &tag), Ok(false));
        }
    }

    #[test]
    fn a_stored_response_names_its_steps_wherever_they_are_shown() {
        let steps = Steps::from_json(r#"[{"type":"text","key":"steps","label":"\"steps\":[]"}]"#).expect("steps");
        let text = String::from(steps.clone());
        let body = format!(r#"{{"data":[{{"step_data":{{"steps":"x"}},"steps":{text}}},{{"steps":{text}}}]}}"#);
        let shown = StoredResponse::new(200, body);
        let stored = shown.clone().naming(&steps);
        assert_eq!(stored.steps, [steps.hash()]);
        assert_eq!(stored.body.matches(&steps.hash()).count(), 2);
        assert!(!stored.body.contains("label") && stored.body.contains(r#""steps":"x""#));
        assert_eq!(stored.with_steps(&steps.hash(), &text), shown.body);
    }

    #[test]
    fn path_body_and_secret_make_up_the_fingerprint() {
        let id: crate::values::id::ApiKeyId = "01890a5d-ac96-774b-bcce-b302099a8057".parse().expect("an id");
        let tenant = "01890a5d-ac96-774b-bcce-b302099a8058".parse().expect("an id");
        let by = |byte| BearerToken::new(tenant, id, Secret::new([byte; 32]));
        let key: IdempotencyKey = "k".parse().expect("a key");
        let of = |path, body: &[u8]| IdempotentRequest::new(&by(1), key.clone(), path, body).fingerprint;
        assert_ne!(of("/v1/assets", b"{}"), IdempotentRequest::new(&by(2), key.clone(), "/v1/assets", b"{}").fingerprint);
        assert_ne!(of("/v1/assets", b"{}"), hex::sha256("/v1/assets\0{}"), "nobody without the secret can compute it");
        assert_eq!(of("/v1/assets", b"{}"), of("/v1/assets", b"{}"));
        assert_ne!(of("/v1/assets", b"{}"), of("/v1/users", b"{}"));
        assert_ne!(of("/v1/assets", b"{}"), of("/v1/assets", b"{ }"));
    }
}
