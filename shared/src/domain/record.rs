//! What every kept thing has in common: a kind, a version, a history, what must be unique and what it refers to.

use super::event;
use super::id::Id;
use super::time::Timestamp;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use uuid::Uuid;

/// The kinds of thing that the table keeps one item each of.
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
    /// A run of a process.
    Instance,
    /// A process on several assets at once.
    Movement,
    /// The keys that receipts are signed with.
    ReceiptKeys,
}

impl Kind {
    /// Every kind.
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
    ];

    /// The noun that events use: `asset` in `asset.created`.
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
        }
    }
}

/// A value that only one thing of its kind may have in a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unique {
    /// The field that holds it, as the interface names it.
    pub field: &'static str,
    /// The value, folded so that equal means taken.
    pub value: String,
    /// Whether it stays taken when the thing is deleted.
    pub kept: bool,
}

/// A thing that another one points to and that must stay while it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The field that points, as the interface names it.
    pub field: &'static str,
    /// What kind of thing it points to.
    pub kind: Kind,
    /// Which one.
    pub id: Uuid,
    /// What the one that points has taken over from the other: ids, by the other's attribute, which it must still have
    /// when it is pointed to anew.
    pub taken: Vec<(&'static str, Uuid)>,
}

impl Reference {
    /// A reference that takes nothing over.
    #[must_use]
    pub fn new(field: &'static str, kind: Kind, id: Uuid) -> Self {
        Self { field, kind, id, taken: Vec::new() }
    }
}

/// A thing with an item of its own.
pub trait Record: Clone + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Which kind.
    const KIND: Kind;
    /// Its identifier's type.
    type Id: Id;

    /// Its identifier.
    fn id(&self) -> Self::Id;

    /// Its fields as the history shows them. Never a secret.
    fn audit(&self) -> Map<String, Value>;

    /// Whether a field is shown: a change of none such leaves the time of the last change.
    #[must_use]
    fn is_shown(_field: &str) -> bool {
        true
    }

    /// What only it may have.
    fn unique(&self) -> Vec<Unique> {
        Vec::new()
    }

    /// What it points to.
    fn references(&self) -> Vec<Reference> {
        Vec::new()
    }
}

/// A thing as the table holds it.
#[derive(Debug, Clone)]
pub struct Stored<T> {
    /// The thing.
    pub value: T,
    /// Counts its changes, from 1.
    pub version: u64,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// The hash of its latest event.
    pub last_hash: String,
    /// How many other things point to it.
    pub uses: u64,
}

impl<T: Record> Stored<T> {
    /// What would change if the thing became `next`.
    #[must_use]
    pub fn changes_to(&self, next: &T) -> Map<String, Value> {
        event::changes(&self.value.audit(), &next.audit())
    }
}

/// What a PATCH says of one field: contract 1 tells the three apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Patch<T> {
    /// Nothing: leave it.
    #[default]
    Absent,
    /// `null`: clear it.
    Null,
    /// Set it.
    Value(T),
}

impl<T> Patch<T> {
    /// The value that the field has afterwards.
    #[must_use]
    pub fn or(self, present: Option<T>) -> Option<T> {
        match self {
            Self::Absent => present,
            Self::Null => None,
            Self::Value(value) => Some(value),
        }
    }

    /// The value that is set, if one is.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Absent | Self::Null => None,
        }
    }

    /// Whether the field is spoken of at all.
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
        fn a_patch_tells_absent_null_and_value_apart(present: Option<u8>, value: u8) {
            prop_assert_eq!(Patch::Absent.or(present), present);
            prop_assert_eq!(Patch::Null.or(present), None);
            prop_assert_eq!(Patch::Value(value).or(present), Some(value));
        }
    }
}
