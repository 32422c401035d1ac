//! A service that gives the answers that a test has for its requests.

use super::KEY;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

#[derive(Debug, Clone)]
pub struct Request {
    /// Method and path below `/v1`, such as `GET /me`.
    pub route: String,
    pub query: BTreeMap<String, String>,
    /// An array if it has several lines of JSON.
    pub body: Value,
    pub idempotency_key: Option<String>,
}

impl Request {
    pub fn parameter(&self, name: &str) -> &str {
        self.query.get(name).map_or("", String::as_str)
    }
}

pub struct Answer {
    status: u16,
    content_type: &'static str,
    body: String,
    retry_after: Option<&'static str>,
    etag: Option<&'static str>,
}

impl Answer {
    pub fn new(content_type: &'static str, body: String) -> Self {
        Self { status: 200, content_type, body, retry_after: None, etag: None }
    }

    pub fn data(data: &Value) -> Self {
        Self::new("application/json", json!({"data": data}).to_string())
    }

    pub fn with_etag(self, etag: &'static str) -> Self {
        Self { etag: Some(etag), ..self }
    }

    pub fn problem(status: u16, code: &str, detail: &str) -> Self {
        let body = json!({"status": status, "code": code, "detail": detail}).to_string();
        Self { status, ..Self::new("application/problem+json", body) }
    }

    /// A problem document that asks to wait.
    pub fn busy(retry_after: &'static str) -> Self {
        Self { retry_after: Some(retry_after), ..Self::problem(503, "UNAVAILABLE", "Not now.") }
    }
}

type Script = Box<dyn Fn(&Request, usize) -> Answer + Send + Sync>;

struct Service {
    script: Script,
    requests: Mutex<Vec<Request>>,
}

pub struct Scripted {
    service: Arc<Service>,
    _runtime: Runtime,
    pub url: String,
}

impl Scripted {
    /// `script` has the answer for each request and its number, from 0.
    pub fn start(script: impl Fn(&Request, usize) -> Answer + Send + Sync + 'static) -> Self {
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let service = Arc::new(Service { script: Box::new(script), requests: Mutex::default() });
        let routes = Router::new().fallback(answer).with_state(Arc::clone(&service));
        runtime.spawn(async move { axum::serve(listener, routes).await });
        Self { service, _runtime: runtime, url }
    }

    pub fn requests(&self) -> Vec<Request> {
        self.service.requests.lock().unwrap().clone()
    }
}

fn lines(body: &[u8]) -> serde_json::Result<Value> {
    serde_json::Deserializer::from_slice(body).into_iter::<Value>().collect()
}

async fn answer(State(service): State<Arc<Service>>, method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    assert_eq!(headers["authorization"], format!("Bearer {KEY}"));
    let url = reqwest::Url::parse(&format!("http://x{uri}")).unwrap();
    let request = Request {
        route: format!("{method} {}", uri.path().strip_prefix("/v1").unwrap()),
        query: url.query_pairs().into_owned().collect(),
        body: serde_json::from_slice(&body).or_else(|_| lines(&body)).unwrap_or_default(),
        idempotency_key: headers.get("idempotency-key").map(|key| key.to_str().unwrap().to_owned()),
    };
    let number = {
        let mut requests = service.requests.lock().unwrap();
        requests.push(request.clone());
        requests.len() - 1
    };
    let Answer { status, content_type, body, retry_after, etag } = (service.script)(&request, number);
    let mut response = (StatusCode::from_u16(status).unwrap(), [("content-type", content_type)], body).into_response();
    for (name, value) in [("retry-after", retry_after), ("etag", etag)] {
        if let Some(value) = value {
            response.headers_mut().insert(name, value.parse().unwrap());
        }
    }
    response
}
