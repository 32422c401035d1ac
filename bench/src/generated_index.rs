//! An index `list_index` whose rows are generated when they are read: filling the embedded engine with a million assets
//! takes too long to do it often.

use aws_sdk_dynamodb::types::AttributeValue;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use serde_json::{Value, json};
use shared::store::keys::{BUCKETS, Item, Section};
use std::sync::{Arc, Mutex, PoisonError};

/// Rows of about 1 MB.
const PAGE_ROWS: usize = 3_600;
const ATTRIBUTES: [&str; 12] = [
    "PK",
    "SK",
    "LS",
    "name",
    "asset_tag",
    "serial_number",
    "status",
    "asset_type_id",
    "model_id",
    "manufacturer",
    "purchase_price",
    "updated_at",
];

/// Makes the item of a row, by the row's number.
type Rows = Box<dyn Fn(usize) -> Item + Send>;

/// An HTTP client that answers queries of a generated index, if there is one, and passes on every other request.
#[derive(Clone)]
pub struct GeneratedIndex {
    inner: SharedHttpClient,
    generated: Arc<Mutex<Option<(Rows, usize)>>>,
}

impl std::fmt::Debug for GeneratedIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("GeneratedIndex")
    }
}

impl GeneratedIndex {
    pub fn new(inner: SharedHttpClient) -> Self {
        Self { inner, generated: Arc::default() }
    }

    /// Answers queries of the index from now on, with `count` rows.
    pub fn set(&self, rows: impl Fn(usize) -> Item + Send + 'static, count: usize) {
        *self.generated.lock().unwrap_or_else(PoisonError::into_inner) = Some((Box::new(rows), count));
    }

    /// `None` unless the request is a query of the assets in the index.
    fn response(&self, request: &HttpRequest) -> Option<HttpResponse> {
        let generated = self.generated.lock().unwrap_or_else(PoisonError::into_inner);
        let (rows, count) = generated.as_ref()?;
        let query: Value = serde_json::from_slice(request.body().bytes()?).ok()?;
        let bound = |name: &str| query["ExpressionAttributeValues"][name]["S"].as_str().map(str::to_owned);
        let (from, to) = (bound(":from")?, bound(":to")?);
        if query["IndexName"] != "list_index" || !from.starts_with('A') {
            return None;
        }
        // The rows are in the order of their buckets.
        let bucket = |key: String| Section::Assets.bucket_number(&AttributeValue::S(key));
        let first_of = |bucket: usize| (bucket * count).div_ceil(BUCKETS);
        let start = match query["ExclusiveStartKey"]["SK"]["S"].as_str() {
            Some(last) => last.parse::<usize>().ok()? + 1,
            None => first_of(bucket(from)?),
        };
        let end = first_of(bucket(to)? + 1).min(*count);
        let next = end.min(start + PAGE_ROWS);
        let items: Vec<Value> = (start..next).map(|n| row(&rows(n))).collect();
        let mut body = json!({"Count": items.len(), "ScannedCount": items.len(), "Items": items});
        if next < end {
            let last = next - 1;
            let key = Section::Assets.bucket(last * BUCKETS / count);
            body["LastEvaluatedKey"] = json!({"PK": {"S": "-"}, "SK": {"S": last.to_string()}, "LS": {"S": key.as_s().ok()?}});
        }
        Some(HttpResponse::new(200.try_into().ok()?, SdkBody::from(body.to_string())))
    }
}

impl HttpClient for GeneratedIndex {
    fn http_connector(&self, settings: &HttpConnectorSettings, components: &RuntimeComponents) -> SharedHttpConnector {
        let inner = self.inner.http_connector(settings, components);
        SharedHttpConnector::new(Connector { inner, index: self.clone() })
    }
}

#[derive(Debug)]
struct Connector {
    inner: SharedHttpConnector,
    index: GeneratedIndex,
}

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        match self.index.response(&request) {
            Some(response) => HttpConnectorFuture::ready(Ok(response)),
            None => self.inner.call(request),
        }
    }
}

fn row(item: &Item) -> Value {
    let mut row = json!({"version": {"N": "1"}});
    for name in ATTRIBUTES {
        if let Some(AttributeValue::S(text)) = item.get(name) {
            row[name] = json!({"S": text});
        }
    }
    row
}
