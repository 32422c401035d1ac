//! `assetctl webhooks listen`.

use crate::support::scripted::{Answer, Request, Scripted};
use crate::support::service::Service;
use crate::support::{Run, command, end, interrupt, run, serve, spawn, stderr_until, wait_until};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use serde_json::{Value, json};
use standardwebhooks::Webhook;
use std::io::{BufRead, BufReader};
use std::sync::{Arc, Mutex};
use tokio::runtime::Runtime;

fn event(number: u32) -> Value {
    json!({
        "id": format!("e{number}"), "at": "2027-01-01T08:30:59.123Z", "type": "asset.created", "entity_id": "a1", "version": 1,
        "actor": {"key_id": "k1", "key_name": "ci", "user_id": null, "user_name": null}, "changes": {}, "previous_hash": null,
        "hash": "00", "entity_name": format!("Laptop {number}"), "entity_tag": format!("AST-{number}")
    })
}

fn page(events: &[Value], after: &str, has_more: bool) -> Answer {
    let meta = json!({"limit": 100, "after": after, "has_more": has_more});
    Answer::json(&json!({"data": events, "meta": meta}))
}

/// Responds with the start position, then two pages, then nothing.
fn two_pages(request: &Request) -> Answer {
    assert_eq!((request.route.as_str(), request.parameter("limit")), ("GET /events", "100"));
    match request.parameter("after") {
        "now" => page(&[], "e0", false),
        "e0" => page(&[event(1), event(2)], "e2", true),
        "e2" => page(&[event(3)], "e3", false),
        after => page(&[], after, false),
    }
}

fn secret(run: &Run) -> &str {
    let (_, rest) = run.stderr.split_once("Your signing secret for this session is ").unwrap();
    rest.lines().next().unwrap()
}

fn lines(run: &Run) -> Vec<Value> {
    run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn changes_of_the_real_service_reach_a_receiver_although_the_service_restarts() {
    let (service, receiver) = (Service::start(), Receiver::start(|_| (204, "")));
    let options = ["--events", "asset.*", "--forward", &receiver.url, "--print", "json", "--count", "3", "--for", "100"];
    let mut child = spawn(service.command(&[&["webhooks", "listen"][..], &options].concat()));
    let create = |name: &str| service.create("/assets", &json!({"name": name, "purchase_price": 1249.5}));
    let first = create("First");
    service.create("/users", &json!({"email": "ada@example.com", "display_name": "Ada"}));
    wait_until(|| receiver.deliveries().len() == 1);
    create("Second");
    service.stop();
    create("Third");
    let mut said = stderr_until(&mut child, "; waiting for it. No event is lost.\n");
    service.start_again();

    let mut run = end(child).ok();
    assert!(run.stderr.starts_with("The service answers again.\n"), "{}", run.stderr);
    said.push_str(&run.stderr);
    run.stderr = said;
    assert!(run.stderr.contains("3 events in ") && run.stderr.ends_with(": 3 forwarded, 0 failed\n"), "{}", run.stderr);
    let (deliveries, lines) = (receiver.deliveries(), lines(&run));
    assert_eq!((deliveries.len(), lines.len()), (3, 3));
    let other = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    assert!(deliveries.iter().all(|delivery| delivery.is_signed_by(secret(&run)) && !delivery.is_signed_by(other)));
    // The entries have the same bytes as in the feed.
    let feed = service.get("/events?types=asset.*");
    for (index, name) in ["First", "Second", "Third"].into_iter().enumerate() {
        let (delivery, mut body, line) = (&deliveries[index], deliveries[index].body(), &lines[index]);
        let entry = body["data"].take();
        assert_eq!((&entry["entity_name"], &entry["id"], &entry), (&json!(name), &json!(delivery.id), &feed["data"][index]));
        assert_eq!(body, json!({"type": "asset.created", "timestamp": entry["at"], "data": null}));
        assert!(delivery.text.contains(&entry.to_string()), "{}", delivery.text);
        assert_eq!((&line["attempt"]["status"], &line["data"]), (&json!(204), &entry));
    }
    assert_eq!(deliveries[0].body()["data"]["entity_id"], first);
}

#[test]
fn each_event_is_a_line() {
    let service = Scripted::start(|request, _| two_pages(request));
    let listening = run(&service.url, &["webhooks", "listen", "--count", "3"]).ok();
    let line = |number| format!("2027-01-01 08:30:59  asset.created       AST-{number} Laptop {number}  by ci\n");
    assert_eq!(listening.stdout, line(1) + &line(2) + &line(3));
    assert!(listening.stderr.starts_with("Listening to all events. "), "{}", listening.stderr);
    assert!(!listening.stderr.contains("whsec_"), "nothing is signed");
    assert!(service.requests().iter().all(|request| request.parameter("types").is_empty()));
}

#[test]
fn failures_of_the_receiver_are_shown_and_the_rest_goes_on() {
    let service = Scripted::start(|request, _| two_pages(request));
    let receiver = Receiver::start(|number| if number == 1 { (500, "out of\npaper") } else { (200, "fine") });
    let key = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
    let options = ["--forward", &receiver.url, "--secret", key, "--count", "3", "--events", "asset.created,user.*"];
    let listening = run(&service.url, &[&["webhooks", "listen"][..], &options].concat());
    assert_eq!(listening.code, 3, "{}", listening.stderr);
    let outcomes: Vec<&str> = listening.stdout.lines().map(|line| line.split_once("by ci  ").unwrap().1).collect();
    assert!(outcomes[0].starts_with("200 in ") && outcomes[2].ends_with(" ms"), "{outcomes:?}");
    assert!(outcomes[1].starts_with("500 in ") && outcomes[1].ends_with(" ms: out of paper"), "{outcomes:?}");
    assert!(listening.stderr.ends_with(": 2 forwarded, 1 failed\n"), "{}", listening.stderr);
    assert!(!listening.stderr.contains(key) && !listening.stdout.contains(key), "a given secret is not printed");
    let deliveries = receiver.deliveries();
    assert!(deliveries.len() == 3 && deliveries.iter().all(|delivery| delivery.is_signed_by(key)));
    assert!(service.requests().iter().all(|request| request.parameter("types") == "asset.created,user.*"));

    let nobody = ["webhooks", "listen", "--forward", "http://127.0.0.1:9/", "--count", "1", "--json"];
    let refused = run(&service.url, &nobody);
    assert_eq!((refused.code, lines(&refused)[0]["attempt"]["status"].clone()), (3, json!(null)));
    assert!(lines(&refused)[0]["attempt"]["error"].as_str().unwrap().contains("refused"), "{}", refused.stdout);
}

#[test]
fn a_busy_service_is_waited_for_and_a_refusal_is_not() {
    // The first request asks for the start position, so the second is the first that is retried.
    let service = Scripted::start(|request, number| match number {
        1 => Answer::problem(429, "RATE_LIMITED", "Slow down."),
        2..=7 => Answer::problem(if number % 2 == 0 { 500 } else { 503 }, "UNAVAILABLE", "Try again."),
        _ => two_pages(request),
    });
    let waited = run(&service.url, &["webhooks", "listen", "--count", "3"]);
    assert_eq!((waited.code, waited.stdout.lines().count()), (0, 3), "{}", waited.stderr);
    assert_eq!(waited.stderr.matches("waiting for it").count(), 1, "{}", waited.stderr);

    let service = Scripted::start(|request, number| match number {
        0..=2 => two_pages(request),
        _ => Answer::problem(401, "UNAUTHORIZED", "No valid key."),
    });
    let refused = run(&service.url, &["webhooks", "listen", "--print", "json"]);
    assert_eq!((refused.code, lines(&refused).len()), (1, 3));
    assert!(refused.stderr.contains("3 events in ") && refused.stderr.contains("401 UNAUTHORIZED"), "{}", refused.stderr);
}

#[test]
fn listening_ends_after_the_given_time_or_when_the_output_is_closed() {
    let service = Scripted::start(|request, _| two_pages(request));
    let over = run(&service.url, &["webhooks", "listen", "--for", "1"]);
    assert_eq!((over.code, over.stdout.lines().count()), (0, 3), "{}", over.stderr);
    let missing = run(&service.url, &["webhooks", "listen", "--for", "1", "--count", "4"]);
    assert_eq!((missing.code, missing.stdout.lines().count()), (1, 3));
    assert!(missing.stderr.ends_with("only 3 events of 4 arrived within 1 s\n"), "{}", missing.stderr);

    let mut child = spawn(command(&service.url, &["webhooks", "listen"]));
    drop(child.stdout.take());
    assert_eq!(end(child).code, 0);
}

#[test]
fn ctrl_c_ends_it_with_a_summary() {
    let service = Scripted::start(|request, _| two_pages(request));
    let mut child = spawn(command(&service.url, &["webhooks", "listen"]));
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!((0..3).all(|_| output.next().unwrap().unwrap().contains("asset.created")));
    interrupt(&child);
    let run = end(child);
    assert_eq!(run.code, 130, "{}", run.stderr);
    let summary = run.stderr.lines().last().unwrap();
    assert!(summary.starts_with("3 events in ") && summary.ends_with(" s") && !run.stderr.contains("error"), "{}", run.stderr);
}

#[test]
fn wrong_options_are_explained() {
    for (options, reason) in [
        (&["--forward", "localhost:9000"][..], "must begin with http:// or https://"),
        (&["--secret", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"], "--forward"),
        (&["--forward", "http://127.0.0.1:1", "--secret", "whsec_x"], "must be whsec_ and 24 to 64 bytes"),
        (&["--count", "0"], "must be a positive integer"),
    ] {
        run("http://127.0.0.1:9", &[&["webhooks", "listen"][..], options].concat()).tells(2, reason);
    }
    let service = Service::start();
    service.run(&["webhooks", "listen", "--events", "asset.creatd"]).tells(2, "isn't one of asset.created");
}

#[derive(Debug, Clone)]
struct Delivery {
    id: String,
    text: String,
    headers: HeaderMap,
}

impl Delivery {
    fn is_signed_by(&self, secret: &str) -> bool {
        Webhook::new(secret).unwrap().verify(self.text.as_bytes(), &self.headers).is_ok()
    }

    fn body(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }
}

type Script = Box<dyn Fn(usize) -> (u16, &'static str) + Send + Sync>;

struct Deliveries {
    script: Script,
    seen: Mutex<Vec<Delivery>>,
}

/// A webhook receiver that verifies deliveries with the official library.
struct Receiver {
    deliveries: Arc<Deliveries>,
    _runtime: Runtime,
    url: String,
}

impl Receiver {
    /// Starts a receiver. `script` returns the response to each delivery, numbered from 0.
    fn start(script: impl Fn(usize) -> (u16, &'static str) + Send + Sync + 'static) -> Self {
        let deliveries = Arc::new(Deliveries { script: Box::new(script), seen: Mutex::default() });
        let routes = Router::new().route("/hook", post(receive)).with_state(Arc::clone(&deliveries));
        let (runtime, url) = serve(routes);
        Self { deliveries, _runtime: runtime, url: url + "/hook" }
    }

    fn deliveries(&self) -> Vec<Delivery> {
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
