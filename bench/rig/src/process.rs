//! A function's binary as a process, with the environment that Lambda gives it.

use crate::runtime_api::RuntimeApi;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::process::{Child, Command};

/// How long a function may take to ask for its first event: Lambda's own limit.
const INIT: Duration = Duration::from_secs(10);

/// The variables that Lambda sets, and the one that template.yaml adds for every function alike.
#[must_use]
pub const fn environment() -> [(&'static str, &'static str); 9] {
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

/// A function that runs; killed when dropped.
pub struct Process {
    /// The Runtime API that it asks.
    pub api: RuntimeApi,
    /// From the start of the process to its first question for an event.
    pub init: Duration,
    child: Child,
    pid: u32,
    lines: tempfile::NamedTempFile,
}

/// The folder of the release binaries: `FUNCTIONS_DIR`, or where cargo puts those of this workspace.
#[must_use]
pub fn binaries() -> PathBuf {
    let named = |name| std::env::var_os(name).map(PathBuf::from);
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    named("FUNCTIONS_DIR").unwrap_or_else(|| workspace.join(named("CARGO_TARGET_DIR").unwrap_or("target".into())).join("release"))
}

impl Process {
    /// Starts a binary with these variables beside Lambda's own, and waits for the end of its init phase.
    ///
    /// # Errors
    ///
    /// It is not there, ends, or does not ask for an event.
    pub async fn start<N: AsRef<OsStr>, V: AsRef<OsStr>>(
        binary: &Path,
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self> {
        let api = RuntimeApi::start().await?;
        let lines = tempfile::NamedTempFile::new()?;
        let mut command = Command::new(binary);
        command
            .env_clear()
            .env("AWS_LAMBDA_RUNTIME_API", &api.address)
            .envs(environment())
            .envs(variables)
            .stdin(Stdio::null())
            .stdout(lines.reopen()?)
            .stderr(Stdio::null())
            .kill_on_drop(true);
        let started = Instant::now();
        let mut child = command.spawn().with_context(|| format!("can't start {}; build it first", binary.display()))?;
        let pid = child.id().context("it ended at once")?;
        let ready = tokio::select! {
            ready = tokio::time::timeout(INIT, api.ready()) => ready.context("it asks for no event")?,
            ended = child.wait() => bail!("{} ended with {}: {}", binary.display(), ended?, std::fs::read_to_string(lines.path())?),
        };
        Ok(Self { api, init: ready - started, child, pid, lines })
    }

    /// What it has logged so far: a JSON object a line.
    ///
    /// # Errors
    ///
    /// A line is something else.
    pub fn log(&self) -> Result<Vec<Value>> {
        let text = std::fs::read_to_string(self.lines.path())?;
        text.lines().map(|line| serde_json::from_str(line).with_context(|| format!("{line} is no JSON"))).collect()
    }

    /// Time on a processor so far, of all its threads.
    ///
    /// # Errors
    ///
    /// The kernel does not say.
    pub fn cpu(&self) -> Result<Duration> {
        let mut nanos = 0;
        for thread in std::fs::read_dir(format!("/proc/{}/task", self.pid))? {
            let text = std::fs::read_to_string(thread?.path().join("schedstat"))?;
            nanos += text.split(' ').next().and_then(|number| number.parse::<u64>().ok()).context("no schedstat")?;
        }
        Ok(Duration::from_nanos(nanos))
    }

    /// The most memory that it had, in bytes.
    ///
    /// # Errors
    ///
    /// The kernel does not say.
    pub fn peak_memory(&self) -> Result<u64> {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.pid))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM")?;
        Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? * 1024)
    }

    /// Sends SIGTERM and waits for its end.
    ///
    /// # Errors
    ///
    /// It does not end within two seconds, after which Lambda would kill it.
    pub async fn terminate(mut self) -> Result<()> {
        let sent = Command::new("kill").arg("-TERM").arg(self.pid.to_string()).status().await?;
        if !sent.success() {
            bail!("it was gone already");
        }
        tokio::time::timeout(Duration::from_secs(2), self.child.wait()).await.context("SIGTERM does not end it")??;
        Ok(())
    }

    /// Kills it, as Lambda ends one that sleeps, and waits until it is gone.
    ///
    /// # Errors
    ///
    /// It was gone already.
    pub async fn kill(mut self) -> Result<()> {
        Ok(self.child.kill().await?)
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}
