//! The peak memory of `assetctl` and of the dev server, each a process of its own, for a small and a large file.

use crate::server_process::{Process, ServerProcess};
use anyhow::{Context, Result, ensure};
use inventory_files::plain_laptops;
use rig::usage::memory_kilobytes;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const ROWS: [u64; 2] = [1_000, 20_000];
/// The client's additional memory for the large file, in KiB.
const MOST_GROWTH: u64 = 8 * 1024;
/// The time between reads of the client's memory.
const INTERVAL: Duration = Duration::from_millis(5);

/// Fails if the client's memory grows with the file, unless `report`.
pub fn measure(assetctl: &Path, server: &Path, report: bool) -> Result<()> {
    let [small, large] = ROWS.map(|rows| import(assetctl, server, rows));
    let growth = large?.saturating_sub(small?);
    ensure!(report || growth <= MOST_GROWTH, "assetctl needs {growth} KiB more for the large file");
    Ok(())
}

/// Imports into a new server. Returns the client's peak memory in KiB.
fn import(assetctl: &Path, server: &Path, rows: u64) -> Result<u64> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("laptops.csv");
    fs::write(&file, plain_laptops(rows))?;
    let server = ServerProcess::start(server)?;

    let mut command = Command::new(assetctl);
    command.arg("import").arg(&file).env("ASSETCTL_BASE_URL", &server.base_url).env("ASSETCTL_API_KEY", &server.api_key);
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
        memory_kilobytes(server.pid(), "VmHWM")? / 1024
    )?;
    Ok(peak)
}
