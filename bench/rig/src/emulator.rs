//! A function in AWS's Lambda Runtime Interface Emulator, which `sam local` uses in its containers.

use crate::function::lambda_variables;
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

/// Timeout for the emulator's start and for each invocation.
const TIMEOUT: Duration = Duration::from_secs(15);

/// A running emulator with one function. Dropping the emulator stops both.
pub struct Emulator {
    address: String,
    _child: Child,
}

impl Emulator {
    /// Starts the emulator for a binary, with `variables` added to Lambda's variables. The first event starts the binary.
    ///
    /// # Errors
    ///
    /// Returns an error if `LAMBDA_RIE` is not set to the emulator's path, or if the emulator can't be started.
    pub async fn start<N: AsRef<OsStr>, V: AsRef<OsStr>>(
        binary: &Path,
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self> {
        let emulator =
            std::env::var_os("LAMBDA_RIE").context("set LAMBDA_RIE to the emulator's path, as .ci/functions/emulator does")?;
        let (address, api) = (free_address()?, free_address()?);
        let child = Command::new(emulator)
            .args(["--runtime-interface-emulator-address", &address, "--runtime-api-address", &api])
            .arg(binary)
            .env_clear()
            .envs(lambda_variables())
            .envs(variables)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("can't start the emulator")?;
        let emulator = Self { address, _child: child };
        tokio::time::timeout(TIMEOUT, emulator.connect()).await.context("the emulator doesn't accept connections")?;
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

    /// # Errors
    ///
    /// Returns an error if there is no response in time, or if the response is not from the function.
    pub async fn invoke(&self, event: &str) -> Result<Value> {
        // HTTP/1.0, so that the response is not chunked.
        let request = format!(
            "POST /2015-03-31/functions/function/invocations HTTP/1.0\r\ncontent-length: {}\r\n\r\n{event}",
            event.len(),
        );
        let mut response = String::new();
        let exchange = async {
            let mut stream = self.connect().await;
            stream.write_all(request.as_bytes()).await?;
            stream.read_to_string(&mut response).await
        };
        tokio::time::timeout(TIMEOUT, exchange).await.context("the emulator doesn't respond")??;
        match response.split_once("\r\n\r\n") {
            Some((head, body)) if head.starts_with("HTTP/1.0 200") => Ok(serde_json::from_str(body)?),
            _ => bail!("unexpected response of the emulator: {response}"),
        }
    }
}

/// Returns a loopback address whose port is currently free.
fn free_address() -> Result<String> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string())
}
