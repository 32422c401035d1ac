//! Receivers of deliveries that respond as a test says.

use deliver::{SignedDelivery, Transport};
use futures_util::future::BoxFuture;
use serde_json::Value;
use shared::domain::values::time::Timestamp;
use shared::domain::webhooks::{Attempt, AttemptFailure};
use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use tokio::task::yield_now;

#[derive(Debug, Clone)]
pub struct Arrival {
    pub url: String,
    pub id: String,
    pub seconds: i64,
    pub signatures: String,
    pub body: String,
    pub at: Timestamp,
}

impl Arrival {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub fn entry(&self) -> &str {
        let (_, entry) = self.body.split_once("\"data\":").unwrap();
        entry.strip_suffix('}').unwrap()
    }
}

/// The status of the response to a request; 0 if there is none.
type Script = Box<dyn FnMut(&Arrival) -> u16 + Send>;

/// Receivers of all addresses. Cheap to clone.
#[derive(Clone)]
pub struct Receivers {
    received: Arc<Mutex<Vec<Arrival>>>,
    script: Arc<Mutex<Script>>,
    /// Addresses whose receivers take two seconds, by their word.
    slow: Arc<Mutex<HashSet<String>>>,
}

impl Default for Receivers {
    fn default() -> Self {
        Self { received: Arc::default(), script: Arc::new(Mutex::new(Box::new(|_| 204))), slow: Arc::default() }
    }
}

impl Receivers {
    /// Lets the receivers respond with what this returns: a status, or 0 for no response.
    pub fn respond(&self, script: impl FnMut(&Arrival) -> u16 + Send + 'static) {
        *self.script.lock().unwrap() = Box::new(script);
    }

    /// Lets the first request to each webhook about each event fail.
    pub fn fail_first(&self) {
        let mut seen = HashSet::new();
        self.respond(move |sent| if seen.insert((sent.url.clone(), sent.id.clone())) { 500 } else { 200 });
    }

    pub fn set_slow(&self, urls: &[&str]) {
        *self.slow.lock().unwrap() = urls.iter().map(|url| (*url).to_owned()).collect();
    }

    pub fn take(&self) -> Vec<Arrival> {
        std::mem::take(&mut *self.received.lock().unwrap())
    }

    pub fn got(&self) -> HashSet<(String, String)> {
        self.received.lock().unwrap().iter().map(|received| (received.url.clone(), received.id.clone())).collect()
    }

    pub fn len(&self) -> usize {
        self.received.lock().unwrap().len()
    }
}

impl Transport for Receivers {
    /// The future may be dropped before the request arrives, or after it.
    fn send<'a>(&'a self, delivery: SignedDelivery<'a>, at: Timestamp) -> BoxFuture<'a, Attempt> {
        Box::pin(async move {
            yield_now().await;
            let SignedDelivery { url, id, seconds, signatures, body } = delivery;
            let received = Arrival { url: url.as_str().to_owned(), id, seconds, signatures, body, at };
            let duration_ms = if self.slow.lock().unwrap().contains(&received.url) { 2_000 } else { 0 };
            let status = (self.script.lock().unwrap())(&received);
            self.received.lock().unwrap().push(received);
            yield_now().await;
            let (status, error) = if status == 0 { (None, Some(AttemptFailure::TimedOut)) } else { (Some(status), None) };
            Attempt { at, status, error, duration_ms }
        })
    }
}
