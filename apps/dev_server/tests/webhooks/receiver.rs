//! Receivers of webhooks on this machine.

use serde_json::Value;
use standardwebhooks::Webhook;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, BufRead, BufReader, Error, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Arrival {
    pub headers: HashMap<String, String>,
    pub body: String,
}

/// Delay and status of responses.
type Behaviour = Arc<Mutex<(Duration, u16)>>;

/// A receiver, as long as the tests run.
pub struct Receiver {
    pub url: String,
    arrivals: Arc<Mutex<Vec<Arrival>>>,
    behaviour: Behaviour,
}

impl Receiver {
    pub fn start(status: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let (arrivals, behaviour) = (Arc::default(), Arc::new(Mutex::new((Duration::ZERO, status))));
        let (arrived, behaves): (Arc<Mutex<Vec<Arrival>>>, Behaviour) = (Arc::clone(&arrivals), Arc::clone(&behaviour));
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let (arrived, behaves) = (Arc::clone(&arrived), Arc::clone(&behaves));
                // Fails when the server is killed meanwhile.
                std::thread::spawn(move || receive(connection?, &arrived, &behaves));
            }
        });
        Self { url, arrivals, behaviour }
    }

    pub fn respond(&self, status: u16, after: Duration) {
        *self.behaviour.lock().unwrap() = (after, status);
    }

    pub fn arrivals(&self) -> Vec<Arrival> {
        self.arrivals.lock().unwrap().clone()
    }

    /// Arrivals by ID. Checks each: the signature is right, and repeated deliveries are the same.
    pub fn verified(&self, secret: &str) -> BTreeMap<String, Value> {
        let mut events = BTreeMap::new();
        for arrival in self.arrivals() {
            let event = arrival.verified(secret);
            let earlier = events.insert(arrival.headers["webhook-id"].clone(), event.clone());
            assert!(earlier.is_none_or(|earlier| earlier == event), "{event}");
        }
        events
    }
}

impl Arrival {
    /// The body, whose signature must be right.
    pub fn verified(&self, secret: &str) -> Value {
        let header = |name: &str| self.headers.get(name).unwrap_or_else(|| panic!("{name} is missing: {self:?}")).as_str();
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

fn receive(connection: TcpStream, arrivals: &Mutex<Vec<Arrival>>, behaviour: &Mutex<(Duration, u16)>) -> io::Result<()> {
    let mut reader = BufReader::new(connection);
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Err(Error::other("there is no request"));
    }
    assert!(line.starts_with("POST /hook HTTP/1.1"), "{line}");
    let mut headers = HashMap::new();
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Err(Error::other("the request is cut off"));
        }
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or_default();
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let body = String::from_utf8(body).map_err(Error::other)?;
    arrivals.lock().unwrap().push(Arrival { headers, body });
    let (after, status) = *behaviour.lock().unwrap();
    std::thread::sleep(after);
    write!(reader.get_mut(), "HTTP/1.1 {status} Test\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
}
