//! Receivers of webhooks on this machine.

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use serde_json::Value;
use standardwebhooks::Webhook;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

#[derive(Debug, Clone)]
pub struct Arrival {
    headers: HeaderMap,
    body: String,
}

#[derive(Default)]
struct Shared {
    arrivals: Mutex<Vec<Arrival>>,
    /// Delay and status of responses.
    behaviour: Mutex<(Duration, StatusCode)>,
}

/// A running receiver.
pub struct Receiver {
    pub url: String,
    shared: Arc<Shared>,
    _runtime: Runtime,
}

impl Receiver {
    pub fn start(status: u16) -> Self {
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let shared = Arc::<Shared>::default();
        let routes = Router::new().route("/hook", post(receive)).with_state(Arc::clone(&shared));
        runtime.spawn(async move { axum::serve(listener, routes).await });
        let receiver = Self { url, shared, _runtime: runtime };
        receiver.respond(status, Duration::ZERO);
        receiver
    }

    pub fn respond(&self, status: u16, after: Duration) {
        *self.shared.behaviour.lock().unwrap() = (after, StatusCode::from_u16(status).unwrap());
    }

    pub fn arrivals(&self) -> Vec<Arrival> {
        self.shared.arrivals.lock().unwrap().clone()
    }

    /// Arrivals by ID. Checks each: the signature is right, and repeated deliveries are the same.
    pub fn verified(&self, secret: &str) -> BTreeMap<String, Value> {
        let mut events = BTreeMap::new();
        for arrival in self.arrivals() {
            let event = arrival.verified(secret);
            let earlier = events.insert(arrival.header("webhook-id").to_owned(), event.clone());
            assert!(earlier.is_none_or(|earlier| earlier == event), "{event}");
        }
        events
    }
}

async fn receive(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: String) -> StatusCode {
    shared.arrivals.lock().unwrap().push(Arrival { headers, body });
    let (after, status) = *shared.behaviour.lock().unwrap();
    tokio::time::sleep(after).await;
    status
}

impl Arrival {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).unwrap_or_else(|| panic!("{name} is missing: {self:?}")).to_str().unwrap()
    }

    /// The body, whose signature must be right.
    pub fn verified(&self, secret: &str) -> Value {
        let header = |name: &str| self.header(name);
        let seconds = header("webhook-timestamp").parse().unwrap();
        let signature = Webhook::new(secret).unwrap().sign(header("webhook-id"), seconds, self.body.as_bytes()).unwrap();
        assert_eq!(header("webhook-signature"), signature);
        assert_eq!(header("content-type"), "application/json");
        let body: Value = serde_json::from_str(&self.body).unwrap();
        assert_eq!(body["data"]["id"], header("webhook-id"), "{body}");
        assert_eq!(body["data"]["type"], body["type"], "{body}");
        body
    }
}
