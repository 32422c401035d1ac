//! A client of the API, and its responses.

use super::document::check_described;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use dev_server::test_data::made_up_key;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use shared::domain::keys::api_key::{Secret, Token};
use shared::domain::values::id::TenantId;
use shared::domain::values::json::parse;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use tower::ServiceExt;

/// Paths are given without `/v1`.
#[derive(Clone)]
pub struct Client {
    pub router: Router,
    /// If empty, no `Authorization` header is sent.
    pub key: String,
    pub tenant: TenantId,
    /// Keeps the table's engine running until the last client is dropped.
    #[expect(dead_code, reason = "only dropping it has an effect")]
    pub table: Option<Arc<dyn Any + Send + Sync>>,
    /// The clock of `Api`, in milliseconds. A deployed API has its own clock.
    pub clock: Arc<AtomicI64>,
}

impl Client {
    pub async fn send(&self, method: &str, path: &str, content_type: Option<&str>, body: impl Into<Body>) -> Reply {
        self.send_with(method, path, content_type, body, &[]).await
    }

    pub async fn send_with(
        &self,
        method: &str,
        path: &str,
        content_type: Option<&str>,
        body: impl Into<Body>,
        headers: &[(&str, &str)],
    ) -> Reply {
        let mut request = Request::builder().method(method).uri(format!("/v1{path}"));
        if !self.key.is_empty() {
            request = request.header("authorization", format!("Bearer {}", self.key));
        }
        if let Some(content_type) = content_type {
            request = request.header("content-type", content_type);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        call(&self.router, request.body(body.into()).unwrap()).await
    }

    /// Sends JSON, or no body if `body` is empty.
    pub async fn send_json(&self, method: &str, path: &str, body: &str, header: (&str, &str)) -> Reply {
        self.send_with(method, path, Some("application/json"), body.to_owned(), &[header]).await
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.send("GET", path, None, Body::empty()).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Reply {
        self.post_text(path, &body.to_string()).await
    }

    pub async fn post_text(&self, path: &str, body: &str) -> Reply {
        self.send("POST", path, Some("application/json"), body.to_owned()).await
    }

    pub async fn post_once(&self, path: &str, body: &Value, key: &str) -> Reply {
        self.send_json("POST", path, &body.to_string(), ("idempotency-key", key)).await
    }

    pub async fn patch(&self, path: &str, body: Value) -> Reply {
        self.send("PATCH", path, Some("application/json"), body.to_string()).await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Reply {
        self.send("PUT", path, Some("application/json"), body.to_string()).await
    }

    pub async fn delete(&self, path: &str) -> Reply {
        self.send("DELETE", path, None, Body::empty()).await
    }

    /// Sends a request, so that later ones don't write the key's `last_used_at`.
    pub async fn use_key_once(&self) {
        self.get("/settings").await.data();
    }

    pub fn with_key(&self, key: &str) -> Self {
        Self { key: key.to_owned(), ..self.clone() }
    }

    /// Returns a client with a key that this tenant never created.
    pub fn stranger(&self) -> Self {
        self.with_key(&made_up_key(self.tenant))
    }

    /// Returns a client with this key's ID and a wrong secret.
    pub fn impostor(&self) -> Self {
        let Token { tenant, id, .. } = Token::parse(&self.key).unwrap();
        self.with_key(&Token::new(tenant, id, Secret::new([7; 32])).expose())
    }

    /// Reads the key from the response that created or rotated it.
    #[track_caller]
    pub fn with_key_of(&self, key: &Value) -> Self {
        self.with_key(key["api_key"].as_str().expect("a key"))
    }

    pub async fn with_new_key(&self, body: Value) -> Self {
        self.with_key_of(&self.post("/keys", body).await.data())
    }

    pub async fn scoped(&self, scopes: &[&str]) -> Self {
        self.with_new_key(json!({"name": "scoped", "scopes": scopes})).await
    }

    pub async fn user(&self, name: &str) -> String {
        let email = format!("{}@example.com", name.to_lowercase().replace(' ', "."));
        self.post("/users", json!({"email": email, "display_name": name})).await.id()
    }

    pub async fn asset_type(&self, name: &str, code: &str, kind: &str) -> String {
        self.post("/catalog/asset-types", json!({"name": name, "code": code, "kind": kind})).await.id()
    }

    pub async fn type_with_schema(&self, name: &str, code: &str, schema: Value) -> String {
        let body = json!({"name": name, "code": code, "kind": "physical", "custom_fields_schema": schema});
        self.post("/catalog/asset-types", body).await.id()
    }

    /// Creates a model and its manufacturer. Returns the model's ID.
    pub async fn model(&self, manufacturer: &str, name: &str, asset_type: &str) -> String {
        let manufacturer = self.post("/catalog/manufacturers", json!({"name": manufacturer})).await.id();
        let body = json!({"name": name, "manufacturer_id": manufacturer, "asset_type_id": asset_type});
        self.post("/catalog/models", body).await.id()
    }

    pub async fn asset(&self, body: Value) -> String {
        self.post("/assets", body).await.id()
    }

    pub async fn assigned_asset(&self, name: &str, user: &str) -> String {
        let id = self.asset(json!({"name": name})).await;
        self.patch(&format!("/assets/{id}"), json!({"assigned_to": user})).await.data();
        id
    }

    /// Creates assets named `a0`, `a1` and so on. Returns their IDs.
    pub async fn assets(&self, count: usize) -> Vec<String> {
        let bodies: Vec<Value> = (0..count).map(|n| json!({"name": format!("a{n}")})).collect();
        self.create_all(&bodies).await.iter().map(|asset| asset["id"].as_str().unwrap().to_owned()).collect()
    }

    pub async fn total(&self, path: &str) -> u64 {
        let reply = self.get(path).await;
        reply.json()["meta"]["total"].as_u64().unwrap_or_else(|| panic!("{path} has no total: {}", reply.text()))
    }
}

/// Sends a request, and checks the response against the OpenAPI document.
pub async fn call(router: &Router, request: Request<Body>) -> Reply {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let response = router.clone().oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    let reply = Reply { status: parts.status, headers: parts.headers, bytes };
    check_described(method.as_str(), &path, &reply);
    reply
}

/// A response, read to its end.
#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub bytes: Bytes,
}

impl Reply {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes).unwrap()
    }

    pub fn json(&self) -> Value {
        // Unlike `serde_json::from_str`, `parse` treats members named `$serde_json::private::…` as data.
        parse(self.text()).unwrap_or_else(|_| panic!("not JSON: {:?}", self.text()))
    }

    /// Returns an empty text if the header is missing.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }

    /// Fails unless the request succeeded.
    #[track_caller]
    pub fn data(&self) -> Value {
        assert!(self.status.is_success(), "{} {}", self.status, self.text());
        self.json()["data"].clone()
    }

    /// Fails unless the request succeeded.
    #[track_caller]
    pub fn id(&self) -> String {
        self.data()["id"].as_str().expect("an ID").to_owned()
    }

    /// Fails unless the body is a problem document with this status and code.
    #[track_caller]
    pub fn problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.text());
        assert_eq!(self.header("content-type"), "application/problem+json");
        let problem = self.json();
        assert_eq!(problem["code"], code, "{problem}");
        assert_eq!(problem["status"], status);
        assert_eq!(problem["error"], problem["title"]);
        assert_eq!(problem["type"], format!("urn:problem:{}", code.to_lowercase().replace('_', "-")));
        assert_eq!(problem["request_id"], self.header("x-request-id"));
        problem
    }

    /// Fails unless the response is a 422. Returns the sorted locations of its errors: JSON Pointers, or names of parameters,
    /// headers or columns.
    #[track_caller]
    pub fn field_errors(&self) -> Vec<String> {
        let problem = self.problem(422, "VALIDATION_ERROR");
        let location = |error: &Value| {
            let names = ["pointer", "parameter", "header", "column"];
            names.iter().find_map(|name| error[*name].as_str()).unwrap_or_default().to_owned()
        };
        let mut locations: Vec<String> = problem["errors"].as_array().unwrap().iter().map(location).collect();
        locations.sort();
        locations
    }
}
