//! The dev server's data folder: the engine's database, the demo tenant, the key that encrypts signing keys and webhook secrets,
//! and snapshots of list indexes, which are in a bucket on AWS.

use crate::demo::{self, DemoClock, Handover};
use crate::log::{self, Format};
use anyhow::{Context, Result, anyhow, bail};
use axum::Router;
use futures_util::future::BoxFuture;
use key_encryption::FileKeyEncryption;
use serde::{Deserialize, Serialize};
use shared::aws::object_store::{ObjectStore, ObjectStoreError};
use shared::domain::keys::api_key::MAX_RATE_LIMIT;
use shared::store::Store;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use terminal::Notice;
use tracing::instrument::WithSubscriber;

const TABLE: &str = "table.db";
/// The key that encrypts signing keys and webhook secrets.
const KEY: &str = "receipt.key";
const DEMO: &str = "demo.json";
const SNAPSHOTS: &str = "snapshots";

/// A data folder locked for this process, or no folder if the data is in memory.
pub struct DataFolder {
    folder: Option<(PathBuf, File)>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DemoTenant {
    pub tenant_id: String,
    pub api_key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handover: Option<Handover>,
}

impl DataFolder {
    /// Creates and locks the folder: two engines on one database would not see each other's writes. Only the current user can
    /// read the files; an existing folder keeps its permissions.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder can't be written to, or if another dev server uses it.
    pub fn open(folder: Option<&Path>) -> Result<Self> {
        let Some(folder) = folder else { return Ok(Self { folder: None }) };
        let open = create_folder(folder).and_then(|()| open_file(&folder.join("lock")));
        let instead = "choose another folder with --data, or keep the data in memory with --memory";
        let cant_write = |error| anyhow!("can't write to the folder {}: {error}; {instead}", folder.display());
        let lock = open.map_err(cant_write)?;
        if lock.try_lock().is_err() {
            bail!("another dev server is using {}; choose another folder with --data", folder.display());
        }
        // SQLite gives the files beside its database the same permissions.
        open_file(&folder.join(TABLE)).map_err(cant_write)?;
        Ok(Self { folder: Some((folder.to_owned(), lock)) })
    }

    fn path(&self, file: &str) -> Option<PathBuf> {
        self.folder.as_ref().map(|(folder, _)| folder.join(file))
    }

    pub fn database(&self) -> Option<PathBuf> {
        self.path(TABLE)
    }

    /// Returns `None` if the data is in memory.
    pub fn snapshots(&self) -> Option<Arc<dyn ObjectStore>> {
        Some(Arc::new(SnapshotFolder::new(self.path(SNAPSHOTS)?)))
    }

    pub fn key_encryption(&self) -> Result<FileKeyEncryption> {
        Ok(match self.path(KEY) {
            Some(path) => FileKeyEncryption::open(&path)?,
            None => FileKeyEncryption::in_memory()?,
        })
    }

    /// Returns the tenant that an earlier start created, or creates one, with demo data if `clock` is given.
    pub async fn demo_tenant(&self, store: &Store, router: Router, clock: Option<&DemoClock>, log: Format) -> Result<DemoTenant> {
        let path = self.path(DEMO);
        if let Some(path) = path.as_deref().filter(|path| path.exists()) {
            let text = fs::read_to_string(path).with_context(|| format!("can't read {}", path.display()))?;
            let invalid = || format!("{} is invalid; delete it to create a new tenant", path.display());
            return serde_json::from_str(&text).with_context(invalid);
        }
        if let Some(clock) = clock {
            clock.begin();
        }
        let created = store.create_tenant("Demo".parse()?, None, MAX_RATE_LIMIT).await?;
        let (tenant_id, api_key) = (created.tenant_id.to_string(), created.api_key.expose());
        let mut tenant = DemoTenant { tenant_id, api_key, handover: None };
        if let Some(clock) = clock {
            let _notice = Notice::show("Creating assets and users to try the API with …");
            // More than a hundred lines about successful requests would push the greeting off the screen.
            tenant.handover = Some(demo::load(router, &tenant.api_key, clock).with_subscriber(log::warnings(log)).await?);
        }
        if let Some(path) = path {
            write_atomically(&path, &serde_json::to_vec_pretty(&tenant)?)?;
        }
        Ok(tenant)
    }
}

/// Creates a folder that no other user can read, and missing parent folders. An existing folder stays unchanged.
fn create_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Opens a file that no other user can read, or creates it.
fn open_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

/// Writes a file that appears complete or not at all. Only the current user can read the file, because it contains an API key.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let draft = path.with_extension(format!("{}.tmp", std::process::id()));
    // A draft of an earlier process with the same process ID could have different permissions.
    let _ = fs::remove_file(&draft);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    let written = file.write_all(bytes).and_then(|()| fs::rename(&draft, path));
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written
}

/// A folder with a file for each object. Reading and writing block, which is good enough for a dev server.
pub struct SnapshotFolder(PathBuf);

impl SnapshotFolder {
    /// Stores objects in `folder`, which the first write creates.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self(folder)
    }

    fn read(&self, key: &str, max_bytes: usize) -> io::Result<Vec<u8>> {
        let file = File::open(self.0.join(key))?;
        let length = file.metadata().map_or(0, |metadata| usize::try_from(metadata.len()).unwrap_or(usize::MAX));
        let mut bytes = Vec::with_capacity(length.min(max_bytes));
        file.take(max_bytes as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn write(&self, key: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.0.join(key);
        path.parent().map_or(Ok(()), create_folder)?;
        write_atomically(&path, bytes)
    }
}

impl ObjectStore for SnapshotFolder {
    fn get<'a>(&'a self, key: &'a str, max_bytes: usize) -> BoxFuture<'a, Result<Option<Vec<u8>>, ObjectStoreError>> {
        let bytes = match self.read(key, max_bytes) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(ObjectStoreError::unavailable(error)),
        };
        Box::pin(std::future::ready(bytes))
    }

    fn put<'a>(&'a self, key: &'a str, bytes: Vec<u8>) -> BoxFuture<'a, Result<(), ObjectStoreError>> {
        Box::pin(std::future::ready(self.write(key, &bytes).map_err(ObjectStoreError::unavailable)))
    }

    fn delete<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), ObjectStoreError>> {
        let deleted = match std::fs::remove_file(self.0.join(key)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(ObjectStoreError::unavailable(error)),
            _ => Ok(()),
        };
        Box::pin(std::future::ready(deleted))
    }
}
