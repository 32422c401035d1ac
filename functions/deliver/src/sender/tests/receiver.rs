//! Receivers on this machine. Each test decides how they handle connections.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, LazyLock, Mutex};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// A connection's bytes, with or without TLS.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A response without a body, after which the connection can be reused.
pub const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

pub struct Identity {
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
}

pub struct Certificates {
    /// The authority that senders trust.
    pub root: CertificateDer<'static>,
    /// Issued by the authority, for the receivers' name and the loopback addresses.
    pub valid: Identity,
    /// Issued by the authority for a different name.
    pub other_name: Identity,
    /// Issued by the authority, but expired.
    pub expired: Identity,
    /// Issued by an authority that senders don't trust.
    pub untrusted: Identity,
}

pub fn certificates() -> &'static Certificates {
    static CERTIFICATES: LazyLock<Certificates> = LazyLock::new(|| {
        let authority = || {
            let mut params = CertificateParams::new(Vec::new()).unwrap();
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            let key = KeyPair::generate().unwrap();
            (params.self_signed(&key).unwrap().der().clone(), Issuer::new(params, key))
        };
        let params =
            |names: &[&str]| CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
        let issue = |issuer: &Issuer<'static, KeyPair>, params: CertificateParams| {
            let key = KeyPair::generate().unwrap();
            let certificate = params.signed_by(&key, issuer).unwrap().der().clone();
            Identity { certificate, key: key.serialize_der() }
        };
        let names = [super::NAME, "localhost", "127.0.0.1", "::1"];
        let mut expired = params(&names);
        expired.not_after = date_time_ymd(2020, 1, 1);
        let ((root, issuer), (_, stranger)) = (authority(), authority());
        Certificates {
            root,
            valid: issue(&issuer, params(&names)),
            other_name: issue(&issuer, params(&["other.test"])),
            expired: issue(&issuer, expired),
            untrusted: issue(&stranger, params(&names)),
        }
    });
    &CERTIFICATES
}

#[derive(Default)]
struct Seen {
    connections: Vec<IpAddr>,
    requests: Vec<String>,
}

/// Stops when dropped.
pub struct Receiver {
    /// Port on every address of this machine.
    pub port: u16,
    seen: Arc<Mutex<Seen>>,
    task: JoinHandle<()>,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Receiver {
    pub async fn plain<F: Future<Output = ()> + Send + 'static>(handle: impl Fn(Accepted) -> F + Send + Sync + 'static) -> Self {
        Self::start(None, handle).await
    }

    pub async fn tls<F: Future<Output = ()> + Send + 'static>(handle: impl Fn(Accepted) -> F + Send + Sync + 'static) -> Self {
        Self::start(Some(&certificates().valid), handle).await
    }

    /// Calls `handle` for every connection.
    pub async fn start<F: Future<Output = ()> + Send + 'static>(
        identity: Option<&Identity>,
        handle: impl Fn(Accepted) -> F + Send + Sync + 'static,
    ) -> Self {
        let acceptor = identity.map(acceptor);
        // Listens on all addresses, so that a connection to the wrong address arrives as well. Not every machine has IPv6.
        let listener = match TcpListener::bind("[::]:0").await {
            Ok(listener) => listener,
            Err(_) => TcpListener::bind("0.0.0.0:0").await.unwrap(),
        };
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::<Mutex<Seen>>::default();
        let (log, handle) = (Arc::clone(&seen), Arc::new(handle));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let address = stream.local_addr().map(|address: SocketAddr| address.ip().to_canonical());
                log.lock().unwrap().connections.extend(address);
                let (acceptor, log, handle) = (acceptor.clone(), Arc::clone(&log), Arc::clone(&handle));
                tokio::spawn(async move {
                    let stream: Box<dyn Stream> = match acceptor {
                        Some(acceptor) => match acceptor.accept(stream).await {
                            Ok(stream) => Box::new(stream),
                            Err(_) => return,
                        },
                        None => Box::new(stream),
                    };
                    handle(Accepted { stream, seen: log }).await;
                });
            }
        });
        Self { port, seen, task }
    }

    /// Starts a receiver with TLS that responds to every request with this text.
    pub async fn responding(text: &'static str) -> Self {
        Self::tls(move |accepted| accepted.respond_always(text)).await
    }

    /// Returns the receiver's URL with its name, for TLS.
    pub fn url(&self) -> String {
        format!("https://{}:{}/hook", super::NAME, self.port)
    }

    /// Returns the receiver's URL with its address, without TLS.
    pub fn plain_url(&self) -> String {
        format!("http://127.0.0.1:{}/hook", self.port)
    }

    pub fn connections(&self) -> Vec<IpAddr> {
        self.seen.lock().unwrap().connections.clone()
    }

    pub fn requests(&self) -> Vec<String> {
        self.seen.lock().unwrap().requests.clone()
    }
}

fn acceptor(identity: &Identity) -> TlsAcceptor {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(identity.key.clone()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![identity.certificate.clone()], key);
    TlsAcceptor::from(Arc::new(config.unwrap()))
}

pub struct Accepted {
    stream: Box<dyn Stream>,
    seen: Arc<Mutex<Seen>>,
}

impl Accepted {
    /// Reads and records a request. Returns `false` if the connection has ended.
    pub async fn read(&mut self) -> bool {
        let mut request = Vec::new();
        let length = |request: &[u8]| {
            let text = String::from_utf8_lossy(request);
            let (head, _) = text.split_once("\r\n\r\n")?;
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
            Some(head.len() + 4 + length.parse::<usize>().unwrap())
        };
        while length(&request).is_none_or(|length| request.len() < length) {
            let Ok(byte) = self.stream.read_u8().await else { return false };
            request.push(byte);
        }
        let request = String::from_utf8(request).unwrap();
        self.seen.lock().unwrap().requests.push(request);
        true
    }

    /// Returns `false` if the connection has ended.
    pub async fn write(&mut self, text: &str) -> bool {
        self.stream.write_all(text.as_bytes()).await.is_ok() && self.stream.flush().await.is_ok()
    }

    pub async fn until_closed(mut self) {
        while let Ok(1..) = self.stream.read(&mut [0; 1024]).await {}
    }

    /// Responds to a request with this text, then waits until the sender has closed the connection.
    pub async fn respond_once(mut self, text: &str) {
        if self.read().await && self.write(text).await {
            self.until_closed().await;
        }
    }

    pub async fn respond_always(mut self, text: &'static str) {
        while self.read().await && self.write(text).await {}
    }
}
