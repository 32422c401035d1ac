//! The embedded DynamoDB-compatible engine, on a separate port and thread: SQLite calls block, so they must not run on the
//! caller's threads. The thread also serves the table's stream. docs/adr/0004 lists the engine's differences from DynamoDB.
//!
//! The engine checks no credentials, so it refuses requests that a web page could send: requests with an `Origin` and, if only
//! this machine can reach the engine, requests for a different host, because a page could make a name resolve to this machine
//! (DNS rebinding). The engine never deletes its stream records, so they are trimmed through a second connection to its database.

use crate::table::TableEngine;
use anyhow::{Context, Result, ensure};
use aws_sdk_dynamodb::config::{BehaviorVersion, Builder, Credentials, Region};
use axum::Router;
use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use dynoxide::Database;
use rusqlite::{Connection, params};
use serde_json::Value;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use tokio::sync::{mpsc, oneshot};

/// Same as DynamoDB's limit.
const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;
/// Any region would do.
const REGION: Region = Region::from_static("us-east-1");

/// A running engine, which stops when dropped.
pub struct Engine {
    pub url: String,
    streams: Streams,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Engine {
    /// # Errors
    ///
    /// Returns an error if the file can't be opened or the address is in use.
    pub fn start(file: Option<&Path>, addr: SocketAddr) -> Result<Self> {
        let location = file.map_or_else(in_memory, |file| file.to_string_lossy().into_owned());
        let cant_open =
            || format!("can't open the database in {}", file.map_or("memory".into(), |file| file.display().to_string()));
        let db = Database::new(&location).with_context(cant_open)?;
        // Leaves SQLite at synchronous=NORMAL: a power failure can lose the last writes, but not corrupt the file.
        let _ = db.enable_bulk_loading().and_then(|()| db.disable_bulk_loading());
        let records = stream_records(&location).with_context(cant_open)?;
        let (streams, calls) = mpsc::unbounded_channel();
        let listener = TcpListener::bind(addr).with_context(|| format!("can't listen on {addr}"))?;
        listener.set_nonblocking(true)?;
        let url = format!("http://{}", listener.local_addr()?);
        let engine = TableEngine::new(db);
        let service = service(engine.clone(), addr.ip().is_loopback());
        let (stop, stopped) = oneshot::channel::<()>();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::spawn(move || {
            runtime.block_on(async move {
                let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
                tokio::spawn(serve(engine, records, calls));
                let shutdown = async move {
                    let _ = stopped.await;
                };
                if let Err(error) = axum::serve(listener, service).with_graceful_shutdown(shutdown).await {
                    tracing::error!(error = %error, "the embedded engine failed");
                }
            });
        });
        Ok(Self { url, streams: Streams(streams), stop: Some(stop), thread: Some(thread) })
    }

    #[must_use]
    pub fn streams(&self) -> Streams {
        self.streams.clone()
    }
}

/// Returns the location of a new database in memory. It has a name, so that a second connection can open it.
fn in_memory() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("file:engine-{}?mode=memory&cache=shared", COUNT.fetch_add(1, Ordering::Relaxed))
}

fn service(engine: TableEngine, is_local: bool) -> Router {
    let respond = move |headers: HeaderMap, body: Bytes| {
        let response = if is_trusted(&headers, is_local) { call(&engine, &headers, &body) } else { refusal() };
        std::future::ready(response)
    };
    Router::new().fallback(respond).layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
}

fn call(engine: &TableEngine, headers: &HeaderMap, body: &[u8]) -> Response {
    let target = headers.get("x-amz-target").and_then(|target| target.to_str().ok()?.split_once('.'));
    let operation = target.map_or("", |(_, operation)| operation);
    let response = engine.execute(operation, serde_json::from_slice(body).unwrap_or_default());
    let status = StatusCode::from_u16(response.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, [(header::CONTENT_TYPE, "application/x-amz-json-1.0")], response.body.to_string()).into_response()
}

fn refusal() -> Response {
    (StatusCode::FORBIDDEN, "The embedded engine refuses requests from web pages.\n").into_response()
}

/// Whether the request can't come from a web page. `is_local` means that only this machine can reach the engine.
fn is_trusted(headers: &HeaderMap, is_local: bool) -> bool {
    let is_loopback = |host: &HeaderValue| host.to_str().is_ok_and(is_loopback);
    let mut hosts = headers.get_all(header::HOST).iter().peekable();
    !headers.contains_key(header::ORIGIN) && (!is_local || hosts.peek().is_some() && hosts.all(is_loopback))
}

/// Whether this is a name or an address that can only mean this machine.
fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        Some((address, _)) => address,
        None => host.split_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

impl Drop for Engine {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Uses placeholder credentials, and plain HTTP without root certificates.
#[must_use]
pub fn config(url: &str) -> Builder {
    shared::store::configure_client(Builder::new())
        .behavior_version(BehaviorVersion::latest())
        .region(REGION)
        .endpoint_url(url)
        .credentials_provider(Credentials::new("local", "local", None, None, "local"))
        .http_client(aws_smithy_http_client::Builder::new().build_http())
}

/// The engine adds this to stored sequence numbers, so that public sequence numbers have as many digits as DynamoDB's.
const OFFSET: u128 = 100_000_000_000_000_000_000;

/// Without this index, the engine would scan all records for every insert, to find the highest sequence number.
const INDEX: &str = "CREATE INDEX IF NOT EXISTS stream_records_in_order
    ON _stream_records (table_name, CAST(sequence_number AS INTEGER))";

const TRIM: &str = "DELETE FROM _stream_records WHERE table_name = ?1 AND CAST(sequence_number AS INTEGER) < ?2";

/// Connects to a database that the engine has opened, and creates the index for its stream records. Must only be used between
/// calls of the engine, on its thread.
fn stream_records(location: &str) -> Result<Connection> {
    let connection = Connection::open(location)?;
    // Same setting as the engine's connection.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.execute_batch(INDEX).context("can't create the index of stream records")?;
    Ok(connection)
}

fn trim(connection: &Connection, table: &str, sequence_number: &str) -> Result<usize> {
    let stored = sequence_number.parse::<u128>().ok().and_then(|number| number.checked_sub(OFFSET));
    let stored = stored.and_then(|number| i64::try_from(number).ok()).context("not a sequence number")?;
    Ok(connection.prepare_cached(TRIM)?.execute(params![table, stored])?)
}

async fn serve(engine: TableEngine, records: Connection, mut calls: mpsc::UnboundedReceiver<StreamCall>) {
    while let Some(call) = calls.recv().await {
        call(&engine, &records);
    }
}

type StreamCall = Box<dyn FnOnce(&TableEngine, &Connection) + Send>;

/// The streams of a running engine: reads and trims them on its thread.
#[derive(Clone)]
pub struct Streams(mpsc::UnboundedSender<StreamCall>);

impl Streams {
    /// Executes a call. `operation` is DynamoDB Streams' name for the call.
    ///
    /// # Errors
    ///
    /// Returns an error if the engine has stopped, or refuses the call.
    pub async fn call(&self, operation: &'static str, body: Value) -> Result<Value> {
        let response = self.on_thread(move |engine, _| engine.execute(operation, body)).await?;
        ensure!(response.is_success(), "{operation} returned {}: {}", response.status, response.body);
        Ok(response.body)
    }

    /// Deletes a table's records before this sequence number, and returns their count. The record with this number stays:
    /// the engine numbers records by the clock, but always above the last record.
    ///
    /// # Errors
    ///
    /// Returns an error if the engine has stopped, the number is not from the engine, or the database fails.
    pub async fn trim(&self, table: &str, sequence_number: &str) -> Result<usize> {
        let (table, sequence_number) = (table.to_owned(), sequence_number.to_owned());
        self.on_thread(move |_, records| trim(records, &table, &sequence_number)).await?
    }

    async fn on_thread<T: Send + 'static>(
        &self,
        call: impl FnOnce(&TableEngine, &Connection) -> T + Send + 'static,
    ) -> Result<T> {
        let (respond, response) = oneshot::channel();
        let call: StreamCall = Box::new(move |engine, records| drop(respond.send(call(engine, records))));
        let stopped = "the engine has stopped";
        self.0.send(call).ok().context(stopped)?;
        response.await.context(stopped)
    }
}
