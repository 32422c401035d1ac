//! A function's binary as a process, with the environment variables that Lambda sets. Memory and processor time of a process. On
//! Linux only.

use crate::runtime_api::RuntimeApi;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::ffi::OsStr;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::process::{Child, Command};

/// Lambda's limit for the init phase, which ends when the function requests its first event.
const INIT_TIMEOUT: Duration = Duration::from_secs(10);

/// Those that Lambda sets, and the one that template.yaml sets for all functions.
#[must_use]
pub const fn lambda_variables() -> [(&'static str, &'static str); 9] {
    [
        ("AWS_LAMBDA_FUNCTION_NAME", "local"),
        ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256"),
        ("AWS_LAMBDA_LOG_FORMAT", "JSON"),
        ("AWS_LAMBDA_HTTP_IGNORE_STAGE_IN_PATH", "true"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "local"),
        ("AWS_SECRET_ACCESS_KEY", "local"),
        ("AWS_SESSION_TOKEN", "local"),
    ]
}

/// A running function. Dropping it kills the process.
pub struct Function {
    /// The Runtime API that it receives its events from.
    pub runtime_api: RuntimeApi,
    /// The time from the start of the process to its first request for an event.
    pub init: Duration,
    child: Child,
    pid: u32,
    stdout: tempfile::NamedTempFile,
}

/// `FUNCTIONS_DIR`, or else this workspace's target folder.
#[must_use]
pub fn binaries_dir() -> PathBuf {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let release = || workspace.join(variable("CARGO_TARGET_DIR").unwrap_or("target".into())).join("release");
    variable("FUNCTIONS_DIR").unwrap_or_else(release)
}

impl Function {
    /// Starts a binary, with `variables` added to Lambda's own, and waits for the end of its init phase.
    ///
    /// # Errors
    ///
    /// Returns an error when the binary is missing, exits, or requests no event within Lambda's limit.
    pub async fn start<N: AsRef<OsStr>, V: AsRef<OsStr>>(
        binary: &Path,
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self> {
        let runtime_api = RuntimeApi::start().await?;
        let stdout = tempfile::NamedTempFile::new()?;
        let mut command = Command::new(binary);
        command
            .env_clear()
            .env("AWS_LAMBDA_RUNTIME_API", &runtime_api.address)
            .envs(lambda_variables())
            .envs(variables)
            .stdin(Stdio::null())
            .stdout(stdout.reopen()?)
            .stderr(Stdio::null())
            .kill_on_drop(true);
        let start = Instant::now();
        let mut child = command.spawn().with_context(|| format!("can't start {}; build it first", binary.display()))?;
        let pid = child.id().context("the process has already exited")?;
        let ready = tokio::select! {
            ready = tokio::time::timeout(INIT_TIMEOUT, runtime_api.ready()) => ready.context("the function requests no event")?,
            exited = child.wait() => {
                bail!("{} exited with {}: {}", binary.display(), exited?, std::fs::read_to_string(stdout.path())?)
            }
        };
        Ok(Self { runtime_api, init: ready - start, child, pid, stdout })
    }

    /// Each line is a JSON object.
    ///
    /// # Errors
    ///
    /// Returns an error when a line is not JSON.
    pub fn log(&self) -> Result<Vec<Value>> {
        let text = std::fs::read_to_string(self.stdout.path())?;
        text.lines().map(|line| serde_json::from_str(line).with_context(|| format!("not JSON: {line}"))).collect()
    }

    /// Of all threads so far.
    ///
    /// # Errors
    ///
    /// Returns an error when the kernel doesn't report it.
    pub fn cpu_time(&self) -> Result<Duration> {
        cpu_time(self.pid)
    }

    /// # Errors
    ///
    /// Returns an error when the kernel doesn't report it.
    pub fn peak_memory_bytes(&self) -> Result<u64> {
        Ok(memory_kilobytes(self.pid, "VmHWM")? * 1024)
    }

    /// Sends SIGTERM and waits for the process to exit.
    ///
    /// # Errors
    ///
    /// Returns an error when the process doesn't exit within two seconds, the time that Lambda allows.
    pub async fn terminate(mut self) -> Result<()> {
        let sent = Command::new("kill").arg("-TERM").arg(self.pid.to_string()).status().await?;
        if !sent.success() {
            bail!("the process has already exited");
        }
        tokio::time::timeout(Duration::from_secs(2), self.child.wait()).await.context("the process ignores SIGTERM")??;
        Ok(())
    }

    /// Kills the process, as Lambda does with an idle one, and waits for its end.
    ///
    /// # Errors
    ///
    /// Returns an error when the process has already exited.
    pub async fn kill(mut self) -> Result<()> {
        Ok(self.child.kill().await?)
    }

    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

/// A figure of a process's memory: `VmRSS` for the present use, `VmHWM` for the highest. `process` is an ID, or `self`.
///
/// # Errors
///
/// Returns an error when the kernel doesn't report it.
pub fn memory_kilobytes(process: impl Display, figure: &str) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let value = status.lines().find_map(|line| line.strip_prefix(figure)?.strip_prefix(':'));
    let value = value.with_context(|| format!("no {figure} in the process status"))?;
    Ok(value.trim().trim_end_matches(" kB").parse()?)
}

/// Of all threads so far.
///
/// # Errors
///
/// Returns an error when the kernel doesn't report it.
pub fn cpu_time(process: impl Display) -> Result<Duration> {
    let mut nanos = 0;
    for thread in std::fs::read_dir(format!("/proc/{process}/task"))? {
        let text = std::fs::read_to_string(thread?.path().join("schedstat"))?;
        nanos += text.split(' ').next().and_then(|number| number.parse::<u64>().ok()).context("can't parse schedstat")?;
    }
    Ok(Duration::from_nanos(nanos))
}
