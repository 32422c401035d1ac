//! The dev server's process, requests to it, and receivers of its webhooks.

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Error, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// Enough time for everything on a busy machine.
const LONG: Duration = Duration::from_secs(60);

pub fn until<T>(what: &str, mut value: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = value() {
            return value;
        }
        assert!(start.elapsed() < LONG, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[derive(Clone)]
pub struct Client {
    address: String,
    key: String,
}

/// A running dev server, which is killed when dropped.
pub struct Server {
    child: Child,
    pub client: Client,
}

pub struct Webhook {
    pub id: String,
    pub secret: String,
}

impl Server {
    /// Starts a server with its data in this folder, which permits webhooks on this machine.
    pub fn start(folder: &TempDir) -> Self {
        Self::start_with(folder, &["--allow-local-webhooks", "--data", path(folder, "data").to_str().unwrap()])
    }

    pub fn start_with(folder: &TempDir, options: &[&str]) -> Self {
        let (ready, log) = (path(folder, "ready.json"), File::options().create(true).append(true).open(path(folder, "log")));
        // A killed server leaves its ready file behind.
        let _ = std::fs::remove_file(&ready);
        let mut command = Command::new(env!("CARGO_BIN_EXE_asset-lifecycle-dev"));
        command.args(["--addr", "127.0.0.1:0", "--empty", "--log", "json", "--ready-file", ready.to_str().unwrap()]);
        command.args(options).env_remove("RUST_LOG").stdout(Stdio::null()).stderr(log.unwrap());
        let mut child = command.spawn().unwrap();
        let ready: Value = until("the server is ready", || {
            assert_eq!(child.try_wait().unwrap(), None, "{}", log_of(folder));
            serde_json::from_slice(&std::fs::read(&ready).ok()?).ok()
        });
        Self { child, client: Client::new(ready["base_url"].as_str().unwrap(), ready["api_key"].as_str().unwrap()) }
    }

    /// Kills the server, like `kill -9`.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn terminate(mut self) -> Duration {
        let start = Instant::now();
        assert!(Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap().success());
        let status = until("the server exits", || self.child.try_wait().unwrap());
        assert!(status.success(), "{status}");
        start.elapsed()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Client {
    pub fn new(base_url: &str, key: &str) -> Self {
        let address = base_url.trim_start_matches("http://").trim_end_matches("/v1");
        Self { address: address.to_owned(), key: key.to_owned() }
    }

    /// Returns the response's status and body. Fails if the server ends before it responds.
    pub fn try_send(&self, method: &str, path: &str, body: &Value) -> io::Result<(u16, Value)> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.exchange(method, path, "application/json", &body)
    }

    /// Sends a whole request as it is. Returns the whole response.
    pub fn send_text(&self, request: &str) -> io::Result<String> {
        let mut connection = TcpStream::connect(&self.address)?;
        connection.write_all(request.as_bytes())?;
        let mut response = String::new();
        connection.read_to_string(&mut response)?;
        Ok(response)
    }

    /// Like [`Client::try_send`], with a body of any type.
    pub fn exchange(&self, method: &str, path: &str, content_type: &str, body: &str) -> io::Result<(u16, Value)> {
        let response = self.send_text(&format!(
            "{method} /v1{path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: Bearer {}\r\n\
             content-type: {content_type}\r\ncontent-length: {}\r\n\r\n{body}",
            self.key,
            body.len(),
        ))?;
        let (head, body) = response.split_once("\r\n\r\n").ok_or_else(|| Error::other("the response is cut off"))?;
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let body = if body.is_empty() { Value::Null } else { serde_json::from_str(body).map_err(Error::other)? };
        Ok((status.ok_or_else(|| Error::other("the response has no status"))?, body))
    }

    /// Sends a request, which must succeed.
    pub fn send(&self, method: &str, path: &str, body: &Value) -> Value {
        let (status, response) = self.try_send(method, path, body).unwrap();
        assert!((200..300).contains(&status), "{method} {path}: {status} {response}");
        response
    }

    pub fn create_asset(&self, name: &str) -> String {
        self.send("POST", "/assets", &json!({"name": name}))["data"]["id"].as_str().unwrap().to_owned()
    }

    pub fn create_webhook(&self, url: &str) -> Webhook {
        let webhook = self.send("POST", "/webhooks", &json!({"url": url, "events": ["asset.*"]}));
        let text = |name: &str| webhook["data"][name].as_str().unwrap().to_owned();
        Webhook { id: text("id"), secret: text("secret") }
    }

    pub fn deliveries(&self, webhook: &Webhook) -> Vec<Value> {
        let path = format!("/webhooks/{}/deliveries?limit=100", webhook.id);
        self.send("GET", &path, &Value::Null)["data"].as_array().unwrap().clone()
    }

    /// Reads the whole change feed, and returns the events of assets once `are_complete` accepts them.
    pub fn asset_events(&self, are_complete: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        // The feed shows an event only once no earlier event can appear.
        until("the change feed has all events", || {
            let (mut events, mut after) = (Vec::new(), String::new());
            loop {
                let page = self.send("GET", &format!("/events?limit=100{after}"), &Value::Null);
                events.extend(page["data"].as_array().unwrap().clone());
                if page["meta"]["has_more"] != true {
                    break;
                }
                after = format!("&after={}", page["meta"]["after"].as_str().unwrap());
            }
            events.retain(|event| event["type"].as_str().unwrap().starts_with("asset."));
            are_complete(&events).then_some(events)
        })
    }
}

pub fn log_of(folder: &TempDir) -> String {
    std::fs::read_to_string(path(folder, "log")).unwrap_or_default()
}

fn path(folder: &TempDir, name: &str) -> PathBuf {
    Path::join(folder.path(), name)
}

#[derive(Debug, Clone)]
pub struct Arrival {
    headers: HeaderMap,
    body: String,
}

#[derive(Default)]
struct Shared {
    arrivals: Mutex<Vec<Arrival>>,
    /// Delay and status of the responses.
    behaviour: Mutex<(Duration, StatusCode)>,
}

pub struct Receiver {
    pub url: String,
    shared: Arc<Shared>,
    _runtime: Runtime,
}

impl Receiver {
    pub fn start(status: u16) -> Self {
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let shared = Arc::<Shared>::default();
        let routes = Router::new().route("/hook", post(receive)).with_state(Arc::clone(&shared));
        runtime.spawn(async move { axum::serve(listener, routes).await });
        let receiver = Self { url, shared, _runtime: runtime };
        receiver.respond(status, Duration::ZERO);
        receiver
    }

    pub fn respond(&self, status: u16, after: Duration) {
        *self.shared.behaviour.lock().unwrap() = (after, StatusCode::from_u16(status).unwrap());
    }

    pub fn arrivals(&self) -> Vec<Arrival> {
        self.shared.arrivals.lock().unwrap().clone()
    }

    /// Returns the arrivals by ID. Checks that every signature is valid, and that repeated deliveries are equal.
    pub fn verified(&self, secret: &str) -> BTreeMap<String, Value> {
        let mut events = BTreeMap::new();
        for arrival in self.arrivals() {
            let event = arrival.verified(secret);
            let earlier = events.insert(arrival.header("webhook-id").to_owned(), event.clone());
            assert!(earlier.is_none_or(|earlier| earlier == event), "{event}");
        }
        events
    }
}

async fn receive(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: String) -> StatusCode {
    shared.arrivals.lock().unwrap().push(Arrival { headers, body });
    let (after, status) = *shared.behaviour.lock().unwrap();
    tokio::time::sleep(after).await;
    status
}

impl Arrival {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).unwrap_or_else(|| panic!("{name} is missing: {self:?}")).to_str().unwrap()
    }

    /// Returns the body, whose signature must be valid.
    fn verified(&self, secret: &str) -> Value {
        let header = |name: &str| self.header(name);
        let seconds = header("webhook-timestamp").parse().unwrap();
        let signature =
            standardwebhooks::Webhook::new(secret).unwrap().sign(header("webhook-id"), seconds, self.body.as_bytes()).unwrap();
        assert_eq!(header("webhook-signature"), signature);
        assert_eq!(header("content-type"), "application/json");
        let body: Value = serde_json::from_str(&self.body).unwrap();
        assert_eq!(body["data"]["id"], header("webhook-id"), "{body}");
        assert_eq!(body["data"]["type"], body["type"], "{body}");
        body
    }
}
