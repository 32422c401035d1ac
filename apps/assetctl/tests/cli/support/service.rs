//! The real service in this process, with a separate engine, table and tenant.

use super::Run;
use aws_sdk_dynamodb::Client;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use chrono::TimeDelta;
use dev_server::engine::{self, Engine};
use dev_server::server::{self, TABLE};
use dev_server::table;
use key_encryption::FileKeyEncryption;
use serde_json::{Value, json};
use shared::domain::keys::api_key::MAX_RATE_LIMIT;
use shared::services::{App, system_clock};
use shared::store::Store;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tower::ServiceExt;

/// A signature image: a dot.
const DOT: &str =
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAIAAAABCAAAAADRSSBWAAAAC0lEQVR42mNg+A8AAQIBANEay48AAAAASUVORK5CYII=";

pub struct Service {
    pub url: String,
    key: String,
    router: Router,
    runtime: Runtime,
    served: Mutex<Option<Served>>,
    _engine: Engine,
}

/// Sender that ends the server, and the task to wait for.
type Served = (oneshot::Sender<()>, JoinHandle<()>);

fn serve(runtime: &Runtime, listener: TcpListener, router: Router) -> Served {
    let (end, ended) = oneshot::channel();
    let task = runtime.spawn(async move {
        let ended = async { ended.await.unwrap_or_default() };
        axum::serve(listener, router).with_graceful_shutdown(ended).await.unwrap();
    });
    (end, task)
}

impl Service {
    pub fn start() -> Self {
        Self::start_days_ago(&Arc::default())
    }

    /// Starts a service whose clock is this many days behind. The number can be changed later.
    pub fn start_days_ago(days: &Arc<AtomicU32>) -> Self {
        let days = Arc::clone(days);
        let clock = move || system_clock()().plus(TimeDelta::days(-i64::from(days.load(Ordering::Relaxed))));
        let runtime = Runtime::new().unwrap();
        let engine = Engine::start(None, ([127, 0, 0, 1], 0).into()).unwrap();
        let client = Client::from_conf(engine::config(&engine.url).build());
        let (router, key, listener) = runtime.block_on(async {
            table::create(&client, TABLE).await.unwrap();
            let store = Store::new(client, TABLE, Arc::new(clock));
            let tenant = store.create_tenant("Test".parse().unwrap(), None, MAX_RATE_LIMIT).await.unwrap();
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let key_encryption = Arc::new(FileKeyEncryption::in_memory().unwrap());
            let app = App::new(store).with_key_encryption(Some(key_encryption));
            (server::router(app), tenant.api_key.expose(), listener)
        });
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let served = Mutex::new(Some(serve(&runtime, listener, router.clone())));
        Self { url, key, router, runtime, served, _engine: engine }
    }

    /// Closes all connections and the port, until the service is started again.
    pub fn stop(&self) {
        let (end, task) = self.served.lock().unwrap().take().unwrap();
        end.send(()).unwrap();
        self.runtime.block_on(task).unwrap();
    }

    pub fn start_again(&self) {
        let address = self.url.strip_prefix("http://").unwrap().strip_suffix("/v1").unwrap();
        let listener = self.runtime.block_on(TcpListener::bind(address)).unwrap();
        *self.served.lock().unwrap() = Some(serve(&self.runtime, listener, self.router.clone()));
    }

    /// Sends a request, which must succeed.
    pub fn send(&self, method: &str, path: &str, body: &Value) -> Value {
        self.send_with(&self.key, method, path, body)
    }

    /// Signs with a link, as the signing page does, and submits all steps of the session. `values` are for the other steps.
    pub fn sign(&self, link: &str, values: Value) {
        let session = self.send_with(link.split_once('#').unwrap().1, "GET", "/sign/session", &json!({}));
        let last = &session["data"]["steps"].as_array().unwrap().last().unwrap()["step"]["key"];
        self.sign_through(last.as_str().unwrap(), link, values);
    }

    pub fn sign_through(&self, last: &str, link: &str, mut values: Value) {
        values["signature"] = DOT.into();
        let secret = link.split_once('#').unwrap().1;
        self.send_with(secret, "POST", "/sign/advance", &json!({"through": last, "step_data": values}));
    }

    fn send_with(&self, key: &str, method: &str, path: &str, body: &Value) -> Value {
        let request = || {
            let request = Request::builder().method(method).uri(format!("/v1{path}"));
            let request = request.header("authorization", format!("Bearer {key}")).header("content-type", "application/json");
            request.body(Body::from(body.to_string())).unwrap()
        };
        self.runtime.block_on(async {
            let mut response = self.router.clone().oneshot(request()).await.unwrap();
            // Retries reads on a busy machine.
            while method == "GET" && response.status() == StatusCode::SERVICE_UNAVAILABLE {
                response = self.router.clone().oneshot(request()).await.unwrap();
            }
            let status = response.status();
            let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
            assert!(status.is_success(), "{method} {path}: {status} {}", String::from_utf8_lossy(&bytes));
            serde_json::from_slice(&bytes).unwrap()
        })
    }

    pub fn create(&self, path: &str, body: &Value) -> String {
        self.send("POST", path, body)["data"]["id"].as_str().unwrap().to_owned()
    }

    /// Creates a user with the address `name@example.org`. Returns the ID.
    pub fn user(&self, name: &str, is_active: bool) -> String {
        let email = format!("{}@example.org", name.to_lowercase());
        self.create("/users", &json!({"email": email, "display_name": name, "is_active": is_active}))
    }

    /// Creates an asset. Returns its ID and tag.
    pub fn asset(&self, status: &str) -> (String, String) {
        let asset = &self.send("POST", "/assets", &json!({"name": "Laptop", "status": status}))["data"];
        (asset["id"].as_str().unwrap().to_owned(), asset["asset_tag"].as_str().unwrap().to_owned())
    }

    pub fn get(&self, path: &str) -> Value {
        self.send("GET", path, &json!({}))
    }

    pub fn total(&self, path: &str) -> u64 {
        self.get(&format!("{path}?limit=1"))["meta"]["total"].as_u64().unwrap()
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = super::command(&self.url, arguments);
        command.env("ASSETCTL_API_KEY", &self.key).stdin(Stdio::null());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Run {
        self.run_command(self.command(arguments))
    }

    /// Runs a command line in a shell in this folder, as if it were pasted.
    pub fn paste(&self, folder: &Path, line: &str) -> Run {
        let program = Path::new(env!("CARGO_BIN_EXE_assetctl")).parent().unwrap();
        let template = self.command(&[]);
        let variables = template.get_envs().filter_map(|(name, value)| Some((name, value?)));
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).envs(variables).env_remove("ASSETCTL_API_KEY_FILE").current_dir(folder).stdin(Stdio::null());
        shell.env("PATH", format!("{}:/usr/bin:/bin", program.display()));
        self.run_command(shell)
    }

    fn run_command(&self, mut command: Command) -> Run {
        let run = Run::of(command.output().unwrap());
        assert!(!run.stdout.contains(&self.key) && !run.stderr.contains(&self.key), "the key was displayed");
        run
    }

    pub fn import(&self, path: &Path, options: &[&str]) -> Run {
        self.run(&[&["import", path.to_str().unwrap(), "--json"], options].concat())
    }

    pub fn assets(&self) -> Vec<Value> {
        let run = self.run(&["export", "--format", "ndjson"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Returns the serial numbers of all assets, sorted.
    pub fn serials(&self) -> Vec<String> {
        let mut serials: Vec<String> =
            self.assets().iter().map(|asset| asset["serial_number"].as_str().unwrap_or_default().to_owned()).collect();
        serials.sort();
        serials
    }
}
