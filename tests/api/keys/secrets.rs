//! API keys are shown once, in the response that creates them, and stored nowhere else. The log contains no names of people or
//! resources. Each function can encrypt or decrypt only for its own purpose.

use crate::deployment::{statements, texts};
use crate::support::prelude::*;
use shared::domain::keys::api_key::{ApiKey, SecretHash};
use shared::domain::record::IdempotentRequest;
use shared::domain::values::base62;
use shared::domain::values::signature_image::{DATA_URL_PREFIX, data_url};
use std::fmt::Write;
use tracing::level_filters::LevelFilter;

/// Position of the secret in a key: after the prefix and two IDs, before the checksum.
const SECRET: std::ops::Range<usize> = 48..92;

fn keys_in(text: &str) -> Vec<String> {
    let key = |(at, _)| text.get(at..at + 98).filter(|key| Token::parse(key).is_some()).map(str::to_owned);
    text.match_indices("apl_").filter_map(key).collect()
}

/// Returns the forms in which a key's secret could be stored, in lower case: complete, halves, and bytes.
pub fn traces(key: &str) -> Vec<String> {
    let halves = [&key[SECRET][..22], &key[SECRET][22..]];
    let bytes: Vec<u8> = halves.iter().flat_map(|half| base62::decode(half).unwrap().to_be_bytes()).collect();
    let mut traces = vec![key.to_owned(), key[SECRET].to_owned()];
    traces.extend(halves.map(str::to_owned));
    for bytes in [&bytes[..], &bytes[..16], &bytes[16..]] {
        let listed = [format!("{bytes:?}"), format!("{bytes:x?}")].map(|list| list[1..list.len() - 1].to_owned());
        traces.push(hex::encode(bytes));
        traces.extend(listed);
    }
    for bytes in [&bytes[..], key.as_bytes(), &key.as_bytes()[SECRET]] {
        // Without padding and last digit, which depend on the following bytes.
        let encoded = data_url(bytes);
        let encoded = encoded[DATA_URL_PREFIX.len()..].trim_end_matches('=');
        let encoded = &encoded[..encoded.len() - 1];
        traces.extend([encoded.to_owned(), encoded.replace('+', "-").replace('/', "_")]);
    }
    traces.iter().map(|trace| trace.to_lowercase()).collect()
}

/// Appends a value as text; binary values as hexadecimal digits and as text.
fn append_value(value: &AttributeValue, text: &mut String) {
    match value {
        AttributeValue::B(blob) => {
            let bytes = blob.as_ref();
            let _ = write!(text, "{} {} ", hex::encode(bytes), String::from_utf8_lossy(bytes));
        }
        AttributeValue::L(values) => values.iter().for_each(|value| append_value(value, text)),
        AttributeValue::M(members) => members.iter().for_each(|(name, value)| {
            let _ = write!(text, "{name}: ");
            append_value(value, text);
        }),
        AttributeValue::S(value) | AttributeValue::N(value) => {
            let _ = write!(text, "{value} ");
        }
        other => {
            let _ = write!(text, "{other:?} ");
        }
    }
}

pub async fn items_as_text(api: &Api) -> Vec<(String, String)> {
    let item_as_text = |item: Item| {
        let item_type = item.get("type").and_then(|kind| kind.as_s().ok()).cloned().unwrap_or_default();
        let mut text = String::new();
        append_value(&AttributeValue::M(item), &mut text);
        (item_type, text)
    };
    all_items(api).await.into_iter().map(item_as_text).collect()
}

struct SeenKeys(BTreeSet<String>);

impl SeenKeys {
    /// Collects the keys in a response. Fails if there are any, unless `may_show`.
    fn collect(&mut self, reply: &Reply, may_show: bool) {
        let found = keys_in(&String::from_utf8_lossy(&reply.bytes));
        assert!(found.is_empty() || may_show, "a response shows a key: {}", reply.status);
        self.0.extend(found);
    }
}

/// Calls the operations with valid, invalid and misplaced keys, and with malformed bodies. Returns all keys used or created.
async fn use_everything(api: &Api, client: &Client) -> BTreeSet<String> {
    let samples = Samples::create(client).await;
    let (_, operations) = operations();
    let other_tenant = api.tenant().await;
    let mut wrong_secret = client.key.clone();
    wrong_secret.replace_range(60..61, if &wrong_secret[60..61] == "0" { "1" } else { "0" });
    let mut keys = SeenKeys(BTreeSet::from([client.key.clone(), other_tenant.key.clone()]));
    // Only POSTs to keys show them.
    let (on_keys, others): (Vec<_>, Vec<_>) = by_method(operations, &METHODS)
        .partition(|operation| operation.path.starts_with("/v1/keys") && operation.method == "POST");
    for operation in on_keys.into_iter().chain(sample(others, 20)) {
        let method = operation.method.as_str();
        let (path, body) = samples.request(method, &operation.path);
        let name = format!("{method} {path}");
        let content_type = Some(content_type(&operation.path));
        let send = async |key: &str, body: &str, headers: &[(&str, &str)]| {
            client.with_key(key).send_with(method, &path, content_type, body.to_owned(), headers).await
        };
        let shows = method == "POST" && path.starts_with("/keys");
        // Another tenant's key is valid, but has no access to these resources.
        for key in [&wrong_secret, &other_tenant.key, &client.key[..97]] {
            let reply = send(key, &body, &[("idempotency-key", &name)]).await;
            keys.collect(&reply, shows && key == other_tenant.key);
        }
        let misplaced = [("if-match", client.key.as_str()), ("x-api-key", &client.key)];
        keys.collect(&send(&client.key, &body, &misplaced).await, false);
        if method == "POST" {
            keys.collect(&send(&client.key, &body, &[("idempotency-key", &client.key)]).await, shows);
        }
        let with_key = format!("{path}?api_key={}", client.key);
        keys.collect(&client.send(method, &with_key, content_type, body.clone()).await, false);
        keys.collect(&client.get(&format!("{path}/{}", client.key)).await, false);
        if ["POST", "PATCH", "PUT"].contains(&method) {
            let invalid = match content_type {
                Some("text/csv") => [format!("api_key\n{}\n", client.key), format!("name\n\"{}", client.key)],
                _ => [json!({"api_key": client.key}).to_string(), format!("{{\"api_key\": {}", client.key)],
            };
            for body in invalid {
                keys.collect(&send(&client.key, &body, &[]).await, false);
            }
        }
        for _ in 0..2 {
            let reply = send(&client.key, &body, &[("idempotency-key", &name)]).await;
            keys.collect(&reply, shows);
            if shows && reply.header("idempotent-replayed").is_empty() {
                assert_eq!(keys_in(reply.text()).len(), 1, "{name} shows no key: {}", reply.text());
            }
        }
    }
    // A new key, and a rotated one with both its secrets during the grace period.
    let created = client.post("/keys", json!({"name": "rotated", "scopes": ["assets:read", "keys:write"]})).await;
    let rotate = format!("/keys/{}/rotate", created.id());
    let rotated = client.post(&rotate, json!({"grace_seconds": 60})).await;
    for reply in [&created, &rotated] {
        let key = client.with_key_of(&reply.data());
        key.get("/assets?limit=1").await.data();
        key.get("/users").await.problem(403, "FORBIDDEN");
        keys.collect(reply, true);
    }
    // The log has an internal error with its causes.
    let invalid = json!({"__type": "com.amazonaws.dynamodb.v20120810#ValidationException", "message": "refused"});
    api.faults.plan("TransactWriteItems", 1, 400, &invalid, false);
    client.post(&rotate, json!({})).await.problem(500, "INTERNAL_ERROR");
    keys.0
}

#[tokio::test(start_paused = true)]
async fn no_key_and_no_secret_is_stored_or_logged() {
    log::begin_everything();
    let (api, client) = Api::with_tenant().await;
    let keys = use_everything(&api, &client).await;
    assert!(keys.len() >= 6, "only {} keys", keys.len());
    let log = log::text();
    assert!(log.lines().count() > 1_000, "a log of {} lines", log.lines().count());
    let items = items_as_text(&api).await;
    let types: BTreeSet<&str> = items.iter().map(|(item_type, _)| item_type.as_str()).collect();
    for item_type in ["key", "event", "stored_response", "rate", "asset", "signature"] {
        assert!(types.contains(item_type), "the table has no {item_type}, only {types:?}");
    }
    let everything: String = items.iter().flat_map(|(_, text)| [text.as_str(), "\n"]).chain([log.as_str()]).collect();
    let everything = everything.to_lowercase();
    let own: String = own_lines(&log).map(|line| line.to_string()).collect();
    for key in &keys {
        for (number, trace) in traces(key).iter().enumerate() {
            assert!(!everything.contains(trace), "a secret is written in form {number} in {}", location(trace, &items, &log));
        }
        // The secret's hash is stored with the key and in the names of its counters, but never logged.
        let hash = Token::parse(key).unwrap().secret.hash().0;
        for (item_type, text) in &items {
            assert!(["key", "rate"].contains(&item_type.as_str()) || !text.contains(&hash), "{item_type} has a hash of a secret");
        }
        assert!(!own.contains(&hash), "a hash was logged");
    }
    // Checks that the search would find a key logged at the lowest level.
    tracing::trace!(target: "shared", "{}", client.key);
    assert!(traces(&client.key).iter().any(|trace| log::text().to_lowercase().contains(trace)));
}

/// Names the type of the item with the trace, or quotes the log line with the trace.
fn location(trace: &str, items: &[(String, String)], log: &str) -> String {
    let item =
        items.iter().find(|(_, text)| text.to_lowercase().contains(trace)).map(|(item_type, _)| format!("an item, {item_type}"));
    let line = || log.lines().find(|line| line.to_lowercase().contains(trace)).map(|line| format!("a line: {line}"));
    item.or_else(line).unwrap_or_default()
}

/// Returns this service's log lines at all levels, and other crates' lines at the default level.
fn own_lines(log: &str) -> impl Iterator<Item = Value> {
    log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).filter(|line| {
        let level: LevelFilter = line["level"].as_str().unwrap().parse().unwrap();
        log::is_ours(line["target"].as_str().unwrap()) || level <= LevelFilter::INFO
    })
}

#[tokio::test(start_paused = true)]
async fn the_log_has_no_names_of_people_and_resources() {
    log::begin_everything();
    let (api, client) = Api::with_tenant().await;
    let samples = Samples::create(&client).await;
    let (_, operations) = operations();
    let private = "Zyxwv";
    let user = json!({"email": format!("{private}@example.com"), "display_name": format!("{private} Person")});
    let user = client.post("/users", user).await.id();
    let asset = json!({"name": private, "notes": private, "serial_number": private, "custom_fields": {private: private}});
    let asset = client.asset(asset).await;
    client.patch(&format!("/assets/{asset}"), json!({"assigned_to": user})).await.data();
    for list in ["/assets", "/users", "/processes/instances"] {
        client.get(&format!("{list}?q={private}")).await;
    }
    for operation in by_method(operations, &["POST", "PATCH", "PUT"]) {
        let path = samples.path(&operation.path);
        let content_type = Some(content_type(&operation.path));
        let invalid = json!({"name": private, "display_name": private, "email": private, "notes": [private], private: private});
        client.send(&operation.method, &path, Some("application/json"), invalid.to_string()).await;
        let mut body = samples.body(&operation.method, &operation.path);
        if body.get("name").is_some() {
            body["name"] = json!(private);
        }
        let body = match body.as_str() {
            Some(rows) => format!("{}{private},{private}\n", rows),
            None => body.to_string(),
        };
        let headers = [("idempotency-key", private)];
        client.send_with(&operation.method, &path, content_type, body, &headers).await;
    }
    // Deletes the table, so that the next request logs an error with its causes.
    api.dynamo.delete_table().table_name(&api.table).send().await.unwrap();
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

#[tokio::test(start_paused = true)]
async fn debug_output_contains_no_secret() {
    let api = Api::start().await;
    let made = api.store.create_tenant("Acme".parse().unwrap(), None, 1).await.unwrap();
    let key = made.api_key.expose();
    let (tenant, token) = (format!("{made:?}"), made.api_key);
    let hash = token.secret.hash();
    let now = api.now();
    let scopes = std::iter::once("assets:read".parse().unwrap()).collect();
    let record = ApiKey::new(token.id, "k".parse().unwrap(), scopes, hash.clone(), 1);
    let record = record.rotated(SecretHash("0".repeat(64)), now, now.plus_seconds(60));
    let idempotency = IdempotentRequest::new(&token, "k".parse().unwrap(), "/v1/keys", key.as_bytes());
    let context = ChangeContext {
        actor: Actor::operator(),
        at: now,
        idempotency: Some(idempotency),
        precondition: None,
        is_erasure: false,
    };
    let printed = format!("{tenant} {token:?} {token:#?} {:?} {hash:?} {record:?} {record:#?} {context:?}", token.secret);
    assert!(printed.contains(&token.tenant.to_string()) && printed.contains(&token.id.uuid().to_string()));
    for trace in traces(&key).into_iter().chain([hash.0.clone(), "0".repeat(64)]) {
        assert!(!printed.to_lowercase().contains(&trace), "{printed}");
    }
}

/// The engine has no KMS, so other tests check the requests, and this test checks that the roles permit them. Functions can't
/// decrypt for other purposes: the API can't read webhook secrets, and `deliver` can't sign receipts.
#[test]
fn each_function_may_use_the_kms_key_for_its_own_purpose_only() {
    for function in resources() {
        let statements = statements(function);
        let found: Vec<_> = statements
            .iter()
            .filter(|statement| texts(&statement["Action"]).iter().any(|action| action.starts_with("kms:")))
            .collect();
        let variables = &resource(&format!("{function}Function"))["Properties"]["Environment"]["Variables"];
        let variable = variables.get(key_encryption::KMS_KEY);
        let (actions, purpose): (&[&str], Purpose) = match function {
            "Processes" | "Sign" => (&["kms:Encrypt", "kms:Decrypt"], Purpose::ReceiptKey),
            "Webhooks" => (&["kms:Encrypt"], Purpose::WebhookSecret),
            "Deliver" => (&["kms:Decrypt"], Purpose::WebhookSecret),
            _ => {
                assert!(found.is_empty() && variable.is_none(), "{function}");
                continue;
            }
        };
        let [statement] = found.as_slice() else { panic!("{function}: {found:?}") };
        assert_eq!(texts(variable.unwrap()), ["ReceiptKey.Arn"], "{function}");
        assert_eq!(texts(&statement["Resource"]), ["ReceiptKey.Arn"], "{function}");
        assert_eq!(texts(&statement["Action"]), actions, "{function}");
        let condition = statement["Condition"].as_mapping().unwrap();
        assert_eq!((condition.len(), condition["StringEquals"].as_mapping().unwrap().len()), (1, 1), "{function}");
        assert_eq!(condition["StringEquals"]["kms:EncryptionContext:purpose"], purpose.as_str(), "{function}");
    }
}
