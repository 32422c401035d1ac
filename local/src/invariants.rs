//! What must hold for a tenant's part of the table at any moment, whatever failed or raced before.

use anyhow::{Context, Result};
use aws_sdk_dynamodb::Client;
use serde_json::Value;
use shared::domain::api_key::ApiKey;
use shared::domain::asset::Asset;
use shared::domain::catalog::{AssetType, Manufacturer, Model};
use shared::domain::event::hash;
use shared::domain::id::Id;
use shared::domain::instance::{Instance, InstanceStatus};
use shared::domain::movement::Movement;
use shared::domain::process::Process;
use shared::domain::receipt_key::ReceiptKeys;
use shared::domain::record::{Kind, Record, Stored};
use shared::domain::tenant::Tenant;
use shared::domain::user::User;
use shared::store::TenantStore;
use shared::store::keys::{Item, Key, Keys, LIST_INDEX};
use std::collections::{BTreeMap, HashMap};
use uuid::Uuid;

/// Attributes that every row of the index `list_index` must have as the record has them, where it has them.
const ROW: [&str; 4] = ["version", "updated_at", "status", "name"];

/// What one look at a tenant found.
struct Look {
    keys: Keys,
    items: Vec<Item>,
    wrong: Vec<String>,
    /// How many references there are to each thing.
    references: HashMap<(Kind, Uuid), u64>,
    /// How many references each thing counts.
    uses: HashMap<(Kind, Uuid), u64>,
    /// The owner of each value that must be taken: marker by marker.
    markers: HashMap<Key, Key>,
    /// The hash and the version that each record ends with.
    ends: HashMap<Uuid, (String, u64)>,
}

/// Checks, and gives every violation in words:
///
/// - each value that must be unique has its marker, and no marker is without its thing, but for tags, which stay taken;
/// - each thing counts as many references as there are to it;
/// - events form one unbroken chain for each thing, which ends with the record's own hash and version;
/// - no number of a tag, or of a movement, is above its counter;
/// - an asset has a running run if, and only if, one names it, and never two;
/// - the index `list_index` has a row for each listed thing, with what the thing has.
///
/// Nothing may write meanwhile.
///
/// # Errors
///
/// The table.
pub async fn violations(store: &TenantStore, client: &Client, table: &str) -> Result<Vec<String>> {
    let keys = Keys::of(store.id());
    let query = client.query().table_name(table).consistent_read(true).key_condition_expression("PK = :pk");
    let items = pages(query.expression_attribute_values(":pk", keys.partition())).await?;
    let query = client.query().table_name(table).index_name(LIST_INDEX).key_condition_expression("PK = :pk");
    let rows = pages(query.expression_attribute_values(":pk", keys.partition())).await?;
    let mut look = Look {
        keys,
        items,
        wrong: Vec::new(),
        references: HashMap::new(),
        uses: HashMap::new(),
        markers: HashMap::new(),
        ends: HashMap::new(),
    };
    let assets = look.records::<Asset>(store).await?;
    let runs = look.records::<Instance>(store).await?;
    look.records::<Tenant>(store).await?;
    look.records::<ApiKey>(store).await?;
    look.records::<User>(store).await?;
    look.records::<AssetType>(store).await?;
    look.records::<Manufacturer>(store).await?;
    look.records::<Model>(store).await?;
    look.records::<Process>(store).await?;
    look.records::<ReceiptKeys>(store).await?;
    let movements = look.records::<Movement>(store).await?;
    look.counts();
    look.marks();
    look.chains()?;
    look.running(&assets, &runs);
    look.rows(&rows);
    let tags = assets.iter().map(|asset| asset.value.asset_tag.as_str());
    look.numbers(tags.chain(movements.iter().map(|movement| movement.value.number.as_str())));
    Ok(look.wrong)
}

async fn pages(query: aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder) -> Result<Vec<Item>> {
    let mut items = Vec::new();
    let mut pages = query.into_paginator().send();
    while let Some(page) = pages.next().await {
        items.extend(page?.items.unwrap_or_default());
    }
    Ok(items)
}

fn text<'a>(item: &'a Item, name: &str) -> Option<&'a str> {
    item.get(name)?.as_s().ok().map(String::as_str)
}

fn number(item: &Item, name: &str) -> Option<u64> {
    item.get(name)?.as_n().ok()?.parse().ok()
}

impl Look {
    async fn records<T: Record>(&mut self, store: &TenantStore) -> Result<Vec<Stored<T>>> {
        let all = store.all::<T>().await?;
        for record in &all {
            let id = record.value.id().uuid();
            let key = self.keys.record(T::KIND, id);
            self.uses.insert((T::KIND, id), record.uses);
            self.ends.insert(id, (record.last_hash.clone(), record.version));
            for unique in record.value.unique() {
                self.markers.insert(self.keys.unique(T::KIND, &unique), key.clone());
            }
            for reference in record.value.references() {
                *self.references.entry((reference.kind, reference.id)).or_default() += 1;
            }
        }
        Ok(all)
    }

    fn counts(&mut self) {
        for (thing, count) in &self.references {
            if self.uses.get(thing) != Some(count) {
                self.wrong.push(format!("{thing:?} is pointed to {count} times and counts {:?}", self.uses.get(thing)));
            }
        }
        for (thing, count) in &self.uses {
            if *count > 0 && !self.references.contains_key(thing) {
                self.wrong.push(format!("{thing:?} counts {count} references, and there are none"));
            }
        }
    }

    fn marks(&mut self) {
        let mut left = std::mem::take(&mut self.markers);
        for item in self.items.iter().filter(|item| text(item, "type") == Some("marker")) {
            let key = Key::of(item);
            let owner = key.as_ref().and_then(|key| left.remove(key));
            let stays = key.as_ref().is_some_and(|key| key.sort().contains(".asset_tag#"));
            let named = text(item, "owner");
            if owner.as_ref().map(Key::sort) != named && !(owner.is_none() && stays) {
                self.wrong.push(format!("the marker {key:?} names {named:?}; its thing is {owner:?}"));
            }
        }
        self.wrong.extend(left.into_iter().map(|(marker, owner)| format!("{owner:?} lacks its marker {marker:?}")));
    }

    fn chains(&mut self) -> Result<()> {
        let mut chains: BTreeMap<String, Vec<(Value, String, String)>> = BTreeMap::new();
        for item in self.items.iter().filter(|item| text(item, "type") == Some("event")) {
            let entry = text(item, "entry").context("an event without an entry")?;
            let event: Value = serde_json::from_str(entry)?;
            let stored = text(item, "hash").context("an event without a hash")?.to_owned();
            let entity = event["entity_id"].as_str().context("an event of nothing")?.to_owned();
            chains.entry(entity).or_default().push((event, hash(entry), stored));
        }
        for (entity, mut chain) in chains {
            chain.sort_by_key(|(event, ..)| event["version"].as_u64());
            let mut previous = Value::Null;
            for (place, (event, computed, stored)) in chain.iter().enumerate() {
                if event["version"] != place + 1 || event["previous_hash"] != previous || computed != stored {
                    self.wrong.push(format!("the chain of {entity} breaks at its event {}", place + 1));
                    break;
                }
                previous = Value::String(stored.clone());
            }
            let deleted = chain.last().is_some_and(|(event, ..)| event["type"].as_str().is_some_and(|t| t.ends_with(".deleted")));
            let end = self.ends.remove(&entity.parse::<Uuid>()?);
            let own = chain.last().map(|(event, _, stored)| (stored.clone(), event["version"].as_u64().unwrap_or(0)));
            if end != own.filter(|_| !deleted) {
                self.wrong.push(format!("{entity} ends with {end:?}, and its chain does not"));
            }
        }
        self.wrong.extend(self.ends.drain().map(|(id, _)| format!("{id} has no events")));
        Ok(())
    }

    fn running(&mut self, assets: &[Stored<Asset>], runs: &[Stored<Instance>]) {
        let mut open: HashMap<Uuid, Uuid> = HashMap::new();
        for run in runs.iter().filter(|run| run.value.status() == InstanceStatus::InProgress) {
            if open.insert(run.value.asset_id.uuid(), run.value.id.uuid()).is_some() {
                self.wrong.push(format!("two runs on the asset {}", run.value.asset_id));
            }
        }
        for asset in assets {
            let named = asset.value.running_instance_id.map(Id::uuid);
            let there = open.remove(&asset.value.id.uuid());
            if named != there {
                self.wrong.push(format!("the asset {} names the run {named:?}, and {there:?} runs", asset.value.id));
            }
        }
        self.wrong.extend(open.into_iter().map(|(asset, run)| format!("{run} runs on {asset}, which is not there")));
    }

    fn rows(&mut self, rows: &[Item]) {
        let mut listed: HashMap<Key, &Item> =
            self.items.iter().filter(|item| item.contains_key("LS")).filter_map(|item| Some((Key::of(item)?, item))).collect();
        for row in rows {
            let item = Key::of(row).and_then(|key| listed.remove(&key));
            let same = |item: &&Item| ROW.iter().all(|name| row.get(*name) == item.get(*name));
            if item.filter(same).is_none() {
                self.wrong.push(format!("the index has {:?} otherwise than the table", Key::of(row)));
            }
        }
        self.wrong.extend(listed.into_keys().map(|key| format!("the index lacks {key:?}")));
    }

    /// A number ends its tag wherever it can: `AST-000123` counts at `AST-{N}`.
    fn numbers<'a>(&mut self, tags: impl Iterator<Item = &'a str>) {
        let mut last: HashMap<String, u64> = HashMap::new();
        for item in &self.items {
            let counter = Key::of(item).and_then(|key| Some(key.sort().strip_prefix("SEQUENCE#")?.to_owned()));
            let movements = Key::of(item).filter(|key| key.sort().starts_with("NUMBER#")).map(|_| "MOV-{N}".to_owned());
            if let Some(counter) = counter.or(movements) {
                last.insert(counter, number(item, "last_number").unwrap_or(0));
            }
        }
        for tag in tags {
            let digits = tag.len() - tag.trim_end_matches(|c: char| c.is_ascii_digit()).len();
            let (head, digits) = tag.split_at(tag.len() - digits);
            let counted = last.get(&format!("{head}{{N}}"));
            if let (Some(counted), Ok(given)) = (counted, digits.parse::<u64>())
                && given > *counted
            {
                self.wrong.push(format!("{tag} was given, and its counter stands at {counted}"));
            }
        }
    }
}
