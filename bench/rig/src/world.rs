//! A table with a tenant, as functions meet it.

use crate::emulator::Emulator;
use crate::front::Front;
use crate::process::{Process, binaries};
use anyhow::{Context, Result};
use aws_sdk_dynamodb::Client;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use local::engine::{self, Engine};
use local::server::{self, TABLE};
use local::table;
use serde_json::Value;
use shared::app::{App, system_clock};
use shared::domain::api_key::MAX_RATE_LIMIT;
use shared::store::Store;
use std::ffi::OsStr;
use tower::ServiceExt;

/// What functions trust beside the front here, as they do where AWS answers: reading it is a part of their start.
const ROOTS: &str = include_str!("../../../shared/src/store/roots.pem");

/// An engine with the table, a tenant with a key and an asset, and a front with TLS before it.
pub struct World {
    /// The front.
    pub front: Front,
    /// A client of the engine itself.
    pub dynamo: Client,
    /// The table.
    pub table: &'static str,
    /// A key that may do everything.
    pub api_key: String,
    /// The id of an asset.
    pub asset: String,
    bundle: tempfile::NamedTempFile,
    _engine: Engine,
}

impl World {
    /// Makes all of it, in memory.
    ///
    /// # Errors
    ///
    /// The engine does not start.
    pub async fn start() -> Result<Self> {
        let engine = Engine::start(None, ([127, 0, 0, 1], 0).into())?;
        let dynamo = Client::from_conf(engine::config(&engine.url).build());
        table::create(&dynamo, TABLE).await?;
        let store = Store::new(dynamo.clone(), TABLE, system_clock());
        let made = store.create_tenant("Acme".parse()?, None, MAX_RATE_LIMIT).await?;
        let api_key = made.api_key.expose();
        let front = Front::start(engine.url.trim_start_matches("http://").parse()?).await?;
        let bundle = tempfile::NamedTempFile::new()?;
        std::fs::write(bundle.path(), [front.certificate.as_str(), ROOTS].concat())?;
        let asset = make_asset(store, &api_key).await?;
        Ok(Self { front, dynamo, table: TABLE, api_key, asset, bundle, _engine: engine })
    }

    /// Starts a binary of this workspace on the table.
    ///
    /// # Errors
    ///
    /// As [`Process::start`].
    pub async fn run(&self, binary: &str) -> Result<Process> {
        self.run_with(binary, &[]).await
    }

    /// [`World::run`] with these variables instead of the usual ones.
    ///
    /// # Errors
    ///
    /// As [`Process::start`].
    pub async fn run_with(&self, binary: &str, variables: &[(&'static str, &str)]) -> Result<Process> {
        let others = variables.iter().map(|(name, value)| (*name, OsStr::new(value)));
        Process::start(&binaries().join(binary), self.variables().into_iter().chain(others)).await
    }

    /// Starts a binary of this workspace on the table, in AWS's emulator of Lambda.
    ///
    /// # Errors
    ///
    /// As [`Emulator::start`].
    pub async fn emulate(&self, binary: &str) -> Result<Emulator> {
        Emulator::start(&binaries().join(binary), self.variables()).await
    }

    fn variables(&self) -> [(&'static str, &OsStr); 3] {
        [
            ("TABLE_NAME", self.table.as_ref()),
            ("AWS_ENDPOINT_URL_DYNAMODB", self.front.url.as_ref()),
            ("AWS_CA_BUNDLE", self.bundle.path().as_os_str()),
        ]
    }
}

async fn make_asset(store: Store, api_key: &str) -> Result<String> {
    let request = Request::builder()
        .method("POST")
        .uri("/v1/assets")
        .header("authorization", format!("Bearer {api_key}"))
        .header("content-type", "application/json")
        .body(Body::from(r#"{"name": "Laptop"}"#))?;
    let response = server::router(App::new(store)).oneshot(request).await?;
    let answer: Value = serde_json::from_slice(&to_bytes(response.into_body(), usize::MAX).await?)?;
    Ok(answer["data"]["id"].as_str().with_context(|| format!("no asset was made: {answer}"))?.to_owned())
}
