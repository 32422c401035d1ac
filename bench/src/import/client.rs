//! The peak memory of `assetctl` and of the dev server, each a process of its own, for a small and a large file.

use anyhow::{Context, Result, bail, ensure};
use inventory_files::plain_laptops;
use rig::memory::memory_kilobytes;
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Rows of the small and of the large file.
const ROWS: [u64; 2] = [1_000, 20_000];
/// How much more memory, in KiB, the client may need for the large file.
const MOST_GROWTH: u64 = 8 * 1024;
/// How long the server may take to start.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// How often the client's memory is read.
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

/// Imports both files and prints the memory that it takes.
///
/// # Errors
///
/// Returns an error when an import fails, and when the client's memory grows with the file unless `report`.
pub fn measure(assetctl: &Path, server: &Path, report: bool) -> Result<()> {
    let [small, large] = ROWS.map(|rows| import(assetctl, server, rows));
    let growth = large?.saturating_sub(small?);
    ensure!(report || growth <= MOST_GROWTH, "assetctl needs {growth} KiB more for the large file");
    Ok(())
}

/// Imports a file into a new server; returns the client's peak memory in KiB.
fn import(assetctl: &Path, server: &Path, rows: u64) -> Result<u64> {
    let folder = tempfile::tempdir()?;
    let (ready, file) = (folder.path().join("ready.json"), folder.path().join("laptops.csv"));
    fs::write(&file, plain_laptops(rows))?;
    let mut command = Command::new(server);
    command.args(["--empty", "--addr", "127.0.0.1:0", "--data"]).arg(folder.path().join("data")).arg("--ready-file").arg(&ready);
    let spawned = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let server = Process(spawned.with_context(|| format!("can't start {}; build it first", server.display()))?);
    let ready = wait_for(&ready)?;
    let text = |name: &str| ready[name].as_str().unwrap_or_default().to_owned();

    let mut command = Command::new(assetctl);
    command.arg("import").arg(&file).env("ASSETCTL_BASE_URL", text("base_url")).env("ASSETCTL_API_KEY", text("api_key"));
    let spawned = command.env_remove("ASSETCTL_API_KEY_FILE").stdout(Stdio::null()).spawn();
    let mut client = Process(spawned.with_context(|| format!("can't start {}", assetctl.display()))?);
    let (began, mut peak) = (Instant::now(), 0);
    let status = loop {
        // Before it is asked for its status: afterwards, it may have none.
        peak = peak.max(memory_kilobytes(client.0.id(), "VmHWM").unwrap_or_default());
        if let Some(status) = client.0.try_wait()? {
            break status;
        }
        std::thread::sleep(INTERVAL);
    };
    ensure!(status.success(), "assetctl failed: {status}");
    writeln!(
        std::io::stdout(),
        "assetctl, {rows} rows: {:.0} rows/s; peak memory {} MiB, of the server {} MiB",
        rows as f64 / began.elapsed().as_secs_f64(),
        peak / 1024,
        memory_kilobytes(server.0.id(), "VmHWM")? / 1024
    )?;
    Ok(peak)
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
