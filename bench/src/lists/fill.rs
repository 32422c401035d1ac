//! A tenant's assets, put straight into the table: through the API a million would take hours.

use crate::service::Service;
use anyhow::{Context, Result};
use aws_sdk_dynamodb::types::{AttributeValue, PutRequest, WriteRequest};
use chrono::TimeDelta;
use futures_util::{StreamExt, TryStreamExt, stream};
use local::server::TABLE;
use serde_json::json;
use shared::domain::id::{AssetId, Id, ModelId};
use shared::domain::record::Kind;
use shared::store::keys::{Item, Keys, LS};

/// How many models there are, so that every asset of a page has one of its own.
const MODELS: usize = 100;
/// What BatchWriteItem takes at once.
const BATCH: usize = 25;
/// How many batches are on their way at once.
const AT_ONCE: usize = 4;
const STATUSES: [&str; 6] = ["in_stock", "preparing", "in_use", "in_service", "returned", "scrapped"];

/// Makes `count` assets with a model each, the last of them an hour ago; gives how many bytes of text lists search.
pub async fn fill(service: &Service, count: usize) -> Result<usize> {
    let (models, sample) = catalog(service).await?;
    let keys = Keys::of(service.tenant);
    let first = service.store.now().plus(TimeDelta::hours(-1)).plus(TimeDelta::seconds(-i64::try_from(count)?));
    let make = |n: usize| -> Result<(usize, Item)> {
        let at = first.plus(TimeDelta::seconds(n.try_into()?));
        let id: AssetId = service.store.tenant(service.tenant).new_id(at)?;
        let texts = [
            ("name", format!("{} of room {:04}", ["ThinkPad X1", "Latitude 7450", "UltraSharp 27"][n % 3], n % 7919)),
            ("asset_tag", format!("AST-{n:07}")),
            ("serial_number", format!("SN{:010X}", n.wrapping_mul(2_654_435_761) % 0xFF_FFFF_FFFF)),
        ];
        let others = [
            ("id", id.to_string()),
            ("status", STATUSES[n % STATUSES.len()].to_owned()),
            ("model_id", models[n % MODELS].short()),
            ("created_at", at.to_string()),
            ("updated_at", at.to_string()),
        ];
        let text = texts.iter().map(|(_, text)| text.len()).sum();
        let mut item = sample.clone();
        item.extend(keys.record(Kind::Asset, id.uuid()).item());
        item.insert(LS.to_owned(), Keys::list_index(Kind::Asset, id.uuid()).context("assets are listed")?);
        item.extend(texts.into_iter().chain(others).map(|(name, text)| (name.to_owned(), AttributeValue::S(text))));
        Ok((text, item))
    };
    // The sample itself is one of them.
    let batches: Vec<usize> = (1..count).step_by(BATCH).collect();
    let written = stream::iter(batches).map(|from| {
        let made: Result<Vec<(usize, Item)>> = (from..count.min(from + BATCH)).map(make).collect();
        async move {
            let (texts, items): (Vec<usize>, Vec<Item>) = made?.into_iter().unzip();
            write(service, items).await?;
            Ok::<usize, anyhow::Error>(texts.iter().sum())
        }
    });
    written.buffer_unordered(AT_ONCE).try_fold(0, async |sum, texts| Ok(sum + texts)).await
}

/// Makes the catalog and one asset through the API; gives the models' ids, and the asset's item to copy.
async fn catalog(service: &Service) -> Result<(Vec<ModelId>, Item)> {
    let kind = json!({"name": "Laptop", "code": "LAP", "kind": "physical"});
    let asset_type = service.create("/catalog/asset-types", &kind).await?;
    let maker = service.create("/catalog/manufacturers", &json!({"name": "Dell"})).await?;
    let mut models = Vec::new();
    for n in 0..MODELS {
        let model = json!({"name": format!("Latitude {n:03}"), "manufacturer_id": maker, "asset_type_id": asset_type});
        models.push(service.create("/catalog/models", &model).await?.parse::<ModelId>()?);
    }
    let asset = json!({
        "name": "The first", "model_id": models[0], "serial_number": "SN0", "purchase_date": "2025-03-01",
        "purchase_price": 1849, "warranty_until": "2028-03-01", "notes": "Lies in the cupboard behind the door.",
        "custom_fields": {"ram_gb": 32, "disk_gb": 1024}
    });
    let id: AssetId = service.create("/assets", &asset).await?.parse()?;
    let key = Keys::of(service.tenant).record(Kind::Asset, id.uuid());
    let found = service.dynamo.get_item().table_name(TABLE).set_key(Some(key.item())).send().await?;
    Ok((models, found.item.context("the asset just made")?))
}

async fn write(service: &Service, items: Vec<Item>) -> Result<()> {
    let put = |item| Ok(WriteRequest::builder().put_request(PutRequest::builder().set_item(Some(item)).build()?).build());
    let mut left =
        Some(std::collections::HashMap::from([(TABLE.to_owned(), items.into_iter().map(put).collect::<Result<Vec<_>>>()?)]));
    while let Some(requests) = left.take().filter(|requests| !requests.is_empty()) {
        left = service.dynamo.batch_write_item().set_request_items(Some(requests)).send().await?.unprocessed_items;
    }
    Ok(())
}
