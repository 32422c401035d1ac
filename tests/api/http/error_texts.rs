//! Error texts list accepted names, values, limits and paths. Field errors have codes. Invisible characters are refused.

use crate::support::prelude::*;
use shared::domain::values::field_error::ErrorCode;

#[track_caller]
fn entry_at(reply: &Reply, location: &str) -> Value {
    let problem = reply.problem(422, "VALIDATION_ERROR");
    let errors = problem["errors"].as_array().unwrap();
    let found = errors.iter().find(|error| error["pointer"] == location || error["parameter"] == location);
    found.unwrap_or_else(|| panic!("no error at {location}: {problem}")).clone()
}

#[track_caller]
fn error_at(reply: &Reply, location: &str) -> String {
    entry_at(reply, location)["detail"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn errors_in_fields_have_a_code_and_the_exceeded_limit() {
    let client = over_http().await;
    let (ram, pin) =
        (json!({"type": "integer", "minimum": 1, "maximum": 64}), json!({"type": "string", "minLength": 4, "maxLength": 6}));
    let step = json!({"type": "number", "multipleOf": 0.5});
    let ports = json!({"type": "array", "minItems": 1, "maxItems": 2, "uniqueItems": true});
    let properties = json!({"os": {"enum": ["a", "b"]}, "pin": pin, "ram": ram, "step": step, "ports": ports});
    let schema = json!({"required": ["os"], "properties": properties, "additionalProperties": false});
    let asset_type = client.type_with_schema("Laptop", "LAP", schema).await;
    let other_type = client.asset_type("Phone", "PHO", "physical").await;
    let model = client.model("Acme", "F1", &asset_type).await;
    let inactive = client.user("Ada").await;
    client.patch(&format!("/users/{inactive}"), json!({"is_active": false})).await.data();
    let plain = client.asset(json!({"name": "a", "custom_fields": {"long": "x".repeat(201)}})).await;
    let with_model = client.asset(json!({"name": "b", "model_id": model, "custom_fields": {"os": "a"}})).await;
    let mut replies = Vec::new();
    for (field, value, code, limit) in [
        ("name", json!(" "), "required", None),
        ("name", json!("x".repeat(256)), "too_long", Some(255.)),
        ("name", json!("a\u{7}b"), "invalid_character", None),
        ("name", json!("a\u{200b}b"), "invalid_character", None),
        ("name", json!(1), "invalid_format", None),
        ("status", json!("lost"), "unknown_value", None),
        ("asset_type_id", json!(UNKNOWN_ID), "unknown_reference", None),
        ("assigned_to", json!("Ada"), "unknown_reference", None),
        ("assigned_to", json!(UNKNOWN_ID), "unknown_reference", None),
        ("assigned_to", json!(inactive), "unknown_reference", None),
        ("location", json!("a//b"), "empty_level", None),
        ("location", json!("1/2/3/4/5/6/7/8/9"), "too_many_levels", Some(8.)),
        ("location", json!(format!("{}/{}", "a".repeat(126), "b".repeat(127))), "too_long", Some(255.)),
        ("purchase_date", json!("31.12.2026"), "invalid_date", None),
        ("purchase_date", json!("0026-12-31"), "invalid_date", None),
        ("purchase_price", json!("12x"), "invalid_decimal", None),
        ("purchase_price", json!("1.23456"), "invalid_decimal", None),
        ("purchase_price", json!("-1"), "too_small", Some(0.)),
        ("purchase_price", json!(1_000_000_000_000_u64), "too_large", Some(999_999_999_999.999_9)),
        ("notes", json!("x".repeat(10_001)), "too_long", Some(10_000.)),
        ("custom_fields_patch", json!({"x": "x".repeat(33_000)}), "too_much", None),
        ("custom_fields", json!([]), "invalid_format", None),
        ("colour", json!("red"), "unknown_field", None),
    ] {
        let reply = client.patch(&format!("/assets/{plain}"), json!({field: value})).await;
        replies.push((reply, format!("/{field}"), code, limit));
    }
    for (field, value, code, limit) in [
        ("os", json!(null), "required", None),
        ("os", json!("c"), "unknown_value", None),
        ("pin", json!("1"), "too_short", Some(4.)),
        ("pin", json!("1234567"), "too_long", Some(6.)),
        ("ram", json!("16 GB"), "invalid_format", None),
        ("ram", json!(0), "too_small", Some(1.)),
        ("ram", json!(65), "too_large", Some(64.)),
        ("step", json!(0.75), "not_multiple", Some(0.5)),
        ("ports", json!([]), "too_few_items", Some(1.)),
        ("ports", json!([1, 2, 3]), "too_many_items", Some(2.)),
        ("ports", json!([1, 1.0]), "repeated_item", None),
        ("cpu", json!("x"), "unknown_field", None),
    ] {
        let reply = client.patch(&format!("/assets/{with_model}"), json!({"custom_fields_patch": {field: value}})).await;
        replies.push((reply, format!("/custom_fields_patch/{field}"), code, limit));
    }
    for (field, value) in [("asset_type_id", &other_type), ("manufacturer", &"x".to_owned())] {
        let reply = client.patch(&format!("/assets/{with_model}"), json!({field: value})).await;
        replies.push((reply, format!("/{field}"), "fixed_by_model", None));
    }
    for (parameter, value, code, limit) in [
        ("q", "x".repeat(256), "too_long", Some(255.)),
        ("status", "in_use,lost".to_owned(), "unknown_value", None),
        ("location", "a//b".to_owned(), "empty_level", None),
        ("assigned_to", "Ada".to_owned(), "unknown_reference", None),
        ("limit", "101".to_owned(), "invalid_format", None),
        ("updated_since", "yesterday".to_owned(), "invalid_date", None),
        ("custom_fields.long", "x".to_owned(), "not_filterable", None),
        ("colour", "red".to_owned(), "unknown_field", None),
    ] {
        let reply = client.get(&format!("/assets?{parameter}={value}")).await;
        replies.push((reply, parameter.to_owned(), code, limit));
    }
    for (path, parameter) in [
        ("/assets", "expand"),
        ("/stats", "group_by"),
        ("/processes", "status"),
        ("/processes/instances", "omit"),
        ("/users/x/report", "format"),
    ] {
        let path = path.replace("/x/", &format!("/{UNKNOWN_ID}/"));
        replies.push((client.get(&format!("{path}?{parameter}=lost")).await, parameter.to_owned(), "unknown_value", None));
    }
    let user = client.post("/users", json!({"email": "ada", "display_name": "Ada"})).await;
    replies.push((user, "/email".to_owned(), "invalid_format", None));
    let empty = client.post("/assets/batch", json!({"operations": []})).await;
    replies.push((empty, "/operations".to_owned(), "invalid_format", None));
    let seen = client.post("/assets/seen", json!({"items": [{"tag": "T"}], "at": "2020-01-01T00:00:00Z"})).await;
    replies.push((seen, "/at".to_owned(), "too_old", Some(7.)));
    let operations = json!([{"op": "update", "id": plain, "body": {"location": "/"}}]);
    let moved = client.post("/assets/batch", json!({"operations": operations})).await;
    replies.push((moved, "/operations/0/body/location".to_owned(), "empty_level", None));
    for (reply, location, code, limit) in &replies {
        let error = entry_at(reply, location);
        assert_eq!((&error["code"], error.get("limit").and_then(Value::as_f64)), (&json!(code), *limit), "{error}");
    }
    let tried: BTreeSet<&str> = replies.iter().map(|(_, _, code, _)| *code).collect();
    let known: BTreeSet<&str> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(tried, known);
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/problems.md")).unwrap();
    assert!(tried.iter().all(|code| page.contains(&format!("`{code}`"))), "docs/problems.md lacks a code");
    let tag = client.patch(&format!("/assets/{plain}"), json!({"asset_tag": "X"})).await;
    assert_eq!(entry_at(&tag, "/asset_tag").get("code"), None);
}

#[tokio::test(start_paused = true)]
async fn unknown_names_are_answered_with_the_known_ones_nearest_first_and_missing_fields_are_named() {
    let client = over_http().await;
    let reply = client.post("/assets", json!({"nmae": "x", "serialNumber": "y"})).await;
    assert_eq!(error_at(&reply, "/name"), "is required", "`nmae` doesn't count as `name`");
    assert!(error_at(&reply, "/nmae").starts_with("unknown field; known: name, "));
    assert!(error_at(&reply, "/serialNumber").starts_with("unknown field; known: serial_number, "));
    let reply = client.get("/assets?satus=in_use&lmit=5").await;
    assert!(error_at(&reply, "satus").starts_with("unknown parameter; known: status, "));
    assert!(error_at(&reply, "lmit").starts_with("unknown parameter; known: limit, "));
    let reply = client.get("/settings?x=1").await;
    assert_eq!(error_at(&reply, "x"), "unknown; this endpoint takes no parameters");
    let reply = client.post(&format!("/processes/instances/{UNKNOWN_ID}/cancel"), json!({"x": 1})).await;
    assert!([404, 422].contains(&reply.status.as_u16()));
    // Even for 1 MiB of unknown names, the response stays short.
    let names: Vec<String> = (0..60_000).map(|n| format!("\"f{n}\":1")).collect();
    let reply = client.post_text("/assets", &format!("{{{}}}", names.join(","))).await;
    assert!(reply.status == 422 && reply.bytes.len() < 200_000, "{}", reply.bytes.len());

    let asset = client.asset(json!({"name": "a"})).await;
    let process = client.get("/processes?limit=1").await.data()[0]["id"].as_str().unwrap().to_owned();
    let step = json!({"type": "text", "kye": "a", "label": "A"});
    let definition = json!({"name": "n", "trigger_status": "in_stock", "target_status": "in_use", "steps": [step]});
    let operations = json!({"operations": [{"op": "update", "idd": asset, "body": {}}, {"op": "create", "bdoy": {"name": "n"}}]});
    for (path, body, errors) in [
        ("/processes", definition, vec!["/steps/0/key", "/steps/0/kye"]),
        ("/assets/batch", operations, vec!["/operations/0/id", "/operations/0/idd", "/operations/1/bdoy", "/operations/1/body"]),
        (&format!("/processes/{process}/start"), json!({"assetid": asset}), vec!["/asset_id", "/assetid"]),
        (
            "/users",
            json!({"mail": "a@example.com", "display_nam": "A"}),
            vec!["/display_nam", "/display_name", "/email", "/mail"],
        ),
        ("/keys", json!({"name": "n", "scope": ["assets:read"]}), vec!["/scope", "/scopes"]),
    ] {
        let reply = client.post(path, body).await;
        assert_eq!(reply.field_errors(), errors, "{path}");
        let problem = reply.json();
        let unknown = problem["errors"].as_array().unwrap().iter().map(|error| error["detail"].as_str().unwrap());
        let unknown: Vec<&str> = unknown.filter(|detail| detail.starts_with("unknown ")).collect();
        assert_eq!(unknown.len() * 2, errors.len(), "{problem}");
        for detail in unknown {
            let nearest = detail.split("; known: ").nth(1).unwrap().split(", ").next().unwrap();
            assert!(errors.iter().any(|known| known.ends_with(&format!("/{nearest}"))), "{path}: {detail}");
        }
    }
    let row = client.import("/assets", "", "nmae,status\nx,in_use\n").await;
    assert_eq!(row.field_errors(), ["nmae"], "of a file, the columns");
    assert!(row.text().contains("unknown column; known: name, "), "{}", row.text());
}

fn enumerated(document: &Value, schema: &Value) -> Option<Vec<String>> {
    let schema = at(document, schema);
    let any = ["anyOf", "oneOf", "allOf"].iter().filter_map(|name| schema[name].as_array()).flatten();
    // A parameter with a list of values.
    let schema = if schema["items"].is_object() { at(document, &schema["items"]) } else { schema };
    let own =
        schema["enum"].as_array().map(|values| values.iter().filter_map(|value| value.as_str().map(str::to_owned)).collect());
    own.or_else(|| any.filter_map(|schema| enumerated(document, schema)).next())
}

fn bounds(document: &Value, schema: &Value) -> Vec<String> {
    let schema = at(document, schema);
    let any = ["anyOf", "oneOf", "allOf"].iter().filter_map(|name| schema[name].as_array()).flatten();
    let own = ["minimum", "maximum"].iter().filter_map(|name| schema[name].as_i64().map(|bound| bound.to_string()));
    own.chain(any.flat_map(|schema| bounds(document, schema))).collect()
}

#[tokio::test(start_paused = true)]
async fn enumerations_name_their_values_and_bounds_and_lengths_their_bounds() {
    let (client, samples) = samples_over_http().await;
    let (document, operations) = operations();
    let (mut seen, mut long) = (0, 0);
    let mut check = |reply: &Reply, place: &str, named: &[String], is_long: bool| {
        let detail = error_at(reply, place);
        // In a body, the error for a long text can name only the nearest values of an enumeration.
        let says_more = is_long && place.starts_with('/') && detail.contains("the nearest are ");
        for value in named {
            assert!(says_more || detail.contains(value), "{place}: {detail} does not name {value}");
            *(if is_long { &mut long } else { &mut seen }) += 1;
        }
    };
    // Wrong values, with what the errors name, and whether the value is a long text.
    let wrong = |schema: &Value| {
        let named: Vec<String> =
            enumerated(document, schema).unwrap_or_default().into_iter().chain(bounds(document, schema)).collect();
        let others = ["-1", "\"nothing\""].map(|wrong| (wrong.to_owned(), named.clone(), false));
        let max = max_length(document, schema);
        let long = max.map(|max| (json!("a".repeat(max as usize + 1)).to_string(), vec![max.to_string()], true));
        others.into_iter().filter(|other| !other.1.is_empty()).chain(long).collect::<Vec<_>>()
    };
    for operation in operations.iter().filter(|operation| operation.needs_key) {
        let (path, body) = samples.request(&operation.method, &operation.path);
        let path = path.split('?').next().unwrap();
        for parameter in operation.description["parameters"].as_array().into_iter().flatten().filter(|it| it["in"] == "query") {
            let name = parameter["name"].as_str().unwrap();
            for (value, named, is_long) in wrong(&parameter["schema"]) {
                let path = format!("{path}?{name}={}", value.trim_matches('"'));
                let reply = client.send(&operation.method, &path, Some(content_type(&operation.path)), body.clone()).await;
                check(&reply, name, &named, is_long);
            }
        }
        let schema = &operation.description["requestBody"]["content"]["application/json"]["schema"];
        for (name, schema) in at(document, schema)["properties"].as_object().into_iter().flatten() {
            for (value, named, is_long) in wrong(schema) {
                let mut sent: Value = serde_json::from_str(&body).unwrap();
                sent[name] = serde_json::from_str(&value).unwrap();
                let reply = client.send(&operation.method, path, Some("application/json"), sent.to_string()).await;
                check(&reply, &format!("/{name}"), &named, is_long);
            }
        }
    }
    assert!(seen > 90 && long > 30, "only {seen} and {long}");
    let reply = client.get("/assets?page=1000000001").await;
    assert_eq!(error_at(&reply, "page"), "must be a whole number from 1 to 1000000000");
    let reply = client.get("/assets?sort=size").await;
    assert!(error_at(&reply, "sort").contains("created_at, updated_at, name, asset_tag, status"), "{}", reply.text());
    let reply = client.patch("/settings", json!({"status_transitions": {"lost": []}})).await;
    assert!(error_at(&reply, "/status_transitions").contains("in_stock"), "{}", reply.text());
}

fn max_length(document: &Value, schema: &Value) -> Option<u64> {
    let schema = at(document, schema);
    let any = ["anyOf", "oneOf", "allOf"].iter().filter_map(|name| schema[name].as_array()).flatten();
    schema["maxLength"].as_u64().or_else(|| any.filter_map(|schema| max_length(document, schema)).next())
}

async fn detail(client: &Client, method: &str, path: &str, status: u16, code: &str) -> String {
    let reply = client.send(method, path, None, "").await;
    reply.problem(status, code)["detail"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_404_and_a_405_say_what_exists_and_what_the_path_takes() {
    let client = over_http().await;
    let missing = detail(&client, "GET", &format!("/assets/{UNKNOWN_ID}"), 404, "NOT_FOUND").await;
    assert!(missing.contains("no such resource"), "{missing}");
    let wrong = detail(&client, "GET", &format!("/assets/{UNKNOWN_ID}/histroy"), 404, "NOT_FOUND").await;
    assert!(wrong.starts_with("This path doesn't exist. Similar paths: GET /v1/assets/{id}/history"), "{wrong}");
    for below in ["foo", "labels", "history/1", "histroy"] {
        let wrong = detail(&client, "GET", &format!("/assets/{UNKNOWN_ID}/{below}"), 404, "NOT_FOUND").await;
        for path in ["GET /v1/assets/{id}/history", "GET /v1/assets/{id}/processes"] {
            assert!(wrong.contains(path), "{below}: {wrong}");
        }
        assert!(!wrong.contains("/v1/users"), "{below}: {wrong}");
    }
    let wrong = detail(&client, "GET", "/asset", 404, "NOT_FOUND").await;
    assert!(wrong.starts_with("This path doesn't exist. Similar paths: GET/POST /v1/assets,"), "{wrong}");
    let outside = call(&client.router, Request::builder().uri("/assets").body(Body::empty()).unwrap()).await;
    assert!(outside.problem(404, "NOT_FOUND")["detail"].as_str().unwrap().contains("/v1/"));

    let path = format!("/processes/instances/{UNKNOWN_ID}");
    let hint = detail(&client, "PATCH", &path, 405, "METHOD_NOT_ALLOWED").await;
    assert!(hint.starts_with("This path takes GET, HEAD. Below it: "), "{hint}");
    assert!(hint.contains("POST /v1/processes/instances/{id}/cancel"), "{hint}");
    let hint = detail(&client, "POST", &format!("/processes/{UNKNOWN_ID}"), 405, "METHOD_NOT_ALLOWED").await;
    assert!(hint.starts_with("This path takes GET, HEAD, PATCH, DELETE. Below it: POST /v1/processes/{id}/start"), "{hint}");
    for path in ["/assets/seen", "/assets/import/suggest"] {
        let hint = detail(&client, "GET", path, 405, "METHOD_NOT_ALLOWED").await;
        assert_eq!(hint, "This path takes POST.", "{path}");
    }
    let hint = detail(&client, "PUT", "/assets", 405, "METHOD_NOT_ALLOWED").await;
    assert!(hint.starts_with("This path takes GET, HEAD, POST."), "{hint}");
}

#[tokio::test(start_paused = true)]
async fn a_compressed_body_is_a_415_that_names_what_is_supported() {
    let client = over_http().await;
    for coding in ["gzip", "br, identity", "GZIP"] {
        let body = b"\x1f\x8b\x08\x00\x00".to_vec();
        let reply = client.send_with("POST", "/assets", Some("application/json"), body, &[("content-encoding", coding)]).await;
        let problem = reply.problem(415, "UNSUPPORTED_MEDIA_TYPE");
        assert!(problem["detail"].as_str().unwrap().contains("identity"), "{problem}");
        assert_eq!(reply.header("accept-encoding"), "identity");
    }
    let plain = client.send_json("POST", "/assets", r#"{"name":"x"}"#, ("content-encoding", "identity")).await;
    assert_eq!(plain.status.as_u16(), 201);
}

#[tokio::test(start_paused = true)]
async fn all_definitions_are_listed_without_parameters_however_large_they_are() {
    let client = over_http().await;
    let label = "\"".repeat(250);
    let step = |n: usize| json!({"type": "checklist", "key": format!("k{n}"), "label": "L", "items": (0..29).map(|i| format!("{i}{label}")).collect::<Vec<_>>()});
    for n in 0..60 {
        let body = json!({"name": format!("p{n}"), "trigger_status": "in_stock", "target_status": "in_use", "steps": [step(0), step(1), step(2), step(3)]});
        client.post("/processes", body).await.data();
    }
    let first = client.get("/processes").await;
    let meta = json!({"total": 67, "page": 1, "limit": 20, "total_pages": 4});
    assert_eq!((first.status.as_u16(), &first.json()["meta"]), (200, &meta), "{}", &first.text()[..200]);
    let mut seen = first.data().as_array().unwrap().len();
    for page in 2..=4 {
        let page = client.get(&format!("/processes?page={page}")).await.json();
        assert_eq!((&page["meta"]["total"], &page["meta"]["total_pages"]), (&json!(67), &json!(4)));
        seen += page["data"].as_array().unwrap().len();
    }
    assert_eq!(seen, 67);
    let refused = client.get("/processes?limit=100").await;
    assert!(error_at(&refused, "limit").contains("6 MB"));
}

/// The tests of `check_visible` cover all invisible characters.
#[tokio::test(start_paused = true)]
async fn fields_of_one_line_have_no_hidden_characters() {
    let client = over_http().await;
    let text = "a\u{202e}b";
    let asset = json!({"name": text, "serial_number": text, "manufacturer": text, "model": text, "notes": text});
    let refused = client.post("/assets", asset).await;
    assert_eq!(refused.field_errors(), ["/manufacturer", "/model", "/name", "/serial_number"]);
    let user = json!({"email": format!("{text}@example.com"), "display_name": text});
    assert_eq!(client.post("/users", user).await.field_errors(), ["/display_name", "/email"]);
    assert_eq!(client.post("/keys", json!({"name": text, "scopes": ["assets:read"]})).await.field_errors(), ["/name"]);
    let settings = json!({"name": text, "asset_tag_template": format!("{text}-NNN")});
    assert_eq!(client.patch("/settings", settings).await.field_errors(), ["/asset_tag_template", "/name"]);
    let steps =
        json!([{"type": "text", "key": "k", "label": text}, {"type": "select", "key": "s", "label": "S", "options": [text]}]);
    let process = json!({"name": text, "trigger_status": "in_stock", "target_status": "in_use", "steps": steps});
    assert_eq!(client.post("/processes", process).await.field_errors(), ["/name", "/steps/0/label", "/steps/1/options"]);
    client.get("/assets?q=a%E2%80%AEb").await.data();
    let name = "\u{645}\u{6cc}\u{200c}\u{62e}\u{648}\u{627}\u{647}\u{645} \u{1f469}\u{200d}\u{1f4bb}";
    assert_eq!(client.post("/assets", json!({"name": name})).await.data()["name"], name);
}
