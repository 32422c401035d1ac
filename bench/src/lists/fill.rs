//! Writes a tenant's assets directly to the table: creating a million assets through the API would take hours.

use crate::service::Service;
use anyhow::{Context, Result};
use aws_sdk_dynamodb::types::{AttributeValue, PutRequest, WriteRequest};
use chrono::TimeDelta;
use dev_server::server::TABLE;
use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::{Map, Value, json};
use shared::domain::assets::asset::{ListedCustomFields, ListedFields};
use shared::domain::record::Kind;
use shared::domain::values::id::{AssetId, Id, ModelId};
use shared::domain::values::time::Timestamp;
use shared::store::keys::{Item, Keys, LS, SK, record_id_of_sort_key};
use std::collections::HashMap;
use std::ops::Range;

/// Number of models: large enough that all assets of a page have different models.
const MODEL_COUNT: usize = 100;
/// Maximum number of items in a BatchWriteItem request.
const BATCH_SIZE: usize = 25;
/// Number of assets, the newest ones, that [`fill_newest`] writes to the table. The others are only in the index.
const NEWEST: usize = 100;
/// Number of batches to write concurrently.
const CONCURRENT_BATCHES: usize = 4;
const STATUSES: [&str; 6] = ["in_stock", "preparing", "in_use", "in_service", "returned", "scrapped"];
const SITES: [&str; 4] = ["Berlin", "Hamburg", "Paris", "Vienna"];
const SYSTEMS: [Option<&str>; 5] = [Some("Windows 11"), Some("Windows 10"), Some("macOS 15"), Some("Ubuntu 24.04"), None];

pub struct Generator {
    keys: Keys,
    /// Creation time of the first asset. The other assets follow, one per second.
    first: Timestamp,
    models: Vec<ModelId>,
    sample: Item,
}

impl Generator {
    /// Creates the catalog and the first of `count` assets. The newest asset is an hour old.
    async fn new(service: &Service, count: usize) -> Result<Self> {
        let (models, sample) = catalog(service).await?;
        let first = service.store.now().plus(TimeDelta::hours(-1)).plus(TimeDelta::seconds(-i64::try_from(count)?));
        Ok(Self { keys: Keys::of(service.tenant), first, models, sample })
    }

    fn asset_id(&self, n: usize) -> AssetId {
        let at = self.first.plus(TimeDelta::seconds(n as i64));
        let random = (n as u128 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C834_u128 | 1).to_be_bytes();
        let mut bytes = [0; 10];
        bytes.copy_from_slice(&random[..10]);
        AssetId::new(at, bytes)
    }

    /// Returns the same item for the same number.
    pub fn asset(&self, n: usize) -> Item {
        let id = self.asset_id(n);
        let at = id.timestamp().to_string();
        let fields = custom_fields(n);
        let of_lists =
            [("location", place(n)), ("model", model_name(n % MODEL_COUNT)), ("purchase_date", day(2019, n * 104_729))];
        let listed = ListedFields { texts: of_lists.to_vec(), custom_fields: ListedCustomFields::of(&fields) }.into_text();
        let others = [
            ("id", id.to_string()),
            ("name", format!("{} of room {:04}", ["ThinkPad X1", "Latitude 7450", "UltraSharp 27"][n % 3], n % 7919)),
            ("asset_tag", format!("AST-{n:07}")),
            ("serial_number", serial_number(n)),
            ("status", STATUSES[n % STATUSES.len()].to_owned()),
            ("model_id", self.models[n % MODEL_COUNT].short()),
            ("custom_fields", Value::Object(fields).to_string()),
            ("created_at", at.clone()),
            ("updated_at", at),
        ];
        let texts = of_lists.into_iter().chain(others).chain(listed.map(|text| ("listed", text)));
        let mut item = self.sample.clone();
        item.extend(self.keys.record(Kind::Asset, id.uuid()).item());
        item.extend(Keys::list_index(Kind::Asset, id.uuid(), false).map(|key| (LS.to_owned(), key)));
        item.extend(texts.map(|(name, text)| (name.to_owned(), AttributeValue::S(text))));
        item
    }

    /// Returns the generated asset or the sample with this sort key; `None` if there is none.
    pub fn find(&self, sort_key: &str) -> Option<Item> {
        // The sample was created through the API. Its unique values place it on pages with generated assets.
        if self.sample.get(SK).and_then(|key| key.as_s().ok()).is_some_and(|key| key == sort_key) {
            return Some(self.sample.clone());
        }
        let id = AssetId::from_uuid(record_id_of_sort_key(Kind::Asset, sort_key)?);
        let number = usize::try_from((id.timestamp().millis() - self.first.millis()) / 1000).ok()?;
        (self.asset_id(number) == id).then(|| self.asset(number))
    }
}

fn model_name(n: usize) -> String {
    format!("Latitude {n:03}")
}

/// Returns one of 1,000 locations.
fn place(n: usize) -> String {
    format!("{} / {} / {}", SITES[n % SITES.len()], n / 4 % 10, n / 40 % 25)
}

/// Returns a day in the five years that start with `year`.
fn day(year: usize, n: usize) -> String {
    format!("{}-{:02}-{:02}", year + n % 5, n / 5 % 12 + 1, n / 60 % 28 + 1)
}

/// Returns two fields with few values, a date, a number, and a field that is unique per asset. Every fifth asset lacks one of the
/// first two fields.
fn custom_fields(n: usize) -> Map<String, Value> {
    let fields = [
        ("cost_center", json!((4_700 + n % 60).to_string())),
        ("hostname", json!(hostname(n))),
        ("leased_until", json!(day(2024, n * 7_919))),
        ("os", json!(SYSTEMS[n % SYSTEMS.len()])),
        ("weight_g", json!(900 + n * 7_919 % 2_000)),
    ];
    fields.map(|(name, value)| (name.to_owned(), value)).into_iter().collect()
}

pub fn serial_number(n: usize) -> String {
    format!("SN{:010X}", n.wrapping_mul(2_654_435_761) % 0xFF_FFFF_FFFF)
}

pub fn hostname(n: usize) -> String {
    format!("LT-{n:07}")
}

pub async fn fill(service: &Service, count: usize) -> Result<()> {
    let generator = Generator::new(service, count).await?;
    // The sample counts as the first asset.
    write(service, &generator, 1..count).await
}

/// Creates the newest of `count` assets. Returns the generator for all assets.
pub async fn fill_newest(service: &Service, count: usize) -> Result<Generator> {
    let generator = Generator::new(service, count).await?;
    write(service, &generator, count - NEWEST..count).await?;
    Ok(generator)
}

async fn write(service: &Service, generator: &Generator, numbers: Range<usize>) -> Result<()> {
    let end = numbers.end;
    let batches: Vec<usize> = numbers.step_by(BATCH_SIZE).collect();
    let written = stream::iter(batches).map(|from| {
        let items: Vec<Item> = (from..end.min(from + BATCH_SIZE)).map(|n| generator.asset(n)).collect();
        write_batch(service, items)
    });
    written.buffer_unordered(CONCURRENT_BATCHES).try_collect().await
}

/// Creates the catalog and one asset through the API; returns the models' IDs, and the asset's item as a sample to copy.
async fn catalog(service: &Service) -> Result<(Vec<ModelId>, Item)> {
    let body = json!({"name": "Laptop", "code": "LAP", "kind": "physical"});
    let asset_type = service.create("/catalog/asset-types", &body).await?;
    let manufacturer = service.create("/catalog/manufacturers", &json!({"name": "Dell"})).await?;
    let mut models = Vec::new();
    for n in 0..MODEL_COUNT {
        let model = json!({"name": model_name(n), "manufacturer_id": manufacturer, "asset_type_id": asset_type});
        models.push(service.create("/catalog/models", &model).await?.parse::<ModelId>()?);
    }
    let asset = json!({
        "name": "The first", "model_id": models[0], "serial_number": "SN0", "purchase_date": "2025-03-01",
        "purchase_price": 1849, "warranty_until": "2028-03-01", "notes": "Stored in the cupboard behind the door.",
        "custom_fields": custom_fields(0)
    });
    let id: AssetId = service.create("/assets", &asset).await?.parse()?;
    let key = Keys::of(service.tenant).record(Kind::Asset, id.uuid());
    let found = service.dynamo.get_item().table_name(TABLE).set_key(Some(key.item())).send().await?;
    Ok((models, found.item.context("the new asset is not in the table")?))
}

async fn write_batch(service: &Service, items: Vec<Item>) -> Result<()> {
    let put = |item| Ok(WriteRequest::builder().put_request(PutRequest::builder().set_item(Some(item)).build()?).build());
    let requests = items.into_iter().map(put).collect::<Result<Vec<_>>>()?;
    let mut unprocessed = Some(HashMap::from([(TABLE.to_owned(), requests)]));
    while let Some(requests) = unprocessed.take().filter(|requests| !requests.is_empty()) {
        unprocessed = service.dynamo.batch_write_item().set_request_items(Some(requests)).send().await?.unprocessed_items;
    }
    Ok(())
}
