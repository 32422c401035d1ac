//! Batches, imports and exports.

use super::{Client, Reply};
use serde_json::{Value, json};

impl Client {
    pub async fn batch(&self, path: &str, operations: &[Value]) -> Reply {
        self.post(path, json!({"operations": operations})).await
    }

    /// Creates assets, 20 per transaction.
    pub async fn create_all(&self, bodies: &[Value]) -> Vec<Value> {
        let mut created = Vec::new();
        for part in bodies.chunks(20) {
            let operations: Vec<Value> = part.iter().map(|body| json!({"op": "create", "body": body})).collect();
            let entries = self.batch("/assets/batch", &operations).await.data();
            created.extend(entries.as_array().unwrap().iter().map(|entry| entry["data"].clone()));
        }
        created
    }

    /// Imports CSV. `query` is empty or starts with `?`.
    pub async fn import(&self, path: &str, query: &str, csv: &str) -> Reply {
        self.send("POST", &format!("{path}/import{query}"), Some("text/csv"), csv.to_owned()).await
    }

    pub async fn import_once(&self, path: &str, csv: &str, key: &str) -> Reply {
        let headers = [("idempotency-key", key)];
        self.send_with("POST", &format!("{path}/import"), Some("text/csv"), csv.to_owned(), &headers).await
    }

    pub async fn export(&self, path: &str) -> Vec<String> {
        let mut parts = Vec::new();
        let mut next = Some(path.to_owned());
        while let Some(path) = next {
            let reply = self.get(&path).await;
            assert_eq!(reply.status.as_u16(), 200, "{}", reply.text());
            parts.push(reply.text().to_owned());
            let link = reply.header("link");
            next = link.strip_prefix("</v1").and_then(|link| link.strip_suffix(">; rel=\"next\"")).map(str::to_owned);
            assert_eq!(next.is_some(), !link.is_empty(), "{link}");
        }
        parts
    }
}

#[track_caller]
pub fn outcomes(reply: &Reply) -> Vec<String> {
    assert_eq!(reply.status.as_u16(), 200, "{}", reply.text());
    reply.data().as_array().unwrap().iter().map(|row| row["outcome"].as_str().unwrap().to_owned()).collect()
}

#[track_caller]
pub fn statuses(reply: &Reply) -> Vec<u64> {
    assert_eq!(reply.status.as_u16(), 200, "{}", reply.text());
    reply.data().as_array().unwrap().iter().map(|entry| entry["status"].as_u64().unwrap()).collect()
}

pub fn row_errors(reply: &Reply, row: usize) -> Vec<(String, String)> {
    let errors = reply.data()[row]["errors"].as_array().cloned().unwrap_or_default();
    let text = |error: &Value, name: &str| error[name].as_str().unwrap_or_default().to_owned();
    errors.iter().map(|error| (text(error, "column"), text(error, "detail"))).collect()
}

pub fn creations(asset_type: &str, values: &[Value]) -> Vec<Value> {
    let body = |list| json!({"name": "a", "asset_type_id": asset_type, "custom_fields": {"list": list}});
    values.iter().map(|list| json!({"op": "create", "body": body(list)})).collect()
}
