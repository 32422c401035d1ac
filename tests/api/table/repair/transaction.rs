//! One transaction of the service: the whole table before and after it.

use super::Damage;
use crate::support::{Api, Client, Reply, all_items};
use axum::http::StatusCode;
use serde_json::Value;
use shared::store::keys::{Item, Key};
use std::collections::BTreeMap;

/// The items of a table by partition and sort key, without request counters.
pub type Items = BTreeMap<(String, String), Item>;

/// A transaction and the service that committed it.
pub struct Transaction {
    pub api: Api,
    pub client: Client,
    pub before: Items,
    pub after: Items,
}

pub async fn items(api: &Api) -> Items {
    let text = |item: &Item, name: &str| item.get(name).and_then(|value| value.as_s().ok()).cloned().unwrap_or_default();
    let items = all_items(api).await.into_iter().filter(|item| text(item, "type") != "rate");
    items.map(|item| ((text(&item, "PK"), text(&item, "SK")), item)).collect()
}

impl Transaction {
    /// Commits a transaction: `act` sends the request.
    pub async fn commit<F: Future<Output = ()>>(api: Api, client: Client, act: impl FnOnce(Client) -> F) -> Self {
        client.use_key_once().await;
        let before = items(&api).await;
        act(client.clone()).await;
        let after = items(&api).await;
        assert_ne!(before, after, "nothing was written");
        Self { api, client, before, after }
    }

    /// Commits the change that a POST with an idempotency key makes.
    pub async fn post(api: Api, client: Client, path: &str, body: Value) -> Self {
        Self::commit(api, client, async |client| {
            let reply = client.send_json("POST", path, &body.to_string(), ("idempotency-key", "once")).await;
            assert!(reply.status.is_success(), "{} {}", reply.status, reply.text());
        })
        .await
    }

    /// Commits the change of a PATCH or a DELETE.
    pub async fn send(api: Api, client: Client, method: &str, path: &str, body: Value) -> Self {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        Self::commit(api, client, async |client| {
            let reply: Reply = client.send(method, path, Some("application/json"), body).await;
            assert!(matches!(reply.status, StatusCode::OK | StatusCode::NO_CONTENT), "{} {}", reply.status, reply.text());
        })
        .await
    }

    pub fn written(&self) -> Vec<(String, String)> {
        let keys = self.before.keys().chain(self.after.keys());
        let mut written: Vec<_> = keys.filter(|key| self.before.get(*key) != self.after.get(*key)).cloned().collect();
        written.sort();
        written.dedup();
        written
    }

    /// Each item as it was before the transaction, or missing.
    pub fn damages(&self) -> Vec<Damage> {
        let mut damages = Vec::new();
        for key in self.written() {
            let (before, after) = (self.before.get(&key).cloned(), self.after.get(&key).cloned());
            if after.is_some() && before.is_some() {
                damages.push(Damage { key: key.clone(), item: None });
            }
            damages.push(Damage { key, item: before });
        }
        damages
    }

    /// Afterwards, the table has all items of `wanted`, and no others.
    pub async fn set(&self, wanted: &Items) {
        let present = items(&self.api).await;
        for (key, item) in &present {
            if !wanted.contains_key(key) {
                let key = Key::of(item).unwrap().item();
                self.api.dynamo.delete_item().table_name(&self.api.table).set_key(Some(key)).send().await.unwrap();
            }
        }
        for (key, item) in wanted {
            if present.get(key) != Some(item) {
                self.api.dynamo.put_item().table_name(&self.api.table).set_item(Some(item.clone())).send().await.unwrap();
            }
        }
    }
}
