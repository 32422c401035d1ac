//! The environment of a function: a table that contains a tenant, behind a TLS proxy, because functions reach their table over
//! TLS and the embedded engine speaks plain HTTP.

use crate::function::{Function, binaries_dir};
use anyhow::{Context, Result};
use aws_sdk_dynamodb::Client;
use dev_server::api::{ApiClient, JSON};
use dev_server::engine::{self, Engine};
use dev_server::server::{self, TABLE};
use dev_server::table;
use rcgen::{CertificateParams, KeyPair};
use shared::domain::keys::api_key::MAX_RATE_LIMIT;
use shared::services::{App, system_clock};
use shared::store::Store;
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// AWS's root certificates. Functions trust them in addition to the proxy's certificate, so that a measured cold start includes
/// parsing them.
const AWS_ROOTS: &str = include_str!("../../../shared/aws/src/roots.pem");

/// An engine with the table, a tenant with an API key and an asset, and a TLS proxy in front of the engine.
pub struct Environment {
    /// The proxy through which functions reach the engine.
    pub proxy: TlsProxy,
    /// A client connected directly to the engine.
    pub dynamo: Client,
    pub table: &'static str,
    pub api_key: String,
    pub asset_id: String,
    ca_bundle: tempfile::NamedTempFile,
    _engine: Engine,
}

impl Environment {
    /// # Errors
    ///
    /// Returns an error if the engine or the proxy can't be started.
    pub async fn start() -> Result<Self> {
        let engine = Engine::start(None, ([127, 0, 0, 1], 0).into())?;
        let dynamo = Client::from_conf(engine::config(&engine.url).build());
        table::create(&dynamo, TABLE).await?;
        let store = Store::new(dynamo.clone(), TABLE, system_clock());
        let created = store.create_tenant("Acme".parse()?, None, MAX_RATE_LIMIT).await?;
        let api_key = created.api_key.expose();
        let proxy = TlsProxy::start(engine.url.trim_start_matches("http://").parse()?).await?;
        let ca_bundle = tempfile::NamedTempFile::new()?;
        std::fs::write(ca_bundle.path(), [proxy.certificate.as_str(), AWS_ROOTS].concat())?;
        let client = ApiClient { router: server::router(App::new(store)), api_key: api_key.clone() };
        let (_, asset) = client.send("POST", "/assets", &[JSON], r#"{"name": "Laptop"}"#).await?;
        let asset_id = asset["data"]["id"].as_str().with_context(|| format!("can't create the asset: {asset}"))?.to_owned();
        Ok(Self { proxy, dynamo, table: TABLE, api_key, asset_id, ca_bundle, _engine: engine })
    }

    /// Starts a release binary of this workspace.
    ///
    /// # Errors
    ///
    /// See [`Function::start`].
    pub async fn start_function(&self, name: &str) -> Result<Function> {
        self.start_binary(&binaries_dir().join(name)).await
    }

    /// Starts any binary of a function.
    ///
    /// # Errors
    ///
    /// See [`Function::start`].
    pub async fn start_binary(&self, binary: &Path) -> Result<Function> {
        Function::start(binary, self.variables()).await
    }

    /// Starts a release binary of this workspace, with `variables` that extend or override the environment's variables.
    ///
    /// # Errors
    ///
    /// See [`Function::start`].
    pub async fn start_function_with(&self, name: &str, variables: &[(&'static str, &str)]) -> Result<Function> {
        let variables = variables.iter().map(|(name, value)| (*name, OsStr::new(value)));
        Function::start(&binaries_dir().join(name), self.variables().into_iter().chain(variables)).await
    }

    fn variables(&self) -> [(&'static str, &OsStr); 3] {
        [
            ("TABLE_NAME", self.table.as_ref()),
            ("AWS_ENDPOINT_URL_DYNAMODB", self.proxy.url.as_ref()),
            ("AWS_CA_BUNDLE", self.ca_bundle.path().as_os_str()),
        ]
    }
}

/// A running proxy with a self-signed certificate. Stops when dropped.
pub struct TlsProxy {
    pub url: String,
    /// The proxy's certificate in PEM format, to trust through `AWS_CA_BUNDLE`.
    pub certificate: String,
    pause: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Drop for TlsProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl TlsProxy {
    /// # Errors
    ///
    /// Returns an error if the certificate can't be created or no port is free.
    pub async fn start(target: SocketAddr) -> Result<Self> {
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new(vec!["localhost".to_owned()])?.self_signed(&key)?;
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private)?;
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("https://localhost:{}", listener.local_addr()?.port());
        let (pause, paused) = watch::channel(false);
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(forward(acceptor.clone(), client, target, paused.clone()));
            }
        });
        Ok(Self { url, certificate: certificate.pem(), pause, task })
    }

    /// Holds back all requests, like a table that doesn't respond, or forwards them again.
    pub fn pause(&self, is_paused: bool) {
        self.pause.send_replace(is_paused);
    }
}

async fn forward(acceptor: TlsAcceptor, client: TcpStream, target: SocketAddr, paused: watch::Receiver<bool>) {
    // After an error, the connection is closed, and the client notices.
    let _ = client.set_nodelay(true);
    let Ok(client) = acceptor.accept(client).await else { return };
    let Ok(server) = TcpStream::connect(target).await else { return };
    let _ = server.set_nodelay(true);
    let (from_client, to_client) = tokio::io::split(client);
    let (from_server, to_server) = tokio::io::split(server);
    let _ = tokio::try_join!(copy(from_client, to_server, Some(paused)), copy(from_server, to_client, None));
}

async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut paused: Option<watch::Receiver<bool>>,
) -> std::io::Result<()> {
    let mut bytes = vec![0; 64 * 1024];
    loop {
        let read = from.read(&mut bytes).await?;
        if read == 0 {
            return to.shutdown().await;
        }
        if let Some(paused) = &mut paused {
            // Fails only if the proxy was dropped.
            let _ = paused.wait_for(|is_paused| !is_paused).await;
        }
        to.write_all(&bytes[..read]).await?;
        to.flush().await?;
    }
}
