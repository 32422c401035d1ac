//! Runs every release binary as Lambda does: events and responses, panics, deadlines, signals.
#![expect(clippy::unwrap_used, reason = "tests, and helpers that only tests call")]

use chrono::DateTime;
use rig::environment::Environment;
use rig::events::{Made, request, samples};
use rig::function::Function;

use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(15);
/// Longer than the snapshot writer's timeout in the template.
const WRITER_TIMEOUT: Duration = Duration::from_secs(590);

const QUEUE_SAMPLE: &str = include_str!("../../../events/background/deliver.json");
const DELIVERIES: (&str, &str) = ("DELIVERY_QUEUE_URL", "https://127.0.0.1:1/123456789012/deliveries");
const RETRIES: (&str, &str) = ("RETRY_QUEUE_URL", "https://127.0.0.1:1/123456789012/retries");

fn header<'a>(response: &'a Value, name: &str) -> &'a str {
    response["headers"][name].as_str().unwrap_or_default()
}

#[tokio::test]
#[ignore = "needs .ci/functions/build"]
async fn each_function_returns_the_expected_status_for_the_sample_events() {
    let environment = Environment::start().await.unwrap();
    let mut functions: HashMap<String, Function> = HashMap::new();
    let mut count = 0;
    let mut made = Made::default();
    for sample in samples(&environment.api_key, &environment.asset_id).unwrap() {
        if !functions.contains_key(&sample.function) {
            functions.insert(sample.function.clone(), environment.start_function(&sample.function).await.unwrap());
        }
        let event = made.insert_into(&sample.event);
        let invocation = functions[&sample.function].runtime_api.invoke(&event, TIMEOUT).await.unwrap();
        let response = invocation.response;
        assert_eq!(response["statusCode"], sample.status, "{}: {response}", sample.name);
        assert_eq!(header(&response, "x-request-id"), invocation.request_id, "{}", sample.name);
        let body: Value = serde_json::from_str(response["body"].as_str().unwrap_or_default()).unwrap_or_default();
        made.keep(&sample.name, &body).unwrap();
        if sample.name == "sign/return-6-sign-200" {
            assert_eq!(body["data"]["is_completed"], true, "{body}");
        }
        // Pages may be cached, because they are the same for everyone.
        let caching = match &*sample.name {
            "sign/page-200" => "public, max-age=300",
            "meta/app-200" => "no-cache",
            _ => "no-store",
        };
        assert_eq!(header(&response, "cache-control"), caching, "{}", sample.name);
        // Graphics are sent to the gateway as binary data.
        let is_graphic = header(&response, "content-type").starts_with("image/");
        assert_eq!(response["isBase64Encoded"], is_graphic, "{}", sample.name);
        count += 1;
    }
    assert!(count > 20 && functions.len() == 8, "{count} events for {} functions", functions.len());
}

#[tokio::test]
#[ignore = "needs .ci/functions/build"]
async fn the_sample_events_of_stream_and_queue_are_handled() {
    let environment = Environment::start().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let key_file = folder.path().join("secrets.key");
    let key = ("RECEIPT_KEY_FILE", key_file.to_str().unwrap());
    // The samples' tenant doesn't exist, so nothing is sent.
    for (name, sample) in [("fanout", include_str!("../../../events/background/fanout.json")), ("deliver", QUEUE_SAMPLE)] {
        let mut function = environment.start_function_with(name, &[DELIVERIES, RETRIES, key]).await.unwrap();
        for _ in 0..2 {
            let response = function.runtime_api.invoke(sample, TIMEOUT).await.unwrap().response;
            assert_eq!(response, json!({"batchItemFailures": []}), "{name}");
        }
        assert!(function.is_running());
    }
}

#[tokio::test]
#[ignore = "needs .ci/functions/build"]
async fn the_writer_of_snapshots_runs_at_its_event() {
    let environment = Environment::start().await.unwrap();
    let event = include_str!("../../../events/background/snapshots.json");
    let without_bucket = environment.start_function("snapshots").await.unwrap();
    let invocation = without_bucket.runtime_api.invoke(event, WRITER_TIMEOUT).await.unwrap();
    assert_eq!(invocation.response, Value::Null);
    assert_eq!(without_bucket.log().unwrap()[0]["written"], 0);
    let nowhere = [("SNAPSHOTS_URL", "https://127.0.0.1:1/bucket")];
    let without_bucket = environment.start_function_with("snapshots", &nowhere).await.unwrap();
    let error = without_bucket.runtime_api.invoke(event, WRITER_TIMEOUT).await.err().unwrap().to_string();
    assert!(error.contains("4 snapshots could not be written"), "{error}");
    // Lists work without the bucket, too.
    let assets = environment.start_function_with("assets", &nowhere).await.unwrap();
    let list = request("GET", "/v1/assets", &environment.api_key, None);
    assert_eq!(assets.runtime_api.invoke(&list, TIMEOUT).await.unwrap().response["statusCode"], 200);
    let logged = assets.log().unwrap();
    assert!(logged.iter().any(|line| line["metric"] == "unused_snapshots"), "{logged:?}");
}

#[tokio::test]
#[ignore = "needs .ci/functions/build"]
async fn a_panic_fails_only_its_own_request() {
    let environment = Environment::start().await.unwrap();
    let mut panics = environment.start_function("panics").await.unwrap();
    for (path, status) in [("/v1/panics", 500), ("/v1/fine", 200), ("/v1/panics", 500), ("/v1/fine", 200)] {
        let invocation = panics.runtime_api.invoke(&request("GET", path, "", None), TIMEOUT).await.unwrap();
        assert_eq!(invocation.response["statusCode"], status, "{}", invocation.response);
        assert_eq!(header(&invocation.response, "x-request-id"), invocation.request_id);
    }
    assert!(panics.is_running());
}

#[tokio::test]
#[ignore = "needs .ci/functions/build"]
async fn a_request_near_its_deadline_returns_503_and_the_next_one_succeeds() {
    let environment = Environment::start().await.unwrap();
    let mut assets = environment.start_function("assets").await.unwrap();
    let read = request("GET", &format!("/v1/assets/{}", environment.asset_id), &environment.api_key, None);
    assert_eq!(assets.runtime_api.invoke(&read, TIMEOUT).await.unwrap().response["statusCode"], 200);
    environment.proxy.pause(true);
    let start = Instant::now();
    let timeout = Duration::from_millis(1200);
    let response = assets.runtime_api.invoke(&read, timeout).await.unwrap().response;
    assert!(start.elapsed() < timeout);
    assert_eq!((&response["statusCode"], header(&response, "retry-after")), (&json!(503), "1"), "{response}");
    assert_eq!(header(&response, "content-type"), "application/problem+json");
    environment.proxy.pause(false);
    assert_eq!(assets.runtime_api.invoke(&read, TIMEOUT).await.unwrap().response["statusCode"], 200);
    assert!(assets.is_running());
}

#[tokio::test]
#[ignore = "needs .ci/functions/build"]
async fn log_lines_have_timestamp_level_and_fields() {
    let environment = Environment::start().await.unwrap();
    let nowhere = [("TABLE_NAME", "nowhere")];
    for (variables, path, level, status) in
        [(&nowhere[..0], "/v1/nothing", "INFO", 404), (&nowhere, "/v1/health", "ERROR", 500), (&[], "/v1/health", "INFO", 200)]
    {
        let meta = environment.start_function_with("meta", variables).await.unwrap();
        let invocation = meta.runtime_api.invoke(&request("GET", path, "", None), TIMEOUT).await.unwrap();
        assert_eq!(invocation.response["statusCode"], status, "{}", invocation.response);
        let lines = meta.log().unwrap();
        let [line] = lines.as_slice() else { panic!("{lines:?}") };
        DateTime::parse_from_rfc3339(line["timestamp"].as_str().unwrap()).unwrap();
        assert_eq!((&line["level"], &line["status"]), (&json!(level), &json!(status)));
        assert_eq!(line["request_id"], invocation.request_id);
        assert!(line["duration_ms"].is_u64() && line["route"].is_string() && line["message"].is_string(), "{line}");
        assert_eq!(line["cause"].is_string(), level == "ERROR", "{line}");
        assert!(line.get("span").is_none() && line.get("spans").is_none(), "{line}");
    }
    let quiet = environment.start_function_with("meta", &[("AWS_LAMBDA_LOG_LEVEL", "WARN")]).await.unwrap();
    quiet.runtime_api.invoke(&request("GET", "/v1/health", "", None), TIMEOUT).await.unwrap();
    assert_eq!(quiet.log().unwrap(), Vec::<Value>::new());
}

#[tokio::test]
#[ignore = "needs .ci/functions/build"]
async fn every_request_that_the_gateway_forwards_gets_a_response() {
    let environment = Environment::start().await.unwrap();
    let mut users = environment.start_function("users").await.unwrap();
    let plain: Value = serde_json::from_str(&request("GET", "/v1/users", &environment.api_key, None)).unwrap();
    for letter in (' '..='~').chain(['é', '日', '\u{7f}']) {
        let mut event = plain.clone();
        event["rawQueryString"] = json!(format!("q=a{letter}b"));
        let response = users.runtime_api.invoke(&event.to_string(), TIMEOUT).await.unwrap().response;
        // `%b` is not a valid percent-encoding, `b` is not a known parameter, and `q` must not contain control characters.
        let expected = match letter {
            '%' => 400,
            '&' | '\u{7f}' => 422,
            _ => 200,
        };
        assert_eq!(response["statusCode"], expected, "{letter:?}: {response}");
    }
    let assets = environment.start_function("assets").await.unwrap();
    for letter in ('\u{1}'..='\u{7f}').chain(['é']) {
        let path = format!("/v1/assets/{}{letter}", environment.asset_id);
        let response =
            assets.runtime_api.invoke(&request("DELETE", &path, &environment.api_key, None), TIMEOUT).await.unwrap().response;
        assert_eq!(response["statusCode"], if letter == '/' { 308 } else { 404 }, "{letter:?}: {response}");
    }
    for (name, value) in [("host", "a b"), ("x-forwarded-proto", "a b, https"), ("x-name", "Zoë"), ("cookie", "=;; a")] {
        let mut event = plain.clone();
        event["headers"][name] = json!(value);
        let response = users.runtime_api.invoke(&event.to_string(), TIMEOUT).await.unwrap().response;
        assert_eq!(response["statusCode"], 200, "{name}: {response}");
    }
    assert!(users.is_running());
}

#[tokio::test]
#[ignore = "needs .ci/functions/build"]
async fn a_misconfigured_function_names_the_variable_to_set() {
    let environment = Environment::start().await.unwrap();
    let processes = [
        ("TABLE_NAME", "", "set TABLE_NAME"),
        ("AWS_REGION", "", "set AWS_REGION"),
        ("AWS_ACCESS_KEY_ID", "", "set AWS_ACCESS_KEY_ID"),
        ("AWS_CA_BUNDLE", "/nowhere", "can't read the certificates in /nowhere"),
        ("AWS_CA_BUNDLE", "/dev/null", "there is no certificate in /dev/null"),
        ("AWS_ENDPOINT_URL_DYNAMODB", "127.0.0.1:8000", "AWS_ENDPOINT_URL_DYNAMODB must start with http:// or https://"),
        ("RECEIPT_KEY_FILE", "/nowhere/key", "/nowhere"),
        ("PUBLIC_URL", "api.example.com", "PUBLIC_URL must be http:// or https:// and a host"),
    ];
    let processes = processes.map(|(variable, value, expected)| ("processes", vec![(variable, value)], expected));
    let background = [
        ("fanout", vec![], "set DELIVERY_QUEUE_URL"),
        ("fanout", vec![("DELIVERY_QUEUE_URL", "deliveries")], "DELIVERY_QUEUE_URL must start with http:// or https://"),
        ("fanout", vec![DELIVERIES], "set RETRY_QUEUE_URL"),
        ("fanout", vec![DELIVERIES, ("AWS_ENDPOINT_URL_SQS", "127.0.0.1:9324")], "AWS_ENDPOINT_URL_SQS must start with"),
        ("deliver", vec![DELIVERIES, RETRIES], "RECEIPT_KMS_KEY_ID"),
    ];
    for (function, variables, expected) in processes.into_iter().chain(background) {
        let error = environment.start_function_with(function, &variables).await.err().map(|error| error.to_string());
        let error = error.unwrap_or_else(|| panic!("{function} starts with {variables:?}"));
        assert!(error.contains("\"level\":\"ERROR\"") && error.contains(expected), "{error}");
    }
}

/// Returns the numbers of assets and of `asset.created` events in the table.
async fn assets_and_creations(environment: &Environment) -> (usize, usize) {
    let mut pages = environment.dynamo.scan().table_name(environment.table).into_paginator().send();
    let (mut assets, mut creations) = (0, 0);
    while let Some(page) = pages.next().await {
        for item in page.unwrap().items() {
            let text = |name: &str| item.get(name).and_then(|value| value.as_s().ok()).map_or("", String::as_str);
            assets += usize::from(text("type") == "asset");
            creations += usize::from(text("type") == "event" && text("entry").contains("\"asset.created\""));
        }
    }
    (assets, creations)
}

#[tokio::test]
#[ignore = "needs .ci/functions/build"]
async fn sigterm_loses_no_acknowledged_write_and_leaves_none_half_done() {
    let environment = Environment::start().await.unwrap();
    let create = request("POST", "/v1/assets", &environment.api_key, Some(&json!({"name": "n"})));
    let mut acknowledged = 1;
    for millis in [0, 1, 2, 3, 4, 6, 8] {
        let assets = environment.start_function("assets").await.unwrap();
        assert_eq!(assets.runtime_api.invoke(&create, TIMEOUT).await.unwrap().response["statusCode"], 201);
        acknowledged += 1;
        let (delay, before) = (Duration::from_millis(millis), assets_and_creations(&environment).await);
        assert_eq!(before, (acknowledged, acknowledged));
        // Lambda sends SIGTERM only between requests. Here, it can also arrive during a request.
        let _ = tokio::time::timeout(delay, assets.runtime_api.invoke(&create, TIMEOUT)).await;
        assets.terminate().await.unwrap();
        // Waits for writes in flight to reach the table.
        tokio::time::sleep(Duration::from_millis(200)).await;
        let (assets, creations) = assets_and_creations(&environment).await;
        assert_eq!(assets, creations, "an asset without its event, or an event without its asset");
        assert!(assets == acknowledged || assets == acknowledged + 1, "{assets} assets, {acknowledged} acknowledged");
        acknowledged = assets;
    }
}
