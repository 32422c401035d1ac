//! Makes connections to receivers, to the very addresses that were checked.

use super::connection::Connection;
use super::failure::{ConnectError, classify};
use super::resolver::Resolve;
use super::rules::Rules;
use futures_util::future::BoxFuture;
use hyper::Uri;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use shared::domain::webhooks::AttemptFailure;
use std::net::IpAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tower::Service;

const MAX_ADDRESSES: usize = 4;

#[derive(Clone)]
pub(super) struct Connector(Arc<Inner>);

struct Inner {
    rules: Rules,
    resolver: Arc<dyn Resolve>,
    tls: TlsConnector,
    limit: Duration,
}

/// With these certificate authorities, and only HTTP/1.1 over it.
pub(super) fn tls_config(roots: RootCertStore) -> Arc<ClientConfig> {
    // A provider that was installed before is fine, too.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(config)
}

impl Connector {
    /// Every connection is made within `limit`, or not at all.
    pub fn new(rules: Rules, resolver: Arc<dyn Resolve>, tls: Arc<ClientConfig>, limit: Duration) -> Self {
        Self(Arc::new(Inner { rules, resolver, tls: TlsConnector::from(tls), limit }))
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Connection>;
    type Error = ConnectError;
    type Future = BoxFuture<'static, Result<Self::Response, ConnectError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let inner = Arc::clone(&self.0);
        Box::pin(async move {
            let connection = timeout(inner.limit, inner.connect(&uri)).await;
            connection.unwrap_or(Err(AttemptFailure::TimedOut)).map(TokioIo::new).map_err(ConnectError)
        })
    }
}

impl Inner {
    /// Resolves the host, once, checks every address of it, and connects to one of these.
    async fn connect(&self, uri: &Uri) -> Result<Connection, AttemptFailure> {
        let with_tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(AttemptFailure::AddressNotAllowed),
        };
        let host = uri.host().ok_or(AttemptFailure::AddressNotAllowed)?;
        // IPv6 addresses have brackets in addresses of the web, and nowhere else.
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let port = uri.port_u16().unwrap_or(if with_tls { 443 } else { 80 });
        if !self.rules.permit_port(with_tls, port) {
            return Err(AttemptFailure::AddressNotAllowed);
        }
        let addresses = self.addresses(host).await?;
        if !self.rules.permit_addresses(with_tls, port, &addresses) {
            return Err(AttemptFailure::AddressNotAllowed);
        }
        let stream = self.open(&addresses, port).await?;
        if !with_tls {
            return Ok(Connection::new(stream));
        }
        let name = ServerName::try_from(host.to_owned()).map_err(|_| AttemptFailure::TlsFailed)?;
        let stream = self.tls.connect(name, stream).await.map_err(|error| classify(&error))?;
        Ok(Connection::new(stream))
    }

    /// There is at least one.
    async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, AttemptFailure> {
        if let Ok(address) = host.parse() {
            return Ok(vec![address]);
        }
        let addresses = self.resolver.addresses(host).await.unwrap_or_default();
        if addresses.is_empty() { Err(AttemptFailure::NameNotFound) } else { Ok(addresses) }
    }

    /// Opens a connection to the first of these addresses that accepts one. They share the time.
    async fn open(&self, addresses: &[IpAddr], port: u16) -> Result<TcpStream, AttemptFailure> {
        let addresses = addresses.iter().take(MAX_ADDRESSES);
        let share = self.limit / u32::try_from(addresses.len()).unwrap_or(1).max(1);
        let mut result = Err(AttemptFailure::ConnectionFailed);
        for address in addresses {
            result = match timeout(share, TcpStream::connect((*address, port))).await {
                Ok(Ok(stream)) => {
                    // Without it, small bodies would wait for others to join them.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Ok(Err(error)) => Err(classify(&error)),
                Err(_) => Err(AttemptFailure::TimedOut),
            };
        }
        result
    }
}
