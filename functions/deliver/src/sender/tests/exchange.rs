//! What is sent to a receiver, and the outcome.

use super::receiver::{Certificates, OK, Receiver, certificates};
use super::{
    AddressPolicy, Arc, AttemptFailure, CheckedResolver, Limits, NAME, Names, Sender, assert_error, assert_status, plain_sender,
    send, send_body, sender, test_rules,
};
use crate::sender::{Refused, SignedDelivery, classify};
use reqwest::header::HeaderMap;
use shared::domain::values::time::Timestamp;
use shared::domain::webhooks::{Attempt, WebhookSecret};
use std::error::Error;
use std::process::Command;
use std::time::Duration;
use std::{fmt, io};
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};

#[tokio::test]
async fn request_has_exactly_the_signed_headers_and_the_given_body() {
    let receiver = Receiver::plain(|accepted| accepted.respond_always(OK)).await;
    let url = format!("http://127.0.0.1:{}/hook/a%20b?x=1&y=%C3%A9#fragment", receiver.port);
    let attempt = send_body(&plain_sender(Limits::default()), &url, "{\"name\":\"é\"}").await;
    assert_status(&attempt, 200);
    assert_eq!(attempt.at, Timestamp::from_millis(1_700_000_000_123));

    let [request] = receiver.requests().try_into().unwrap();
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    assert_eq!(body, "{\"name\":\"é\"}");
    let (first, headers) = head.split_once("\r\n").unwrap();
    assert_eq!(first, "POST /hook/a%20b?x=1&y=%C3%A9 HTTP/1.1");
    let mut headers: Vec<&str> = headers.split("\r\n").collect();
    headers.sort_unstable();
    assert_eq!(
        headers,
        [
            "accept: */*",
            "content-length: 13",
            "content-type: application/json",
            &format!("host: 127.0.0.1:{}", receiver.port),
            concat!("user-agent: asset-lifecycle-webhooks/", env!("CARGO_PKG_VERSION")),
            "webhook-id: evt_1",
            "webhook-signature: v1,one v1,two",
            "webhook-timestamp: 1700000000",
        ]
    );
}

#[tokio::test]
async fn signatures_are_what_the_standards_library_verifies() {
    let receiver = Receiver::responding(OK).await;
    let secrets = [WebhookSecret::new([7; 32]), WebhookSecret::new([8; 32])];
    let body = "{\"type\":\"asset.created\",\"data\":{\"name\":\"Büro\"}}";
    // The library rejects old timestamps.
    let seconds = i64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_secs()).unwrap();
    let id = "0199a1b2-0000-7000-8000-000000000001";
    let url = receiver.url();
    let delivery = SignedDelivery {
        url: &url.parse().unwrap(),
        id: id.to_owned(),
        seconds,
        signatures: secrets.each_ref().map(|secret| secret.sign(id, seconds, body)).join(" "),
        body: body.to_owned(),
    };
    let sender = sender(test_rules(), &Arc::new(Names::with_receiver()), Limits::default());
    assert_status(&sender.send_to(&url, delivery, Timestamp::from_millis(0)).await, 200);

    let [request] = receiver.requests().try_into().unwrap();
    let (head, received) = request.split_once("\r\n\r\n").unwrap();
    let headers = head.lines().skip(1).map(|line| line.split_once(": ").unwrap());
    let headers: HeaderMap = headers.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
    let verify = |secret: &WebhookSecret, body: &str| {
        standardwebhooks::Webhook::new(&secret.expose()).unwrap().verify(body.as_bytes(), &headers)
    };
    for secret in &secrets {
        verify(secret, received).unwrap();
        assert!(verify(secret, &format!("{received} ")).is_err());
    }
    assert!(verify(&WebhookSecret::new([9; 32]), received).is_err());
}

/// Checks the level INFO, because functions log nothing below that level (`shared/src/log.rs`).
#[tokio::test]
async fn nothing_of_a_delivery_is_logged() {
    let (log, writer) = io::pipe().unwrap();
    let subscriber = tracing_subscriber::fmt().with_writer(Arc::new(writer)).with_max_level(tracing::Level::INFO).finish();
    let guard = tracing::subscriber::set_default(subscriber);
    tracing::info!("canary");

    let receiver = Receiver::responding("HTTP/1.1 500 No\r\ncontent-length: 6\r\n\r\nsecret").await;
    let names = Arc::new(Names::with_receiver().with("private.test", &["10.0.0.1"]));
    let sender = sender(test_rules(), &names, Limits::default());
    let mut attempts: Vec<Attempt> = Vec::new();
    for url in [&receiver.url(), "https://private.test/", "https://unknown.test/", "https://127.0.0.1:1/", "https://a@b.test/"] {
        attempts.push(send(&sender, url).await);
    }
    drop(guard);
    assert_eq!(attempts.iter().filter(|attempt| attempt.error.is_some()).count(), 4);
    let log = io::read_to_string(log).unwrap();
    assert_eq!(log.lines().count(), 1, "{log}");
    assert!(log.contains("canary"), "{log}");
}

/// The receiver closes the connection after its response. The body doesn't matter.
#[tokio::test]
async fn the_first_final_status_is_the_outcome() {
    for (response, status) in [
        ("HTTP/1.1 204 Done\r\n\r\n", Some(204)),
        ("HTTP/1.1 410 Gone\r\ncontent-length: 6\r\n\r\nthanks", Some(410)),
        ("HTTP/1.1 599 Any\r\ncontent-length: 0\r\n\r\n", Some(599)),
        ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 202 Accepted\r\n\r\n", Some(202)),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel", Some(200)),
        ("", None),
        ("HTTP/1.1 200 O", None),
        ("SSH-2.0-OpenSSH\r\n", None),
    ] {
        let receiver = Receiver::plain(move |mut accepted| async move {
            accepted.read().await;
            accepted.write(response).await;
        })
        .await;
        let attempt = send(&plain_sender(Limits::default()), &receiver.plain_url()).await;
        match status {
            Some(status) => assert_status(&attempt, status),
            None => assert_error(&attempt, AttemptFailure::ConnectionFailed),
        }
        // No immediate retry: the receiver may have handled the request.
        assert_eq!(receiver.connections().len(), 1, "{response:?}");
    }
}

#[tokio::test]
async fn an_endless_body_is_not_waited_for() {
    let (ended, mut end) = tokio::sync::mpsc::channel(1);
    let receiver = Receiver::plain(move |mut accepted| {
        let ended = ended.clone();
        async move {
            accepted.read().await;
            accepted.write("HTTP/1.1 200 OK\r\n\r\n").await;
            while accepted.write(&"abcdefgh".repeat(1024)).await {}
            let _ = ended.send(()).await;
        }
    })
    .await;
    let attempt = send(&plain_sender(Limits::default()), &receiver.plain_url()).await;
    assert_status(&attempt, 200);
    // The sender closes the connection instead of reading the rest of the body.
    assert_eq!(end.recv().await, Some(()));
}

#[tokio::test]
async fn an_endless_head_fails() {
    let lines = format!("x-filler: {}\r\n", "a".repeat(1000));
    for filler in [lines, "a".repeat(1000)] {
        let receiver = Receiver::plain(move |mut accepted| {
            let filler = filler.clone();
            async move {
                accepted.read().await;
                accepted.write("HTTP/1.1 200 OK\r\n").await;
                while accepted.write(&filler).await {}
            }
        })
        .await;
        let attempt = send(&plain_sender(Limits::default()), &receiver.plain_url()).await;
        assert_error(&attempt, AttemptFailure::ConnectionFailed);
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_ends_after_15_seconds() {
    let silent = Arc::new(|_| Box::pin(std::future::pending()) as _);
    let resolver = CheckedResolver { lookup: silent, ..CheckedResolver::new(AddressPolicy::Public) };
    let sender = Sender::with(resolver, rustls::RootCertStore::empty(), Limits::default()).unwrap();
    let attempt = send(&sender, "https://example.com/").await;
    assert_error(&attempt, AttemptFailure::TimedOut);
    assert!((15_000..15_010).contains(&attempt.duration_ms), "{attempt:?}");
}

/// A byte now and then doesn't prolong an attempt.
#[tokio::test]
async fn a_slow_head_times_out() {
    let dripping = Receiver::plain(|mut accepted| async move {
        accepted.read().await;
        accepted.write("HTTP/1.1 200 OK\r\nx-slow: ").await;
        while accepted.write("a").await {
            sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    let sender = plain_sender(Limits { total: Duration::from_millis(200), ..Limits::default() });
    let attempt = send(&sender, &dripping.plain_url()).await;
    assert_error(&attempt, AttemptFailure::TimedOut);
    assert!((200..1_000).contains(&attempt.duration_ms), "{attempt:?}");
}

#[tokio::test]
async fn only_valid_certificates_are_accepted() {
    let Certificates { root: _, valid, other_name, expired, untrusted } = certificates();
    let names = Arc::new(Names::with_receiver());
    for (what, identity, is_accepted) in [
        ("valid", valid, true),
        ("for a different name", other_name, false),
        ("expired", expired, false),
        ("untrusted", untrusted, false),
    ] {
        let receiver = Receiver::start(Some(identity), |accepted| accepted.respond_always(OK)).await;
        let attempt = send(&sender(test_rules(), &names, Limits::default()), &receiver.url()).await;
        if is_accepted {
            assert_status(&attempt, 200);
        } else {
            assert_error(&attempt, AttemptFailure::TlsFailed);
        }
        assert_eq!(receiver.requests().len(), usize::from(is_accepted), "{what}");
    }
}

#[tokio::test]
async fn a_connection_is_used_again() {
    let receiver = Receiver::responding(OK).await;
    let names = Arc::new(Names::with_receiver());
    let sender = sender(test_rules(), &names, Limits::default());
    for _ in 0..5 {
        assert_status(&send(&sender, &receiver.url()).await, 200);
        // Another task returns the connection to the pool.
        sleep(Duration::from_millis(20)).await;
    }
    assert_eq!((receiver.connections().len(), receiver.requests().len()), (1, 5));
    assert_eq!(names.asked(), [NAME]);
}

/// The receiver may have handled the request, so the retry follows the schedule, over a new connection.
#[tokio::test]
async fn a_delivery_is_not_sent_again_if_a_used_connection_breaks() {
    for beginning in ["", "HTTP/1.1 200 OK\r\n"] {
        let receiver = Receiver::tls(move |mut accepted| async move {
            accepted.read().await;
            accepted.write(OK).await;
            accepted.read().await;
            accepted.write(beginning).await;
        })
        .await;
        let sender = sender(test_rules(), &Arc::new(Names::with_receiver()), Limits::default());
        assert_status(&send(&sender, &receiver.url()).await, 200);
        sleep(Duration::from_millis(20)).await;
        assert_error(&send(&sender, &receiver.url()).await, AttemptFailure::ConnectionFailed);
        assert_eq!((receiver.connections().len(), receiver.requests().len()), (1, 2), "{beginning:?}");
        assert_status(&send(&sender, &receiver.url()).await, 200);
        assert_eq!((receiver.connections().len(), receiver.requests().len()), (2, 3), "{beginning:?}");
    }
}

/// As in a frozen function: the receiver closes the connection, and no task notices. The connection is too old to be reused.
#[test]
fn a_connection_that_was_closed_while_frozen_loses_nothing() {
    let receivers = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let receiver = receivers.block_on(Receiver::plain(|mut accepted| async move {
        accepted.read().await;
        accepted.write(OK).await;
        sleep(Duration::from_millis(50)).await;
    }));
    let senders = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    senders.block_on(async {
        let sender = plain_sender(Limits { idle: Duration::from_millis(100), ..Limits::default() });
        for _ in 0..3 {
            assert_status(&send(&sender, &receiver.plain_url()).await, 200);
            // Lets the connection return to the pool.
            sleep(Duration::from_millis(10)).await;
            std::thread::sleep(Duration::from_millis(150));
        }
    });
    assert_eq!((receiver.connections().len(), receiver.requests().len()), (3, 3));
}

/// Runs this test's binary again, with a proxy in the environment, and checks where it connects to.
#[tokio::test]
async fn proxies_in_the_environment_are_ignored() {
    const PROXIES: [&str; 6] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
    const INNER: &str = "SENDER_TEST_WITH_PROXY";
    if std::env::var_os(INNER).is_some() {
        let receiver = Receiver::responding(OK).await;
        let sender = sender(test_rules(), &Arc::new(Names::with_receiver()), Limits::default());
        assert_status(&send(&sender, &receiver.url()).await, 200);
        let receiver = Receiver::plain(|accepted| accepted.respond_always(OK)).await;
        assert_status(&send(&plain_sender(Limits::default()), &receiver.plain_url()).await, 200);
        return;
    }
    let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", proxy.local_addr().unwrap());
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "sender::tests::exchange::proxies_in_the_environment_are_ignored"]);
    command.env(INNER, "1").env_remove("NO_PROXY").env_remove("no_proxy").envs(PROXIES.map(|name| (name, &address)));
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    assert!(timeout(Duration::from_millis(50), proxy.accept()).await.is_err());
}

/// A library's error that wraps another error.
#[derive(Debug)]
struct Wrapper(Box<dyn Error + Send + Sync>);

impl fmt::Display for Wrapper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("client error")
    }
}

impl Error for Wrapper {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(self.0.as_ref())
    }
}

fn wrapped(error: impl Error + Send + Sync + 'static) -> Wrapper {
    Wrapper(Box::new(error))
}

#[test]
fn errors_have_the_meaning_of_their_cause() {
    let tls = || rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
    let refused = || Refused(AttemptFailure::AddressNotAllowed);
    let cases: Vec<(Box<dyn Error>, AttemptFailure)> = vec![
        (Box::new(refused()), AttemptFailure::AddressNotAllowed),
        (Box::new(wrapped(refused())), AttemptFailure::AddressNotAllowed),
        (Box::new(wrapped(wrapped(Refused(AttemptFailure::NameNotFound)))), AttemptFailure::NameNotFound),
        (Box::new(io::Error::other(refused())), AttemptFailure::AddressNotAllowed),
        (Box::new(tls()), AttemptFailure::TlsFailed),
        (Box::new(io::Error::new(io::ErrorKind::InvalidData, tls())), AttemptFailure::TlsFailed),
        (Box::new(wrapped(io::Error::other(wrapped(tls())))), AttemptFailure::TlsFailed),
        (Box::new(io::Error::from(io::ErrorKind::TimedOut)), AttemptFailure::TimedOut),
        (Box::new(wrapped(io::Error::from(io::ErrorKind::TimedOut))), AttemptFailure::TimedOut),
        (Box::new(io::Error::from(io::ErrorKind::ConnectionRefused)), AttemptFailure::ConnectionFailed),
        (Box::new(wrapped(io::Error::from(io::ErrorKind::UnexpectedEof))), AttemptFailure::ConnectionFailed),
        (Box::new(wrapped(fmt::Error)), AttemptFailure::ConnectionFailed),
    ];
    for (error, expected) in cases {
        assert_eq!(classify(error.as_ref()), expected, "{error:?}");
    }
}
