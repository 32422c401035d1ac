//! Sending to receivers on this machine, with a fake resolver.

mod addresses;
mod exchange;
mod receiver;

use super::{CheckedResolver, Limits, Sender, SignedDelivery, Transport};
use receiver::certificates;
use rustls::RootCertStore;
use shared::domain::values::time::Timestamp;
use shared::domain::webhooks::{AddressPolicy, Attempt, AttemptFailure, WebhookUrl, is_public};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

/// Address that counts as public in tests, so that a local receiver can use it.
const PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// Host name of receivers.
const NAME: &str = "receiver.example.com";

/// Rules for addresses that a name resolves to.
#[derive(Clone, Copy)]
struct Rules {
    policy: AddressPolicy,
    is_public: fn(IpAddr) -> bool,
}

impl Rules {
    fn of_service(policy: AddressPolicy) -> Self {
        Self { policy, is_public }
    }
}

/// Returns the service's rules, with [`PUBLIC`] as a public address.
fn test_rules() -> Rules {
    Rules { is_public: |address| address == PUBLIC || is_public(address), policy: AddressPolicy::Public }
}

/// A resolver with a list of answers for each name; the last answer repeats. Other names don't exist.
#[derive(Default)]
struct Names {
    answers: HashMap<String, Vec<Vec<IpAddr>>>,
    asked: Mutex<Vec<String>>,
}

impl Names {
    fn new() -> Self {
        Self::default()
    }

    fn with(self, name: &str, addresses: &[&str]) -> Self {
        self.changing(name, &[addresses])
    }

    fn changing(mut self, name: &str, answers: &[&[&str]]) -> Self {
        let answers = answers.iter().map(|addresses| addresses.iter().map(|address| address.parse().unwrap()).collect());
        self.answers.insert(name.to_owned(), answers.collect());
        self
    }

    /// Resolves the receivers' name to the address that counts as public.
    fn with_receiver() -> Self {
        Self::new().with(NAME, &["127.0.0.1"])
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    fn answer(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let mut asked = self.asked.lock().unwrap();
        let times = asked.iter().filter(|asked| *asked == name).count();
        asked.push(name.to_owned());
        let answer = self.answers.get(name).and_then(|answers| answers.get(times).or(answers.last()));
        answer.cloned().ok_or_else(|| io::Error::other("not found"))
    }
}

fn sender(Rules { policy, is_public }: Rules, names: &Arc<Names>, limits: Limits) -> Sender {
    let mut roots = RootCertStore::empty();
    roots.add(certificates().root.clone()).unwrap();
    let names = Arc::clone(names);
    let lookup = move |name: String| Box::pin(std::future::ready(names.answer(&name))) as _;
    Sender::with(CheckedResolver { policy, is_public, lookup: Arc::new(lookup) }, roots, limits).unwrap()
}

/// Creates a sender for receivers without TLS, with the dev server's rules.
fn plain_sender(limits: Limits) -> Sender {
    sender(Rules::of_service(AddressPolicy::PublicOrLoopback), &Arc::new(Names::new()), limits)
}

async fn send(sender: &Sender, url: &str) -> Attempt {
    send_body(sender, url, "{\"type\":\"asset.created\"}").await
}

async fn send_body(sender: &Sender, url: &str, body: &str) -> Attempt {
    let address = "https://example.com/".parse().unwrap();
    sender.send_to(url, delivery(&address, body), Timestamp::from_millis(1_700_000_000_123)).await
}

/// Checks the address first, as the service does.
async fn send_checked(sender: &Sender, url: &str) -> Attempt {
    let address = url.parse().unwrap_or_else(|error| panic!("{url}: {error}"));
    sender.send(delivery(&address, "{}"), Timestamp::from_millis(0)).await
}

fn delivery<'a>(url: &'a WebhookUrl, body: &str) -> SignedDelivery<'a> {
    SignedDelivery {
        url,
        id: "evt_1".to_owned(),
        seconds: 1_700_000_000,
        signatures: "v1,one v1,two".to_owned(),
        body: body.to_owned(),
    }
}

#[track_caller]
fn assert_status(attempt: &Attempt, status: u16) {
    assert_eq!((attempt.status, attempt.error), (Some(status), None), "{attempt:?}");
}

#[track_caller]
fn assert_error(attempt: &Attempt, error: AttemptFailure) {
    assert_eq!((attempt.status, attempt.error), (None, Some(error)), "{attempt:?}");
}
