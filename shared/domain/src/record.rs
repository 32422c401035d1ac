//! The common parts of all records: a kind, a version, a history, unique values, references to other records, and changes of
//! fields.

use crate::values::id::{EventId, Id};
use crate::values::time::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use uuid::Uuid;

/// The kind of a record. The table has one item per record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A tenant with its settings.
    Tenant,
    ApiKey,
    Asset,
    User,
    AssetType,
    Manufacturer,
    Model,
    Process,
    Instance,
    /// A movement: one process on several assets.
    Movement,
    /// All receipt keys of a tenant.
    ReceiptKeys,
    Link,
    Webhook,
}

impl Kind {
    pub const ALL: &[Self] = &[
        Self::Tenant,
        Self::ApiKey,
        Self::Asset,
        Self::User,
        Self::AssetType,
        Self::Manufacturer,
        Self::Model,
        Self::Process,
        Self::Instance,
        Self::Movement,
        Self::ReceiptKeys,
        Self::Link,
        Self::Webhook,
    ];

    /// The name in event types, such as `asset` in `asset.created`.
    #[must_use]
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Tenant => "tenant",
            Self::ApiKey => "key",
            Self::Asset => "asset",
            Self::User => "user",
            Self::AssetType => "asset_type",
            Self::Manufacturer => "manufacturer",
            Self::Model => "model",
            Self::Process => "process",
            Self::Instance => "instance",
            Self::Movement => "movement",
            Self::ReceiptKeys => "receipt_keys",
            Self::Link => "link",
            Self::Webhook => "webhook",
        }
    }
}

/// A value that only one record of its kind can have in a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unique {
    /// The field's name in the API.
    pub field: &'static str,
    /// Case-folded if the field is case-insensitive.
    pub value: String,
    pub reserved_after_deletion: bool,
}

/// A reference from one record to another, which can't be deleted while the reference exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The referring field's name in the API.
    pub field: &'static str,
    pub kind: Kind,
    pub id: Uuid,
    /// Checked when the reference is new.
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
    #[must_use]
    pub fn text(attribute: &'static str, text: impl ToString) -> Self {
        Self { attribute, value: RequiredValue::Text(text.to_string()) }
    }

    #[must_use]
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
    /// A reference that only requires the record to exist.
    #[must_use]
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
    /// `step_data`. The history commits to their values, so they can be erased.
    const PERSONAL_FIELDS: &'static [&'static str] = &[];
    type Id: Id;

    fn id(&self) -> Self::Id;

    /// The fields as shown in the history, without secrets. Implementations destructure `self` completely, so a new field can't
    /// be forgotten.
    fn history_fields(&self) -> Map<String, Value>;

    /// Whether the API shows this field of the history. Changes to only hidden fields don't update `updated_at`.
    #[must_use]
    fn is_shown(_field: &str) -> bool {
        true
    }

    /// Number of versions that `If-Match` ignores, because no change depends on what they changed.
    fn uncounted_versions(&self) -> u64 {
        0
    }

    /// Further values that lists need, as one text in the secondary index `list_index`, which has few attributes.
    fn listed(&self) -> Option<String> {
        None
    }

    /// Whether the record will never change again, so that lists of open records can skip it.
    fn is_ended(&self) -> bool {
        false
    }

    /// Values that no other record of this kind can have.
    fn unique(&self) -> Vec<Unique> {
        Vec::new()
    }

    /// The attributes that references can require, with this record's values; `None` if no record can refer to this kind.
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

/// A record as stored in the table.
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
    /// The version in entity tags, which `If-Match` compares.
    #[must_use]
    pub fn tag_version(&self) -> u64 {
        self.version.saturating_sub(self.value.uncounted_versions())
    }

    /// Old and new values by field.
    #[must_use]
    pub fn changes_to(&self, next: &T) -> Map<String, Value> {
        changes(&self.value.history_fields(), &next.history_fields())
    }
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

/// One nullable field of a PATCH.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Patch<T> {
    #[default]
    Absent,
    /// `null`: the field is cleared.
    Null,
    Value(T),
}

impl<T> Patch<T> {
    #[must_use]
    pub fn or(self, present: Option<T>) -> Option<T> {
        match self {
            Self::Absent => present,
            Self::Null => None,
            Self::Value(value) => Some(value),
        }
    }

    /// Absent if the field already has this value.
    #[must_use]
    pub fn unless(self, present: Option<&T>) -> Self
    where
        T: PartialEq,
    {
        match &self {
            Self::Null if present.is_none() => Self::Absent,
            Self::Value(value) if present == Some(value) => Self::Absent,
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

/// Declares a change of a record: the struct, and the method that returns the record with the change applied. Each field is
/// `set`, or `set_or_clear` if it can also become empty. Missing fields stay unchanged. The fields after `and` have other rules:
/// the method ignores them.
macro_rules! record_change {
    (
        $(#[doc = $doc:literal])* $change:ident of $record:ident::$method:ident {
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
            pub fn $method(&self, change: &$change) -> Self {
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

#[cfg(test)]
mod tests {
    use super::*;
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
        fn an_absent_field_stays_null_clears_it_and_a_value_sets_it(present: Option<u8>, value: u8) {
            prop_assert_eq!(Patch::Absent.or(present), present);
            prop_assert_eq!(Patch::Null.or(present), None);
            prop_assert_eq!(Patch::Value(value).or(present), Some(value));
            for patch in [Patch::Absent, Patch::Null, Patch::Value(value)] {
                let is_unchanged = patch.clone().or(present) == present;
                prop_assert_eq!(patch.unless(present.as_ref()).is_absent(), is_unchanged);
            }
        }
    }
}
