//! Runs the real binary.

pub mod inventory_files;
pub mod scripted;
pub mod server;
pub mod service;

use axum::Router;
use serde_json::Value;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

pub const KEY: &str = "apl_0351f4Sjsecret";

pub struct Folder(TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

pub fn command(url: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_assetctl"));
    command.args(arguments).env("ASSETCTL_BASE_URL", url).env("ASSETCTL_API_KEY", KEY).env_remove("ASSETCTL_API_KEY_FILE");
    command.env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command
}

pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    pub fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let run = Self { code: output.status.code().unwrap_or(-1), stdout: text(output.stdout), stderr: text(output.stderr) };
        assert!(!run.stdout.contains(KEY) && !run.stderr.contains(KEY), "the key was displayed");
        run
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}\n{}", self.stdout, self.stderr))
    }

    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{}{}", self.stdout, self.stderr);
        self
    }

    /// Checks the exit code, and that standard error has this text.
    #[track_caller]
    pub fn tells(&self, code: i32, text: &str) {
        assert!(self.code == code && self.stderr.contains(text), "{code} {text:?}: {} {}{}", self.code, self.stdout, self.stderr);
    }

    #[track_caller]
    pub fn shows(&self, text: &str) {
        assert!(self.code == 0 && self.stdout.contains(text), "{text:?}: {} {}{}", self.code, self.stdout, self.stderr);
    }

    pub fn link(&self) -> String {
        assert!(self.code == 0 && self.stdout.contains("/v1/sign#sgn_"), "{}{}", self.stdout, self.stderr);
        assert_eq!(self.stdout.lines().count(), 1, "{}", self.stdout);
        self.stdout.trim().to_owned()
    }

    pub fn counts(&self) -> [u64; 4] {
        counts(&self.json())
    }
}

/// Returns the numbers of created, updated, unchanged and refused rows in an import's summary.
pub fn counts(summary: &Value) -> [u64; 4] {
    ["created", "updated", "unchanged", "refused"].map(|name| summary[name].as_u64().unwrap())
}

/// Starts a command whose output is read later.
pub fn spawn(mut command: Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

pub fn end(child: Child) -> Run {
    Run::of(child.wait_with_output().unwrap())
}

/// Types input into a command, and closes its standard input.
pub fn type_text(mut child: Child, text: impl AsRef<[u8]>) -> Run {
    child.stdin.take().unwrap().write_all(text.as_ref()).unwrap();
    end(child)
}

pub fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

pub fn interrupt(child: &Child) {
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
}

/// Serves routes at a free port. Returns the URL without a path.
pub fn serve(routes: Router) -> (Runtime, String) {
    let runtime = Runtime::new().unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    runtime.spawn(async move { axum::serve(listener, routes).await });
    (runtime, url)
}

/// Reads a command's stderr up to and including `text`.
pub fn stderr_until(child: &mut Child, text: &str) -> String {
    let (mut said, stderr) = (Vec::new(), child.stderr.as_mut().unwrap());
    while !said.ends_with(text.as_bytes()) {
        let mut byte = [0];
        stderr.read_exact(&mut byte).unwrap_or_else(|_| panic!("{text:?} is not in {}", String::from_utf8_lossy(&said)));
        said.extend(byte);
    }
    String::from_utf8(said).unwrap()
}

pub fn run(url: &str, arguments: &[&str]) -> Run {
    Run::of(command(url, arguments).output().unwrap())
}

pub fn import(url: &str, path: &Path, options: &[&str]) -> Run {
    let mut arguments = vec!["import", path.to_str().unwrap(), "--json"];
    arguments.extend(options);
    run(url, &arguments)
}

pub fn wait_until(what: impl Fn() -> bool) {
    let began = Instant::now();
    while !what() {
        assert!(began.elapsed() < Duration::from_secs(120), "it took too long");
        std::thread::sleep(Duration::from_millis(2));
    }
}
