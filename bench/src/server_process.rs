//! The dev server as a process of its own, with an empty tenant.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Pause between two looks at the ready file.
const INTERVAL: Duration = Duration::from_millis(5);

/// A process that ends with this value.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A running dev server. Dropping it kills the process and deletes its data.
pub struct ServerProcess {
    pub base_url: String,
    pub api_key: String,
    /// Time from the start of the process until it was ready.
    pub start: Duration,
    process: Process,
    _data: tempfile::TempDir,
}

impl ServerProcess {
    pub fn start(binary: &Path) -> Result<Self> {
        let data = tempfile::tempdir()?;
        let ready = data.path().join("ready.json");
        let mut command = Command::new(binary);
        command
            .args(["--empty", "--addr", "127.0.0.1:0", "--data"])
            .arg(data.path().join("data"))
            .arg("--ready-file")
            .arg(&ready);
        let began = Instant::now();
        let spawned = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let process = Process(spawned.with_context(|| format!("can't start {}; build it first", binary.display()))?);
        let ready = wait_for(&ready)?;
        let text = |name: &str| ready[name].as_str().unwrap_or_default().to_owned();
        Ok(Self { base_url: text("base_url"), api_key: text("api_key"), start: began.elapsed(), process, _data: data })
    }

    pub fn pid(&self) -> u32 {
        self.process.0.id()
    }
}

fn wait_for(ready: &Path) -> Result<Value> {
    let began = Instant::now();
    while began.elapsed() < START_TIMEOUT {
        if let Ok(text) = fs::read(ready) {
            return Ok(serde_json::from_slice(&text)?);
        }
        std::thread::sleep(INTERVAL);
    }
    bail!("the server is not ready after {} s", START_TIMEOUT.as_secs())
}
