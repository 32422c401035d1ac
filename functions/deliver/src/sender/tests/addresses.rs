//! Addresses that must not be reached.

use super::receiver::{OK, Receiver};
use super::{
    AddressPolicy, Arc, AttemptFailure, Limits, NAME, Names, PUBLIC, Rules, assert_error, assert_status, send, send_checked,
    sender, test_rules,
};
use crate::sender::{CheckedResolver, Sender};
use shared::domain::webhooks::WebhookUrl;

/// Hosts that are IP addresses, in various notations.
const LITERALS: &[&str] = &[
    "127.0.0.1",
    "127.255.255.254",
    "127.1",
    "127.0.1",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0x7f.0x0.0x0.0x1",
    "017700000001",
    "0177.0.0.1",
    "127.0.0.1.",
    "%31%32%37.0.0.1",
    "１２７.０.０.１",
    "127。0。0。1",
    "0",
    "0.0.0.0",
    "0x0",
    "10.0.0.1",
    "10.1",
    "167772161",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "192.168.257",
    "169.254.169.254",
    "0xa9fea9fe",
    "2852039166",
    "0251.0376.0251.0376",
    "169.254.170.2",
    "100.64.0.1",
    "192.0.0.8",
    "192.0.2.1",
    "198.18.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::ffff:169.254.169.254]",
    "[::127.0.0.1]",
    "[fe80::1]",
    "[fd00:ec2::254]",
    "[ff02::1]",
    "[64:ff9b::7f00:1]",
    "[2001:0:4136:e378:8000:63bf:3fff:fdd2]",
    "[2002:7f00:1::]",
    "[2001:db8::1]",
];

/// DNS answers with a forbidden address, which rules out the name.
const ANSWERS: &[&[&str]] = &[
    &["127.0.0.1"],
    &["0.0.0.0"],
    &["10.0.0.1"],
    &["172.16.0.1"],
    &["192.168.1.1"],
    &["169.254.169.254"],
    &["100.64.0.1"],
    &["224.0.0.1"],
    &["::1"],
    &["::"],
    &["::ffff:127.0.0.1"],
    &["::ffff:169.254.169.254"],
    &["fe80::1"],
    &["fd00:ec2::254"],
    &["64:ff9b::7f00:1"],
    // Permitted and forbidden addresses, in different orders.
    &["1.1.1.1", "127.0.0.1"],
    &["127.0.0.1", "1.1.1.1"],
    &["2606:4700::1111", "::1"],
    &["1.1.1.1", "8.8.8.8", "169.254.169.254"],
];

#[tokio::test]
async fn literals_of_other_addresses_are_refused() {
    let receiver = Receiver::responding(OK).await;
    let names = Arc::new(Names::new());
    let permitted = sender(test_rules(), &names, Limits::default());
    assert_status(&send(&permitted, &format!("https://127.0.0.1:{}/", receiver.port)).await, 200);
    assert_eq!(receiver.connections(), [PUBLIC]);

    for policy in [AddressPolicy::Public, AddressPolicy::PublicOrLoopback] {
        let sender = sender(Rules::of_service(policy), &names, Limits::default());
        for host in LITERALS {
            for scheme in ["https", "http"] {
                // The port is permitted, so only the address can be the reason.
                for url in [format!("{scheme}://{host}/"), format!("{scheme}://{host}:{}/", receiver.port)] {
                    // The dev server permits loopback addresses in every notation.
                    let parsed = url::Url::parse(&url).unwrap();
                    let is_loopback = match parsed.host() {
                        Some(url::Host::Ipv4(address)) => address.is_loopback(),
                        Some(url::Host::Ipv6(address)) => address.is_loopback(),
                        _ => panic!("{host} is not a literal address"),
                    };
                    if policy == AddressPolicy::Public || !is_loopback {
                        assert_error(&send_checked(&sender, &url).await, AttemptFailure::AddressNotAllowed);
                    }
                }
            }
        }
    }
    assert_eq!(receiver.connections().len(), 1);
    assert!(names.asked().is_empty());
}

#[tokio::test]
async fn names_of_other_addresses_are_refused() {
    let receiver = Receiver::responding(OK).await;
    let names = Arc::new(Names::with_receiver());
    assert_status(&send(&sender(test_rules(), &names, Limits::default()), &receiver.url()).await, 200);
    for addresses in ANSWERS {
        let names = Arc::new(Names::new().with(NAME, addresses));
        let attempt = send(&sender(Rules::of_service(AddressPolicy::Public), &names, Limits::default()), &receiver.url()).await;
        assert_error(&attempt, AttemptFailure::AddressNotAllowed);
        assert_eq!(names.asked(), [NAME], "{addresses:?}");
    }
    assert_eq!(receiver.connections(), [PUBLIC]);
}

#[tokio::test]
async fn names_in_the_systems_resolver_are_checked() {
    let receiver = Receiver::responding(OK).await;
    let url = format!("https://localhost:{}/", receiver.port);
    let resolver = CheckedResolver::new(AddressPolicy::Public);
    let refusing = Sender::with(resolver, rustls::RootCertStore::empty(), Limits::default()).unwrap();
    assert_error(&send(&refusing, &url).await, AttemptFailure::AddressNotAllowed);
    assert!(receiver.connections().is_empty());

    let local = Sender::new(AddressPolicy::PublicOrLoopback).unwrap();
    assert_error(&send(&local, &url).await, AttemptFailure::TlsFailed);
    assert_eq!(receiver.connections().len(), 1);
}

/// The first lookup returns a permitted address, and a second one would return a forbidden address. There is no second lookup:
/// the connection goes to the checked address.
#[tokio::test]
async fn a_name_is_resolved_once_for_each_connection() {
    let receiver = Receiver::responding("HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await;
    let names = Arc::new(Names::new().changing(NAME, &[&["127.0.0.1"], &["127.0.0.2"], &["127.0.0.1"]]));
    let sender = sender(test_rules(), &names, Limits::default());

    assert_status(&send(&sender, &receiver.url()).await, 200);
    assert_eq!(names.asked().len(), 1);
    assert_eq!(receiver.connections(), [PUBLIC]);

    assert_error(&send(&sender, &receiver.url()).await, AttemptFailure::AddressNotAllowed);
    assert_eq!(names.asked().len(), 2);
    assert_eq!(receiver.connections(), [PUBLIC]);

    assert_status(&send(&sender, &receiver.url()).await, 200);
    assert_eq!(names.asked().len(), 3);
    assert_eq!(receiver.connections(), [PUBLIC, PUBLIC]);
}

#[tokio::test]
async fn redirects_are_not_followed() {
    for status in [301, 302, 303, 307, 308] {
        let target = Receiver::plain(|accepted| accepted.respond_always(OK)).await;
        let location = [target.plain_url(), "/elsewhere".to_owned(), "http://169.254.169.254/latest/meta-data/".to_owned()];
        for location in location {
            let response = format!("HTTP/1.1 {status} Moved\r\nlocation: {location}\r\ncontent-length: 5\r\n\r\nmoved");
            let receiver = Receiver::tls(move |accepted| {
                let response = response.clone();
                async move { accepted.respond_once(&response).await }
            })
            .await;
            let names = Arc::new(Names::with_receiver());
            let attempt = send(&sender(test_rules(), &names, Limits::default()), &receiver.url()).await;
            assert_status(&attempt, status);
            assert_eq!(receiver.requests().len(), 1);
            assert_eq!(names.asked(), [NAME]);
        }
        assert!(target.connections().is_empty());
    }
}

#[tokio::test]
async fn other_ports_schemes_and_userinfo_are_refused_before_the_name_is_resolved() {
    let receiver = Receiver::responding(OK).await;
    let names = Arc::new(Names::with_receiver());
    let strict = sender(test_rules(), &names, Limits::default());
    let port = receiver.port;
    let mut urls =
        vec![receiver.url(), format!("http://{NAME}:{port}/"), format!("http://{NAME}/"), format!("http://{NAME}:443/")];
    urls.extend([1, 22, 25, 80, 444, 3306, 8080, 8442, 8444, 65535].map(|port| format!("https://{NAME}:{port}/")));
    for url in urls {
        assert_error(&send_checked(&strict, &url).await, AttemptFailure::AddressNotAllowed);
    }
    // Webhooks can't have these URLs either.
    for url in [
        format!("https://user@{NAME}:{port}/"),
        format!("https://user:password@{NAME}:{port}/"),
        format!("https://:password@{NAME}:{port}/"),
        format!("https://1.1.1.1@{NAME}:{port}/"),
        format!("ftp://{NAME}:{port}/"),
        format!("file://{NAME}/etc/passwd"),
        "data:text/plain,hello".to_owned(),
        "not an address".to_owned(),
        String::new(),
    ] {
        assert!(url.parse::<WebhookUrl>().is_err(), "{url}");
    }
    assert!(names.asked().is_empty());
    assert!(receiver.connections().is_empty());

    // Each of these ports is permitted, so the names are resolved.
    let names = Arc::new(Names::new());
    let strict = sender(Rules::of_service(AddressPolicy::Public), &names, Limits::default());
    for url in [format!("https://{NAME}/"), format!("https://{NAME}:443/"), format!("https://{NAME}:8443/")] {
        assert_error(&send_checked(&strict, &url).await, AttemptFailure::NameNotFound);
    }
    assert_eq!(names.asked(), [NAME; 3]);
}

#[tokio::test]
async fn the_dev_servers_policy_adds_loopback_only() {
    let receiver = Receiver::plain(|accepted| accepted.respond_always(OK)).await;
    let url = |name: &str| format!("http://{name}:{}/", receiver.port);
    let names = Names::new().with("local.test", &["127.0.0.1"]).with("mixed.test", &["127.0.0.1", "1.1.1.1"]);
    let names = names.with("private.test", &["127.0.0.1", "192.168.1.1"]).with("public.test", &["1.1.1.1"]);
    let names = Arc::new(names.with("any.test", &["0.0.0.0"]).with("mapped.test", &["::ffff:127.0.0.1"]));
    let sender = sender(Rules::of_service(AddressPolicy::PublicOrLoopback), &names, Limits::default());
    for host in ["127.0.0.1", "local.test"] {
        assert_status(&send_checked(&sender, &url(host)).await, 200);
    }
    assert_eq!(receiver.connections().len(), 2);
    for host in ["mixed.test", "private.test", "public.test", "any.test", "mapped.test", "0.0.0.0", "[::ffff:127.0.0.1]"] {
        assert_error(&send_checked(&sender, &url(host)).await, AttemptFailure::AddressNotAllowed);
    }
    assert_eq!(receiver.connections().len(), 2);
}
