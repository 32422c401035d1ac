//! Records as items and back.

use super::error::StoreError;
use super::keys::{Item, Keys, LS, TYPE};
use crate::domain::record::{Record, Stored};
use crate::domain::time::Timestamp;
use aws_sdk_dynamodb::types::AttributeValue;
use serde::Deserialize;
use serde_dynamo::aws_sdk_dynamodb_1::{from_item, to_item};

/// Attributes that every record's item has beside the record's own.
pub(super) const VERSION: &str = "version";
pub(super) const CREATED_AT: &str = "created_at";
pub(super) const UPDATED_AT: &str = "updated_at";
pub(super) const LAST_HASH: &str = "last_hash";
pub(super) const USES: &str = "uses";
/// Whose a marker is: the sort key of the record.
pub(super) const OWNER: &str = "owner";

#[derive(Deserialize)]
struct Meta {
    version: u64,
    created_at: Timestamp,
    updated_at: Timestamp,
    last_hash: String,
    #[serde(default)]
    uses: u64,
}

/// The record's own attributes.
pub(super) fn attributes<T: Record>(value: &T) -> Result<Item, StoreError> {
    to_item(value).map_err(StoreError::broken)
}

/// The whole item of a new record.
pub(super) fn whole<T: Record>(keys: &Keys, stored: &Stored<T>) -> Result<Item, StoreError> {
    let mut item = attributes(&stored.value)?;
    let id = crate::domain::id::Id::uuid(stored.value.id());
    item.extend(keys.record(T::KIND, id).item());
    item.insert(TYPE.to_owned(), AttributeValue::S(T::KIND.noun().to_owned()));
    item.insert(VERSION.to_owned(), AttributeValue::N(stored.version.to_string()));
    item.insert(CREATED_AT.to_owned(), AttributeValue::S(stored.created_at.to_string()));
    item.insert(UPDATED_AT.to_owned(), AttributeValue::S(stored.updated_at.to_string()));
    item.insert(LAST_HASH.to_owned(), AttributeValue::S(stored.last_hash.clone()));
    item.extend(Keys::list_index(T::KIND, id).map(|sort| (LS.to_owned(), sort)));
    Ok(item)
}

/// What an item weighs, by and large: its names and values, as DynamoDB counts them.
pub(super) fn weight(item: &Item) -> usize {
    item.iter().map(|(name, value)| name.len() + weight_of(value)).sum()
}

fn weight_of(value: &AttributeValue) -> usize {
    match value {
        AttributeValue::S(text) | AttributeValue::N(text) => text.len(),
        AttributeValue::B(blob) => blob.as_ref().len(),
        AttributeValue::L(list) => list.iter().map(|value| 4 + weight_of(value)).sum(),
        AttributeValue::M(map) => 4 + weight(map),
        _ => 1,
    }
}

/// Reads an item as a record.
pub(super) fn read<T: Record>(item: Item) -> Result<Stored<T>, StoreError> {
    let meta: Meta = from_item(item.clone()).map_err(StoreError::broken)?;
    let value: T = from_item(item).map_err(StoreError::broken)?;
    Ok(Stored {
        value,
        version: meta.version,
        created_at: meta.created_at,
        updated_at: meta.updated_at,
        last_hash: meta.last_hash,
        uses: meta.uses,
    })
}
