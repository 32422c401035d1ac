//! Conversion of records to items and back.

use crate::domain::record::{Record, Stored};
use crate::domain::values::id::{EventId, Id};
use crate::domain::values::time::Timestamp;
use crate::store::keys::{Item, Key, Keys, LS, TYPE, record_id, tenant};
use crate::store::table::deduplicated_blobs::{Blob, lacks_blob, take_blob};
use crate::store::table::error::{StoreError, UnreadableRecord};
use aws_sdk_dynamodb::types::AttributeValue;
use serde_dynamo::aws_sdk_dynamodb_1::{from_item, to_item};
use uuid::Uuid;

/// Counts a record's changes.
pub(in crate::store) const VERSION: &str = "version";
pub(in crate::store) const CREATED_AT: &str = "created_at";
/// The last change of a shown field.
pub(in crate::store) const UPDATED_AT: &str = "updated_at";
pub(in crate::store) const LAST_HASH: &str = "last_hash";
/// The id of a record's latest event. It tells when the record changed, also where `updated_at` does not, and finds the event
/// without an index.
pub(in crate::store) const LAST_EVENT: &str = "last_event";
/// In a reference item, the number of references to its record.
pub(in crate::store) const USES: &str = "uses";
/// In a unique value's marker, the sort key of its record.
pub(in crate::store) const OWNER: &str = "owner";

/// Values that only lists need, as one text: [`Record::listed`].
pub(in crate::store) const LISTED: &str = "listed";

/// Without keys and metadata, and with the blob apart, which is stored in another item.
pub(in crate::store) fn attributes<T: Record>(value: &T) -> Result<(Item, Option<Blob>), StoreError> {
    let mut attributes: Item = to_item(value).map_err(StoreError::broken)?;
    attributes.extend(value.listed().map(|text| (LISTED.to_owned(), AttributeValue::S(text))));
    let blob = take_blob(T::KIND, &mut attributes);
    Ok((attributes, blob))
}

/// `None` for kinds that are not in the index.
pub(in crate::store) fn list_index_key<T: Record>(value: &T) -> Option<AttributeValue> {
    Keys::list_index(T::KIND, value.id().uuid(), value.is_ended())
}

/// The whole item, and the blob, which is stored in another item.
pub(in crate::store) fn from_record<T: Record>(keys: &Keys, stored: &Stored<T>) -> Result<(Item, Option<Blob>), StoreError> {
    let (mut item, blob) = attributes(&stored.value)?;
    let id = stored.value.id().uuid();
    item.extend(keys.record(T::KIND, id).item());
    item.insert(TYPE.to_owned(), AttributeValue::S(T::KIND.noun().to_owned()));
    item.insert(VERSION.to_owned(), AttributeValue::N(stored.version.to_string()));
    item.insert(CREATED_AT.to_owned(), AttributeValue::S(stored.created_at.to_string()));
    item.insert(UPDATED_AT.to_owned(), AttributeValue::S(stored.updated_at.to_string()));
    item.insert(LAST_HASH.to_owned(), AttributeValue::S(stored.last_hash.clone()));
    item.insert(LAST_EVENT.to_owned(), AttributeValue::S(stored.last_event.short()));
    item.extend(list_index_key(&stored.value).map(|sort| (LS.to_owned(), sort)));
    Ok((item, blob))
}

/// The metric in log lines of records that can't be read.
pub(in crate::store) const UNREADABLE: &str = "unreadable_records";

/// The record's blob must be filled in. Failures are logged.
///
/// # Errors
///
/// Returns [`StoreError::Unreadable`] when the item can't be read as this kind of record.
pub(in crate::store) fn read<T: Record>(item: Item) -> Result<Stored<T>, StoreError> {
    let key = Key::of(&item);
    let id = key.as_ref().and_then(|key| record_id(T::KIND, key));
    decode::<T>(item, id).map_err(|cause| {
        let (tenant_id, record_id) = (key.as_ref().and_then(tenant).map(|id| id.to_string()), id.map(|id| id.to_string()));
        let (tenant_id, record_id) = (tenant_id.as_deref(), record_id.as_deref());
        // Without the cause, which may quote the data. The template's metric filters count these lines.
        tracing::error!(metric = UNREADABLE, kind = T::KIND.noun(), tenant_id, record_id, "a record can't be read");
        StoreError::Unreadable(UnreadableRecord { kind: T::KIND, id, cause })
    })
}

/// Reads the record with the id `id` in its key; `None` for kinds that have none in their key.
fn decode<T: Record>(item: Item, id: Option<Uuid>) -> Result<Stored<T>, String> {
    if lacks_blob(&item) {
        return Err("its steps or its schema are lost".to_owned());
    }
    // By hand: deserializing would copy the whole item once more.
    let text = |name: &str| item.get(name)?.as_s().ok().cloned();
    let time = |name: &str| Timestamp::try_from(text(name)?).ok();
    let version = item.get(VERSION).and_then(|version| version.as_n().ok()?.parse().ok()).ok_or("it has no version")?;
    let created_at = time(CREATED_AT).ok_or("it has no time of creation")?;
    let updated_at = time(UPDATED_AT).ok_or("it has no time of its last change")?;
    let last_hash = text(LAST_HASH).ok_or("it has no hash")?;
    let last_event = text(LAST_EVENT).and_then(|event| EventId::from_short(&event)).ok_or("it does not name its event")?;
    let value: T = from_item(item).map_err(|error| error.to_string())?;
    if id.is_some_and(|id| id != value.id().uuid()) {
        return Err("its id is not that of its key".to_owned());
    }
    Ok(Stored { value, version, created_at, updated_at, last_hash, last_event })
}

/// The approximate bytes of names and values, as DynamoDB counts them.
pub(in crate::store) fn size(item: &Item) -> usize {
    item.iter().map(|(name, value)| name.len() + size_of_value(value)).sum()
}

fn size_of_value(value: &AttributeValue) -> usize {
    match value {
        AttributeValue::S(text) | AttributeValue::N(text) => text.len(),
        AttributeValue::B(blob) => blob.as_ref().len(),
        AttributeValue::L(list) => list.iter().map(|value| 4 + size_of_value(value)).sum(),
        AttributeValue::M(map) => 4 + size(map),
        _ => 1,
    }
}
