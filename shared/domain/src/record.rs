//! What all records have in common: a kind, a version, a history, unique values and references to other records.

use crate::history::event;
use crate::values::id::{EventId, Id};
use crate::values::time::Timestamp;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use uuid::Uuid;

/// A kind of record. The table has one item for each record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The tenant itself, with its settings.
    Tenant,
    /// An API key.
    ApiKey,
    /// An asset.
    Asset,
    /// A user.
    User,
    /// An asset type of the catalog.
    AssetType,
    /// A manufacturer of the catalog.
    Manufacturer,
    /// A model of the catalog.
    Model,
    /// A process definition.
    Process,
    /// A process instance.
    Instance,
    /// A movement: one process on several assets.
    Movement,
    /// The keys that a tenant's receipts are signed with.
    ReceiptKeys,
    /// A signing link.
    Link,
    /// A webhook.
    Webhook,
}

impl Kind {
    /// All kinds.
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

    /// Returns the noun that event types use, such as `asset` in `asset.created`.
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

/// A value that only one record of its kind may have in a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unique {
    /// The API's name of the field that has the value.
    pub field: &'static str,
    /// The value, case-folded where case doesn't distinguish values.
    pub value: String,
    /// Whether the value stays reserved after the record is deleted.
    pub reserved_after_deletion: bool,
}

/// A reference from one record to another, which can't be deleted while the reference exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The API's name of the field that refers to the record.
    pub field: &'static str,
    /// The kind of the referenced record.
    pub kind: Kind,
    /// The id of the referenced record.
    pub id: Uuid,
    /// What the referenced record must look like when the reference is new.
    pub requirements: Vec<Requirement>,
}

/// A value that an attribute of a referenced record must have when the reference is new: a user who is newly assigned must
/// be active, but stays assigned when deactivated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// The name of the attribute.
    pub attribute: &'static str,
    /// The value that it must have.
    pub value: RequiredValue,
}

impl Requirement {
    /// Requires a text.
    #[must_use]
    pub fn text(attribute: &'static str, text: impl ToString) -> Self {
        Self { attribute, value: RequiredValue::Text(text.to_string()) }
    }

    /// Requires `true` or `false`.
    #[must_use]
    pub fn flag(attribute: &'static str, flag: bool) -> Self {
        Self { attribute, value: RequiredValue::Bool(flag) }
    }
}

/// The value of a [`Requirement`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequiredValue {
    /// Text.
    Text(String),
    /// `true` or `false`.
    Bool(bool),
}

impl Reference {
    /// Creates a reference without requirements: the referenced record must only exist.
    #[must_use]
    pub fn new(field: &'static str, kind: Kind, id: Uuid) -> Self {
        Self { field, kind, id, requirements: Vec::new() }
    }

    /// Adds a requirement.
    #[must_use]
    pub fn requiring(mut self, requirement: Requirement) -> Self {
        self.requirements.push(requirement);
        self
    }
}

/// A record, which has its own item in the table.
pub trait Record: Clone + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Its kind.
    const KIND: Kind;
    /// The type of its identifier.
    type Id: Id;

    /// Returns its identifier.
    fn id(&self) -> Self::Id;

    /// Returns its fields as the history shows them, without secrets. Implementations destructure `self` completely, so that
    /// a new field can't be forgotten.
    fn history_fields(&self) -> Map<String, Value>;

    /// Returns whether the API shows this field of the history. A change to other fields only leaves `updated_at` as it is.
    #[must_use]
    fn is_shown(_field: &str) -> bool {
        true
    }

    /// Returns whether it has ended and will not change any more. Lists of open records need not read it.
    fn is_ended(&self) -> bool {
        false
    }

    /// Returns the values that no other record of its kind may have.
    fn unique(&self) -> Vec<Unique> {
        Vec::new()
    }

    /// Returns the attributes that references to it can require, with its values; `None` if no record can refer to its
    /// kind.
    fn referenceable_attributes(&self) -> Option<Vec<Requirement>> {
        None
    }

    /// Returns its references to other records.
    fn references(&self) -> Vec<Reference> {
        Vec::new()
    }
}

/// Collects the fields that [`Record::history_fields`] returns.
pub(crate) fn fields<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    fields.into_iter().map(|(field, value)| (field.to_owned(), value)).collect()
}

/// A record as it is stored in the table.
#[derive(Debug, Clone)]
pub struct Stored<T> {
    /// The record.
    pub value: T,
    /// Counts its changes, starting at 1.
    pub version: u64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// The hash of its latest history entry.
    pub last_hash: String,
    /// The event that its latest history entry describes.
    pub last_event: EventId,
}

impl<T: Record> Stored<T> {
    /// Returns the changes from this state of the record to `next`, by field.
    #[must_use]
    pub fn changes_to(&self, next: &T) -> Map<String, Value> {
        event::changes(&self.value.history_fields(), &next.history_fields())
    }
}

/// What a PATCH does with one nullable field.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Patch<T> {
    /// The field is absent and stays as it is.
    #[default]
    Absent,
    /// The field is `null` and is cleared.
    Null,
    /// The field is set to this value.
    Value(T),
}

impl<T> Patch<T> {
    /// Returns the value of the field afterwards.
    #[must_use]
    pub fn or(self, present: Option<T>) -> Option<T> {
        match self {
            Self::Absent => present,
            Self::Null => None,
            Self::Value(value) => Some(value),
        }
    }

    /// Returns the field as absent if it is `present` already.
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

    /// Returns the value that the field is set to, if any.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Absent | Self::Null => None,
        }
    }

    /// Returns whether the field is absent.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
