//! Every release binary as Lambda runs it: events in, answers out, panics, deadlines and signals.
#![expect(clippy::unwrap_used, reason = "tests, and helpers that only tests call")]

use chrono::DateTime;
use rig::events::{request, samples};
use rig::process::Process;
use rig::world::World;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(15);

fn header<'a>(answer: &'a Value, name: &str) -> &'a str {
    answer["headers"][name].as_str().unwrap_or_default()
}

#[tokio::test]
#[ignore = "needs the release binaries: .ci/functions"]
async fn each_binary_answers_the_sample_events_as_their_names_say() {
    let world = World::start().await.unwrap();
    let mut running: HashMap<String, Process> = HashMap::new();
    let mut seen = 0;
    for sample in samples(&world.api_key, &world.asset).unwrap() {
        if !running.contains_key(&sample.function) {
            running.insert(sample.function.clone(), world.run(&sample.function).await.unwrap());
        }
        let invocation = running[&sample.function].api.invoke(&sample.event, LIMIT).await.unwrap();
        let answer = invocation.answer;
        assert_eq!(answer["statusCode"], sample.status, "{}: {answer}", sample.name);
        assert_eq!(header(&answer, "x-request-id"), invocation.request_id, "{}", sample.name);
        assert_eq!(header(&answer, "cache-control"), "no-store", "{}", sample.name);
        assert_eq!(answer["isBase64Encoded"], false, "{}", sample.name);
        seen += 1;
    }
    assert!(seen > 20 && running.len() == 6, "{seen} events for {} functions", running.len());
}

#[tokio::test]
#[ignore = "needs the release binaries: .ci/functions"]
async fn a_handover_goes_through_three_functions_and_its_signature_comes_back_as_it_was() {
    const PICTURE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2FAAAAABJRU5ErkJggg==";
    let world = World::start().await.unwrap();
    let (users, assets) = (world.run("users").await.unwrap(), world.run("assets").await.unwrap());
    let processes = world.run("processes").await.unwrap();
    let send = async |to: &Process, method: &str, path: &str, body: Value| {
        let event = request(method, path, &world.api_key, Some(&body).filter(|body| !body.is_null()));
        let answer = to.api.invoke(&event, LIMIT).await.unwrap().answer;
        assert!(matches!(answer["statusCode"].as_u64(), Some(200 | 201)), "{method} {path}: {answer}");
        let body: Value = serde_json::from_str(answer["body"].as_str().unwrap()).unwrap_or_default();
        (body["data"].clone(), answer)
    };
    let person = json!({"display_name": "Ada Lovelace", "email": "ada@example.com"});
    let (user, _) = send(&users, "POST", "/v1/users", person).await;
    let asset = format!("/v1/assets/{}", world.asset);
    send(&assets, "PATCH", &asset, json!({"status": "preparing"})).await;
    let (startable, _) = send(&assets, "GET", &format!("{asset}/processes"), Value::Null).await;
    let onboarding = startable.as_array().unwrap().iter().find(|process| process["name"] == "Employee Onboarding").unwrap();
    let start = format!("/v1/processes/{}/start", onboarding["id"].as_str().unwrap());
    let (run, _) = send(&processes, "POST", &start, json!({"asset_id": world.asset})).await;
    let run = format!("/v1/processes/instances/{}", run["id"].as_str().unwrap());
    for step in [
        json!({"employee": user["id"]}),
        json!({"handover": ["Device", "Power supply"]}),
        json!({"signature": format!("data:image/png;base64,{PICTURE}")}),
        json!({"complete": true}),
    ] {
        send(&processes, "POST", &format!("{run}/advance"), json!({"step_data": step})).await;
    }
    let (_, picture) = send(&processes, "GET", &format!("{run}/signatures/signature"), Value::Null).await;
    assert_eq!((&picture["isBase64Encoded"], &picture["body"]), (&json!(true), &json!(PICTURE)));
    assert_eq!(header(&picture, "content-type"), "image/png");
    let (asset, answer) = send(&assets, "GET", &asset, Value::Null).await;
    assert_eq!((&asset["status"], &asset["assigned_to"]), (&json!("in_use"), &user["id"]));
    assert_eq!(answer["isBase64Encoded"], false);
}

#[tokio::test]
#[ignore = "needs the release binaries: .ci/functions"]
async fn a_panic_stays_one_requests_500() {
    let world = World::start().await.unwrap();
    let mut panics = world.run("panics").await.unwrap();
    for (path, status) in [("/v1/panics", 500), ("/v1/fine", 200), ("/v1/panics", 500), ("/v1/fine", 200)] {
        let invocation = panics.api.invoke(&request("GET", path, "", None), LIMIT).await.unwrap();
        assert_eq!(invocation.answer["statusCode"], status, "{}", invocation.answer);
        assert_eq!(header(&invocation.answer, "x-request-id"), invocation.request_id);
    }
    assert!(panics.is_running());
}

#[tokio::test]
#[ignore = "needs the release binaries: .ci/functions"]
async fn with_little_time_left_the_answer_is_503_and_the_next_request_is_served() {
    let world = World::start().await.unwrap();
    let mut assets = world.run("assets").await.unwrap();
    let read = request("GET", &format!("/v1/assets/{}", world.asset), &world.api_key, None);
    assert_eq!(assets.api.invoke(&read, LIMIT).await.unwrap().answer["statusCode"], 200);
    world.front.pause(true);
    let began = Instant::now();
    let limit = Duration::from_millis(1200);
    let answer = assets.api.invoke(&read, limit).await.unwrap().answer;
    assert!(began.elapsed() < limit);
    assert_eq!((&answer["statusCode"], header(&answer, "retry-after")), (&json!(503), "1"), "{answer}");
    assert_eq!(header(&answer, "content-type"), "application/problem+json");
    world.front.pause(false);
    assert_eq!(assets.api.invoke(&read, LIMIT).await.unwrap().answer["statusCode"], 200);
    assert!(assets.is_running());
}

#[tokio::test]
#[ignore = "needs the release binaries: .ci/functions"]
async fn a_line_says_when_and_how_bad_beside_its_fields() {
    let world = World::start().await.unwrap();
    let nowhere = [("TABLE_NAME", "nowhere")];
    for (variables, path, level, status) in
        [(&nowhere[..0], "/v1/nothing", "INFO", 404), (&nowhere, "/v1/health", "ERROR", 500), (&[], "/v1/health", "INFO", 200)]
    {
        let meta = world.run_with("meta", variables).await.unwrap();
        let invocation = meta.api.invoke(&request("GET", path, "", None), LIMIT).await.unwrap();
        assert_eq!(invocation.answer["statusCode"], status, "{}", invocation.answer);
        let lines = meta.log().unwrap();
        let [line] = lines.as_slice() else { panic!("{lines:?}") };
        DateTime::parse_from_rfc3339(line["timestamp"].as_str().unwrap()).unwrap();
        assert_eq!((&line["level"], &line["status"]), (&json!(level), &json!(status)));
        assert_eq!(line["request_id"], invocation.request_id);
        assert!(line["duration_ms"].is_u64() && line["route"].is_string() && line["message"].is_string(), "{line}");
        assert_eq!(line["cause"].is_string(), level == "ERROR", "{line}");
        assert!(line.get("span").is_none() && line.get("spans").is_none(), "{line}");
    }
    let quiet = world.run_with("meta", &[("AWS_LAMBDA_LOG_LEVEL", "WARN")]).await.unwrap();
    quiet.api.invoke(&request("GET", "/v1/health", "", None), LIMIT).await.unwrap();
    assert_eq!(quiet.log().unwrap(), Vec::<Value>::new());
}

#[tokio::test]
#[ignore = "needs the release binaries: .ci/functions"]
async fn whatever_the_gateway_lets_through_is_answered() {
    let world = World::start().await.unwrap();
    let mut users = world.run("users").await.unwrap();
    let plain: Value = serde_json::from_str(&request("GET", "/v1/users", &world.api_key, None)).unwrap();
    for letter in (' '..='~').chain(['é', '日', '\u{7f}']) {
        let mut event = plain.clone();
        event["rawQueryString"] = json!(format!("q=a{letter}b"));
        let answer = users.api.invoke(&event.to_string(), LIMIT).await.unwrap().answer;
        // `%b` is no percent-encoding, there is no parameter `b`, and nobody searches for control characters.
        let expected = match letter {
            '%' => 400,
            '&' | '\u{7f}' => 422,
            _ => 200,
        };
        assert_eq!(answer["statusCode"], expected, "{letter:?}: {answer}");
    }
    let assets = world.run("assets").await.unwrap();
    for letter in ('\u{1}'..='\u{7f}').chain(['é']) {
        let path = format!("/v1/assets/{}{letter}", world.asset);
        let answer = assets.api.invoke(&request("DELETE", &path, &world.api_key, None), LIMIT).await.unwrap().answer;
        assert_eq!(answer["statusCode"], if letter == '/' { 308 } else { 404 }, "{letter:?}: {answer}");
    }
    for (name, value) in [("host", "a b"), ("x-forwarded-proto", "a b, https"), ("x-name", "Zoë"), ("cookie", "=;; a")] {
        let mut event = plain.clone();
        event["headers"][name] = json!(value);
        let answer = users.api.invoke(&event.to_string(), LIMIT).await.unwrap().answer;
        assert_eq!(answer["statusCode"], 200, "{name}: {answer}");
    }
    assert!(users.is_running());
}

#[tokio::test]
#[ignore = "needs the release binaries: .ci/functions"]
async fn a_function_that_is_set_up_wrongly_says_what_to_set() {
    let world = World::start().await.unwrap();
    for (variable, value, said) in [
        ("TABLE_NAME", "", "set TABLE_NAME"),
        ("AWS_REGION", "", "set AWS_REGION"),
        ("AWS_ACCESS_KEY_ID", "", "set AWS_ACCESS_KEY_ID"),
        ("AWS_CA_BUNDLE", "/nowhere", "can't read the certificates in /nowhere"),
        ("AWS_CA_BUNDLE", "/dev/null", "there is no certificate in /dev/null"),
        ("AWS_ENDPOINT_URL_DYNAMODB", "127.0.0.1:8000", "AWS_ENDPOINT_URL_DYNAMODB must begin with http:// or https://"),
        ("RECEIPT_KEY_FILE", "/nowhere/key", "/nowhere"),
    ] {
        let error = world.run_with("processes", &[(variable, value)]).await.err().map(|error| error.to_string());
        let error = error.unwrap_or_else(|| panic!("it runs with {variable}={value}"));
        assert!(error.contains("\"level\":\"ERROR\"") && error.contains(said), "{error}");
    }
}

/// How many assets and how many of their creations the table has.
async fn assets_and_creations(world: &World) -> (usize, usize) {
    let mut pages = world.dynamo.scan().table_name(world.table).into_paginator().send();
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
#[ignore = "needs the release binaries: .ci/functions"]
async fn a_signal_to_end_loses_nothing_that_was_answered_and_leaves_nothing_half_done() {
    let world = World::start().await.unwrap();
    let create = request("POST", "/v1/assets", &world.api_key, Some(&json!({"name": "n"})));
    let mut answered = 1;
    for wait in [0, 1, 2, 3, 4, 6, 8] {
        let assets = world.run("assets").await.unwrap();
        assert_eq!(assets.api.invoke(&create, LIMIT).await.unwrap().answer["statusCode"], 201);
        answered += 1;
        let (at, before) = (Duration::from_millis(wait), assets_and_creations(&world).await);
        assert_eq!(before, (answered, answered));
        // Lambda sends it between requests only; here it also comes in the middle of one.
        let _ = tokio::time::timeout(at, assets.api.invoke(&create, LIMIT)).await;
        assets.terminate().await.unwrap();
        // What was on its way to the table arrives.
        tokio::time::sleep(Duration::from_millis(200)).await;
        let (assets, creations) = assets_and_creations(&world).await;
        assert_eq!(assets, creations, "an asset without its event, or an event without its asset");
        assert!(assets == answered || assets == answered + 1, "{assets} assets, {answered} answered");
        answered = assets;
    }
}
