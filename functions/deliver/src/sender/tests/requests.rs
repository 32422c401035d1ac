//! The requests sent to receivers.

use super::receiver::{OK, Receiver};
use super::{Arc, Limits, Names, assert_status, plain_sender, send, send_body, sender, test_rules};
use crate::sender::SignedDelivery;
use reqwest::header::HeaderMap;
use shared::domain::values::time::Timestamp;
use shared::domain::webhooks::{Attempt, WebhookSecret};
use std::io;

#[tokio::test]
async fn a_request_is_as_given_and_nothing_else() {
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

#[tokio::test]
async fn paths_and_queries_are_encoded_as_browsers_do() {
    let receiver = Receiver::plain(|accepted| accepted.respond_always(OK)).await;
    let sender = plain_sender(Limits::default());
    for (path, expected) in [
        ("", "/"),
        ("/a", "/a"),
        ("/é?q=ü", "/%C3%A9?q=%C3%BC"),
        ("/a|b^c`d{e}f\"g<h>i j\\k[l]", "/a|b^c%60d%7Be%7Df%22g%3Ch%3Ei%20j/k[l]"),
        ("/?a|b^c`d{e}f[g]h\\i'j", "/?a|b^c`d{e}f[g]h\\i%27j"),
        ("/?", "/?"),
    ] {
        assert_status(&send(&sender, &format!("http://127.0.0.1:{}{path}", receiver.port)).await, 200);
        let request = receiver.requests().pop().unwrap();
        assert_eq!(request.lines().next().unwrap(), format!("POST {expected} HTTP/1.1"));
    }
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
