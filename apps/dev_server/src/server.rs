//! The dev server: all functions behind one port, and the embedded engine.

use crate::address::{cant_listen, reachable};
use crate::data_folder::{DataFolder, write_atomically};
use crate::demo::{self, DemoClock};
use crate::greeting;
use crate::log::{self, Format};
use crate::meter::Meter;
use crate::options::Options;
use crate::queue::in_memory;
use crate::webhooks::{Pipeline, handler};
use crate::{engine, table};
use anyhow::{Context, Result, anyhow};
use aws_sdk_dynamodb::Client;
use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderName, Method, Version, header};
use axum::middleware::{self, Next};
use axum::response::Response;
use chrono::TimeDelta;
use deliver::{Deliver, Sender};
use serde::Serialize;
use shared::http::base_url::with_host_header;
use shared::http::routes::WithoutOneHost;
use shared::key_encryption::KeyEncryption;
use shared::services::App;
use shared::store::Store;
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};
use terminal::style;
use tokio::net::TcpListener;
use tokio::signal::unix::{self, SignalKind};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};
use tower_http::cors::{Any, CorsLayer};
use tracing::Instrument;
use tracing::instrument::WithSubscriber;

pub const TABLE: &str = "asset-lifecycle";
/// Time limit for requests and deliveries in progress after a signal. Then the process ends without them.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval between runs of the snapshot writer.
const SNAPSHOT_INTERVAL: Duration = Duration::from_secs(600);
/// Time during which a run starts on further tenants.
const SNAPSHOT_RUN: TimeDelta = TimeDelta::minutes(2);

/// Methods that pages of other origins may use.
pub const CORS_METHODS: [Method; 6] = [Method::GET, Method::HEAD, Method::POST, Method::PATCH, Method::PUT, Method::DELETE];
/// Request headers that pages of other origins may send. template.yaml has the same list for API Gateway.
pub const CORS_REQUEST_HEADERS: [&str; 5] = ["authorization", "content-type", "idempotency-key", "if-match", "if-none-match"];
/// Response headers that pages of other origins may read. template.yaml has the same list for API Gateway.
pub const CORS_RESPONSE_HEADERS: [&str; 12] = [
    "location",
    "link",
    "content-disposition",
    "x-unreadable",
    "x-request-id",
    "retry-after",
    "etag",
    "idempotent-replayed",
    "dry-run",
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
];

/// How long browsers can cache the response to a preflight. template.yaml has the same time for API Gateway.
pub const CORS_MAX_AGE: Duration = Duration::from_secs(3600);

#[derive(Debug, Clone, Copy, Serialize)]
pub struct ReadyFile<'a> {
    pub base_url: &'a str,
    pub api_key: &'a str,
    pub tenant_id: &'a str,
    pub table: &'a str,
    pub dynamodb_endpoint: &'a str,
    /// Signing link for the demo handover, if the handover is still open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signing_url: Option<&'a str>,
}

/// Returns the whole API, with the CORS headers that API Gateway adds in AWS. Links start with the caller's `Host`, so that
/// another device in the network gets links that it can open.
pub fn router(app: App) -> Router {
    let cors = CorsLayer::new()
        .allow_origin(Any)
        .allow_methods(CORS_METHODS)
        .allow_headers(CORS_REQUEST_HEADERS.map(HeaderName::from_static))
        .expose_headers(CORS_RESPONSE_HEADERS.map(HeaderName::from_static))
        .max_age(CORS_MAX_AGE);
    with_host_header(shared::http::service(crate::api::all_routes(), app)).layer(cors)
}

/// Runs the dev server until SIGINT or SIGTERM.
///
/// # Errors
///
/// Returns an error to print as one line, for example if the address is in use or the data folder can't be written to.
pub async fn run(options: Options, format: Format) -> Result<()> {
    let refused = |error: io::Error| anyhow!(cant_listen("--addr", options.addr, &error));
    let listener = TcpListener::bind(options.addr).await.map_err(refused)?;
    let address = reachable(listener.local_addr()?);
    let base_url = format!("http://{address}/v1");
    let folder = (!options.memory).then_some(options.data.as_path());
    let data = DataFolder::open(folder)?;
    let engine = engine::Engine::start(data.database().as_deref(), options.dynamodb_addr);
    let engine = engine.map_err(|error| match error.downcast_ref::<io::Error>() {
        Some(refused) => anyhow!(cant_listen("--dynamodb-addr", options.dynamodb_addr, refused)),
        None => error,
    })?;
    let client = Client::from_conf(engine::config(&engine.url).interceptor(Meter::by_request()).build());
    table::create(&client, TABLE).await?;
    let clock = DemoClock::default();
    let store = Store::new(client, TABLE, clock.clock()).with_snapshots(data.snapshots());
    let (queue, worker) = in_memory();
    let key_encryption: Arc<dyn KeyEncryption> = Arc::new(data.key_encryption()?);
    let app = App::new(store.clone())
        .with_key_encryption(Some(Arc::clone(&key_encryption)))
        .with_queue(Some(Arc::new(queue.clone())))
        .with_address_policy(options.address_policy());
    let router = router(app);
    let tenant = data.demo_tenant(&store, router.clone(), (!options.empty).then_some(&clock), format).await?;
    let signing_url = match &tenant.handover {
        Some(handover) => {
            let host = address.to_string();
            let made = demo::signing_url(router.clone(), &tenant.api_key, &host, handover);
            made.with_subscriber(log::warnings(format)).await
        }
        None => None,
    };
    let sender = Sender::new(options.address_policy())?;
    let deliver = Deliver::new(store.clone(), Arc::new(queue.clone()), key_encryption, sender);
    let webhooks = Pipeline::start(&engine, store.clone(), TABLE, (queue, worker), handler(deliver)).await?;

    let ready = ReadyFile {
        base_url: &base_url,
        api_key: &tenant.api_key,
        tenant_id: &tenant.tenant_id,
        table: TABLE,
        dynamodb_endpoint: &engine.url,
        signing_url: signing_url.as_deref(),
    };
    if let Some(file) = &options.ready_file {
        write_atomically(file, &serde_json::to_vec_pretty(&ready)?).with_context(|| format!("can't write {}", file.display()))?;
    }
    // The handler is installed before the greeting, which says that Ctrl-C stops the server.
    let signal = signal()?;
    terminal::print_styled(&greeting::text(&ready, style::is_output_coloured()))?;
    if terminal::is_terminal() && !options.no_open {
        greeting::open_in_browser(&greeting::page(&ready));
    }
    let writer = tokio::spawn(write_snapshots(store));
    let (stop, stopped) = oneshot::channel();
    let router = router.layer(middleware::from_fn(observe));
    let serving = axum::serve(listener, router).with_graceful_shutdown(async { stopped.await.unwrap_or_default() });
    let serving = tokio::spawn(serving.into_future());
    signal.await;
    webhooks.begin_stop();
    let deadline = Instant::now() + SHUTDOWN_TIMEOUT;
    let _ = stop.send(());
    let _ = timeout_at(deadline, serving).await;
    writer.abort();
    webhooks.stop(deadline).await;
    if terminal::is_error_terminal() {
        // Ends the line on which the terminal shows ^C.
        terminal::print_note("\nThe server has stopped.");
    }
    if let Some(file) = &options.ready_file {
        let _ = fs::remove_file(file);
    }
    Ok(())
}

/// Marks requests without exactly one host, which hyper accepts, and opens a span to which the meter adds the request's calls.
async fn observe(mut request: Request, next: Next) -> Response {
    let hosts = request.headers().get_all(header::HOST).iter().count();
    if hosts > 1 || hosts == 0 && request.version() == Version::HTTP_11 {
        request.extensions_mut().insert(WithoutOneHost);
    }
    next.run(request).instrument(tracing::info_span!("request")).await
}

/// Writes snapshots of list indexes periodically, like the function `snapshots` in AWS.
async fn write_snapshots(store: Store) {
    loop {
        tokio::time::sleep(SNAPSHOT_INTERVAL).await;
        if let Err(error) = store.write_snapshots(store.now().plus(SNAPSHOT_RUN)).await {
            tracing::error!(error = %error, "snapshots can't be written");
        }
    }
}

/// Resolves at the first SIGINT or SIGTERM after this call.
fn signal() -> io::Result<impl Future<Output = ()>> {
    let mut interrupt = unix::signal(SignalKind::interrupt())?;
    let mut terminate = unix::signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}
