//! The service under attack: two tenants, the keys of one of them, and the resources that its requests can name.

use super::attack::{Attack, Sender};
use super::images;
use super::judge::{Judge, Reply};
use crate::service::ApiClient;
use crate::usage::UsageMeter;
use anyhow::{Context, Result, bail, ensure};
use aws_sdk_dynamodb::Client;
use axum::Router;
use axum::body::to_bytes;
use axum::http::StatusCode;
use key_encryption::FileKeyEncryption;
use local::engine::{self, Engine};
use local::server::{self, TABLE};
use local::{invariants, table};
use serde_json::{Value, json};
use shared::app::{App, system_clock};
use shared::domain::keys::api_key::MAX_RATE_LIMIT;
use shared::domain::keys::token::Token;
use shared::domain::signing::signature_image::data_url;
use shared::domain::values::id::{Id, TenantId};
use shared::store::Store;
use std::sync::Arc;
use tower::ServiceExt;

/// How many resources are kept for later requests.
const MAX_RESOURCES: usize = 200;

/// A text that only the other tenant's data contains.
const MARKER: &str = "marker-of-the-other-tenant";

/// A resource that requests can name.
pub struct Resource {
    /// The path of its collection, such as `/v1/assets`.
    pub collection: String,
    pub id: String,
}

impl Resource {
    /// Returns the resource at a path.
    fn at(path: &str) -> Option<Self> {
        let (collection, id) = path.rsplit_once('/')?;
        Some(Self { collection: collection.to_owned(), id: id.to_owned() })
    }
}

/// The key and the tenant that requests are sent for, and the other one, whose data must not be seen.
pub struct Target {
    client: ApiClient,
    reader: String,
    exhausted: String,
    stranger: String,
    /// The secret of a signing link.
    signer: String,
    tenant: TenantId,
    other: TenantId,
    store: Store,
    dynamo: Client,
    /// The tenant's own resources, the newest last.
    own: Vec<Resource>,
    /// The other tenant's resources.
    others: Vec<Resource>,
    /// The other tenant's items, as they were at the beginning.
    other_items: Vec<String>,
    _engine: Engine,
}

impl Target {
    /// Starts the service with its data in memory.
    pub async fn start() -> Result<Self> {
        let engine = Engine::start(None, ([127, 0, 0, 1], 0).into())?;
        let dynamo = Client::from_conf(engine::config(&engine.url).build());
        table::create(&dynamo, TABLE).await?;
        let store = Store::new(dynamo.clone(), TABLE, system_clock());
        let router = server::router(App::new(store.clone()).with_key_encryption(Some(Arc::new(FileKeyEncryption::in_memory()?))));
        let (other, other_client) = create_tenant(&store, &router, MARKER).await?;
        let (tenant, client) = create_tenant(&store, &router, "Attacked").await?;
        let others = fill(&other_client, MARKER).await?;
        let mut own = fill(&client, "Own").await?;
        let (link, signer) = create_link(&client, &own).await?;
        own.push(link);
        let reader = create_key(&client, json!({"name": "reader", "scopes": ["assets:read"]})).await?;
        let limited = json!({"name": "exhausted", "scopes": ["assets:read"], "rate_limit_per_minute": 1});
        let exhausted = create_key(&client, limited).await?;
        let stranger = {
            let admin = Token::parse(&client.api_key).context("the key can't be parsed")?;
            let other_secret = Token::parse(&reader).context("the key can't be parsed")?.secret;
            Token::new(tenant, admin.id, other_secret).expose()
        };
        let other_items = Vec::new();
        let mut target = Self {
            client,
            reader,
            exhausted,
            stranger,
            signer,
            tenant,
            other,
            store,
            dynamo,
            own,
            others,
            other_items,
            _engine: engine,
        };
        target.other_items = target.items_of_other().await?;
        Ok(target)
    }

    pub fn marker(&self) -> &'static str {
        MARKER
    }

    /// Returns the OpenAPI document, as the service serves it.
    pub async fn document(&self) -> Result<Value> {
        Ok(self.client.send("GET", "/openapi.json", "").await?.1)
    }

    /// Returns the resources that requests can name: the tenant's own, then the other tenant's.
    pub fn resources(&self) -> [&[Resource]; 2] {
        [&self.own, &self.others]
    }

    /// Creates a resource and returns its id.
    pub async fn create(&mut self, path: &str, body: &Value) -> Result<String> {
        create(&self.client, path, body).await
    }

    /// Sends a request and judges the response.
    pub async fn send(&mut self, sender: Sender, attack: &Attack, judge: &mut Judge) -> Result<()> {
        let key = match sender {
            Sender::Admin => Some(self.client.api_key.as_str()),
            Sender::Reader => Some(self.reader.as_str()),
            Sender::Exhausted => {
                // A new minute begins from time to time: this request uses it up.
                let limited = ApiClient { router: self.client.router.clone(), api_key: self.exhausted.clone() };
                limited.send("GET", "/assets?limit=1", "").await?;
                Some(self.exhausted.as_str())
            }
            Sender::Stranger => Some(self.stranger.as_str()),
            Sender::Signer => Some(self.signer.as_str()),
            Sender::Nobody => None,
        };
        let Some(request) = attack.request(key) else { return Ok(()) };
        let meter = UsageMeter::start()?;
        let response = self.client.router.clone().oneshot(request).await?;
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, usize::MAX).await?.to_vec();
        let usage = meter.usage()?;
        let reply = Reply { status: parts.status, headers: parts.headers, body };
        judge.add(sender, attack, &reply, usage);
        if sender == Sender::Admin && reply.status == StatusCode::CREATED {
            let location = reply.headers.get("location").and_then(|location| location.to_str().ok());
            self.own.extend(location.and_then(Resource::at));
            let surplus = self.own.len().saturating_sub(MAX_RESOURCES);
            self.own.drain(..surplus);
        }
        Ok(())
    }

    /// Checks that whatever was accepted can be read, that the tenant's invariants hold, and that the other tenant's items
    /// are as they were.
    pub async fn check(&self, judge: &mut Judge) -> Result<()> {
        for list in [
            "/assets",
            "/users",
            "/catalog/asset-types",
            "/catalog/manufacturers",
            "/catalog/models",
            "/keys",
            "/processes?status=all",
            "/processes/instances",
            "/movements",
        ] {
            self.read_all(list, judge).await?;
        }
        let (status, settings) = self.client.send("GET", "/settings", "").await?;
        if !status.is_success() {
            judge.faults.push(format!("the settings can't be read: {settings}"));
        }
        let violations = invariants::violations(&self.store.tenant(self.tenant), &self.dynamo, TABLE).await?;
        judge.faults.extend(violations.into_iter().map(|violation| format!("violated at the end: {violation}")));
        if self.items_of_other().await? != self.other_items {
            judge.faults.push("the other tenant's items have changed".to_owned());
        }
        Ok(())
    }

    /// Reads every page of a list, and each of its resources by itself.
    async fn read_all(&self, list: &str, judge: &mut Judge) -> Result<()> {
        let (path, separator) = (list.split('?').next().unwrap_or(list), if list.contains('?') { '&' } else { '?' });
        for page in 1.. {
            let (status, body) = self.client.send("GET", &format!("{list}{separator}page={page}&limit=100"), "").await?;
            if !status.is_success() {
                judge.faults.push(format!("{list} can't be read: {body}"));
                return Ok(());
            }
            let records = body["data"].as_array().map(Vec::as_slice).unwrap_or_default();
            for id in records.iter().filter_map(|record| record["id"].as_str()) {
                let (status, body) = self.client.send("GET", &format!("{path}/{id}"), "").await?;
                if !status.is_success() {
                    judge.faults.push(format!("{path}/{id} is in the list, but can't be read: {body}"));
                }
            }
            if records.is_empty() {
                return Ok(());
            }
        }
        bail!("{list} has no end")
    }

    /// Returns the other tenant's items but request counters, as sorted texts.
    async fn items_of_other(&self) -> Result<Vec<String>> {
        let partition = format!("T#{}", self.other.short());
        let mut items = Vec::new();
        let mut pages = self.dynamo.scan().table_name(TABLE).into_paginator().send();
        while let Some(page) = pages.next().await {
            for item in page?.items.unwrap_or_default() {
                if item.get("PK").and_then(|key| key.as_s().ok()) == Some(&partition) {
                    let sorted: std::collections::BTreeMap<_, _> = item.into_iter().collect();
                    items.push(format!("{sorted:?}"));
                }
            }
        }
        ensure!(!items.is_empty(), "the other tenant has no items");
        items.sort();
        Ok(items)
    }
}

async fn create_tenant(store: &Store, router: &Router, name: &str) -> Result<(TenantId, ApiClient)> {
    let created = store.create_tenant(name.parse()?, None, MAX_RATE_LIMIT).await?;
    Ok((created.tenant_id, ApiClient { router: router.clone(), api_key: created.api_key.expose() }))
}

async fn create_key(client: &ApiClient, body: Value) -> Result<String> {
    let (_, response) = client.send("POST", "/keys", &body.to_string()).await?;
    Ok(response["data"]["api_key"].as_str().with_context(|| format!("no key: {response}"))?.to_owned())
}

async fn create(client: &ApiClient, path: &str, body: &Value) -> Result<String> {
    let (_, response) = client.send("POST", path, &body.to_string()).await?;
    Ok(response["data"]["id"].as_str().with_context(|| format!("POST {path}: {response}"))?.to_owned())
}

/// Creates a signing link for the instance among these resources. Returns it with its secret.
async fn create_link(client: &ApiClient, resources: &[Resource]) -> Result<(Resource, String)> {
    let instance = resources.iter().find(|resource| resource.collection == "/v1/processes/instances").context("no instance")?;
    let links = format!("/processes/instances/{}/links", instance.id);
    let (_, response) = client.send("POST", &links, &json!({"signer": {"name": "Signer"}}).to_string()).await?;
    let text = |name: &str| response["data"][name].as_str().with_context(|| format!("POST {links}: {response}"));
    let (_, secret) = text("url")?.split_once('#').context("the link has no secret")?;
    Ok((Resource { collection: format!("/v1{links}"), id: text("id")?.to_owned() }, secret.to_owned()))
}

/// Creates resources of every kind, whose texts contain `word`. Returns them.
async fn fill(client: &ApiClient, word: &str) -> Result<Vec<Resource>> {
    let asset_type = json!({"name": format!("Type {word}"), "code": "LAP", "kind": "physical"});
    let asset_type = create(client, "/catalog/asset-types", &asset_type).await?;
    let manufacturer = create(client, "/catalog/manufacturers", &json!({"name": format!("Maker {word}"), "notes": word})).await?;
    let model = json!({"name": format!("Model {word}"), "manufacturer_id": manufacturer, "asset_type_id": asset_type});
    let model = create(client, "/catalog/models", &model).await?;
    let user = json!({"email": format!("{word}@example.com"), "display_name": format!("Ada {word}")});
    let user = create(client, "/users", &user).await?;
    let process = json!({
        "name": format!("Handover {word}"), "trigger_status": "in_stock", "target_status": "in_use",
        "steps": [
            {"type": "user_picker", "key": "who", "label": "Who"},
            {"type": "checklist", "key": "list", "label": "List", "items": ["a", "b"]},
            {"type": "select", "key": "option", "label": "Option", "options": ["x", "y"]},
            {"type": "date", "key": "day", "label": "Day"},
            {"type": "textarea", "key": "text", "label": "Text"},
            {"type": "signature", "key": "sign", "label": format!("Sign {word}")},
            {"type": "confirmation", "key": "sure", "label": "Sure"},
            {"type": "complete", "key": "done", "label": "Done"}
        ]
    });
    let process = create(client, "/processes", &process).await?;
    let mut assets = Vec::new();
    for n in 0..6 {
        let asset = json!({"name": format!("Laptop {n} {word}"), "model_id": model, "serial_number": format!("{word}-{n}")});
        assets.push(create(client, "/assets", &asset).await?);
    }
    let start = format!("/processes/{process}/start");
    let instance = create(client, &start, &json!({"asset_id": assets[0]})).await?;
    let image = data_url(&images::black(3, 2)?);
    let steps = json!({"step_data": {"who": user, "sign": image, "text": word}}).to_string();
    client.send("POST", &format!("/processes/instances/{instance}/advance"), &steps).await?;
    let movement = create(client, &start, &json!({"asset_ids": &assets[1..4]})).await?;
    let resources = [
        ("catalog/asset-types", asset_type),
        ("catalog/manufacturers", manufacturer),
        ("catalog/models", model),
        ("users", user),
        ("processes", process),
        ("processes/instances", instance),
        ("movements", movement),
    ]
    .into_iter()
    .chain(assets.into_iter().map(|id| ("assets", id)))
    .map(|(collection, id)| Resource { collection: format!("/v1/{collection}"), id })
    .collect();
    Ok(resources)
}
