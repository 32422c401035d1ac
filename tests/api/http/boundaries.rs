//! Accepted values can be read: values at the bounds of every field of every body are sent, and the resources are read, listed,
//! changed, verified and deleted. The fields are taken from the OpenAPI document.

use crate::support::document::at;
use crate::support::operations::{Operation, operations};
use crate::support::samples::Samples;
use crate::support::{Api, Client, property, runtime};
use serde_json::Value;
use shared::store::CheckMode;
use std::cell::RefCell;

/// Values at the bounds of some field, as JSON texts.
fn values() -> Vec<String> {
    let long = |c: &str, n: usize| format!("\"{}\"", c.repeat(n));
    let mut values: Vec<String> = [
        "null",
        "true",
        "false",
        "0",
        "-0",
        "1",
        "-1",
        "0.0001",
        "999999999999.9999",
        "1e11",
        "1E-4",
        "10000e-8",
        "1000000",
        "1000001",
        "604800",
        "9007199254740991",
        "9007199254740993.0",
        "1e300",
        "5e-324",
        "[]",
        "{}",
        "[[]]",
        r#""""#,
        r#"" ""#,
        r#""\t""#,
        r#""a""#,
        r#"" a ""#,
        r#""\u0000""#,
        r#""\ud83d\ude00""#,
        r#""\u202e""#,
        r#""\u200b""#,
        r#""\ufeffa""#,
        r#""a@b""#,
        r#""A@b.c""#,
        r#""\u00fc@b""#,
        r#""u\u0308@b""#,
        r#""https://a""#,
        r#""http://\u00fc""#,
        r#""A0""#,
        r#""ABCDEFGH""#,
        r#""1900-01-01""#,
        r#""2199-12-31""#,
        r#""2200-01-01""#,
        r#""0000-01-01""#,
        r#""2199-12-31T23:59:59.999Z""#,
        r#""2199-12-31T23:59:60Z""#,
        r#""2199-12-31T23:59:60.999Z""#,
        r#""2199-12-31T23:59:60-00:00""#,
        r#""2200-01-01T00:59:60+01:00""#,
        r#""2030-06-30T23:59:60Z""#,
        r#""1900-01-01T00:00:00Z""#,
        r#""2100-01-01T00:00:00.9999999999Z""#,
        r#""NNN""#,
        r#""{PREFIX}NNNNNNNNNNNN{TYPE_CODE}{YYYY}{YY}{MM}""#,
        r#""NNNNNNNNNNNNN-NNN""#,
        r#""\u00fc NNN \u00df""#,
        r#""a-b""#,
        r#"["assets:read"]"#,
        r#"["assets:read","assets:read"]"#,
        r#"{"in_use":[]}"#,
        r#"{"in_use":["in_use","in_use"]}"#,
        r#"{"a":1e300,"b":5e-324,"":null,"\u0000":"\u0000","c":[[[[[[[]]]]]]]}"#,
        r#"{"a":0.1,"b":-0.0,"c":9007199254740992}"#,
        r#"{"type":"object","properties":{"a":{"type":"number","maximum":1e300}}}"#,
        r#"[{"type":"text","key":"a","label":"\ud83d\ude00"}]"#,
        r#"[{"type":"select","key":"a","label":"L","options":[" x "]}]"#,
        "[{\"type\":\"date\",\"key\":\"a\",\"label\":\"L\",\"required\":false}]",
        r#""in_use""#,
        r#""admin""#,
        r#""logical""#,
        r#""inactive""#,
    ]
    .map(str::to_owned)
    .into();
    for n in [16, 17, 64, 65, 255, 256, 10_000, 10_001] {
        values.extend([long("a", n), long("ä", n), long("\u{1f600}", n)]);
    }
    values.push(format!("\"{}@{}\"", "a".repeat(64), "b".repeat(189)));
    values.push(format!("\"https://{}\"", "a".repeat(2040)));
    values.push(format!("{{\"a\":{}}}", long("ä", 16_000)));
    values
}

fn properties<'a>(document: &'a Value, operation: &'a Operation) -> Vec<&'a String> {
    let schema = &operation.description["requestBody"]["content"]["application/json"]["schema"];
    at(document, schema)["properties"].as_object().map(|properties| properties.keys().collect()).unwrap_or_default()
}

/// Operations that create or change a resource with a path of its own.
fn is_covered(operation: &Operation) -> bool {
    let is_in_bulk = ["/batch", "/import", "/seen"].iter().any(|end| operation.path.ends_with(end));
    let is_creation = operation.method == "POST" && !operation.path.contains("{id}") && !is_in_bulk;
    is_creation || operation.method == "PATCH"
}

/// Sends the operation with one field that has this value, and uses the resource in every way.
async fn send(client: &Client, samples: &Samples, operation: &Operation, field: &str, value: &str, n: usize) {
    let context = format!("{operation} {field}: {}", value.chars().take(60).collect::<String>());
    let (path, body) = samples.request(&operation.method, &operation.path);
    let mut body: Value = serde_json::from_str(&body).unwrap();
    for (field, unique) in [("email", format!("u{n}@example.com")), ("name", format!("n{n}")), ("code", format!("C{n}"))] {
        if operation.method == "POST" && body.get(field).is_some() {
            body[field] = unique.into();
        }
    }
    body.as_object_mut().unwrap().remove(field);
    let others = body.to_string();
    let comma = if others == "{}" { "" } else { "," };
    let text = format!("{}{comma}\"{field}\":{value}}}", others.strip_suffix('}').unwrap());
    let reply = client.send(&operation.method, &path, Some("application/json"), text).await;
    assert!(reply.status.as_u16() < 500, "{context}: {}", reply.text());
    if !reply.status.is_success() {
        return;
    }
    let (resource, collection) = match reply.header("location").strip_prefix("/v1") {
        Some(resource) => (resource.to_owned(), path.clone()),
        None => (
            path.clone(),
            path.rsplit_once('/')
                .map_or(path.clone(), |(parent, _)| if parent.is_empty() { path.clone() } else { parent.to_owned() }),
        ),
    };
    let read = client.get(&resource).await;
    assert_eq!(read.status.as_u16(), 200, "{context}: {}", read.text());
    let mut shown = reply.data();
    for shown_once in ["api_key", "secret"] {
        shown.as_object_mut().unwrap().remove(shown_once);
    }
    assert_eq!(read.data(), shown, "{context}");
    let list = client.get(&collection).await;
    assert_eq!(list.status.as_u16(), 200, "{context}: {}", list.text());
    assert!(list.json()["meta"].get("unreadable").is_none(), "{context}: {}", list.text());
    if resource.starts_with("/assets") {
        let history = client.get(&format!("{resource}/history?verify=true")).await.json();
        assert_eq!(history["verification"]["valid"], true, "{context}: {history}");
    }
    if resource.starts_with("/keys") {
        client.post(&format!("{resource}/rotate"), serde_json::json!({"grace_seconds": 604_800})).await.data();
    } else {
        client.patch(&resource, read.data()).await.data();
    }
    if operation.method == "POST" {
        let deleted = client.delete(&resource).await;
        assert_eq!(deleted.status.as_u16(), 200, "{context}: {}", deleted.text());
    }
}

#[test]
fn whatever_is_accepted_can_be_read_changed_verified_and_deleted() {
    let runtime = runtime();
    let (api, client, samples, document, all) = runtime.block_on(async {
        let (api, client) = Api::with_tenant().await;
        let samples = Samples::create(&client).await;
        let (document, operations) = operations(&client).await;
        (api, client, samples, document, operations)
    });
    let covered: Vec<&Operation> = all.iter().filter(|operation| is_covered(operation)).collect();
    let fields: Vec<(&Operation, &String)> = covered
        .iter()
        .flat_map(|operation| properties(&document, operation).into_iter().map(|field| (*operation, field)))
        .collect();
    assert!(fields.len() > 60, "{} fields", fields.len());
    let (values, count) = (values(), RefCell::new(0));
    let next = || {
        *count.borrow_mut() += 1;
        *count.borrow()
    };
    // The times: these were once accepted and could not be read.
    for (operation, field) in fields.iter().filter(|(_, field)| field.as_str() == "expires_at") {
        for value in values.iter().filter(|value| value.contains('T') && value.contains(':')) {
            runtime.block_on(send(&client, &samples, operation, field, value, next()));
        }
    }
    property::check(&runtime, 4_000, &(0..fields.len(), 0..values.len()), async |(field, value)| {
        let (operation, field) = fields[field];
        send(&client, &samples, operation, field, &values[value], next()).await;
        Ok(())
    });
    runtime.block_on(async {
        let store = api.store.tenant(client.tenant);
        assert_eq!(store.verify_chains(|_, _| ()).await.unwrap().broken_links, []);
        assert_eq!(store.check_items(CheckMode::ReadOnly, |_| ()).await.unwrap().findings, []);
    });
}
