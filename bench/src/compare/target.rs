//! A running binary: a function behind the Runtime API, or the dev server.

use super::Kind;
use crate::server_process::ServerProcess;
use anyhow::{Context, Result, ensure};
use axum::body::{Body, to_bytes};
use axum::http::Request;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rig::environment::Environment;
use rig::events::request_with_query;
use rig::function::Function;
use rig::usage::{cpu_time, memory_kilobytes};
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(15);

pub enum Target<'a> {
    Function { function: Box<Function>, environment: &'a Environment },
    Server { process: ServerProcess, client: Box<Client<HttpConnector, Body>>, asset_id: String },
}

impl<'a> Target<'a> {
    /// Starts a binary and waits until it can be sent requests.
    pub async fn start(binary: &Path, environment: &'a Environment) -> Result<Self> {
        if !binary.ends_with(dev_server::options::NAME) {
            let function = Box::new(environment.start_binary(binary).await?);
            return Ok(Self::Function { function, environment });
        }
        let process = ServerProcess::start(binary)?;
        let client = Box::new(Client::builder(TokioExecutor::new()).build_http());
        let create = http_request("POST", &process, "/assets", "application/json", r#"{"name": "Laptop"}"#.to_owned())?;
        let created: Value = serde_json::from_slice(&to_bytes(Body::new(client.request(create).await?), usize::MAX).await?)?;
        let asset_id = created["data"]["id"].as_str().with_context(|| format!("can't create the asset: {created}"))?.to_owned();
        Ok(Self::Server { process, client, asset_id })
    }

    /// Time until the function requested its first event, or the server was ready.
    pub fn start_time(&self) -> Duration {
        match self {
            Self::Function { function, .. } => function.init,
            Self::Server { process, .. } => process.start,
        }
    }

    /// CPU time that the process has used so far, the engine's included if it is the server.
    pub fn cpu_time(&self) -> Result<Duration> {
        match self {
            Self::Function { function, .. } => function.cpu_time(),
            Self::Server { process, .. } => cpu_time(process.pid()),
        }
    }

    pub fn peak_memory_bytes(&self) -> Result<u64> {
        match self {
            Self::Function { function, .. } => function.peak_memory_bytes(),
            Self::Server { process, .. } => Ok(memory_kilobytes(process.pid(), "VmHWM")? * 1024),
        }
    }

    /// Sends a request, which must be successful; returns the time until it was answered.
    pub async fn send(&self, kind: &Kind, number: usize) -> Result<Duration> {
        let body = kind.body.as_ref().map(|body| body.replace("NUMBER", &number.to_string()));
        let (status, duration) = match self {
            Self::Function { function, environment } => {
                let path = kind.path.replace("ASSET", &environment.asset_id);
                let (path, query) = path.split_once('?').unwrap_or((&path, ""));
                let event = request_with_query(kind.method, path, query, &environment.api_key, kind.content_type, body);
                let invocation = function.runtime_api.invoke(&event, TIMEOUT).await?;
                (invocation.response["statusCode"].as_u64().unwrap_or_default(), invocation.duration)
            }
            Self::Server { process, client, asset_id } => {
                let path = kind.path.replace("ASSET", asset_id).replacen("/v1", "", 1);
                let request = http_request(kind.method, process, &path, kind.content_type, body.unwrap_or_default())?;
                let began = Instant::now();
                let response = tokio::time::timeout(TIMEOUT, client.request(request)).await??;
                let status = response.status();
                to_bytes(Body::new(response), usize::MAX).await?;
                (status.as_u16().into(), began.elapsed())
            }
        };
        ensure!(matches!(status, 200 | 201), "{} was answered with {status}", kind.label);
        Ok(duration)
    }

    /// Ends the process, so that it doesn't slow down the next one's start.
    pub async fn stop(self) -> Result<()> {
        match self {
            Self::Function { function, .. } => function.kill().await,
            Self::Server { .. } => Ok(()),
        }
    }
}

fn http_request(method: &str, server: &ServerProcess, path: &str, content_type: &str, body: String) -> Result<Request<Body>> {
    let request = Request::builder().method(method).uri(format!("{}{path}", server.base_url));
    let request = request.header("authorization", format!("Bearer {}", server.api_key)).header("content-type", content_type);
    Ok(request.body(body.into())?)
}
