//! Responses of receivers, and the outcomes of attempts and failures.

use super::receiver::{OK, Receiver};
use super::{
    AddressPolicy, Arc, AttemptFailure, Limits, Names, Rules, after_response, assert_error, assert_status, plain_sender, send,
    send_body, sender, short, test_rules,
};
use crate::sender::{Refused, classify};
use std::error::Error;
use std::time::Duration;
use std::{fmt, io};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::sleep;

#[tokio::test]
async fn the_status_decides() {
    for status in [200, 201, 202, 204, 304, 400, 401, 404, 410, 413, 429, 500, 503, 599] {
        let body = if matches!(status, 204 | 304) { "\r\n" } else { "content-length: 6\r\n\r\nthanks" };
        assert_status(&after_response(format!("HTTP/1.1 {status} Any\r\n{body}")).await, status);
    }
}

#[tokio::test]
async fn the_first_final_status_counts_and_heads_are_bounded() {
    let head = |lines: usize, length: usize| {
        let lines: String = (0..lines).map(|number| format!("x-filler-{number}: {}\r\n", "a".repeat(length))).collect();
        format!("HTTP/1.1 200 OK\r\n{lines}content-length: 0\r\n\r\n")
    };
    let informing = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 Done\r\n\r\n";
    // The sender didn't request a protocol upgrade. The rest of the response is not read.
    let switching = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: a\r\n\r\nHTTP/1.1 200 OK\r\n\r\n";
    for (response, status) in [
        (informing.to_owned(), Some(204)),
        (switching.to_owned(), Some(101)),
        (head(60, 500), Some(200)),
        // The head is complete, but far too long.
        (head(9, 50_000), None),
    ] {
        let attempt = after_response(response).await;
        match status {
            Some(status) => assert_status(&attempt, status),
            None => assert_error(&attempt, AttemptFailure::ConnectionFailed),
        }
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
async fn a_body_that_breaks_keeps_the_status() {
    for ending in ["5\r\nhello\r\n", "5\r\nhello\r\nnonsense\r\n", "5\r\nhel"] {
        let receiver = Receiver::plain(move |mut accepted| async move {
            accepted.read().await;
            accepted.write(&format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{ending}")).await;
        })
        .await;
        let attempt = send(&plain_sender(Limits::default()), &receiver.plain_url()).await;
        assert_status(&attempt, 200);
    }
}

#[tokio::test]
async fn heads_are_bounded() {
    let lines = format!("x-filler: {}\r\n", "a".repeat(1000));
    let line = "a".repeat(1000);
    for (first, filler) in [("", lines), ("x-filler: ", line.clone()), ("x-", line)] {
        let receiver = Receiver::plain(move |mut accepted| {
            let filler = filler.clone();
            async move {
                accepted.read().await;
                accepted.write(&format!("HTTP/1.1 200 OK\r\n{first}")).await;
                while accepted.write(&filler).await {}
            }
        })
        .await;
        let attempt = send(&plain_sender(Limits::default()), &receiver.plain_url()).await;
        assert_error(&attempt, AttemptFailure::ConnectionFailed);
    }
}

#[tokio::test]
async fn connections_that_are_refused_or_close_early_have_failed() {
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let attempt = send(&plain_sender(Limits::default()), &format!("http://127.0.0.1:{port}/")).await;
    assert_error(&attempt, AttemptFailure::ConnectionFailed);

    for (reads, writes) in
        [(false, ""), (true, ""), (true, "HTTP/1.1 200 O"), (true, "SSH-2.0-OpenSSH\r\n"), (true, "\r\n\r\n\0")]
    {
        let receiver = Receiver::plain(move |mut accepted| async move {
            if reads {
                accepted.read().await;
            }
            accepted.write(writes).await;
        })
        .await;
        let attempt = send(&plain_sender(Limits::default()), &receiver.plain_url()).await;
        assert_error(&attempt, AttemptFailure::ConnectionFailed);
        // No immediate retry: the receiver may have processed the request.
        assert_eq!(receiver.connections().len(), 1, "{writes:?}");
    }
}

/// Every address was checked, so any can be used: here only the last one responds.
#[tokio::test]
async fn all_addresses_of_a_name_are_tried() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let names = Arc::new(Names::new().with("local.test", &["127.0.0.2", "::1", "127.0.0.1"]));
    let sender = sender(Rules::of_service(AddressPolicy::PublicOrLoopback), &names, short(5_000));
    let url = format!("http://local.test:{port}/");
    let (attempt, accepted) = tokio::join!(send(&sender, &url), async {
        let (mut stream, _) = listener.accept().await?;
        stream.read_u8().await?;
        stream.write_all(OK.as_bytes()).await
    });
    accepted.unwrap();
    assert_status(&attempt, 200);
    assert_eq!(names.asked().len(), 1);
}

#[tokio::test]
async fn a_response_before_the_body_was_read_counts() {
    let receiver = Receiver::plain(|mut accepted| async move {
        accepted.read_byte().await;
        accepted.write("HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await;
        sleep(Duration::from_secs(60)).await;
    })
    .await;
    let body = "a".repeat(16 * 1024 * 1024);
    let attempt = send_body(&plain_sender(Limits::default()), &receiver.plain_url(), &body).await;
    assert_status(&attempt, 413);
}

#[tokio::test]
async fn names_that_are_not_found_have_their_own_error() {
    let names = Arc::new(Names::new().with("empty.test", &[]));
    let sender = sender(test_rules(), &names, Limits::default());
    for name in ["unknown.test", "empty.test"] {
        assert_error(&send(&sender, &format!("https://{name}/")).await, AttemptFailure::NameNotFound);
    }
    assert_eq!(names.asked().len(), 2);
}

#[tokio::test]
async fn a_slow_receiver_delays_no_other() {
    let slow = Receiver::plain(|mut accepted| async move {
        accepted.read().await;
        accepted.until_closed().await;
    })
    .await;
    let quick = Receiver::plain(|accepted| accepted.respond_always(OK)).await;
    let sender = plain_sender(Limits::default());
    let (slow_url, quick_url) = (slow.plain_url(), quick.plain_url());
    let deliveries = async {
        for _ in 0..20 {
            assert_status(&send(&sender, &quick_url).await, 200);
        }
    };
    tokio::select! {
        () = deliveries => {}
        attempt = send(&sender, &slow_url) => panic!("the slow attempt ends first: {attempt:?}"),
    }
    assert_eq!(slow.connections().len(), 1);
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
