//! A scenario, whose requests and responses become the examples of the OpenAPI document.

use super::document;
use super::replacements::Replacements;
use crate::support::{Api, Client, Reply};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

pub fn id(resource: &Value) -> String {
    resource["id"].as_str().unwrap().to_owned()
}

/// A body, with its place in the scenario.
type Body = (usize, Value);

type Bodies = BTreeMap<String, Body>;

/// The examples of one operation.
#[derive(Default)]
struct Recorded {
    request: Bodies,
    /// By status.
    responses: BTreeMap<String, Bodies>,
}

#[derive(Default)]
struct Recording {
    bodies: usize,
    /// By operation ID.
    operations: BTreeMap<String, Recorded>,
    /// By code.
    problems: BTreeMap<String, Body>,
    /// By kind, such as `asset.*`.
    webhooks: BTreeMap<String, Body>,
}

impl Recording {
    fn body(&mut self, media_type: &str, text: &str) -> Body {
        self.bodies += 1;
        let is_json = media_type == "application/json";
        (self.bodies, if is_json { serde_json::from_str(text).unwrap() } else { text.into() })
    }
}

/// `false` if there is a body of its media type already.
fn add(bodies: &mut Bodies, media_type: &str, body: Body) -> bool {
    let is_new = !bodies.contains_key(media_type);
    bodies.entry(media_type.to_owned()).or_insert(body);
    is_new
}

/// The scenario, as the holder of one API key continues it.
#[derive(Clone)]
pub struct Scenario {
    pub api: Rc<Api>,
    pub client: Client,
    document: Rc<Value>,
    recording: Rc<RefCell<Recording>>,
}

impl Scenario {
    /// Begins the scenario of a company at 10:00 o'clock.
    pub async fn begin() -> Self {
        let api = Api::start().await;
        api.stop_clock();
        let client = api.limited_tenant(600).await;
        Self { api: Rc::new(api), client, document: Rc::new(document()), recording: Rc::default() }
    }

    /// The scenario, continued by somebody else.
    pub fn by(&self, client: Client) -> Self {
        Self { client, ..self.clone() }
    }

    /// Sets the clock to a time of the day, which must not have passed.
    pub fn at(&self, time: &str) {
        let (hours, minutes) = time.split_once(':').unwrap();
        let minute = hours.parse::<i64>().unwrap() * 60 + minutes.parse::<i64>().unwrap();
        let passed = self.api.now().millis().rem_euclid(24 * 3_600_000);
        assert!(passed <= minute * 60_000, "{time} has passed");
        self.api.advance_clock_millis(minute * 60_000 - passed);
    }

    /// Sends a request that is no example, half a minute later. Returns the resource.
    pub async fn prepare(&self, path: &str, body: Value) -> Value {
        self.api.advance_clock(30);
        self.client.post(path, body).await.data()
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.send("GET", path, "", "").await
    }

    pub async fn post(&self, path: &str, body: Value) -> Value {
        self.send("POST", path, "application/json", &body.to_string()).await.data()
    }

    pub async fn patch(&self, path: &str, body: Value) -> Value {
        self.send("PATCH", path, "application/json", &body.to_string()).await.data()
    }

    pub async fn put(&self, path: &str, body: Value) -> Value {
        self.send("PUT", path, "application/json", &body.to_string()).await.data()
    }

    pub async fn delete(&self, path: &str) {
        self.send("DELETE", path, "", "").await;
    }

    /// Sends a request half a minute later. Records new bodies of request and response.
    pub async fn send(&self, method: &str, path: &str, media_type: &str, body: &str) -> Reply {
        self.api.advance_clock(30);
        let content_type = Some(media_type).filter(|media_type| !media_type.is_empty());
        let reply = self.client.send(method, path, content_type, body.to_owned()).await;
        assert!(reply.status.is_success(), "{method} {path}: {}", reply.text());
        let id = operation_id(&self.document, method, path);
        let mut recording = self.recording.borrow_mut();
        let response_type = reply.header("content-type").split(';').next().unwrap();
        let (sent, received) = (recording.body(media_type, body), recording.body(response_type, reply.text()));
        let operation = recording.operations.entry(id).or_default();
        let of_status = operation.responses.entry(reply.status.as_str().to_owned()).or_default();
        let is_new_response = add(of_status, response_type, received);
        let is_new_request = !body.is_empty() && add(&mut operation.request, media_type, sent);
        assert!(is_new_request || is_new_response, "{method} {path} has an example already: prepare this one");
        drop(recording);
        reply
    }

    /// Records a problem document with this status and code.
    #[track_caller]
    pub fn problem(&self, reply: &Reply, status: u16, code: &str) {
        let problem = reply.problem(status, code);
        let mut recording = self.recording.borrow_mut();
        let body = recording.body("application/json", &problem.to_string());
        assert!(recording.problems.insert(code.to_owned(), body).is_none(), "{code} has an example already");
    }

    /// Records the shortest of these bodies for each kind of events.
    pub fn deliveries(&self, mut bodies: Vec<String>) {
        // Of equally long ones, the first by the name of its resource: the order of ids is random.
        bodies.sort_by_cached_key(|body| (body.len(), body.split_once("\"entity_name\"").map(|(_, end)| end.to_owned())));
        let mut recording = self.recording.borrow_mut();
        for text in bodies {
            let body = recording.body("application/json", &text);
            let event_type = body.1["type"].as_str().unwrap();
            let kind = format!("{}.*", event_type.split_once('.').unwrap().0);
            recording.webhooks.entry(kind).or_insert(body);
        }
    }

    /// All recorded examples, with the same IDs and hashes in every run.
    pub fn end(self) -> Value {
        let mut recording = self.recording.borrow_mut();
        let Recording { operations, problems, webhooks, .. } = &mut *recording;
        let of_operations = operations.values_mut().flat_map(|operation| {
            let responses = operation.responses.values_mut().flat_map(BTreeMap::values_mut);
            operation.request.values_mut().chain(responses)
        });
        let mut bodies: Vec<&mut Body> = of_operations.chain(problems.values_mut()).chain(webhooks.values_mut()).collect();
        bodies.sort_by_key(|(number, _)| *number);
        let mut replacements = Replacements::default();
        bodies.into_iter().for_each(|(_, body)| replacements.replace(body));
        let values = |bodies: &Bodies| -> Value { bodies.iter().map(|(name, (_, body))| (name.clone(), body.clone())).collect() };
        let examples = |(id, operation): (&String, &Recorded)| {
            let responses = operation.responses.iter().map(|(status, bodies)| (status.clone(), values(bodies)));
            let mut examples = json!({"request": values(&operation.request), "responses": responses.collect::<Value>()});
            if operation.request.is_empty() {
                examples.as_object_mut().unwrap().remove("request");
            }
            (id.clone(), examples)
        };
        json!({"operations": operations.iter().map(examples).collect::<Value>(), "problems": values(problems), "webhooks": values(webhooks)})
    }
}

/// Of the operations whose path matches, the one with the fewest parameters.
fn operation_id(document: &Value, method: &str, path: &str) -> String {
    let method = method.to_lowercase();
    let path = path.split('?').next().unwrap();
    let matches = |template: &str| {
        let is_same = |(part, of_path): (&str, &str)| part == of_path || part.starts_with('{');
        template.split('/').count() == path.split('/').count() && template.split('/').zip(path.split('/')).all(is_same)
    };
    let paths = document["paths"].as_object().unwrap().iter();
    let found = paths.filter(|(template, item)| matches(template) && item.get(&method).is_some());
    let (_, item) = found.min_by_key(|(template, _)| template.matches('{').count()).unwrap_or_else(|| panic!("no {path}"));
    item[&method]["operationId"].as_str().unwrap().to_owned()
}
