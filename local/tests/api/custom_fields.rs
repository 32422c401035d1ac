//! Custom fields and the schemas of asset types.

use crate::support::Api;
use serde_json::json;

#[tokio::test]
async fn custom_fields_must_match_the_schema_of_the_asset_type() {
    let (_api, client) = Api::with_tenant().await;
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
    let (_api, client) = Api::with_tenant().await;
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

#[tokio::test]
async fn a_hundred_thousand_errors_make_a_small_response() {
    let (_api, client) = Api::with_tenant().await;
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
