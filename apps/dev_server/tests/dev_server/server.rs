//! The real router behind a port, with limits of a test, and clients that send any bytes.

use aws_sdk_dynamodb::Client as Dynamo;
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use dev_server::in_process::InProcessEngine;
use dev_server::serving::{self, Limits};
use dev_server::{engine, server, table};
use shared::app::{App, system_clock};
use shared::domain::keys::api_key::MAX_RATE_LIMIT;
use shared::store::Store;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// The longest wait of a test, on a machine that is very busy.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Server {
    address: SocketAddr,
    /// A key with every scope.
    pub key: String,
    signal: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

pub struct Client(TcpStream);

impl Server {
    pub async fn start(limits: Limits) -> Self {
        let http = SharedHttpClient::new(InProcessEngine::new().unwrap());
        let dynamo = Dynamo::from_conf(engine::config("http://engine.invalid").http_client(http).build());
        table::create(&dynamo, server::TABLE).await.unwrap();
        let store = Store::new(dynamo, server::TABLE, system_clock());
        let tenant = store.create_tenant("Acme".parse().unwrap(), None, MAX_RATE_LIMIT).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (signal, signalled) = oneshot::channel();
        let serving = tokio::spawn(async move {
            let stop = async { signalled.await.unwrap() };
            serving::serve(listener, server::router(App::new(store)), limits, stop).await.shutdown().await;
        });
        Self { address, key: tenant.api_key.expose(), signal, serving }
    }

    pub async fn connect(&self) -> Client {
        Client(TcpStream::connect(self.address).await.unwrap())
    }

    /// The task ends with the last connection.
    pub fn stop(self) -> JoinHandle<()> {
        self.signal.send(()).unwrap();
        self.serving
    }
}

impl Client {
    pub async fn send(&mut self, text: &str) {
        timeout(PATIENCE, self.0.write_all(text.as_bytes())).await.unwrap().unwrap();
    }

    pub async fn response(&mut self) -> String {
        timeout(PATIENCE, read_response(&mut self.0)).await.unwrap()
    }

    /// Sends a text again and again until the response comes.
    pub async fn response_while_sending(&mut self, text: &str) -> String {
        let (mut receive, mut send) = self.0.split();
        let sending = async {
            while send.write_all(text.as_bytes()).await.is_ok() {
                sleep(Duration::from_millis(5)).await;
            }
            std::future::pending::<()>().await;
        };
        let response = async {
            tokio::select! {
                response = read_response(&mut receive) => response,
                () = sending => unreachable!(),
            }
        };
        timeout(PATIENCE, response).await.unwrap()
    }

    /// All bytes until the server closes the connection.
    pub async fn rest(&mut self) -> String {
        let mut rest = String::new();
        timeout(PATIENCE, self.0.read_to_string(&mut rest)).await.unwrap().unwrap();
        rest
    }
}

/// By the header `content-length`.
async fn read_response(stream: &mut (impl AsyncReadExt + Unpin)) -> String {
    let mut response = Vec::new();
    while !response.ends_with(b"\r\n\r\n") {
        response.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(response).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    head + &String::from_utf8(body).unwrap()
}
