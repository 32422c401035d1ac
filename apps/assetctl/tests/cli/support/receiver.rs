//! A receiver of webhooks, which verifies deliveries with the official library.

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde_json::Value;
use standardwebhooks::Webhook;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

#[derive(Debug, Clone)]
pub struct Delivery {
    pub id: String,
    pub text: String,
    headers: HeaderMap,
}

impl Delivery {
    pub fn is_signed_by(&self, secret: &str) -> bool {
        Webhook::new(secret).unwrap().verify(self.text.as_bytes(), &self.headers).is_ok()
    }

    pub fn body(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }
}

type Script = Box<dyn Fn(usize) -> (u16, &'static str) + Send + Sync>;

struct Deliveries {
    script: Script,
    seen: Mutex<Vec<Delivery>>,
}

pub struct Receiver {
    deliveries: Arc<Deliveries>,
    _runtime: Runtime,
    pub url: String,
}

impl Receiver {
    /// `script` has the answer for each delivery's number, from 0.
    pub fn start(script: impl Fn(usize) -> (u16, &'static str) + Send + Sync + 'static) -> Self {
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let deliveries = Arc::new(Deliveries { script: Box::new(script), seen: Mutex::default() });
        let routes = Router::new().route("/hook", axum::routing::post(receive)).with_state(Arc::clone(&deliveries));
        runtime.spawn(async move { axum::serve(listener, routes).await });
        Self { deliveries, _runtime: runtime, url }
    }

    pub fn deliveries(&self) -> Vec<Delivery> {
        self.deliveries.seen.lock().unwrap().clone()
    }
}

async fn receive(State(deliveries): State<Arc<Deliveries>>, headers: HeaderMap, body: Bytes) -> (StatusCode, &'static str) {
    assert_eq!(headers["content-type"], "application/json");
    assert!(headers.get("authorization").is_none(), "the receiver got the API key");
    let number = {
        let mut seen = deliveries.seen.lock().unwrap();
        let id = headers["webhook-id"].to_str().unwrap().to_owned();
        seen.push(Delivery { id, text: String::from_utf8(body.to_vec()).unwrap(), headers });
        seen.len() - 1
    };
    let (status, text) = (deliveries.script)(number);
    (StatusCode::from_u16(status).unwrap(), text)
}
