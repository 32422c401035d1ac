//! Keys and their secrets are shown once, in the answer that makes them, and are written nowhere; nor does the log name
//! people and things.

use crate::coverage::operations;
use crate::log;
use crate::support::samples::Samples;
use crate::support::{Api, Client, Reply};
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};
use shared::domain::api_key::{ApiKey, SecretHash};
use shared::domain::base62;
use shared::domain::event::Actor;
use shared::domain::id::Id;
use shared::domain::request::IdempotentRequest;
use shared::domain::token::Token;
use shared::store::ChangeContext;
use std::collections::BTreeSet;
use std::fmt::Write;
use tracing::level_filters::LevelFilter;

/// Where the secret stands in a key's text: behind the prefix and two ids, before the checksum.
const SECRET: std::ops::Range<usize> = 48..92;

/// Every key in a text.
fn keys_in(text: &str) -> Vec<String> {
    let key = |(at, _)| text.get(at..at + 98).filter(|key| Token::parse(key).is_some()).map(str::to_owned);
    text.match_indices("apl_").filter_map(key).collect()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Every way in which a key's secret could be written down, in lower case: whole, in halves, as bytes.
fn traces(key: &str) -> Vec<String> {
    let halves = [&key[SECRET][..22], &key[SECRET][22..]];
    let bytes: Vec<u8> = halves.iter().flat_map(|half| base62::decode(half).unwrap().to_be_bytes()).collect();
    let mut traces = vec![key.to_owned(), key[SECRET].to_owned()];
    traces.extend(halves.map(str::to_owned));
    for bytes in [&bytes[..], &bytes[..16], &bytes[16..]] {
        let listed = format!("{bytes:?}");
        traces.extend([hexadecimal(bytes), listed[1..listed.len() - 1].to_owned(), hexadecimal_list(bytes)]);
    }
    for bytes in [&bytes[..], key.as_bytes(), &key.as_bytes()[SECRET]] {
        // Without the padding, and the last digit, which depends on what follows.
        let encoded = shared::domain::signature_image::data_url(bytes);
        let encoded = encoded[shared::domain::signature_image::DATA_URL_PREFIX.len()..].trim_end_matches('=');
        let encoded = &encoded[..encoded.len() - 1];
        traces.extend([encoded.to_owned(), encoded.replace('+', "-").replace('/', "_")]);
    }
    traces.iter().map(|trace| trace.to_lowercase()).collect()
}

/// As `{:x?}` prints bytes.
fn hexadecimal_list(bytes: &[u8]) -> String {
    let listed = format!("{bytes:x?}");
    listed[1..listed.len() - 1].to_owned()
}

/// A value with the bytes of binaries as hexadecimal digits and as text.
fn written(value: &AttributeValue, text: &mut String) {
    match value {
        AttributeValue::B(blob) => {
            let bytes = blob.as_ref();
            let _ = write!(text, "{} {} ", hexadecimal(bytes), String::from_utf8_lossy(bytes));
        }
        AttributeValue::L(values) => values.iter().for_each(|value| written(value, text)),
        AttributeValue::M(members) => members.iter().for_each(|(name, value)| {
            let _ = write!(text, "{name}: ");
            written(value, text);
        }),
        AttributeValue::S(value) | AttributeValue::N(value) => {
            let _ = write!(text, "{value} ");
        }
        other => {
            let _ = write!(text, "{other:?} ");
        }
    }
}

/// Every item of the table with its type, nothing left out. A scan, which only a test may do.
async fn table(api: &Api) -> Vec<(String, String)> {
    let mut items = Vec::new();
    let mut pages = api.dynamo.scan().table_name(&api.table).into_paginator().send();
    while let Some(page) = pages.next().await {
        for item in page.unwrap().items.unwrap_or_default() {
            let kind = item.get("type").and_then(|kind| kind.as_s().ok()).cloned().unwrap_or_default();
            let mut text = String::new();
            written(&AttributeValue::M(item), &mut text);
            items.push((kind, text));
        }
    }
    items
}

/// Sends every request of the API in every way, with keys where they don't belong too; gives every key there was.
async fn use_everything(api: &Api, client: &Client) -> BTreeSet<String> {
    let mut keys = BTreeSet::from([client.key.clone()]);
    let samples = Samples::of(client).await;
    let (_, operations) = operations(client).await;
    let stranger = api.tenant().await;
    let mut other = client.key.clone();
    other.replace_range(60..61, if &other[60..61] == "0" { "1" } else { "0" });
    keys.insert(stranger.key.clone());
    let mut seen = |reply: &Reply, shows: bool| {
        let found = keys_in(&String::from_utf8_lossy(&reply.bytes));
        assert!(found.is_empty() || shows, "an answer shows a key: {}", reply.status);
        keys.extend(found);
    };
    for method in ["GET", "PATCH", "POST", "DELETE"] {
        for operation in operations.iter().filter(|operation| operation.method == method) {
            let path = samples.fill(&operation.path);
            let path = path.strip_prefix("/v1").unwrap();
            let body = samples.body(method, &operation.path);
            let body = if body.is_null() { String::new() } else { body.to_string() };
            let json = Some("application/json");
            let name = format!("{method} {path}");
            let shows = method == "POST" && path.starts_with("/keys");
            // Another tenant's key is a good one, but for these things.
            for wrong in [&other, &stranger.key, &client.key[..97]] {
                let headers = [("idempotency-key", name.as_str())];
                let reply = client.with_key(wrong).send_with(method, path, json, body.clone(), &headers).await;
                seen(&reply, shows && wrong == stranger.key);
            }
            // Keys in the wrong places: a header, a query, a path, a body's field.
            let misplaced = [("if-match", client.key.as_str()), ("x-api-key", &client.key)];
            seen(&client.send_with(method, path, json, body.clone(), &misplaced).await, false);
            if method == "POST" {
                let named = [("idempotency-key", client.key.as_str())];
                seen(&client.send_with(method, path, json, body.clone(), &named).await, shows);
            }
            seen(&client.send(method, &format!("{path}?api_key={}", client.key), json, body.clone()).await, false);
            seen(&client.get(&format!("{path}/{}", client.key)).await, false);
            if method == "POST" || method == "PATCH" {
                seen(&client.send(method, path, json, json!({"api_key": client.key}).to_string()).await, false);
                seen(&client.send(method, path, json, format!("{{\"api_key\": {}", client.key)).await, false);
            }
            for _ in 0..2 {
                let reply = client.send_with(method, path, json, body.clone(), &[("idempotency-key", &name)]).await;
                seen(&reply, shows);
                if shows && reply.header("idempotent-replayed").is_empty() {
                    assert_eq!(keys_in(reply.text()).len(), 1, "{name} shows no key: {}", reply.text());
                }
            }
        }
    }
    // A key that was just made, rotated with its old secret still good, and both in use.
    let made = client.post("/keys", json!({"name": "rotated", "scopes": ["assets:read", "keys:write"]})).await;
    let rotate = format!("/keys/{}/rotate", made.id());
    let rotated = client.post(&rotate, json!({"grace_seconds": 60})).await;
    for reply in [&made, &rotated] {
        let key = reply.data()["api_key"].as_str().unwrap().to_owned();
        client.with_key(&key).get("/assets?limit=1").await.data();
        client.with_key(&key).get("/users").await.problem(403, "FORBIDDEN");
        keys.insert(key);
    }
    // What fails inside is logged with its causes.
    let refused = json!({"__type": "com.amazonaws.dynamodb.v20120810#ValidationException", "message": "refused"});
    api.faults.plan("TransactWriteItems", 1, 400, &refused, false);
    client.post(&rotate, json!({})).await.problem(500, "INTERNAL_ERROR");
    keys
}

#[tokio::test]
async fn no_key_and_no_secret_is_written_anywhere() {
    log::begin_everything();
    let (api, client) = Api::with_tenant().await;
    let keys = use_everything(&api, &client).await;
    assert!(keys.len() >= 6, "only {} keys", keys.len());
    let log = log::text();
    assert!(log.lines().count() > 1_000, "a log of {} lines", log.lines().count());
    let items = table(&api).await;
    let kinds: BTreeSet<&str> = items.iter().map(|(kind, _)| kind.as_str()).collect();
    for kind in ["key", "event", "answer", "rate", "asset", "signature"] {
        assert!(kinds.contains(kind), "the table has no {kind} but {kinds:?}");
    }
    let everything: String = items.iter().flat_map(|(_, text)| [text.as_str(), "\n"]).chain([log.as_str()]).collect();
    let everything = everything.to_lowercase();
    let own: String = own_lines(&log).map(|line| line.to_string()).collect();
    for key in &keys {
        for (number, trace) in traces(key).iter().enumerate() {
            assert!(!everything.contains(trace), "way {number} of writing a secret is in {}", place(trace, &items, &log));
        }
        // Its hash is kept in the key's record and in the names of its counts; the log of this service has it never.
        let hash = Token::parse(key).unwrap().secret.hash().0;
        for (kind, text) in &items {
            assert!(["key", "rate"].contains(&kind.as_str()) || !text.contains(&hash), "{kind} has a secret's hash");
        }
        assert!(!own.contains(&hash), "a hash was logged");
    }
    // Had one been written on the quietest level, the log would have it.
    tracing::trace!(target: "shared", "{}", client.key);
    assert!(traces(&client.key).iter().any(|trace| log::text().to_lowercase().contains(trace)));
}

/// Which kind of item, or which crate's line, has this text.
fn place(trace: &str, items: &[(String, String)], log: &str) -> String {
    let item = items.iter().find(|(_, text)| text.to_lowercase().contains(trace)).map(|(kind, _)| format!("an item, {kind}"));
    let line = || log.lines().find(|line| line.to_lowercase().contains(trace)).map(|line| format!("a line: {line}"));
    item.or_else(line).unwrap_or_default()
}

/// The log's lines of this service, whatever their level, and those of other crates that a function writes.
fn own_lines(log: &str) -> impl Iterator<Item = Value> {
    log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).filter(|line| {
        let level: LevelFilter = line["level"].as_str().unwrap().parse().unwrap();
        log::is_ours(line["target"].as_str().unwrap()) || level <= LevelFilter::INFO
    })
}

#[tokio::test]
async fn the_log_names_no_person_and_no_thing() {
    log::begin_everything();
    let (api, client) = Api::with_tenant().await;
    let samples = Samples::of(&client).await;
    let (_, operations) = operations(&client).await;
    let private = "Zyxwv";
    let user = json!({"email": format!("{private}@example.com"), "display_name": format!("{private} Person")});
    let user = client.post("/users", user).await.id();
    let asset = json!({"name": private, "notes": private, "serial_number": private, "custom_fields": {private: private}});
    let asset = client.asset(asset).await;
    client.patch(&format!("/assets/{asset}"), json!({"assigned_to": user})).await.data();
    for list in ["/assets", "/users", "/processes/instances"] {
        client.get(&format!("{list}?q={private}")).await;
    }
    for operation in operations.iter().filter(|operation| operation.method == "POST" || operation.method == "PATCH") {
        let path = samples.fill(&operation.path);
        let path = path.strip_prefix("/v1").unwrap();
        let wrong = json!({"name": private, "display_name": private, "email": private, "notes": [private], private: private});
        client.send(&operation.method, path, Some("application/json"), wrong.to_string()).await;
        let mut body = samples.body(&operation.method, &operation.path);
        if body.get("name").is_some() {
            body["name"] = json!(private);
        }
        client
            .send_with(&operation.method, path, Some("application/json"), body.to_string(), &[("idempotency-key", private)])
            .await;
    }
    // The same once more while the table does not answer, so that causes are logged.
    drop(api);
    let reply = client.post("/users", json!({"email": format!("{private}.2@example.com"), "display_name": private})).await;
    assert!(reply.status.is_server_error(), "{}", reply.text());

    let log = log::text();
    let lines: Vec<Value> = own_lines(&log).collect();
    assert!(lines.len() > 60, "{} lines", lines.len());
    assert!(lines.iter().any(|line| line["level"] == "ERROR"), "no error was logged");
    for line in lines {
        let text = line.to_string().to_lowercase();
        for word in [private, "sample", "example.com"] {
            assert!(!text.contains(&word.to_lowercase()), "{line}");
        }
    }
}

#[tokio::test]
async fn nothing_that_holds_a_secret_prints_it() {
    let api = Api::start().await;
    let made = api.store.create_tenant("Acme".parse().unwrap(), None, 1).await.unwrap();
    let key = made.api_key.expose();
    let (tenant, token) = (format!("{made:?}"), made.api_key);
    let hash = token.secret.hash();
    let now = api.now();
    let scopes = std::iter::once("assets:read".parse().unwrap()).collect();
    let record = ApiKey::new(token.key, "k".parse().unwrap(), scopes, hash.clone(), 1);
    let record = record.rotated(SecretHash("0".repeat(64)), now, now.plus_seconds(60));
    let claim = IdempotentRequest::new(token.key, "k".parse().unwrap(), "/v1/keys", key.as_bytes());
    let context = ChangeContext { actor: Actor::operator(), at: now, idempotency: Some(claim), precondition: None };
    let printed = format!("{tenant} {token:?} {token:#?} {:?} {hash:?} {record:?} {record:#?} {context:?}", token.secret);
    assert!(printed.contains(&token.tenant.to_string()) && printed.contains(&token.key.uuid().to_string()));
    for trace in traces(&key).into_iter().chain([hash.0.clone(), "0".repeat(64)]) {
        assert!(!printed.to_lowercase().contains(&trace), "{printed}");
    }
}
