//! Checks what must hold for a tenant's items at any time, even after faults and races.

mod checks;
mod history;

use anyhow::Result;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::AttributeValue;
use shared::domain::assets::asset::Asset;
use shared::domain::catalog::{AssetType, Manufacturer, Model};
use shared::domain::keys::api_key::ApiKey;
use shared::domain::processes::instance::Instance;
use shared::domain::processes::movement::Movement;
use shared::domain::processes::process::Process;
use shared::domain::receipts::key::ReceiptKeys;
use shared::domain::record::{Kind, Record, RequiredValue, Stored};
use shared::domain::signing::link::Link;
use shared::domain::tenants::tenant::Tenant;
use shared::domain::user::User;
use shared::domain::values::id::{EventId, Id};
use shared::domain::webhook::Webhook;
use shared::store::TenantStore;
use shared::store::keys::{Item, Key, Keys, LIST_INDEX};
use std::collections::HashMap;
use uuid::Uuid;

/// All items of a tenant, what its records imply about them, and the violations found so far.
struct Snapshot {
    keys: Keys,
    items: Vec<Item>,
    violations: Vec<String>,
    /// The number of references to each record, counted in the records that refer to it.
    references: HashMap<(Kind, Uuid), u64>,
    /// The reference item that each record must have, without its count.
    reference_items: HashMap<(Kind, Uuid), Item>,
    /// The key of each unique marker that must exist, with the key of the record that owns it.
    unique_markers: HashMap<Key, Key>,
    /// What each record says of its latest event.
    chain_heads: HashMap<Uuid, Head>,
    /// What the tombstone of each deleted record says of its latest event.
    tombstones: HashMap<Uuid, Head>,
}

/// The hash, the version and the id of a record's latest event.
#[derive(Debug, PartialEq)]
struct Head {
    hash: String,
    version: u64,
    event: EventId,
}

/// Checks a tenant and returns a description of each violation:
///
/// - Each unique value has its marker, and each marker its record. Only markers of asset tags outlive their record.
/// - Each record that others can refer to has a reference item, with the number of references to it and with what
///   references can require of it. No other reference items exist.
/// - The steps that a definition or an instance names exist.
/// - The events of each record form an unbroken chain that ends with the hash, the version and the event that the record
///   or, if it is deleted, its tombstone names.
/// - No asset tag or movement number is above its counter.
/// - An asset names its running process instance, and has at most one.
/// - The GSI `list_index` has a row for each listed record, with the record's values.
///
/// Nothing must write to the tenant at the same time.
///
/// # Errors
///
/// Returns an error when the table can't be read.
pub async fn violations(store: &TenantStore, client: &Client, table: &str) -> Result<Vec<String>> {
    let keys = Keys::of(store.id());
    let query = || client.query().table_name(table).key_condition_expression("PK = :pk");
    let items = read_all(query().consistent_read(true).expression_attribute_values(":pk", keys.partition())).await?;
    let rows = read_all(query().index_name(LIST_INDEX).expression_attribute_values(":pk", keys.partition())).await?;
    let mut snapshot = Snapshot {
        keys,
        items,
        violations: Vec::new(),
        references: HashMap::new(),
        reference_items: HashMap::new(),
        unique_markers: HashMap::new(),
        chain_heads: HashMap::new(),
        tombstones: HashMap::new(),
    };
    let assets = snapshot.add_records::<Asset>(store).await?;
    let instances = snapshot.add_records::<Instance>(store).await?;
    let movements = snapshot.add_records::<Movement>(store).await?;
    snapshot.add_records::<Tenant>(store).await?;
    snapshot.add_records::<ApiKey>(store).await?;
    snapshot.add_records::<User>(store).await?;
    snapshot.add_records::<AssetType>(store).await?;
    snapshot.add_records::<Manufacturer>(store).await?;
    snapshot.add_records::<Model>(store).await?;
    snapshot.add_records::<Process>(store).await?;
    snapshot.add_records::<ReceiptKeys>(store).await?;
    snapshot.add_records::<Link>(store).await?;
    snapshot.add_records::<Webhook>(store).await?;
    snapshot.add_tombstones();
    snapshot.check_references();
    snapshot.check_content();
    snapshot.check_unique_markers();
    snapshot.check_histories()?;
    snapshot.check_running_instances(&assets, &instances);
    snapshot.check_list_index(&rows);
    let tags = assets.iter().map(|asset| asset.value.asset_tag.as_str());
    snapshot.check_counters(tags.chain(movements.iter().map(|movement| movement.value.number.as_str())));
    Ok(snapshot.violations)
}

async fn read_all(query: QueryFluentBuilder) -> Result<Vec<Item>> {
    let mut items = Vec::new();
    let mut pages = query.into_paginator().send();
    while let Some(page) = pages.next().await {
        items.extend(page?.items.unwrap_or_default());
    }
    Ok(items)
}

/// Returns a string attribute of an item.
fn string<'a>(item: &'a Item, name: &str) -> Option<&'a str> {
    item.get(name)?.as_s().ok().map(String::as_str)
}

/// Returns a number attribute of an item.
fn number(item: &Item, name: &str) -> Option<u64> {
    item.get(name)?.as_n().ok()?.parse().ok()
}

fn attribute_value(value: RequiredValue) -> AttributeValue {
    match value {
        RequiredValue::Text(text) => AttributeValue::S(text),
        RequiredValue::Bool(flag) => AttributeValue::Bool(flag),
    }
}

impl Snapshot {
    /// Reads all records of a type, and adds what they imply.
    async fn add_records<T: Record>(&mut self, store: &TenantStore) -> Result<Vec<Stored<T>>> {
        let records = store.all::<T>().await?;
        for record in &records {
            let id = record.value.id().uuid();
            let key = self.keys.record(T::KIND, id);
            if let Some(attributes) = record.value.required_by_references() {
                let mut item = self.keys.references(T::KIND, id).item();
                item.insert("type".to_owned(), AttributeValue::S("references".to_owned()));
                item.extend(attributes.into_iter().map(|it| (it.attribute.to_owned(), attribute_value(it.value))));
                self.reference_items.insert((T::KIND, id), item);
            }
            let head = Head { hash: record.last_hash.clone(), version: record.version, event: record.last_event };
            self.chain_heads.insert(id, head);
            for unique in record.value.unique() {
                self.unique_markers.insert(self.keys.unique(T::KIND, &unique), key.clone());
            }
            for reference in record.value.references() {
                *self.references.entry((reference.kind, reference.id)).or_default() += 1;
            }
        }
        Ok(records)
    }
}
