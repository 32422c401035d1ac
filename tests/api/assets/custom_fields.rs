//! Custom fields and the schemas of asset types.

use crate::support::bulk::{costly, creations, outcomes, statuses};
use crate::support::{Client, over_http};
use serde_json::{Value, json};

#[tokio::test]
async fn custom_fields_must_match_the_schema_of_the_asset_type() {
    let client = over_http().await;
    let schema =
        json!({"type": "object", "required": ["ram"], "properties": {"ram": {"type": "integer"}}, "additionalProperties": false});
    let body = json!({"name": "Laptop", "code": "LAP", "kind": "physical", "custom_fields_schema": schema});
    let asset_type = client.post("/catalog/asset-types", body).await.id();
    let body = |fields| json!({"name": "x", "asset_type_id": asset_type, "custom_fields": fields});
    assert_eq!(
        client.post("/assets", body(json!({"ram": "16", "cpu": 1}))).await.field_errors(),
        ["/custom_fields", "/custom_fields/ram"]
    );
    assert_eq!(
        client.post("/assets", json!({"name": "x", "asset_type_id": asset_type})).await.field_errors(),
        ["/custom_fields"]
    );
    let path = format!("/assets/{}", client.asset(body(json!({"ram": 16}))).await);
    assert_eq!(client.patch(&path, json!({"custom_fields": {}})).await.field_errors(), ["/custom_fields"]);
    // A new schema applies from the next change of custom fields or type.
    let other_schema = json!({"custom_fields_schema": {"required": ["cpu"]}});
    client.patch(&format!("/catalog/asset-types/{asset_type}"), other_schema).await.data();
    client.patch(&path, json!({"name": "renamed"})).await.data();
    client.patch(&path, json!({"custom_fields": {"ram": 16}})).await.data();
    assert_eq!(client.patch(&path, json!({"custom_fields": {"ram": 17}})).await.field_errors(), ["/custom_fields"]);
    client.patch(&path, json!({"custom_fields": {"cpu": 1}})).await.data();
    let untyped = format!("/assets/{}", client.asset(json!({"name": "untyped"})).await);
    assert_eq!(client.patch(&untyped, json!({"asset_type_id": asset_type})).await.field_errors(), ["/custom_fields"]);
    client.patch(&untyped, json!({"asset_type_id": asset_type, "custom_fields": {"cpu": 2}})).await.data();
}

#[tokio::test]
async fn custom_fields_come_back_as_sent() {
    let client = over_http().await;
    let fields = json!({"z": 1, "a": {"deep": [1.5, null, true, "ü"]}, "": "", "9007199254740992": -9_007_199_254_740_992_i64});
    let id = client.asset(json!({"name": "x", "custom_fields": fields})).await;
    let read = client.get(&format!("/assets/{id}")).await;
    assert_eq!(read.data()["custom_fields"], fields);
    assert!(read.text().contains(r#""custom_fields":{"z":1,"a":"#), "in the order in which they were sent");
    let reordered = r#"{"custom_fields":{"9007199254740992":-9007199254740992,"":"","a":{"deep":[1.5,null,true,"ü"]},"z":1}}"#;
    let sent = client.send("PATCH", &format!("/assets/{id}"), Some("application/json"), reordered).await;
    assert_eq!((sent.header("etag"), sent.data()), (read.header("etag"), read.data()), "an object's members have no order");
    for invalid in [r#"{"n":9007199254740993}"#, r#"{"a":1,"a":2}"#, "[]", r#""x""#, r#"{"a":[[[[[[[[1]]]]]]]]}"#] {
        let body = format!(r#"{{"name":"x","custom_fields":{invalid}}}"#);
        assert_eq!(client.post_text("/assets", &body).await.field_errors(), ["/custom_fields"], "{invalid}");
    }
}

async fn refusal(client: &Client, schema: Value) -> String {
    let body = json!({"name": "T", "code": "TT", "kind": "physical", "custom_fields_schema": schema});
    let refused = client.post("/catalog/asset-types", body).await;
    assert_eq!(refused.field_errors(), ["/custom_fields_schema"]);
    refused.json()["errors"][0]["detail"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn schemas_are_refused_in_our_own_words() {
    let client = over_http().await;
    for (schema, words) in [
        (json!({"$defs": {"a": {"$ref": "https://example.com/x.json"}}}), ["its own parts", "/$defs/a/$ref"]),
        (json!({"properties": {"a": {"$ref": "other.json"}}}), ["its own parts", "/properties/a/$ref"]),
        (json!({"properties": {"a": {"pattern": "^(?=x)"}}}), ["look-around", "/properties/a/pattern"]),
        (json!({"patternProperties": {r"(a)\1": {}}}), ["back-references", r"/patternProperties/(a)\1"]),
        (json!({"$defs": {"a": {"pattern": "a(?!b)"}}}), ["look-around", "/$defs/a/pattern"]),
        (json!({"properties": {"a": {"pattern": "("}}}), ["regular expressions", "/properties/a/pattern"]),
        (json!({"properties": {"a": {"pattern": r"\pL{40}"}}}), ["fewer repetitions", "/properties/a/pattern"]),
    ] {
        let detail = refusal(&client, schema).await;
        assert!(words.iter().all(|word| detail.contains(word)), "{detail}");
    }
}

#[tokio::test]
async fn patterns_that_are_expensive_to_compile_are_refused_before_they_are_compiled() {
    let client = over_http().await;
    let all = |count: usize, pattern: fn(usize) -> String| json!({"allOf": (0..count).map(|n| json!({"pattern": pattern(n)})).collect::<Vec<_>>()});
    for (name, schema) in [
        ("classes of Unicode that are repeated", all(200, |n| format!(r"\pL{{20}}%{n}"))),
        ("classes of Unicode", all(250, |n| format!(r"\pL{n}"))),
        ("many patterns", all(1_000, |n| format!("[^{n}]"))),
        ("classes that are rewritten", all(1, |_| r"\s".repeat(2_000))),
        ("ignored case", all(1, |_| format!("(?i){}", "k".repeat(20_000)))),
        ("groups that capture", all(50, |n| format!(r"^(\pL)(\pN){n}$"))),
    ] {
        let detail = refusal(&client, schema).await;
        assert!(detail.contains("bytes compiled"), "{name}: {detail}");
    }
    // The same pattern is compiled once.
    let schema = all(250, |_| r"^[\pL\pN ]+$".to_owned());
    let body = json!({"name": "T", "code": "TT", "kind": "physical", "custom_fields_schema": schema});
    client.post("/catalog/asset-types", body).await.data();
}

#[tokio::test]
async fn a_field_that_a_schema_forbids_is_named_in_plain_words() {
    let client = over_http().await;
    let schema = json!({"properties": {"a": false}});
    let body = json!({"name": "T", "code": "TT", "kind": "physical", "custom_fields_schema": schema});
    let asset_type = client.post("/catalog/asset-types", body).await.id();
    let refused = client.post("/assets", json!({"name": "x", "asset_type_id": asset_type, "custom_fields": {"a": 1}})).await;
    assert_eq!(refused.field_errors(), ["/custom_fields/a"]);
    assert_eq!(refused.json()["errors"][0]["detail"], "is not permitted by the type's schema");
}

#[tokio::test]
async fn a_hundred_thousand_errors_make_a_small_response() {
    let client = over_http().await;
    let members: Vec<String> = (0..90_000).map(|n| format!("\"{n:x}\":1")).collect();
    let refused = client.post_text("/assets", &format!("{{\"name\":\"x\",{}}}", members.join(","))).await;
    assert_eq!(refused.field_errors().len(), 1000);
    let schema = json!({"additionalProperties": {"type": "null"}, "maxProperties": 1});
    let body = json!({"name": "T", "code": "TT", "kind": "physical", "custom_fields_schema": schema});
    let asset_type = client.post("/catalog/asset-types", body).await.id();
    let fields: serde_json::Map<String, serde_json::Value> = (0..20).map(|n| (n.to_string(), json!("x".repeat(1_500)))).collect();
    let refused = client.post("/assets", json!({"name": "x", "asset_type_id": asset_type, "custom_fields": fields})).await;
    assert_eq!(refused.field_errors().len(), 21);
    assert!(refused.bytes.len() < 12_000, "{}", refused.bytes.len());
}

fn rows(values: &[Value]) -> String {
    let rows: String = values.iter().map(|list| format!("a,TT,\"{list}\"\n")).collect();
    format!("name,asset_type_code,custom_fields.list\n{rows}")
}

#[tokio::test]
async fn a_request_validates_until_its_budget_is_spent() {
    let client = over_http().await;
    let (asset_type, values) = costly(&client, 60).await;
    let reply = client.import_once("/assets", &rows(&values), "k").await;
    let created = outcomes(&reply).iter().filter(|outcome| *outcome == "created").count();
    assert!((5..15).contains(&created), "{created}");
    let refused = reply.data().as_array().unwrap().iter().filter(|row| row["outcome"] == "refused").cloned().collect::<Vec<_>>();
    assert_eq!(refused.len(), 60 - created);
    assert!(refused.iter().all(|row| row["errors"][0]["code"] == "SCHEMA_BUDGET_SPENT"), "{refused:?}");
    assert_eq!(client.import_once("/assets", &rows(&values), "k").await.json(), reply.json());
    let operations = creations(&asset_type, &values[..20]);
    client.batch("/assets/batch", &operations, true).await.problem(422, "SCHEMA_BUDGET_SPENT");
    let batch = statuses(&client.batch("/assets/batch", &operations, false).await);
    // The schema is compiled already.
    let more = batch.iter().filter(|status| **status == 201).count() - created;
    assert!(more <= 1, "{more}");
}

/// With `on_error=abort`, all rows are checked before the first is written. Checked rows are not validated again.
#[tokio::test]
async fn a_check_and_the_write_after_it_validate_once() {
    let client = over_http().await;
    let (_, values) = costly(&client, 7).await;
    assert_eq!(outcomes(&client.import("/assets", "?on_error=abort", &rows(&values)).await), ["created"; 7]);
}
