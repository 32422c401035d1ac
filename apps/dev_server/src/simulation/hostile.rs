//! Hostile requests to a separate tenant. No response may disclose data of the other tenants, whose records must still match the
//! model. In the end, every accepted record must be readable.

use super::service::{ApiRequest, ApiResponse, Service};
use super::tenant::{MARKER, Tenant, id_in};
use crate::faulty_table::SeededRandom;
use crate::invariants::violations;
use crate::server::TABLE;
use anyhow::Result;
use aws_sdk_dynamodb::Client;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};
use shared::domain::keys::api_key::{Secret, Token};
use shared::domain::people::Person;
use shared::domain::processes::instance::SubjectId;
use shared::domain::signing::Link;
use shared::http::openapi::SIGNING_LINK;
use std::time::Duration;
use tokio::time::sleep;
use uuid::Uuid;

const MAX_PAUSE_MILLIS: u64 = 100;
/// Far more than the tenant's few records need.
const MAX_ERASURE_REQUESTS: usize = 20;
/// Lists whose records must be readable in the end.
const LISTS: [&str; 10] = [
    "/assets",
    "/users",
    "/catalog/asset-types",
    "/catalog/manufacturers",
    "/catalog/models",
    "/keys",
    "/webhooks",
    "/processes",
    "/processes/instances",
    "/movements",
];

const METHODS: [&str; 5] = ["GET", "POST", "PATCH", "PUT", "DELETE"];
/// Letters, digits, hyphens, underscores and dots are not escaped in URLs.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');
/// Texts that often cause errors in services.
const TEXTS: [&str; 20] = [
    "",
    " ",
    "a",
    "Ärger",
    "e\u{301}",
    "\u{202e}txt.exe",
    "a\u{200b}b",
    "\u{feff}",
    "\u{0}",
    "\n",
    "'; --",
    "<b>x</b>",
    "=1+1",
    "../..",
    "%00",
    "null",
    "NaN",
    "9999-12-31",
    "👩‍👩‍👧",
    "\u{1f1e9}\u{1f1ea}",
];
/// Headers that are wrong, or that belong to other requests.
const HEADERS: [(&str, &str); 8] = [
    ("if-match", "\"1\" ,, W/\"2\""),
    ("if-match", "*"),
    ("if-none-match", "\"a\" ,"),
    ("idempotency-key", "the same for all"),
    ("content-encoding", "gzip"),
    ("accept", "application/xml;q=2"),
    ("x-http-method-override", "DELETE"),
    ("host", "elsewhere.example.com"),
];

/// Attacks `target` until the simulation is over. The attackers know IDs from the other tenants.
pub async fn attack(service: &Service, target: &Tenant, others: &[Tenant], random: SeededRandom) {
    let document = service.settle(&target.request("GET", "/openapi.json", Value::Null)).await.body;
    let mut generator = Generator::new(&document, target, random);
    while !service.is_over() {
        service.wait_while_idle().await;
        let attack = generator.next(target, others);
        if let Some(response) = service.send(&attack.request).await {
            if let Some(fault) = fault(attack.is_permitted, &response) {
                service.add_violation(format!("{fault}: {:?} was answered with {response:?}", attack.request));
            }
            service.count_attack(&response);
            generator.learn(&attack.request, &response);
        }
        sleep(Duration::from_millis(generator.random.below(MAX_PAUSE_MILLIS))).await;
    }
}

fn fault(is_permitted: bool, response: &ApiResponse) -> Option<&'static str> {
    match response.status {
        _ if discloses(response) => Some("data of another tenant"),
        ..300 if !is_permitted => Some("success without a credential"),
        400.. if !response.body["code"].is_string() => Some("an error without a problem document"),
        _ => None,
    }
}

fn discloses(response: &ApiResponse) -> bool {
    response.body.to_string().contains(MARKER) || response.headers.iter().any(|value| value.contains(MARKER))
}

/// Checks that all accepted records can be read, and the tenant's invariants.
pub async fn check(service: &Service, target: &Tenant, client: &Client) -> Result<()> {
    for list in LISTS {
        for page in 1.. {
            let all = if list == "/processes" { "&status=all" } else { "" };
            let listed = read(service, target, &format!("{list}?limit=100&page={page}{all}")).await;
            let records = listed["data"].as_array().map(Vec::as_slice).unwrap_or_default();
            for id in records.iter().filter_map(|record| record["id"].as_str()) {
                read(service, target, &format!("{list}/{id}")).await;
            }
            if records.len() < 100 {
                break;
            }
        }
    }
    read(service, target, "/settings").await;
    finish_erasures(service, target).await?;
    for violation in violations(&service.store().writer(target.id), client, TABLE).await? {
        service.add_violation(format!("{}: in the end, {violation}", target.name));
    }
    Ok(())
}

/// Repeats erasures until they are done, because attackers send each request only once.
async fn finish_erasures(service: &Service, target: &Tenant) -> Result<()> {
    for erasure in service.store().reader(target.id).erasures().await? {
        let path = match erasure.person {
            Person::User(id) => format!("/users/{id}/erase"),
            Person::Guest(id) => match service.store().reader(target.id).get::<Link>(id).await?.map(|link| link.value.subject) {
                Some(SubjectId::Instance(instance)) => format!("/processes/instances/{instance}/links/{id}/erase"),
                Some(SubjectId::Movement(movement)) => format!("/movements/{movement}/links/{id}/erase"),
                None => continue,
            },
        };
        let request = target.request("POST", path, Value::Null);
        let mut rounds = 0;
        while rounds < MAX_ERASURE_REQUESTS && service.settle(&request).await.body["data"]["done"] != true {
            rounds += 1;
        }
        if rounds == MAX_ERASURE_REQUESTS {
            service.add_violation(format!("{}: the erasure of {:?} did not finish", target.name, erasure.person));
        }
    }
    Ok(())
}

async fn read(service: &Service, target: &Tenant, path: &str) -> Value {
    let response = service.settle(&target.request("GET", path, Value::Null)).await;
    if response.status != 200 {
        service.add_violation(format!("{}: {path} couldn't be read: {} {}", target.name, response.status, response.body));
    }
    response.body
}

struct Operation {
    method: &'static str,
    path: String,
    parameters: Vec<String>,
    /// The media type of an accepted body, and the body.
    example: Option<(String, Value)>,
    takes_link: bool,
    needs_key: bool,
}

struct Attack {
    request: ApiRequest,
    is_permitted: bool,
}

/// Generates hostile requests from the examples of the OpenAPI document: with IDs of this tenant and of others, and with wrong
/// members, parameters and credentials.
struct Generator {
    random: SeededRandom,
    operations: Vec<Operation>,
    made: u64,
    /// Collections and IDs of the tenant's resources.
    own: Vec<(String, String)>,
    links: Vec<String>,
    /// A key of the tenant with a wrong secret.
    forged: String,
}

impl Generator {
    fn new(document: &Value, target: &Tenant, random: SeededRandom) -> Self {
        let own = vec![("/processes".to_owned(), target.process_id.clone())];
        let forged = Token::parse(&target.api_key).map(|key| Token::new(target.id, key.id, Secret::new([7; 32])).expose());
        let forged = forged.unwrap_or_default();
        Self { random, operations: operations(document), made: 0, own, links: Vec::new(), forged }
    }

    fn is_rare(&self, rarity: u64) -> bool {
        self.random.below(rarity) == 0
    }

    fn choose<'a, T>(&self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.random.below(from.len() as u64) as usize)
    }

    fn text(&self) -> &'static str {
        self.choose(&TEXTS).copied().unwrap_or_default()
    }

    /// Returns the next attack, beginning with the unchanged examples, so that the tenant has resources.
    fn next(&mut self, target: &Tenant, others: &[Tenant]) -> Attack {
        let count = self.operations.len() as u64;
        let (place, is_mutated) = if self.made < count { (self.made, false) } else { (self.random.below(count), true) };
        self.made += 1;
        let operation = &self.operations[place as usize];
        let id = |collection: &str| self.id(collection, others, is_mutated);
        let mut request = target.request(operation.method, self.path(operation, is_mutated, &id), Value::Null);
        if let Some((media_type, example)) = &operation.example {
            let mut body = example.clone();
            self.replace(&mut body, "", &id);
            if is_mutated && self.is_rare(4) {
                self.mutate(&mut body);
            }
            request.headers.push(("content-type", media_type.clone()));
            request.body = body;
        }
        let header = self.choose(&HEADERS).filter(|_| is_mutated && self.is_rare(4));
        request.headers.extend(header.map(|(name, value)| (*name, (*value).to_owned())));
        if is_mutated && self.is_rare(20) {
            request.method = self.choose(&METHODS).copied().unwrap_or_default();
        }
        let link = self.choose(&self.links).filter(|_| operation.takes_link != (is_mutated && self.is_rare(10)));
        let is_valid = link.is_some() == operation.takes_link;
        request.api_key = match self.random.below(if is_mutated { 10 } else { 1 }) {
            1 => self.forged.clone(),
            2 => String::new(),
            _ => link.cloned().unwrap_or(request.api_key),
        };
        let is_own = request.api_key == target.api_key || link == Some(&request.api_key);
        let is_permitted = !operation.needs_key || is_own && is_valid;
        // The signing link may have ended.
        request.may_be_unauthorized = !is_permitted || link.is_some() || operation.takes_link;
        Attack { request, is_permitted }
    }

    fn learn(&mut self, request: &ApiRequest, response: &ApiResponse) {
        if response.status == 201 {
            let collection = request.path.split('?').next().unwrap_or_default().to_owned();
            let started = if response.body["data"]["asset_ids"].is_array() { "/movements" } else { "/processes/instances" };
            let collection = if collection.ends_with("/start") { started.to_owned() } else { collection };
            self.own.push((collection, id_in(response)));
            let secret = response.body["data"]["url"].as_str().and_then(|url| url.split_once('#'));
            self.links.extend(secret.map(|(_, secret)| secret.to_owned()));
        }
    }

    /// Returns an ID for a path: of a resource in this collection or, if `is_mutated`, sometimes of another collection or tenant,
    /// or arbitrary text.
    fn id(&self, collection: &str, others: &[Tenant], is_mutated: bool) -> String {
        let fitting: Vec<&String> = self.own.iter().filter(|(known, _)| known.ends_with(collection)).map(|(_, id)| id).collect();
        let other = self.choose(others).map(|tenant| tenant.model().random_id(&self.random).unwrap_or(tenant.process_id.clone()));
        let chosen = match self.random.below(if is_mutated { 10 } else { 1 }) {
            1 => other,
            2 => self.choose(&self.own).map(|(_, id)| id.clone()),
            3 => Some(self.text().to_owned()),
            _ => self.choose(&fitting).map(|id| (*id).clone()),
        };
        chosen.unwrap_or_else(|| Uuid::nil().to_string())
    }

    fn path(&self, operation: &Operation, is_mutated: bool, id: &impl Fn(&str) -> String) -> String {
        let mut path = String::new();
        for part in operation.path.split('/').skip(1) {
            let value = match part {
                "{key}" => "signature".to_owned(),
                "{serial}" => self.text().to_owned(),
                _ if part.starts_with('{') => id(&path),
                _ => part.to_owned(),
            };
            path = format!("{path}/{}", escape(&value));
        }
        let mut separator = '?';
        for name in operation.parameters.iter().filter(|_| is_mutated && self.is_rare(4)) {
            path = format!("{path}{separator}{name}={}", escape(self.text()));
            separator = '&';
        }
        path
    }

    /// Replaces the IDs and the unique values in an example.
    fn replace(&self, value: &mut Value, name: &str, id: &impl Fn(&str) -> String) {
        match value {
            Value::Object(members) => members.iter_mut().for_each(|(name, member)| self.replace(member, name, id)),
            Value::Array(items) => items.iter_mut().for_each(|item| self.replace(item, name, id)),
            Value::String(text) if Uuid::try_parse(text).is_ok() => *text = id(collection(name)),
            Value::String(text) if text.contains('@') => *text = text.replace('@', &format!("{}@", self.made)),
            _ => {}
        }
    }

    /// Omits a member of an object, misspells its name, or replaces its value.
    fn mutate(&self, value: &mut Value) {
        let Value::Object(members) = value else { return };
        let names: Vec<String> = members.keys().cloned().collect();
        let name = self.choose(&names).cloned().unwrap_or_default();
        let many = |count: u64| (0..count).map(|n| (format!("n{n}"), json!(n))).collect::<Map<_, _>>();
        let hostile = match self.random.below(8) {
            0 => Value::Null,
            1 => json!([[[[[[[[[[]]]]]]]]]]),
            2 => json!("x".repeat(self.random.below(70_000) as usize)),
            3 => json!(-1),
            4 => json!(1e308),
            5 => Value::Object(many(self.random.below(2_000))),
            6 => json!({"properties": {"a": {"type": "string", "pattern": r"\pL{20}"}}}),
            _ => json!(self.text()),
        };
        match self.random.below(4) {
            0 => drop(members.remove(&name)),
            1 => drop(members.insert(format!("{name}x"), hostile)),
            _ => drop(members.insert(name, hostile)),
        }
    }
}

fn operations(document: &Value) -> Vec<Operation> {
    let mut operations = Vec::new();
    let paths = document["paths"].as_object().into_iter().flatten();
    for (path, method) in paths.flat_map(|(path, _)| METHODS.map(|method| (path, method))) {
        let operation = &document["paths"][path][method.to_lowercase()];
        // Skips exports: they read all records of a kind from the table, which lists must not do.
        if !operation.is_object() || path.ends_with("/export") {
            continue;
        }
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let parameters = parameters.map(|parameter| {
            let named = parameter["$ref"].as_str().and_then(|target| document.pointer(target.trim_start_matches('#')));
            named.unwrap_or(parameter)
        });
        let in_query = parameters.filter(|parameter| parameter["in"] == "query");
        let content = operation["requestBody"]["content"].as_object().into_iter().flatten();
        operations.push(Operation {
            method,
            path: path.clone(),
            parameters: in_query.filter_map(|parameter| parameter["name"].as_str().map(str::to_owned)).collect(),
            example: content.map(|(media_type, content)| (media_type.clone(), content["example"].clone())).next_back(),
            takes_link: operation["security"][0].get(SIGNING_LINK).is_some(),
            needs_key: operation["security"].as_array().is_some_and(|schemes| !schemes.is_empty()),
        });
    }
    operations
}

/// Returns the end of the path of the collection to which a member with this name refers.
fn collection(name: &str) -> &'static str {
    match name {
        "asset_id" | "asset_ids" | "id" => "/assets",
        "asset_type_id" => "/asset-types",
        "manufacturer_id" => "/manufacturers",
        "model_id" => "/models",
        "process_id" => "/processes",
        _ => "/users",
    }
}

fn escape(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_is_found() {
        let response = |status, body| ApiResponse { status, body, ..ApiResponse::default() };
        let others = json!({"data": [{"name": format!("{MARKER} laptop")}]});
        assert_eq!(fault(true, &response(200, others)), Some("data of another tenant"));
        let header = ApiResponse { headers: vec![format!("/v1/assets/{MARKER}")], ..response(308, Value::Null) };
        assert_eq!(fault(true, &header), Some("data of another tenant"));
        assert_eq!(fault(false, &response(200, json!({}))), Some("success without a credential"));
        assert_eq!(fault(true, &response(500, json!("Internal Server Error"))), Some("an error without a problem document"));
        for (is_permitted, status) in [(true, 201), (true, 409), (false, 401)] {
            assert_eq!(fault(is_permitted, &response(status, json!({"code": "CODE"}))), None);
        }
    }
}
