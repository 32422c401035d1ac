//! The dev server: one port, every function, an embedded engine.

use crate::{demo, engine, table};
use anyhow::{Context, Result, bail};
use aws_sdk_dynamodb::Client;
use axum::Router;
use axum::http::{HeaderName, Method};
use key_encryption::FileKeyEncryption;
use serde::{Deserialize, Serialize};
use shared::app::{App, system_clock};
use shared::domain::api_key::MAX_RATE_LIMIT;
use shared::store::Store;
use std::fs::{self, File};
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tower_http::cors::{Any, CorsLayer};

/// The table's name in the embedded engine.
pub const TABLE: &str = "asset-lifecycle";
/// How long requests under way may take to end once a signal has come.
const GRACE: Duration = Duration::from_secs(5);

/// How pages of other sites may ask.
pub const METHODS: [Method; 5] = [Method::GET, Method::HEAD, Method::POST, Method::PATCH, Method::DELETE];
/// What they may send, as template.yaml says it to the gateway.
pub const ACCEPTED: [&str; 5] = ["authorization", "content-type", "idempotency-key", "if-match", "if-none-match"];
/// What they may read of an answer, as template.yaml says it to the gateway.
pub const EXPOSED: [&str; 8] = [
    "location",
    "x-request-id",
    "retry-after",
    "etag",
    "idempotent-replayed",
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
];

/// What the command line asks for.
#[derive(Debug, Clone, clap::Parser)]
#[command(name = "local", version, about = "The whole API on this machine, with an embedded DynamoDB-compatible engine")]
pub struct Options {
    /// Where the API answers; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:3000", value_name = "ADDR")]
    pub addr: SocketAddr,
    /// Where the data lives.
    #[arg(long, default_value = ".local", value_name = "DIR")]
    pub data: PathBuf,
    /// Keep the data in memory only.
    #[arg(long, conflicts_with = "data")]
    pub memory: bool,
    /// Make a tenant and a key, but no demo data.
    #[arg(long)]
    pub empty: bool,
    /// Where the engine answers, for other tools; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDR")]
    pub dynamodb_addr: SocketAddr,
    /// Write a JSON file with base_url, api_key, tenant_id, table and dynamodb_endpoint once the server answers.
    #[arg(long, value_name = "FILE")]
    pub ready_file: Option<PathBuf>,
}

/// The demo tenant, as the data folder remembers it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Demo {
    tenant_id: String,
    api_key: String,
}

/// What the ready file says.
#[derive(Debug, Serialize)]
struct Ready<'a> {
    base_url: &'a str,
    api_key: &'a str,
    tenant_id: &'a str,
    table: &'a str,
    dynamodb_endpoint: &'a str,
}

/// The API with every function's routes, as it is served here.
pub fn router(app: App) -> Router {
    let cors = CorsLayer::new()
        .allow_origin(Any)
        .allow_methods(METHODS)
        .allow_headers(ACCEPTED.map(HeaderName::from_static))
        .expose_headers(EXPOSED.map(HeaderName::from_static));
    shared::http::service(crate::api::all_routes(), app).layer(cors)
}

/// Runs until a signal comes.
///
/// # Errors
///
/// An address in use, a folder that can't be written: in one line that says so.
pub async fn run(options: Options) -> Result<()> {
    let listener = TcpListener::bind(options.addr).await.with_context(|| format!("can't listen on {}", options.addr))?;
    let base_url = format!("http://{}/v1", listener.local_addr()?);
    let folder = (!options.memory).then_some(options.data.as_path());
    let _lock = folder.map(lock).transpose()?;
    let file = folder.map(|folder| folder.join("table.db"));
    let engine = engine::Engine::start(file.as_deref(), options.dynamodb_addr)?;
    let client = Client::from_conf(engine::config(&engine.url).build());
    table::create(&client, TABLE).await?;
    let store = Store::new(client, TABLE, system_clock());
    let key_encryption = match folder {
        Some(folder) => FileKeyEncryption::open(&folder.join("receipt.key"))?,
        None => FileKeyEncryption::in_memory()?,
    };
    let router = router(App::new(store.clone()).with_key_encryption(Some(Arc::new(key_encryption))));
    let demo = demo_tenant(&store, router.clone(), folder, options.empty).await?;

    let ready = Ready {
        base_url: &base_url,
        api_key: &demo.api_key,
        tenant_id: &demo.tenant_id,
        table: TABLE,
        dynamodb_endpoint: &engine.url,
    };
    if let Some(file) = &options.ready_file {
        write_whole(file, &serde_json::to_vec_pretty(&ready)?).with_context(|| format!("can't write {}", file.display()))?;
    }
    greet(&ready, folder)?;
    let (done, ended) = tokio::sync::oneshot::channel::<()>();
    let serving = axum::serve(listener, router).with_graceful_shutdown(async move {
        signal().await;
        let _ = done.send(());
    });
    let limit = async {
        let _ = ended.await;
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        served = serving => served?,
        () = limit => {}
    }
    if let Some(file) = &options.ready_file {
        let _ = fs::remove_file(file);
    }
    Ok(())
}

/// Makes the folder and holds it: two engines on one file would not see each other's writes in order.
fn lock(folder: &Path) -> Result<File> {
    let path = folder.join("lock");
    let open = fs::create_dir_all(folder).and_then(|()| File::create(&path));
    let file = open.with_context(|| format!("can't write to {}", folder.display()))?;
    if file.try_lock().is_err() {
        bail!("another dev server uses {}; choose another folder with --data", folder.display());
    }
    Ok(file)
}

/// The tenant of an earlier start, or a new one with demo data.
async fn demo_tenant(store: &Store, router: Router, folder: Option<&Path>, empty: bool) -> Result<Demo> {
    let path = folder.map(|folder| folder.join("demo.json"));
    if let Some(path) = path.as_deref().filter(|path| path.exists()) {
        let text = fs::read_to_string(path).with_context(|| format!("can't read {}", path.display()))?;
        return serde_json::from_str(&text).with_context(|| format!("{} is broken; delete it for a new tenant", path.display()));
    }
    let tenant = store.create_tenant("Demo".parse()?, None, MAX_RATE_LIMIT).await?;
    let demo = Demo { tenant_id: tenant.tenant_id.to_string(), api_key: tenant.api_key.expose() };
    if !empty {
        demo::load(router, &demo.api_key).await?;
    }
    if let Some(path) = path {
        write_whole(&path, &serde_json::to_vec_pretty(&demo)?)?;
    }
    Ok(demo)
}

/// Writes a file that others see whole or not at all, and that only we can read: it holds a key.
fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.persist(path)?;
    Ok(())
}

fn greet(ready: &Ready<'_>, folder: Option<&Path>) -> Result<()> {
    let Ready { base_url, api_key, .. } = ready;
    let kept = folder.map_or("in memory".into(), |folder| format!("in {}", folder.display()));
    writeln!(
        std::io::stdout(),
        "The asset lifecycle API answers at {base_url} (data {kept}; Ctrl-C ends it).\n\
         API key: {api_key}\n\n\
         Try:\n  \
         curl -s '{base_url}/assets?limit=3' -H 'Authorization: Bearer {api_key}'\n  \
         curl -s '{base_url}/assets' -H 'Authorization: Bearer {api_key}' -H 'Content-Type: application/json' -d '{{\"name\": \"My laptop\"}}'\n  \
         curl -s '{base_url}/openapi.json'"
    )?;
    Ok(())
}

async fn signal() {
    let interrupt = tokio::signal::ctrl_c();
    match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        Ok(mut terminate) => {
            tokio::select! {
                _ = interrupt => {}
                _ = terminate.recv() => {}
            }
        }
        Err(_) => {
            let _ = interrupt.await;
        }
    }
}
