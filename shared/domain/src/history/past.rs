//! The state of a record at an earlier time, according to its history.

use crate::assets::asset::Asset;
use crate::catalog::custom_fields::CustomFields;
use crate::history::chain::HistoryEntry;
use crate::history::event::{Event, EventType, Verb, scans};
use crate::record::{Record, Stored};
use crate::values::id::{AssetId, ManufacturerId, ModelId, UserId};
use crate::values::json;
use crate::values::time::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::str::FromStr;

/// A record's fields as shown in its history ([`Record::history_fields`]).
pub type HistoryFields = Map<String, Value>;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PastError {
    #[error("the manufacturer of its model is unknown")]
    UnknownManufacturer,
    #[error("its history has no readable {0}")]
    Unreadable(String),
    #[error("its history has fields unknown to this version")]
    OtherFields,
}

/// The state of a record after some of its changes.
#[derive(Debug, Clone, PartialEq)]
pub struct PastState {
    fields: HistoryFields,
    created: Event,
    /// The number of changes that only record a scan.
    scans: u64,
    /// The last change, and the hash of its entry.
    last: (Event, String),
    /// The version and the time of the last change of each field.
    changed_at: BTreeMap<String, (u64, Timestamp)>,
}

/// Returns the state at a time; `None` if the record didn't exist then. `entries` is the whole history, in order.
///
/// A change counts from the time of its request, which is the time in the history.
///
/// # Errors
///
/// Returns [`PastError::Unreadable`] when an entry can't be read.
pub fn state_at(entries: &[HistoryEntry], at: Timestamp) -> Result<Option<PastState>, PastError> {
    let events = events_of(entries)?;
    Ok(state_after(entries, &events, count_at(&events, at)))
}

/// Returns the asset's state at `at`, if the asset was assigned to `user` then. If the history shows no assignment at that time,
/// but an import later claimed that `user` had the asset on that day, returns the state after the claim.
///
/// # Errors
///
/// Same as [`state_at`].
pub fn held_state_at(entries: &[HistoryEntry], at: Timestamp, user: UserId) -> Result<Option<PastState>, PastError> {
    let events = events_of(entries)?;
    let count = count_at(&events, at);
    let known = state_after(entries, &events, count);
    let holder = |state: &PastState| state.id_in::<UserId>("assigned_to");
    if let Some(holder) = known.as_ref().and_then(holder) {
        return Ok(known.filter(|_| holder == user));
    }
    // Collect each later assignment, with its last claim and the number of events up to the claim.
    let (mut claims, day) = (Vec::<Option<(String, usize)>>::new(), at.date().to_string());
    for (index, event) in events.iter().enumerate().skip(count) {
        if event.changes.contains_key("assigned_to") {
            claims.push(None);
        }
        let since = event.changes.get("assigned_since").map(|change| change.get("new").and_then(Value::as_str));
        if let (Some(since), Some(claim)) = (since, claims.last_mut()) {
            *claim = since.map(|since| (since.to_owned(), index + 1));
        }
    }
    let claimed = claims.into_iter().flatten().rfind(|(since, _)| *since <= day);
    Ok(claimed.and_then(|(_, count)| state_after(entries, &events, count)).filter(|state| holder(state) == Some(user)))
}

fn events_of(entries: &[HistoryEntry]) -> Result<Vec<Event>, PastError> {
    let unreadable = |entry: &HistoryEntry| PastError::Unreadable(format!("entry {}", entry.id));
    entries.iter().map(|entry| serde_json::from_str::<Event>(&entry.text).map_err(|_| unreadable(entry))).collect()
}

/// Counts the events up to the last one at or before `at`. The events are in the order of versions, so their times can decrease:
/// of concurrent requests, the later one can be committed first.
fn count_at(events: &[Event], at: Timestamp) -> usize {
    events.iter().rposition(|event| event.at <= at).map_or(0, |last| last + 1)
}

fn state_after(entries: &[HistoryEntry], events: &[Event], count: usize) -> Option<PastState> {
    let (made, entry) = (events.get(..count)?, entries.get(count.checked_sub(1)?)?);
    let (created, last) = (made.first()?, made.last()?);
    if EventType::parse(&last.event_type).is_some_and(|event_type| event_type.verb == Some(Verb::Deleted)) {
        return None;
    }
    Some(PastState {
        fields: replay(made),
        changed_at: made.iter().flat_map(changes_of).collect(),
        created: created.clone(),
        scans: scans(made),
        last: (last.clone(), entry.hash.clone()),
    })
}

/// Replays the first events of a history. Returns the resulting fields.
pub fn replay<'a>(events: impl IntoIterator<Item = &'a Event>) -> HistoryFields {
    let changes = events.into_iter().flat_map(|event| &event.changes);
    changes.map(|(field, change)| (field.clone(), change.get("new").cloned().unwrap_or(Value::Null))).collect()
}

fn changes_of(event: &Event) -> impl Iterator<Item = (String, (u64, Timestamp))> {
    event.changes.keys().map(|field| (field.clone(), (event.version, event.at)))
}

impl PastState {
    /// Converts the state into an asset. `manufacturer` comes from the asset's model, because the asset's history doesn't show
    /// it. The manufacturer of a model in use can't change.
    ///
    /// # Errors
    ///
    /// Returns a [`PastError`] when a part of the asset is unknown, or the history has an unknown field.
    pub fn into_asset(self, id: AssetId, manufacturer: Option<ManufacturerId>) -> Result<Stored<Asset>, PastError> {
        let status_changed_at = self.changed_at.get("status").filter(|(version, _)| *version > self.created.version);
        let status_changed_at = status_changed_at.map(|(_, at)| *at);
        let value = Asset { status_changed_at, ..asset(id, &self.fields, manufacturer, self.scans)? };
        let (last, last_hash) = self.last;
        let shown = self.changed_at.iter().filter(|(field, _)| Asset::is_shown(field)).map(|(_, change)| *change);
        Ok(Stored {
            value,
            version: last.version,
            created_at: self.created.at,
            updated_at: shown.max().map_or(self.created.at, |(_, at)| at),
            last_hash,
            last_event: last.id,
        })
    }

    pub fn created_at(&self) -> Timestamp {
        self.created.at
    }

    /// Returns the ID in a field; `None` if the field is null or not an ID.
    pub fn id_in<I: FromStr>(&self, field: &str) -> Option<I> {
        self.text_in(field)?.parse().ok()
    }

    /// Returns a field's string; `None` if the field is null or not a string.
    pub fn text_in(&self, field: &str) -> Option<&str> {
        self.fields.get(field)?.as_str()
    }
}

fn asset(id: AssetId, fields: &HistoryFields, manufacturer: Option<ManufacturerId>, scans: u64) -> Result<Asset, PastError> {
    let model_id: Option<ModelId> = read(fields, "model_id")?;
    let custom_fields = fields.get("custom_fields").filter(|value| !value.is_null()).map(ToString::to_string);
    let custom_fields = custom_fields.map(CustomFields::try_from).transpose();
    let details = serde_json::from_value(Value::Object(fields.clone()));
    let asset = Asset {
        id,
        asset_tag: read(fields, "asset_tag")?,
        name: read(fields, "name")?,
        status: read(fields, "status")?,
        asset_type_id: read(fields, "asset_type_id")?,
        model_id,
        manufacturer_id: model_id.map(|_| manufacturer.ok_or(PastError::UnknownManufacturer)).transpose()?,
        manufacturer: read(fields, "manufacturer")?,
        model: read(fields, "model")?,
        details: details.map_err(|_| PastError::Unreadable("details".to_owned()))?,
        assigned_to: read(fields, "assigned_to")?,
        assigned_since: read(fields, "assigned_since")?,
        last_seen_at: read(fields, "last_seen_at")?,
        status_changed_at: None,
        scans,
        notes: read(fields, "notes")?,
        custom_fields: custom_fields.map_err(|_| PastError::Unreadable("custom_fields".to_owned()))?.unwrap_or_default(),
        running_instance_id: read(fields, "running_instance_id")?,
    };
    let is_complete = without_nulls(&canonical(&asset.history_fields())) == without_nulls(&canonical(fields));
    if is_complete { Ok(asset) } else { Err(PastError::OtherFields) }
}

/// Reads a field. A missing field counts as null.
fn read<V: DeserializeOwned>(fields: &HistoryFields, name: &str) -> Result<V, PastError> {
    let value = fields.get(name).cloned().unwrap_or(Value::Null);
    serde_json::from_value(value).map_err(|_| PastError::Unreadable(name.to_owned()))
}

/// Returns fields in the form stored in events (RFC 8785), in which numbers can be written differently.
fn canonical(fields: &HistoryFields) -> HistoryFields {
    let text = serde_json_canonicalizer::to_string(fields).ok();
    text.and_then(|text| json::parse_object(&text).ok()).unwrap_or_else(|| fields.clone())
}

fn without_nulls(fields: &HistoryFields) -> HistoryFields {
    fields.iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;
    use crate::values::id::{AssetTypeId, Id};
    use serde_json::json;
    use uuid::Uuid;

    #[test]
    fn an_asset_comes_back_with_the_manufacturer_of_its_model() {
        let manufacturer_id = Some(ManufacturerId::from_uuid(Uuid::from_u128(5)));
        let asset = Asset {
            model_id: Some(ModelId::from_uuid(Uuid::from_u128(6))),
            manufacturer_id,
            asset_type_id: Some(AssetTypeId::from_uuid(Uuid::from_u128(7))),
            assigned_to: Some(samples::user(3)),
            assigned_since: "2026-01-02".parse().ok(),
            last_seen_at: Some(Timestamp::from_millis(5)),
            scans: 2,
            details: serde_json::from_value(json!({"purchase_price": "12.50", "serial_number": "S", "location": "A / B"}))
                .expect("details"),
            custom_fields: serde_json::from_value(json!(r#"{"a": [1, 2.5]}"#)).expect("fields"),
            ..samples::asset(1)
        };
        let fields = canonical(&asset.history_fields());
        assert_eq!(super::asset(asset.id, &fields, manufacturer_id, 2).as_ref(), Ok(&asset));
        assert_eq!(super::asset(asset.id, &fields, None, 2), Err(PastError::UnknownManufacturer));
    }

    #[test]
    fn a_history_with_other_fields_is_refused() {
        let asset = samples::asset(1);
        let mut fields = asset.history_fields();
        fields.insert("colour".into(), json!("red"));
        assert_eq!(super::asset(asset.id, &fields, None, 0), Err(PastError::OtherFields));
        fields.insert("colour".into(), Value::Null);
        assert_eq!(super::asset(asset.id, &fields, None, 0).as_ref(), Ok(&asset));
        fields.insert("purchase_date".into(), json!("yesterday"));
        assert_eq!(super::asset(asset.id, &fields, None, 0), Err(PastError::Unreadable("details".into())));
    }
}
