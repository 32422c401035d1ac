//! A receiver of webhooks, which verifies messages with the official library.

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde_json::Value;
use standardwebhooks::Webhook;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// A message that came.
#[derive(Debug, Clone)]
pub struct Message {
    pub id: String,
    pub text: String,
    headers: HeaderMap,
}

impl Message {
    /// Returns whether the secret has signed the message.
    pub fn is_signed_by(&self, secret: &str) -> bool {
        Webhook::new(secret).unwrap().verify(self.text.as_bytes(), &self.headers).is_ok()
    }

    /// Returns the body.
    pub fn body(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }
}

type Script = Box<dyn Fn(usize) -> (u16, &'static str) + Send + Sync>;

struct Messages {
    script: Script,
    seen: Mutex<Vec<Message>>,
}

/// A running receiver.
pub struct Receiver {
    messages: Arc<Messages>,
    _runtime: Runtime,
    /// Where it receives.
    pub url: String,
}

impl Receiver {
    /// Starts a receiver that answers each message with what `script` says to its number, which counts from 0.
    pub fn start(script: impl Fn(usize) -> (u16, &'static str) + Send + Sync + 'static) -> Self {
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let messages = Arc::new(Messages { script: Box::new(script), seen: Mutex::default() });
        let routes = Router::new().route("/hook", axum::routing::post(receive)).with_state(Arc::clone(&messages));
        runtime.spawn(async move { axum::serve(listener, routes).await });
        Self { messages, _runtime: runtime, url }
    }

    /// Returns the messages so far.
    pub fn messages(&self) -> Vec<Message> {
        self.messages.seen.lock().unwrap().clone()
    }
}

async fn receive(State(messages): State<Arc<Messages>>, headers: HeaderMap, body: Bytes) -> (StatusCode, &'static str) {
    assert_eq!(headers["content-type"], "application/json");
    assert!(headers.get("authorization").is_none(), "the receiver got the API key");
    let number = {
        let mut seen = messages.seen.lock().unwrap();
        let id = headers["webhook-id"].to_str().unwrap().to_owned();
        seen.push(Message { id, text: String::from_utf8(body.to_vec()).unwrap(), headers });
        seen.len() - 1
    };
    let (status, text) = (messages.script)(number);
    (StatusCode::from_u16(status).unwrap(), text)
}
