//! Conventions for all routes: bodies, paths, headers, deadlines, and boundary values of all fields.

use crate::support::prelude::*;
use axum::http::HeaderMap;
use lambda_http::{Context, RequestExt};
use tokio::time::timeout;

#[tokio::test(start_paused = true)]
async fn malformed_bodies_are_400_and_change_nothing() {
    let (api, client) = Api::with_tenant().await;
    let before = api.dump().await;
    let deep = format!(r#"{{"name":"x","custom_fields":{}{}}}"#, "[".repeat(5000), "]".repeat(5000));
    for (body, content_type, status, code) in [
        (b"{bad".to_vec(), "application/json", 400, "MALFORMED_REQUEST"),
        (b"".to_vec(), "application/json", 400, "MALFORMED_REQUEST"),
        (b"{}{}".to_vec(), "application/json", 400, "MALFORMED_REQUEST"),
        (b"{\"name\":\"a\xff\"}".to_vec(), "application/json", 400, "MALFORMED_REQUEST"),
        (b"{\"name\":\"a\"}".to_vec(), "text/plain", 415, "UNSUPPORTED_MEDIA_TYPE"),
        (b"{\"name\":\"a\"}".to_vec(), "application/jsonx", 415, "UNSUPPORTED_MEDIA_TYPE"),
        (b"{\"name\":\"a\"}".to_vec(), "", 415, "UNSUPPORTED_MEDIA_TYPE"),
        (vec![b' '; 1024 * 1024 + 1], "application/json", 413, "PAYLOAD_TOO_LARGE"),
        (vec![b' '; 2 * 1024 * 1024], "text/plain", 413, "PAYLOAD_TOO_LARGE"),
        (vec![b' '; 1024 * 1024], "application/json", 400, "MALFORMED_REQUEST"),
        (deep.into_bytes(), "application/json", 422, "VALIDATION_ERROR"),
        (b"{\"name\":\"a\\u0000b\"}".to_vec(), "application/json", 422, "VALIDATION_ERROR"),
        (b"{\"name\":\"a\",\"\\ud800\":1}".to_vec(), "application/json", 422, "VALIDATION_ERROR"),
        (b"null".to_vec(), "application/json", 422, "VALIDATION_ERROR"),
        // API Gateway replaces invalid UTF-8.
        ("{\"name\":\"Gr\u{fffd}\u{fffd}e\"}".into(), "application/json", 400, "MALFORMED_REQUEST"),
        (b"{\"name\":\"Gr\\ufffd\"}".to_vec(), "application/json", 400, "MALFORMED_REQUEST"),
        (b"{\"name\":1e999}".to_vec(), "application/json", 422, "VALIDATION_ERROR"),
        (b"{\"name\":\"a\",\"purchase_date\":\"12024-01-01\"}".to_vec(), "application/json", 422, "VALIDATION_ERROR"),
        (b"{\"name\":\"a\",\"custom_fields\":{\"n\":1e999}}".to_vec(), "application/json", 422, "VALIDATION_ERROR"),
    ] {
        let content_type = (!content_type.is_empty()).then_some(content_type);
        let reply = client.send("POST", "/assets", content_type, body).await;
        reply.problem(status, code);
    }
    client.get("/assets?q=Gr%EF%BF%BDe").await.problem(400, "MALFORMED_REQUEST");
    let upsert = client.send("PUT", "/assets/by-serial/Gr%EF%BF%BDe", Some("application/json"), r#"{"name":"a"}"#).await;
    upsert.problem(400, "MALFORMED_REQUEST");
    assert_eq!(api.dump().await, before);
    for content_type in ["application/json; charset=utf-8", "APPLICATION/JSON"] {
        assert_eq!(client.send("POST", "/assets", Some(content_type), r#"{"name":"a"}"#).await.status, 201);
    }
    let marked = client.send("POST", "/assets", Some("application/json"), "\u{feff}{\"name\":\"a\"}").await;
    assert_eq!(marked.status, 201, "a byte order mark isn't part of the text");
    client.send("POST", "/assets", Some("application/json"), "\u{feff}\u{feff}{}").await.problem(400, "MALFORMED_REQUEST");
}

#[tokio::test(start_paused = true)]
async fn route_method_key_scope_and_body_are_checked_in_this_order() {
    let client = over_http().await;
    let without_key = client.with_key("");
    let reader = client.scoped(&["assets:read"]).await;
    without_key.get("/nothing").await.problem(404, "NOT_FOUND");
    without_key.send("PUT", "/assets", None, "").await.problem(405, "METHOD_NOT_ALLOWED");
    without_key.send("POST", "/assets", Some("text/plain"), "{bad").await.problem(401, "UNAUTHORIZED");
    without_key.get("/assets?page=0").await.problem(401, "UNAUTHORIZED");
    without_key.get("/assets/x").await.problem(401, "UNAUTHORIZED");
    reader.send("POST", "/assets", Some("text/plain"), "{bad").await.problem(403, "FORBIDDEN");
    reader.patch("/assets/x", json!({})).await.problem(403, "FORBIDDEN");
    client.send("PATCH", "/assets/x", Some("text/plain"), "{bad").await.problem(404, "NOT_FOUND");
}

#[tokio::test(start_paused = true)]
async fn paths_are_exact_except_for_a_trailing_slash() {
    let (_api, client) = Api::with_tenant().await;
    for (path, target) in [
        ("/v1/", "/v1"),
        ("/v1/assets/", "/v1/assets"),
        ("/v1/assets/?q=a&page=2", "/v1/assets?q=a&page=2"),
        ("/v1/nothing/", "/v1/nothing"),
    ] {
        let reply = call(&client.router, Request::builder().uri(path).body(Body::empty()).unwrap()).await;
        assert_eq!((reply.status.as_u16(), reply.header("location")), (308, target));
    }
    for path in ["/assets", "/v2/assets", "/v1//", "/v1//assets", "//example.com/", "/v1/assets//", "/V1/assets"] {
        call(&client.router, Request::builder().uri(path).body(Body::empty()).unwrap()).await.problem(404, "NOT_FOUND");
    }
    let id = client.asset(json!({"name": "x"})).await;
    for invalid in [id.to_uppercase(), id.replace('-', ""), "1".into(), format!("{id}x"), "%00".into(), "..".into()] {
        client.get(&format!("/assets/{invalid}")).await.problem(404, "NOT_FOUND");
    }
    for malformed in ["/assets/%zz", "/assets/%ff", "/assets?q=%zz", "/assets?q=%ff", "/assets?%e4=1"] {
        client.get(malformed).await.problem(400, "MALFORMED_REQUEST");
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_a_500_for_one_request_and_is_logged() {
    async fn panics() {
        panic!("on purpose, with a secret");
    }
    log::begin();
    let (api, client) = Api::with_tenant().await;
    let routes: Router<App> = dev_server::api::all_routes().route("/v1/panics", axum::routing::get(panics));
    let router = shared::http::service(routes, App::new(api.store.clone()));
    let request = |path: &str| {
        Request::builder().uri(path).header("authorization", format!("Bearer {}", client.key)).body(Body::empty()).unwrap()
    };
    let reply = call(&router, request("/v1/panics")).await;
    let problem = reply.problem(500, "INTERNAL_ERROR");
    assert!(!problem.to_string().contains("secret"));
    assert_eq!(call(&router, request("/v1/assets?q=private-words")).await.status, 200);

    let text = log::text();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let line = lines.iter().find(|line| line["request_id"] == problem["request_id"]).expect("a line with the ID of the request");
    assert_eq!((line["level"].as_str(), line["status"].as_u64()), (Some("ERROR"), Some(500)));
    assert!(line["cause"].as_str().unwrap().contains("on purpose"));
    let line = lines.iter().find(|line| line["route"] == "/v1/assets").unwrap();
    assert_eq!(line["tenant_id"], client.tenant.to_string());
    for private in ["private-words", &client.key, "Bearer"] {
        assert!(!text.contains(private), "{private} was logged");
    }
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_table_is_503_and_a_missing_one_is_500() {
    let (api, client) = Api::with_tenant().await;
    let unreachable = aws_sdk_dynamodb::Client::from_conf(dev_server::engine::config("http://127.0.0.1:9").build());
    let system = shared::services::system_clock();
    let store = shared::store::Store::new(unreachable, "none", system.clone());
    let down = Client { router: dev_server::server::router(App::new(store)), ..client.clone() };
    for path in ["/assets", "/health"] {
        let reply = down.get(path).await;
        reply.problem(503, "UNAVAILABLE");
        assert_eq!(reply.header("retry-after"), "1");
    }
    let store = shared::store::Store::new(api.dynamo.clone(), "no-such-table", system);
    let wrong = Client { router: dev_server::server::router(App::new(store)), ..client };
    let problem = wrong.get("/assets").await.problem(500, "INTERNAL_ERROR");
    assert!(!problem.to_string().contains("no-such-table"));
}

/// Checks a response's headers against the document. Returns the names of the documented ones.
fn described(document: &Value, description: &Value, reply: &Reply, name: &str) -> Vec<String> {
    let status = reply.status.as_str();
    let described = response(description, status).unwrap_or_else(|| panic!("{name}: no {status}"));
    let none = Map::new();
    let known = described["headers"].as_object().unwrap_or(&none);
    let mut names = Vec::new();
    // Skips headers that are documented elsewhere, such as `dry-run` with its parameter and `x-request-id` for all responses, and
    // CORS headers, which aren't documented.
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
    let (_api, client, samples) = Api::with_samples().await;
    let (document, operations) = operations();
    let lacking = client.scoped(&["settings:read"]).await;
    let mut seen = BTreeSet::new();
    for operation in by_method(operations, &METHODS) {
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
            (described(document, &operation.description, &reply, &name), reply)
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
                described(document, &operation.description, &dry_run, &name);
            }
        }
        let (found, reply) = send(&client.key, &[("idempotency-key", &name)]).await;
        assert!(reply.status.is_success(), "{name}: {}", reply.text());
        // A successful response has all documented headers, except two headers of exports: one depends on further parts, and the
        // other on damaged records.
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
        if method == "POST" && !only_reads(&path) {
            let (_, again) = send(&client.key, &[("idempotency-key", &name)]).await;
            assert_eq!(again.header("idempotent-replayed"), "true", "{name}");
        }
        seen.extend(found);
    }
    assert!(seen.contains("Location") && seen.contains("ETag"), "{seen:?}");
}

fn names(text: &str) -> BTreeSet<String> {
    text.split(',').map(|name| name.trim().to_lowercase()).collect()
}

#[tokio::test(start_paused = true)]
async fn pages_of_other_origins_may_send_and_read_the_described_headers() {
    let api = Api::start().await;
    let (document, _) = operations();
    let components = |kind: &str| document["components"][kind].as_object().unwrap();
    let parameters = components("parameters").values().filter(|parameter| parameter["in"] == "header");
    // Skips headers that the service sends to webhooks.
    let parameters = parameters.filter(|parameter| !parameter["name"].as_str().unwrap().starts_with("webhook-"));
    let mut sent: BTreeSet<String> = parameters.map(|parameter| parameter["name"].as_str().unwrap().to_lowercase()).collect();
    sent.extend(["authorization".to_owned(), "content-type".to_owned()]);
    // Pages of other origins don't need these headers.
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

fn request(method: &str, key: &str, body: &str, deadline: i64) -> Request<Body> {
    let request = Request::builder().method(method).uri("/v1/assets").header("authorization", format!("Bearer {key}"));
    let mut context = Context::default();
    context.request_id = "8476a536-e9f4-11e8-9739-2dfe598c3fcd".into();
    context.deadline = deadline.try_into().unwrap();
    request.header("content-type", "application/json").body(Body::from(body.to_owned())).unwrap().with_lambda_context(context)
}

#[tokio::test(start_paused = true)]
async fn a_request_is_a_503_before_a_deadline_that_it_cannot_meet_and_no_other_deadline_changes_anything() {
    let (api, client) = Api::with_tenant().await;
    let router = Function::named("assets").router(api.store.clone());
    let deadline = api.now().millis() + 15_000;
    assert_eq!(call(&router, request("POST", &client.key, r#"{"name": "quick"}"#, deadline)).await.status.as_u16(), 201);
    // If there is not enough time for the response, no call to the table is started.
    call(&router, request("GET", &client.key, "", api.now().millis() + 300)).await.problem(503, "UNAVAILABLE");
    // A small number is not a deadline: `cargo lambda watch` sends such numbers.
    assert_eq!(call(&router, request("GET", &client.key, "", 600_000)).await.status.as_u16(), 200);

    client.use_key_once().await;
    let before = api.dump().await;
    let held = api.faults.hold("TransactWriteItems");
    let deadline = api.now().millis() + 800;
    let reply = call(&router, request("POST", &client.key, r#"{"name": "slow"}"#, deadline));
    let reply = timeout(Duration::from_millis(800), reply).await.expect("a response before the deadline");
    let problem = reply.problem(503, "UNAVAILABLE");
    assert_eq!(problem["request_id"], "8476a536-e9f4-11e8-9739-2dfe598c3fcd");
    assert_eq!((reply.header("retry-after"), reply.header("cache-control")), ("1", "no-store"));
    drop(held);
    // Only the counter of asset tags has changed; the asset was not written.
    let after = api.dump().await;
    assert_eq!(after.0.iter().filter(|item| !before.0.contains(item)).count(), 1);
}

/// JSON values at the limits of fields, separated by at least two spaces.
const VALUES: &str = r#"
    null  true  false  0  -0  1  -1  0.0001  999999999999.9999  1e11  1E-4  10000e-8  1000000  1000001  604800
    9007199254740991  9007199254740993.0  1e300  5e-324  []  {}  [[]]  ""  " "  "\t"  "a"  " a "  "\u0000"  "\ud83d\ude00"
    "\u202e"  "\u200b"  "\ufeffa"  "a@b"  "A@b.c"  "\u00fc@b"  "u\u0308@b"  "https://a"  "http://\u00fc"  "A0"  "ABCDEFGH"
    "1900-01-01"  "2199-12-31"  "2200-01-01"  "0000-01-01"  "2199-12-31T23:59:59.999Z"  "2199-12-31T23:59:60Z"
    "2199-12-31T23:59:60.999Z"  "2199-12-31T23:59:60-00:00"  "2200-01-01T00:59:60+01:00"  "2030-06-30T23:59:60Z"
    "1900-01-01T00:00:00Z"  "2100-01-01T00:00:00.9999999999Z"  "NNN"  "{PREFIX}NNNNNNNNNNNN{TYPE_CODE}{YYYY}{YY}{MM}"
    "NNNNNNNNNNNNN-NNN"  "\u00fc NNN \u00df"  "a-b"  ["assets:read"]  ["assets:read","assets:read"]  {"in_use":[]}
    {"in_use":["in_use","in_use"]}  {"a":1e300,"b":5e-324,"":null,"\u0000":"\u0000","c":[[[[[[[]]]]]]]}
    {"a":0.1,"b":-0.0,"c":9007199254740992}  {"type":"object","properties":{"a":{"type":"number","maximum":1e300}}}
    [{"type":"text","key":"a","label":"\ud83d\ude00"}]  [{"type":"select","key":"a","label":"L","options":[" x "]}]
    [{"type":"date","key":"a","label":"L","required":false}]  "in_use"  "admin"  "logical"  "inactive""#;

fn values() -> Vec<String> {
    let long = |c: &str, n: usize| format!("\"{}\"", c.repeat(n));
    let mut values: Vec<String> =
        VALUES.split("  ").map(str::trim).filter(|value| !value.is_empty()).map(str::to_owned).collect();
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

/// Selects operations that create or change a resource with its own path.
fn is_covered(operation: &Operation) -> bool {
    let is_in_bulk = ["/batch", "/import", "/suggest", "/seen"].iter().any(|end| operation.path.ends_with(end));
    let is_creation = operation.method == "POST" && !operation.path.contains("{id}") && !is_in_bulk;
    is_creation || operation.method == "PATCH"
}

/// Sends the operation with this value in one field, and uses the resource in every way.
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
fn resource_with_any_accepted_value_can_be_read_changed_verified_and_deleted() {
    let runtime = runtime();
    let (api, client, samples, document, all) = runtime.block_on(async {
        let (api, client, samples) = Api::with_samples().await;
        let (document, operations) = operations();
        (api, client, samples, document, operations)
    });
    let covered: Vec<&Operation> = all.iter().filter(|operation| is_covered(operation)).collect();
    let fields: Vec<(&Operation, &String)> = covered
        .iter()
        .flat_map(|operation| properties(document, operation).into_iter().map(|field| (*operation, field)))
        .collect();
    assert!(fields.len() > 60, "{} fields", fields.len());
    let (values, count) = (values(), RefCell::new(0));
    let next = || {
        *count.borrow_mut() += 1;
        *count.borrow()
    };
    // Some times were once accepted, but the records could then not be read.
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
        let store = api.store.writer(client.tenant);
        assert_eq!(store.verify_chains(|_, _| ()).await.unwrap().broken_links, []);
        assert_eq!(store.check_items(CheckMode::ReadOnly, |_| ()).await.unwrap().findings, []);
    });
}
