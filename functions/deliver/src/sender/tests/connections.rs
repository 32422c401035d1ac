//! Reused connections.

use super::receiver::{OK, Receiver};
use super::{Arc, AttemptFailure, Limits, NAME, Names, assert_error, assert_status};
use super::{plain_sender, send, sender, test_rules};
use std::process::Command;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};

#[tokio::test]
async fn a_connection_is_used_again() {
    let responses = [OK, "HTTP/1.1 500 No\r\ncontent-length: 5\r\n\r\nhello"];
    for response in responses {
        let receiver = Receiver::responding(response).await;
        let names = Arc::new(Names::with_receiver());
        let sender = sender(test_rules(), &names, Limits::default());
        for _ in 0..5 {
            assert!(send(&sender, &receiver.url()).await.status.is_some());
            // Another task returns the connection to the pool.
            sleep(Duration::from_millis(20)).await;
        }
        assert_eq!((receiver.connections().len(), receiver.requests().len()), (1, 5), "{response:?}");
        assert_eq!(names.asked(), [NAME]);
    }
}

#[tokio::test]
async fn an_unused_connection_is_closed_after_a_while() {
    let receiver = Receiver::responding(OK).await;
    let limits = Limits { idle: Duration::from_millis(50), ..Limits::default() };
    let sender = sender(test_rules(), &Arc::new(Names::with_receiver()), limits);
    for _ in 0..2 {
        assert_status(&send(&sender, &receiver.url()).await, 200);
        sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(receiver.connections().len(), 2);
}

/// The receiver announces the close in its response, or the sender notices the closed connection.
#[tokio::test]
async fn a_connection_that_was_closed_loses_nothing() {
    for (response, pause) in [("HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n", 0), (OK, 20)] {
        let receiver = Receiver::tls(move |mut accepted| async move {
            accepted.read().await;
            accepted.write(response).await;
        })
        .await;
        let sender = sender(test_rules(), &Arc::new(Names::with_receiver()), Limits::default());
        for number in 1..=10 {
            assert_status(&send(&sender, &receiver.url()).await, 200);
            assert_eq!(receiver.requests().len(), number);
            sleep(Duration::from_millis(pause)).await;
        }
        assert_eq!(receiver.connections().len(), 10);
    }
}

/// The receiver may have handled the request, so the retry follows the schedule, over a new connection.
#[tokio::test]
async fn a_delivery_is_not_sent_again_if_a_used_connection_breaks() {
    for beginning in ["", "H", "HTTP/1.1 200 OK\r\n", "no response\r\n\r\n"] {
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
    command.args(["--exact", "sender::tests::connections::proxies_in_the_environment_are_ignored"]);
    command.env(INNER, "1").env_remove("NO_PROXY").env_remove("no_proxy").envs(PROXIES.map(|name| (name, &address)));
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    assert!(timeout(Duration::from_millis(50), proxy.accept()).await.is_err());
}
