//! A TLS proxy in front of the embedded engine, which only speaks plain HTTP. Functions reach their table over TLS.

use anyhow::Result;
use rcgen::{CertificateParams, KeyPair};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// A running proxy with a self-signed certificate. Dropping it ends it.
pub struct TlsProxy {
    pub url: String,
    /// Its certificate in PEM, to be trusted through `AWS_CA_BUNDLE`.
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
    /// Returns an error when the certificate can't be created or no port is free.
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
    // Errors end the connection; the client notices that by itself.
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
            // Fails only when the proxy was dropped.
            let _ = paused.wait_for(|is_paused| !is_paused).await;
        }
        to.write_all(&bytes[..read]).await?;
        to.flush().await?;
    }
}
