//! The embedded DynamoDB-compatible engine, on a port and a thread of its own.
//!
//! Its SQLite calls block, so it must not share the caller's workers. What it can't show, AWS can:
//! docs/adr/0004.

use anyhow::{Context, Result};
use aws_sdk_dynamodb::config::{BehaviorVersion, Builder, Credentials, Region};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// A running engine; stops when dropped.
pub struct Engine {
    /// Where it answers.
    pub url: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Engine {
    /// Starts an engine at `addr` that keeps its data in `file`, or in memory.
    ///
    /// # Errors
    ///
    /// The file can't be opened, or the address is in use.
    pub fn start(file: Option<&Path>, addr: SocketAddr) -> Result<Self> {
        let db = match file {
            None => dynoxide::Database::memory(),
            Some(file) => dynoxide::Database::new(&file.to_string_lossy()),
        };
        let place = file.map_or("memory".into(), |file| file.display().to_string());
        let db = db.with_context(|| format!("can't keep data in {place}"))?;
        // Leaves SQLite at synchronous=NORMAL: a power cut may cost the last writes of a dev server, never its file.
        let _ = db.enable_bulk_loading().and_then(|()| db.disable_bulk_loading());
        let listener = TcpListener::bind(addr).with_context(|| format!("can't listen on {addr}"))?;
        listener.set_nonblocking(true)?;
        let url = format!("http://{}", listener.local_addr()?);
        let (stop, stopped) = oneshot::channel::<()>();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::spawn(move || {
            runtime.block_on(async move {
                let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
                let until = async move {
                    let _ = stopped.await;
                };
                if let Err(error) = dynoxide::server::serve_with_shutdown(listener, db, until).await {
                    tracing::error!(error = %error, "the embedded engine ended");
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

/// What a client of an engine at `url` needs: any credentials, plain HTTP without a trust store.
#[must_use]
pub fn config(url: &str) -> Builder {
    shared::store::client::configure(Builder::new())
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .endpoint_url(url)
        .credentials_provider(Credentials::new("local", "local", None, None, "local"))
        .http_client(aws_smithy_http_client::Builder::new().build_http())
}
