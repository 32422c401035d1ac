//! Headers are as the OpenAPI document describes them, and pages of other origins may send and read them.

use crate::support::document::{is_dry_run_of_creation, response};
use crate::support::functions::resource;
use crate::support::operations::{METHODS, by_method, operations};
use crate::support::samples::{Samples, content_type};
use crate::support::{Api, Reply, call};
use axum::body::Body;
use axum::http::{HeaderMap, Request};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Checks the headers of a response against its description. Returns their described names.
fn described(document: &Value, description: &Value, reply: &Reply, name: &str) -> Vec<String> {
    let status = reply.status.as_str();
    let described = response(description, status).unwrap_or_else(|| panic!("{name}: no {status}"));
    let none = Map::new();
    let known = described["headers"].as_object().unwrap_or(&none);
    let mut names = Vec::new();
    // The document describes the first two with the body, two by the parameters that cause them, and the last ones for all responses
    // at once; CORS is for browsers.
    let is_skipped = |header: &str| {
        let elsewhere =
            ["content-type", "content-length", "vary", "dry-run", "idempotent-replayed", "cache-control", "x-request-id"];
        elsewhere.contains(&header) || header.starts_with("access-") || header.starts_with("x-ratelimit-")
    };
    for (header, value) in reply.headers.iter().filter(|(header, _)| !is_skipped(header.as_str())) {
        let (known, reference) = known
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(header.as_str()))
            .unwrap_or_else(|| panic!("{name} {status} has the header {header}, which is not described"));
        let schema = &document.pointer(&reference["$ref"].as_str().unwrap()[1..]).unwrap()["schema"];
        let text = value.to_str().unwrap();
        let value = if schema["type"] == "integer" { text.parse::<u64>().unwrap().into() } else { Value::from(text) };
        assert!(jsonschema::is_valid(schema, &value), "{name} {status}: {header}: {text}");
        names.push(known.clone());
    }
    names
}

#[tokio::test(start_paused = true)]
async fn every_header_of_a_response_is_described() {
    let (_api, client) = Api::with_tenant().await;
    let (document, operations) = operations(&client).await;
    let samples = Samples::create(&client).await;
    let lacking = client.scoped(&["settings:read"]).await;
    let mut seen = BTreeSet::new();
    for operation in by_method(&operations, &METHODS) {
        let (path, body) = samples.request(&operation.method, &operation.path);
        let name = operation.to_string();
        let method = operation.method.as_str();
        let content_type = Some(content_type(&operation.path));
        let sent: Vec<String> = operation.description["parameters"]
            .as_array()
            .cloned()
            .unwrap_or_default()
            .iter()
            .filter(|parameter| parameter["in"] == "header")
            .map(|parameter| parameter["name"].as_str().unwrap().to_owned())
            .collect();
        let reads = |header: &str| sent.iter().any(|known| known == header);
        let send = async |key: &str, headers: &[(&str, &str)]| {
            let reply = client.with_key(key).send_with(method, &path, content_type, body.clone(), headers).await;
            (described(&document, &operation.description, &reply, &name), reply)
        };
        send("", &[]).await;
        send(&lacking.key, &[]).await;
        let needs_key = operation.needs_key;
        assert_eq!(reads("Idempotency-Key"), method == "POST", "{name}");
        if reads("If-Match") {
            assert_eq!(send(&client.key, &[("if-match", "\"999-0\"")]).await.1.status, 412, "{name}");
        }
        if operation.is_write() {
            let dry_run = operation.send_dry_run(&client, &samples).await;
            if !is_dry_run_of_creation(&operation.description, &dry_run) {
                described(&document, &operation.description, &dry_run, &name);
            }
        }
        let (found, reply) = send(&client.key, &[("idempotency-key", &name)]).await;
        assert!(reply.status.is_success(), "{name}: {}", reply.text());
        // A success has every header that is described, except those of an export with another part or with damaged records.
        let promised = operation.description["responses"][reply.status.as_str()]["headers"].as_object();
        let is_rare = |header: &&String| ["Link", "X-Unreadable"].contains(&header.as_str());
        for header in promised.into_iter().flat_map(Map::keys).filter(|header| !is_rare(header)) {
            assert!(found.contains(header), "{name} lacks {header}");
        }
        for header in ["x-request-id", "cache-control"] {
            assert!(!reply.header(header).is_empty(), "{name} lacks {header}");
        }
        for header in ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"] {
            assert_eq!(reply.header(header).parse::<u64>().is_ok(), needs_key, "{name} {header}");
        }
        assert_eq!(reads("If-None-Match"), method == "GET" && !reply.header("etag").is_empty(), "{name}");
        if reads("If-None-Match") {
            let (found, again) = send(&client.key, &[("if-none-match", reply.header("etag"))]).await;
            assert_eq!(again.status, 304, "{name}");
            assert!(found.contains(&"ETag".to_owned()));
        }
        if method == "POST" {
            let (_, again) = send(&client.key, &[("idempotency-key", &name)]).await;
            assert_eq!(again.header("idempotent-replayed"), "true", "{name}");
        }
        seen.extend(found);
    }
    assert!(seen.contains("Location") && seen.contains("ETag"), "{seen:?}");
}

/// Splits a list of names, in lower case.
fn names(text: &str) -> BTreeSet<String> {
    text.split(',').map(|name| name.trim().to_lowercase()).collect()
}

#[tokio::test(start_paused = true)]
async fn pages_of_other_origins_may_send_and_read_the_described_headers() {
    let (api, client) = Api::with_tenant().await;
    let (document, _) = operations(&client).await;
    let components = |kind: &str| document["components"][kind].as_object().unwrap();
    let parameters = components("parameters").values().filter(|parameter| parameter["in"] == "header");
    // What the service sends itself.
    let parameters = parameters.filter(|parameter| !parameter["name"].as_str().unwrap().starts_with("webhook-"));
    let mut sent: BTreeSet<String> = parameters.map(|parameter| parameter["name"].as_str().unwrap().to_lowercase()).collect();
    sent.extend(["authorization".to_owned(), "content-type".to_owned()]);
    // Browsers show the first to every page, and the others are of no use to one.
    let hidden = ["www-authenticate", "x-content-type-options", "content-security-policy", "referrer-policy"];
    let read = components("headers").keys().map(|name| name.to_lowercase()).filter(|name| !hidden.contains(&name.as_str()));
    let read: BTreeSet<String> = read.chain(["dry-run", "idempotent-replayed"].map(str::to_owned)).collect();

    let send = async |method: &str, more: &[(&str, &str)]| -> HeaderMap {
        let request = Request::builder().method(method).uri("/v1/health").header("origin", "https://example.com");
        let request = more.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        call(&api.router, request.body(Body::empty()).unwrap()).await.headers
    };
    let preflight = send("OPTIONS", &[("access-control-request-method", "POST")]).await;
    let response = send("GET", &[]).await;
    let list = |headers: &HeaderMap, name: &str| names(headers[name].to_str().unwrap());
    assert_eq!(list(&preflight, "access-control-allow-headers"), sent);
    assert_eq!(list(&response, "access-control-expose-headers"), read);

    let gateway = &resource("Api")["Properties"]["CorsConfiguration"];
    let listed = |name: &str| -> BTreeSet<String> {
        gateway[name].as_sequence().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
    };
    assert_eq!((listed("AllowHeaders"), listed("ExposeHeaders")), (sent, read));
}
