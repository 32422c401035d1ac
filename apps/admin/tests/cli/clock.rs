//! Commands while the operator's clock differs from the service's.

use crate::operator::Operator;
use aws_sdk_dynamodb::primitives::{DateTime, DateTimeFormat};
use shared::domain::keys::api_key::ApiKey;
use shared::domain::values::id::Id;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

const DATE: &[u8] = b"date: ";

/// Starts a proxy in front of an engine, whose clock then seems to be `ahead` seconds ahead of this computer's. Returns its URL.
fn proxy(engine: SocketAddr, ahead: i64) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (client, engine) = (client.unwrap(), TcpStream::connect(engine).unwrap());
            let (mut from_client, mut to_engine) = (client.try_clone().unwrap(), engine.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut from_client, &mut to_engine));
            std::thread::spawn(move || copy_with_date(engine, client, ahead));
        }
    });
    url
}

/// Copies responses and shifts their `Date`.
fn copy_with_date(mut from: TcpStream, mut to: TcpStream, ahead: i64) {
    let mut buffer = [0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        let bytes = &mut buffer[..length];
        if let Some(start) = bytes.windows(DATE.len()).position(|window| window.eq_ignore_ascii_case(DATE)) {
            let date = &mut bytes[start + DATE.len()..];
            let end = date.iter().position(|byte| *byte == b'\r').unwrap();
            let present = DateTime::from_str(std::str::from_utf8(&date[..end]).unwrap(), DateTimeFormat::HttpDate).unwrap();
            let shifted = DateTime::from_secs(present.secs() + ahead).fmt(DateTimeFormat::HttpDate).unwrap();
            date[..end].copy_from_slice(shifted.as_bytes());
        }
        if to.write_all(bytes).is_err() {
            return;
        }
    }
}

fn through_proxy(operator: &mut Operator, ahead: i64) {
    let engine = operator.engine.url.strip_prefix("http://").unwrap().parse().unwrap();
    operator.more_variables = vec![("AWS_ENDPOINT_URL_DYNAMODB", proxy(engine, ahead))];
}

#[tokio::test]
async fn readers_of_the_feed_see_what_an_operator_with_a_wrong_clock_does() {
    for ahead in [-40, 30, 55] {
        let mut operator = Operator::start().await;
        // Created by a function, some time before the reader's last request.
        let created = operator.store_with_clock(ahead - 20).create_tenant("Acme".parse().unwrap(), None, 600).await.unwrap();
        let tenant = operator.store_with_clock(ahead).tenant(created.tenant_id);
        let read = tenant.events(None, 100).await.unwrap();
        assert!(read.last.is_some() && !read.has_more);
        through_proxy(&mut operator, ahead);
        let revoke = ["key", "revoke", "--tenant", &created.tenant_id.to_string(), "--key", &created.key_id.to_string()];
        operator.json(&revoke);
        let now = operator.store_with_clock(ahead).now();
        let later = operator.store_with_clock(ahead + 15).tenant(created.tenant_id);
        let next = later.events(read.last, 100).await.unwrap();
        assert_eq!(next.entries.len(), 1, "the revocation is missing with {ahead} s");
        let written = next.entries[0].id.timestamp();
        let difference = (now.millis() - written.millis()).abs();
        assert!(difference < 5_000, "{difference} ms with {ahead} s");
        assert!(tenant.get::<ApiKey>(created.key_id).await.unwrap().is_none());
    }
}

#[tokio::test]
async fn a_clock_that_is_more_than_a_minute_off_is_refused() {
    for (ahead, expected) in [(300, "s behind the service's; set it"), (-90, "s ahead of the service's; set it")] {
        let mut operator = Operator::start().await;
        through_proxy(&mut operator, ahead);
        let error = operator.error(&["tenant", "create", "--name", "Acme"]);
        assert!(error.starts_with("error: this computer's clock is ") && error.contains(expected), "{error}");
        assert_eq!(operator.store().tenants().await.unwrap().len(), 0);
    }
}
