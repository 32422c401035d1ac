//! The embedded DynamoDB-compatible engine, with a port and a thread of its own.
//!
//! Its SQLite calls block, so it must not run on the caller's threads. docs/adr/0004 lists where it differs from DynamoDB.

use anyhow::{Context, Result};
use aws_sdk_dynamodb::config::{BehaviorVersion, Builder, Credentials, Region};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// A running engine. Dropping it stops it.
pub struct Engine {
    /// Its base URL.
    pub url: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Engine {
    /// Starts an engine that listens on `addr` and stores its data in `file`, or in memory.
    ///
    /// # Errors
    ///
    /// Returns an error when the file can't be opened or the address is in use.
    pub fn start(file: Option<&Path>, addr: SocketAddr) -> Result<Self> {
        let db = match file {
            None => dynoxide::Database::memory(),
            Some(file) => dynoxide::Database::new(&file.to_string_lossy()),
        };
        let location = file.map_or("memory".into(), |file| file.display().to_string());
        let db = db.with_context(|| format!("can't open the database in {location}"))?;
        // Ends with SQLite's synchronous=NORMAL: a power failure can lose the last writes, but not corrupt the file.
        let _ = db.enable_bulk_loading().and_then(|()| db.disable_bulk_loading());
        let listener = TcpListener::bind(addr).with_context(|| format!("can't listen on {addr}"))?;
        listener.set_nonblocking(true)?;
        let url = format!("http://{}", listener.local_addr()?);
        let (stop, stopped) = oneshot::channel::<()>();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::spawn(move || {
            runtime.block_on(async move {
                let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
                let shutdown = async move {
                    let _ = stopped.await;
                };
                if let Err(error) = dynoxide::server::serve_with_shutdown(listener, db, shutdown).await {
                    tracing::error!(error = %error, "the embedded engine failed");
                }
            });
        });
        Ok(Self { url, stop: Some(stop), thread: Some(thread) })
    }
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

/// Returns the SDK configuration for the engine at `url`: placeholder credentials, and plain HTTP without root certificates.
#[must_use]
pub fn config(url: &str) -> Builder {
    shared::store::client::configure(Builder::new())
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .endpoint_url(url)
        .credentials_provider(Credentials::new("local", "local", None, None, "local"))
        .http_client(aws_smithy_http_client::Builder::new().build_http())
}
