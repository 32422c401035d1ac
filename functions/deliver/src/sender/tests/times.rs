//! Time limits of attempts.

use super::receiver::Receiver;
use super::{AddressPolicy, AttemptFailure, Limits, assert_error, plain_sender, send, short};
use crate::sender::{CheckedResolver, Sender};
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// Creates a sender whose resolver doesn't respond.
fn silent(policy: AddressPolicy, limits: Limits) -> Sender {
    let resolver = CheckedResolver { lookup: Arc::new(|_| Box::pin(pending())), ..CheckedResolver::new(policy) };
    Sender::with(resolver, rustls::RootCertStore::empty(), limits).unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_attempt_ends_after_15_seconds() {
    let attempt = send(&silent(AddressPolicy::Public, Limits::default()), "https://example.com/").await;
    assert_error(&attempt, AttemptFailure::TimedOut);
    assert!((15_000..15_010).contains(&attempt.duration_ms), "{attempt:?}");
}

#[tokio::test]
async fn slow_heads_time_out() {
    let silent = Receiver::plain(|mut accepted| async move {
        accepted.read().await;
        accepted.until_closed().await;
    })
    .await;
    let unread = Receiver::plain(|accepted| async move {
        sleep(Duration::from_secs(60)).await;
        drop(accepted);
    })
    .await;
    let dripping = Receiver::plain(|mut accepted| async move {
        accepted.read().await;
        accepted.write("HTTP/1.1 200 OK\r\nx-slow: ").await;
        while accepted.write("a").await {
            sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    let informing = Receiver::plain(|mut accepted| async move {
        accepted.read().await;
        while accepted.write("HTTP/1.1 100 Continue\r\n\r\n").await {
            sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    let sender = plain_sender(short(200));
    for receiver in [silent, unread, dripping, informing] {
        let attempt = send(&sender, &receiver.plain_url()).await;
        assert_error(&attempt, AttemptFailure::TimedOut);
        assert!((200..1_000).contains(&attempt.duration_ms), "{attempt:?}");
    }
}

#[tokio::test]
async fn a_handshake_without_an_answer_times_out() {
    let receiver = Receiver::plain(super::receiver::Accepted::until_closed).await;
    let sender = silent(AddressPolicy::PublicOrLoopback, short(200));
    let attempt = send(&sender, &format!("https://127.0.0.1:{}/", receiver.port)).await;
    assert_error(&attempt, AttemptFailure::TimedOut);
}
