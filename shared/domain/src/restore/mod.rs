//! Records from their histories: the state of a lost or outdated record, as far as its events show it.

mod past;
mod processes;
mod records;
mod submissions;
#[cfg(test)]
mod tests;

pub use past::{PastState, held_state_at, state_at};
pub use submissions::submissions;

use crate::actor::Actor;
use crate::assets::asset::Asset;
use crate::catalog::Model;
use crate::history::event::Event;
use crate::processes::instance::Signed;
use crate::processes::process::Process;
use crate::record::Record;
use crate::values::json;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A record's fields as the history shows them ([`Record::history_fields`]).
pub type HistoryFields = Map<String, Value>;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// The history never shows this part of the record.
    #[error("its history does not contain {0}")]
    NotShown(&'static str),
    /// A field of the history can't be read.
    #[error("its history has no readable {0}")]
    Unreadable(String),
    /// The history has other fields than this version of the service writes.
    #[error("its history has fields that this version does not know")]
    OtherFields,
}

/// Facts about a record besides its own history.
#[derive(Debug, Clone)]
pub struct Origin<'a, T> {
    /// The record's earlier state, if that survives.
    pub old: Option<&'a T>,
    pub creator: &'a Actor,
    /// The process definition that the record refers to, as it was when the record was created.
    pub process: Option<&'a Process>,
    /// The asset that the record refers to, as it was when the record was created.
    pub asset: Option<&'a Asset>,
    /// The model that the record refers to, as it is.
    pub model: Option<&'a Model>,
    /// The author of the value of each step, by the whole history.
    pub submissions: Option<&'a BTreeMap<String, Signed>>,
    /// The versions of an asset by the history that only say when it was seen.
    pub scans: Option<u64>,
}

impl<'a, T> Origin<'a, T> {
    /// Nothing is known but the record's history.
    #[must_use]
    pub fn unknown(creator: &'a Actor) -> Self {
        Self { old: None, creator, process: None, asset: None, model: None, submissions: None, scans: None }
    }
}

/// A record that can be restored from its history.
pub trait Restore: Record {
    /// Facts that the history does not show come from the origin.
    ///
    /// # Errors
    ///
    /// Returns a [`RestoreError`] when a part of the record is known from nowhere.
    fn from_fields(id: Self::Id, fields: &Fields<'_>, origin: &Origin<'_, Self>) -> Result<Self, RestoreError>;
}

/// # Errors
///
/// Returns a [`RestoreError`] when a part of the record is known from nowhere, or a field has no place in the record.
pub fn restore<T: Restore>(id: T::Id, fields: &HistoryFields, origin: &Origin<'_, T>) -> Result<T, RestoreError> {
    let record = T::from_fields(id, &Fields(fields), origin)?;
    let is_complete = without_nulls(&canonical(&record.history_fields())) == without_nulls(&canonical(fields));
    if is_complete { Ok(record) } else { Err(RestoreError::OtherFields) }
}

pub struct Fields<'a>(&'a HistoryFields);

impl Fields<'_> {
    /// A missing field reads as null.
    ///
    /// # Errors
    ///
    /// Returns [`RestoreError::Unreadable`] when the field has another type.
    fn get<V: DeserializeOwned>(&self, name: &str) -> Result<V, RestoreError> {
        let value = self.0.get(name).cloned().unwrap_or(Value::Null);
        serde_json::from_value(value).map_err(|_| RestoreError::Unreadable(name.to_owned()))
    }

    /// Several fields, which the record stores as the history shows them.
    ///
    /// # Errors
    ///
    /// Returns [`RestoreError::Unreadable`] when one of them has another type.
    fn all<V: DeserializeOwned>(&self) -> Result<V, RestoreError> {
        serde_json::from_value(Value::Object(self.0.clone())).map_err(|error| RestoreError::Unreadable(error.to_string()))
    }

    /// `None` if the field is missing or null.
    fn parse<V>(&self, name: &str, parse: impl Fn(&str) -> Option<V>) -> Result<Option<V>, RestoreError> {
        let value = self.0.get(name).filter(|value| !value.is_null());
        let unreadable = || RestoreError::Unreadable(name.to_owned());
        value.map(|value| parse(&value.to_string()).ok_or_else(unreadable)).transpose()
    }
}

#[must_use]
pub fn replay<'a>(fields: HistoryFields, events: impl IntoIterator<Item = &'a Event>) -> HistoryFields {
    events.into_iter().flat_map(|event| &event.changes).fold(fields, |mut fields, (name, change)| {
        fields.insert(name.clone(), change.get("new").cloned().unwrap_or(Value::Null));
        fields
    })
}

/// The form that events store (RFC 8785), in which numbers may be written otherwise.
#[must_use]
pub fn canonical(fields: &HistoryFields) -> HistoryFields {
    let text = serde_json_canonicalizer::to_string(fields).ok();
    text.and_then(|text| json::parse_object(&text).ok()).unwrap_or_else(|| fields.clone())
}

fn without_nulls(fields: &HistoryFields) -> HistoryFields {
    fields.iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.clone(), value.clone())).collect()
}
