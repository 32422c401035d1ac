//! AWS's own emulator of Lambda, the one that `sam local` puts into its containers.

use crate::process::environment;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::ffi::OsStr;
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

const PATIENCE: Duration = Duration::from_secs(15);

/// The emulator with a function in it; ended when dropped.
pub struct Emulator {
    address: String,
    _child: Child,
}

impl Emulator {
    /// Starts it with a binary, which itself starts with the first event.
    ///
    /// # Errors
    ///
    /// `LAMBDA_RIE` does not say where it is, or it can't be started.
    pub async fn start<N: AsRef<OsStr>, V: AsRef<OsStr>>(
        binary: &Path,
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self> {
        let emulator = std::env::var_os("LAMBDA_RIE").context("set LAMBDA_RIE, as .ci/emulator does")?;
        let (address, api) = (free_address()?, free_address()?);
        let child = Command::new(emulator)
            .args(["--runtime-interface-emulator-address", &address, "--runtime-api-address", &api])
            .arg(binary)
            .env_clear()
            .envs(environment())
            .envs(variables)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("can't start the emulator")?;
        let emulator = Self { address, _child: child };
        tokio::time::timeout(PATIENCE, emulator.connect()).await.context("the emulator does not answer")?;
        Ok(emulator)
    }

    async fn connect(&self) -> TcpStream {
        loop {
            match TcpStream::connect(&self.address).await {
                Ok(stream) => return stream,
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    }

    /// Has the function answer an event.
    ///
    /// # Errors
    ///
    /// There is no answer, or none that a function gives.
    pub async fn invoke(&self, event: &str) -> Result<Value> {
        // 1.0 has no chunks to put together.
        let request = format!(
            "POST /2015-03-31/functions/function/invocations HTTP/1.0\r\ncontent-length: {}\r\n\r\n{event}",
            event.len(),
        );
        let mut answer = String::new();
        let exchange = async {
            let mut stream = self.connect().await;
            stream.write_all(request.as_bytes()).await?;
            stream.read_to_string(&mut answer).await
        };
        tokio::time::timeout(PATIENCE, exchange).await.context("no answer")??;
        match answer.split_once("\r\n\r\n") {
            Some((head, body)) if head.starts_with("HTTP/1.0 200") => Ok(serde_json::from_str(body)?),
            _ => bail!("the emulator answers {answer}"),
        }
    }
}

/// An address that nobody has now.
fn free_address() -> Result<String> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string())
}
