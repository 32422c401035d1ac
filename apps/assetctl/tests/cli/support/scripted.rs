//! A service with scripted responses, and one with endless responses.

use super::{KEY, serve};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use tokio::runtime::Runtime;

/// Size at which an endless response ends after all, before a client that reads everything runs out of memory.
const END: u64 = 64 << 20;

#[derive(Debug, Clone)]
pub struct Request {
    /// Method and path below `/v1`, such as `GET /me`.
    pub route: String,
    pub query: BTreeMap<String, String>,
    /// The query with repeated parameters.
    pub pairs: Vec<(String, String)>,
    /// The JSON body, or an array for several lines of JSON.
    pub body: Value,
    pub bytes: Bytes,
    pub content_type: String,
    pub idempotency_key: Option<String>,
}

impl Request {
    pub fn parameter(&self, name: &str) -> &str {
        self.query.get(name).map_or("", String::as_str)
    }
}

pub struct Answer {
    status: u16,
    body: String,
    headers: Vec<(&'static str, String)>,
}

impl Answer {
    pub fn new(content_type: &str, body: String) -> Self {
        Self { status: 200, body, headers: vec![("content-type", content_type.to_owned())] }
    }

    /// Returns a response whose body is this document, without an envelope.
    pub fn json(document: &Value) -> Self {
        Self::new("application/json", document.to_string())
    }

    pub fn data(data: &Value) -> Self {
        Self::json(&json!({"data": data}))
    }

    pub fn with(mut self, header: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((header, value.into()));
        self
    }

    pub fn problem(status: u16, code: &str, detail: &str) -> Self {
        let body = json!({"status": status, "code": code, "detail": detail}).to_string();
        Self { status, ..Self::new("application/problem+json", body) }
    }

    /// Returns a problem document with one error.
    pub fn invalid(error: &Value) -> Self {
        let body = json!({"status": 422, "code": "VALIDATION_ERROR", "detail": "1 error.", "errors": [error]}).to_string();
        Self { status: 422, ..Self::new("application/problem+json", body) }
    }

    /// Returns a problem document with `Retry-After`.
    pub fn busy(retry_after: &str) -> Self {
        Self::problem(503, "UNAVAILABLE", "Not now.").with("retry-after", retry_after)
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
    /// Starts a service. `script` returns the response to each request, numbered from 0.
    pub fn start(script: impl Fn(&Request, usize) -> Answer + Send + Sync + 'static) -> Self {
        let service = Arc::new(Service { script: Box::new(script), requests: Mutex::default() });
        let (runtime, url) = serve(Router::new().fallback(answer).with_state(Arc::clone(&service)));
        Self { service, _runtime: runtime, url: url + "/v1" }
    }

    pub fn requests(&self) -> Vec<Request> {
        self.service.requests.lock().unwrap().clone()
    }

    pub fn posts(&self) -> Vec<Request> {
        self.requests().into_iter().filter(|request| request.route.starts_with("POST")).collect()
    }
}

fn lines(body: &[u8]) -> serde_json::Result<Value> {
    serde_json::Deserializer::from_slice(body).into_iter::<Value>().collect()
}

async fn answer(State(service): State<Arc<Service>>, method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    assert_eq!(headers["authorization"], format!("Bearer {KEY}"));
    let url = reqwest::Url::parse(&format!("http://x{uri}")).unwrap();
    let header = |name| headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap().to_owned());
    let request = Request {
        route: format!("{method} {}", uri.path().strip_prefix("/v1").unwrap()),
        query: url.query_pairs().into_owned().collect(),
        pairs: url.query_pairs().into_owned().collect(),
        body: serde_json::from_slice(&body).or_else(|_| lines(&body)).unwrap_or_default(),
        bytes: body,
        content_type: header("content-type").unwrap_or_default(),
        idempotency_key: header("idempotency-key"),
    };
    let number = {
        let mut requests = service.requests.lock().unwrap();
        requests.push(request.clone());
        requests.len() - 1
    };
    // Scripts can block, for example to delay a response.
    let Answer { status, body, headers } = tokio::task::block_in_place(|| (service.script)(&request, number));
    let mut response = (StatusCode::from_u16(status).unwrap(), body).into_response();
    for (name, value) in headers {
        response.headers_mut().insert(name, value.parse().unwrap());
    }
    response
}

/// A service whose responses don't end.
pub struct Endless {
    sent: Arc<AtomicU64>,
    pub url: String,
}

impl Endless {
    /// Starts a service. All responses have this media type, and a Content-Length if `is_announced`.
    pub fn start(content_type: &'static str, is_announced: bool) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let sent = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&sent);
        let length = if is_announced { "content-length: 3000000000" } else { "connection: close" };
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\n{length}\r\n\r\n");
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                // The write fails once the client closes the connection.
                let _ = answer_without_end(&mut stream.unwrap(), &head, &counter);
            }
        });
        Self { sent, url }
    }

    /// Whether a client has closed a connection before the end.
    pub fn is_cut_off(&self) -> bool {
        self.sent.load(Relaxed) < END
    }
}

fn answer_without_end(stream: &mut TcpStream, head: &str, sent: &AtomicU64) -> std::io::Result<()> {
    let mut request = [0; 4096];
    let _ = stream.read(&mut request)?;
    stream.write_all(head.as_bytes())?;
    let block = [b' '; 1 << 16];
    while sent.load(Relaxed) < END {
        stream.write_all(&block)?;
        sent.fetch_add(block.len() as u64, Relaxed);
    }
    Ok(())
}
