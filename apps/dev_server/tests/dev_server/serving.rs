//! Limits on connections (time, memory and number), with the real router behind a port and clients that send arbitrary bytes.

use aws_sdk_dynamodb::Client as Dynamo;
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use dev_server::in_process::InProcessEngine;
use dev_server::serving::{self, Limits};
use dev_server::test_data::{made_up_key, unknown_tenant};
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

/// Maximum wait of a test, on a very busy machine.
const LONG: Duration = Duration::from_secs(60);
/// A time limit that is short enough for a test to wait until it expires.
const SHORT: Duration = Duration::from_millis(200);
const HEALTH: &str = "GET /v1/health HTTP/1.1\r\nhost: a\r\n\r\n";

fn creation(key: &str, bytes: usize, more: &str) -> String {
    format!("POST /v1/assets HTTP/1.1\r\nhost: a\r\n{key}content-type: application/json\r\ncontent-length: {bytes}\r\n{more}\r\n")
}

fn bearer(key: &str) -> String {
    format!("authorization: Bearer {key}\r\n")
}

#[tokio::test]
async fn without_a_key_the_response_comes_before_the_body() {
    let server = Server::start(Limits::default()).await;
    let mistyped = made_up_key(unknown_tenant()).replace("apl_", "apl_x");
    for headers in [String::new(), bearer("nobody"), bearer(&mistyped), "authorization: Basic YTpi\r\n".to_owned()] {
        for more in ["", "expect: 100-continue\r\n"] {
            let mut client = server.connect().await;
            client.send(&creation(&headers, 1024 * 1024, more)).await;
            let response = client.response().await;
            assert!(response.starts_with("HTTP/1.1 401 ") && response.contains(r#""code":"UNAUTHORIZED""#), "{response}");
            assert_eq!(client.rest().await, "", "the connection is closed");
        }
    }
}

#[tokio::test]
async fn with_a_key_the_body_is_awaited() {
    let server = Server::start(Limits::default()).await;
    for (key, status) in [(made_up_key(unknown_tenant()), "401"), (server.key.clone(), "201")] {
        let mut client = server.connect().await;
        for _ in 0..2 {
            client.send(&creation(&bearer(&key), r#"{"name":"a"}"#.len(), "expect: 100-continue\r\n")).await;
            assert_eq!(client.response().await, "HTTP/1.1 100 Continue\r\n\r\n");
            client.send(r#"{"name":"a"}"#).await;
            let response = client.response().await;
            assert!(
                response.starts_with(&format!("HTTP/1.1 {status} ")) && !response.contains("connection: close"),
                "{response}"
            );
        }
    }
}

#[tokio::test]
async fn what_needs_no_key_is_answered_without_one() {
    let server = Server::start(Limits::default()).await;
    for (method, path, headers, status) in [
        // The body is announced, and a GET has none.
        ("GET", "/v1/health", "", 422),
        ("GET", "/v1/openapi.json", "", 422),
        ("OPTIONS", "/v1/assets", "origin: https://a.example\r\naccess-control-request-method: POST\r\n", 200),
        ("PUT", "/v1/assets", "", 405),
        ("POST", "/v1/nothing", "", 404),
    ] {
        let mut client = server.connect().await;
        client.send(&format!("{method} {path} HTTP/1.1\r\nhost: a\r\n{headers}content-length: 9\r\n\r\n")).await;
        let response = client.response().await;
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{method} {path}: {response}");
    }
}

#[tokio::test]
async fn a_request_must_have_one_host() {
    let server = Server::start(Limits::default()).await;
    for (line, hosts, status) in [
        ("GET /v1/health HTTP/1.1", "", 400),
        ("GET /v1/health HTTP/1.1", "host: a\r\nhost: b\r\n", 400),
        ("GET /v1/health HTTP/1.1", "host: a\r\nhost: a\r\n", 400),
        ("GET /v1/nothing HTTP/1.1", "", 400),
        ("GET /v1/health HTTP/1.0", "", 200),
        ("GET /v1/health HTTP/1.0", "host: a\r\nhost: b\r\n", 400),
        ("GET /v1/health HTTP/1.1", "host: a\r\n", 200),
    ] {
        let mut client = server.connect().await;
        client.send(&format!("{line}\r\n{hosts}\r\n")).await;
        let response = client.response().await;
        let begin = |version: &str| format!("HTTP/{version} {status} ");
        assert!(["1.0", "1.1"].iter().any(|version| response.starts_with(&begin(version))), "{line} {hosts}: {response}");
        assert!(response.to_lowercase().contains("\r\nx-request-id: "), "{response}");
    }
}

#[tokio::test]
async fn a_connection_without_requests_is_closed() {
    let server = Server::start(Limits { headers: SHORT, ..Limits::default() }).await;
    for sent in ["", "GET /v1/health HTTP/1.1\r\nhost:"] {
        let mut client = server.connect().await;
        client.send(sent).await;
        assert_eq!(client.rest().await, "", "{sent}");
    }
    let mut client = server.connect().await;
    client.send(HEALTH).await;
    assert!(client.response().await.starts_with("HTTP/1.1 200 "));
    assert_eq!(client.rest().await, "");
}

#[tokio::test]
async fn a_body_that_takes_too_long_is_refused() {
    let (pausing, slow) = (Limits { pause: SHORT, ..Limits::default() }, Limits { body: SHORT, ..Limits::default() });
    for (limits, is_sent_slowly) in [(pausing, false), (slow, true)] {
        let server = Server::start(limits).await;
        for (key, answer) in [(server.key.as_str(), "The body ended early."), (&made_up_key(unknown_tenant()), "UNAUTHORIZED")] {
            let mut client = server.connect().await;
            client.send(&creation(&bearer(key), 1_000_000, "")).await;
            let response = if is_sent_slowly { client.response_while_sending("n").await } else { client.response().await };
            assert!(response.contains(answer), "{response}");
        }
    }
}

#[tokio::test]
async fn a_response_that_nobody_takes_is_given_up() {
    let server = Server::start(Limits { connections: 1, response: SHORT, ..Limits::default() }).await;
    let mut deaf = server.connect().await;
    // More than the system's buffers can take.
    deaf.send(&"GET /v1/openapi.json HTTP/1.1\r\nhost: a\r\n\r\n".repeat(100)).await;
    let mut next = server.connect().await;
    next.send(HEALTH).await;
    assert!(next.response().await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn one_connection_more_waits_until_another_ends() {
    let server = Server::start(Limits { connections: 2, ..Limits::default() }).await;
    let (mut first, mut second) = (server.connect().await, server.connect().await);
    let mut third = server.connect().await;
    third.send(HEALTH).await;
    let waiting = tokio::spawn(async move { third.response().await });
    for _ in 0..10 {
        for client in [&mut first, &mut second] {
            client.send(HEALTH).await;
            assert!(client.response().await.starts_with("HTTP/1.1 200 "));
        }
    }
    assert!(!waiting.is_finished());
    drop(first);
    assert!(waiting.await.unwrap().starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn a_request_in_progress_ends_after_the_signal() {
    let server = Server::start(Limits::default()).await;
    let (mut idle, mut busy) = (server.connect().await, server.connect().await);
    idle.send(HEALTH).await;
    idle.response().await;
    busy.send(&creation(&bearer(&server.key), r#"{"name":"a"}"#.len(), "expect: 100-continue\r\n")).await;
    busy.response().await;
    let stopped = server.stop();
    assert_eq!(idle.rest().await, "");
    assert!(!stopped.is_finished());
    busy.send(r#"{"name":"a"}"#).await;
    let response = busy.rest().await;
    assert!(response.starts_with("HTTP/1.1 201 ") && response.contains("connection: close"), "{response}");
    stopped.await.unwrap();
}

struct Server {
    address: SocketAddr,
    /// A key with every scope.
    key: String,
    signal: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

struct Client(TcpStream);

impl Server {
    async fn start(limits: Limits) -> Self {
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

    async fn connect(&self) -> Client {
        Client(TcpStream::connect(self.address).await.unwrap())
    }

    /// Stops the server. The returned task ends with the last connection.
    fn stop(self) -> JoinHandle<()> {
        self.signal.send(()).unwrap();
        self.serving
    }
}

impl Client {
    async fn send(&mut self, text: &str) {
        timeout(LONG, self.0.write_all(text.as_bytes())).await.unwrap().unwrap();
    }

    async fn response(&mut self) -> String {
        timeout(LONG, read_response(&mut self.0)).await.unwrap()
    }

    /// Sends a string repeatedly until the response arrives.
    async fn response_while_sending(&mut self, text: &str) -> String {
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
        timeout(LONG, response).await.unwrap()
    }

    async fn rest(&mut self) -> String {
        let mut rest = String::new();
        timeout(LONG, self.0.read_to_string(&mut rest)).await.unwrap().unwrap();
        rest
    }
}

/// Reads a response by its header `content-length`.
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
