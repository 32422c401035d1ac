//! `/v1/assets` (interface 4.1 to 4.5, contract 6).

use crate::support::Api;
use insta::assert_json_snapshot;
use serde_json::json;

const NOBODY: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

#[tokio::test]
async fn a_new_asset_shows_every_field() {
    let (_api, client) = Api::with_tenant().await;
    let reply = client.post("/assets", json!({"name": "  Laptop  "})).await;
    assert_eq!(reply.status, 201);
    assert_eq!(reply.header("location"), format!("/v1/assets/{}", reply.id()));
    assert_json_snapshot!(reply.json(), {".data.id" => "[id]", ".data.created_at" => "[time]", ".data.updated_at" => "[time]"}, @r#"
    {
      "data": {
        "id": "[id]",
        "asset_tag": "AST-000001",
        "name": "Laptop",
        "status": "in_stock",
        "asset_type_id": null,
        "asset_type_name": null,
        "asset_kind": "physical",
        "manufacturer": null,
        "model": null,
        "model_id": null,
        "serial_number": null,
        "purchase_date": null,
        "purchase_price": null,
        "warranty_until": null,
        "assigned_to": null,
        "notes": null,
        "custom_fields": {},
        "created_at": "[time]",
        "updated_at": "[time]"
      }
    }
    "#);
    assert_eq!(client.get(&format!("/assets/{}", reply.id())).await.json(), reply.json());
}

#[tokio::test]
async fn a_model_fills_manufacturer_model_and_type() {
    let (_api, client) = Api::with_tenant().await;
    let licence = client.asset_type("Licence", "LIC", "logical").await;
    let model = client.model("JetBrains", "All Products", &licence).await;
    let asset = client.post("/assets", json!({"name": "IDE", "model_id": model})).await.data();
    for (field, value) in [
        ("manufacturer", "JetBrains"),
        ("model", "All Products"),
        ("catalog_manufacturer_name", "JetBrains"),
        ("catalog_model_name", "All Products"),
        ("asset_type_name", "Licence"),
        ("asset_kind", "logical"),
        ("asset_type_id", &licence),
        ("model_id", &model),
    ] {
        assert_eq!(asset[field], value, "{field}");
    }
    // The catalog's names are those of now; the texts are those of then.
    let maker = client.get("/catalog/manufacturers").await.data()[0]["id"].as_str().unwrap().to_owned();
    client.patch(&format!("/catalog/manufacturers/{maker}"), json!({"name": "JB"})).await.data();
    client.patch(&format!("/catalog/models/{model}"), json!({"name": "Ultimate"})).await.data();
    let path = format!("/assets/{}", asset["id"].as_str().unwrap());
    let after = client.get(&path).await.data();
    assert_eq!((after["catalog_manufacturer_name"].as_str(), after["manufacturer"].as_str()), (Some("JB"), Some("JetBrains")));
    assert_eq!((after["catalog_model_name"].as_str(), after["model"].as_str()), (Some("Ultimate"), Some("All Products")));
    assert_eq!(client.get("/assets").await.data()[0], after, "a list item has the same fields");

    let unlinked = client.patch(&path, json!({"model_id": null, "manufacturer": "me"})).await.data();
    assert_eq!((unlinked["manufacturer"].as_str(), unlinked["model"].as_str()), (Some("me"), Some("All Products")));
    assert!(unlinked.get("catalog_model_name").is_none() && unlinked["model_id"].is_null());
    assert_eq!(unlinked["asset_type_id"], licence.as_str());
}

#[tokio::test]
async fn what_contradicts_the_model_is_refused() {
    let (api, client) = Api::with_tenant().await;
    let laptop = client.asset_type("Laptop", "LAP", "physical").await;
    let phone = client.asset_type("Phone", "PHN", "physical").await;
    let model = client.model("Dell", "XPS", &laptop).await;
    let linked = format!("/assets/{}", client.asset(json!({"name": "x", "model_id": model})).await);
    let before = api.dump().await;
    let both = json!({"name": "x", "model_id": model, "manufacturer": "a", "model": "b"});
    assert_eq!(client.post("/assets", both).await.field_errors(), ["/manufacturer", "/model"]);
    let wrong_type = json!({"name": "x", "model_id": model, "asset_type_id": phone});
    assert_eq!(client.post("/assets", wrong_type).await.field_errors(), ["/asset_type_id"]);
    assert_eq!(client.patch(&linked, json!({"asset_type_id": phone})).await.field_errors(), ["/asset_type_id"]);
    assert_eq!(client.patch(&linked, json!({"asset_type_id": null})).await.field_errors(), ["/asset_type_id"]);
    assert_eq!(client.patch(&linked, json!({"manufacturer": "me"})).await.field_errors(), ["/manufacturer"]);
    assert_eq!(api.dump().await, before, "a refused request changed something");
    client.patch(&linked, json!({"asset_type_id": laptop})).await.data();
}

#[tokio::test]
async fn references_to_nothing_are_refused_all_at_once() {
    let (api, client) = Api::with_tenant().await;
    let id = client.asset(json!({"name": "x"})).await;
    let gone = client.user("Gone").await;
    client.patch(&format!("/users/{gone}"), json!({"is_active": false})).await.data();
    let foreign = api.tenant().await.user("Foreign").await;
    let before = api.dump().await;
    let refused = client.post("/assets", json!({"name": "x", "asset_type_id": NOBODY, "model_id": NOBODY})).await;
    assert_eq!(refused.field_errors(), ["/asset_type_id", "/model_id"]);
    let mixed = json!({"name": "x", "model_id": NOBODY, "manufacturer": "m", "purchase_date": "x", "colour": "red"});
    assert_eq!(client.post("/assets", mixed).await.field_errors(), ["/colour", "/manufacturer", "/model_id", "/purchase_date"]);
    assert_eq!(client.post("/assets", json!({"name": "x", "asset_type_id": NOBODY})).await.field_errors(), ["/asset_type_id"]);
    let path = format!("/assets/{id}");
    for user in [NOBODY, &gone, &foreign] {
        let both = json!({"assigned_to": user, "asset_type_id": NOBODY});
        assert_eq!(client.patch(&path, both).await.field_errors(), ["/asset_type_id", "/assigned_to"]);
    }
    assert_eq!(api.dump().await, before);
}

#[tokio::test]
async fn every_fault_of_a_body_is_named() {
    let (api, client) = Api::with_tenant().await;
    let before = api.dump().await;
    let body = json!({
        "name": " ", "status": "lost", "asset_type_id": "x", "serial_number": "s".repeat(256), "purchase_date": "2024-02-30",
        "purchase_price": "12", "warranty_until": "2326-01-01", "notes": "n".repeat(10_001), "custom_fields": [], "id": NOBODY,
        "asset_tag": "X-1", "assigned_to": NOBODY, "colour": "red", "a/b~c": 1
    });
    assert_eq!(
        client.post("/assets", body).await.field_errors(),
        [
            "/asset_tag",
            "/asset_type_id",
            "/assigned_to",
            "/a~1b~0c",
            "/colour",
            "/custom_fields",
            "/id",
            "/name",
            "/notes",
            "/purchase_date",
            "/purchase_price",
            "/serial_number",
            "/status",
            "/warranty_until",
        ]
    );
    assert_eq!(client.post("/assets", json!({})).await.field_errors(), ["/name"]);
    assert_eq!(client.post_text("/assets", r#"{"name":"a","name":"b"}"#).await.field_errors(), ["/name"]);
    assert_eq!(client.post_text("/assets", "[]").await.field_errors(), [""]);
    assert_eq!(client.post_text("/assets", r#"{"name":"\ud800"}"#).await.field_errors(), ["/name"]);
    assert_eq!(api.dump().await, before);
}

#[tokio::test]
async fn a_price_keeps_every_digit() {
    let (_api, client) = Api::with_tenant().await;
    for digits in ["2499.00", "0", "0.1", "999999999999.9999", "123456789012.3456", "0.0001"] {
        let reply = client.post_text("/assets", &format!(r#"{{"name":"x","purchase_price":{digits}}}"#)).await;
        let wanted = format!(r#""purchase_price":{digits},"#);
        assert!(reply.text().contains(&wanted), "{digits}: {}", reply.text());
        let read = client.get(&format!("/assets/{}", reply.id())).await;
        assert!(read.text().contains(&wanted), "{digits}: {}", read.text());
    }
    for wrong in ["-1", "1000000000000", "0.00001", "1e12", "\"1\"", "true"] {
        let reply = client.post_text("/assets", &format!(r#"{{"name":"x","purchase_price":{wrong}}}"#)).await;
        assert_eq!(reply.field_errors(), ["/purchase_price"], "{wrong}");
    }
}

#[tokio::test]
async fn a_patch_tells_absent_null_and_value_apart() {
    let (_api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let full = json!({"name": "x", "serial_number": "S1", "notes": "n", "purchase_price": 5, "custom_fields": {"a": 1}});
    let path = format!("/assets/{}", client.asset(full).await);
    let changed = client.patch(&path, json!({"assigned_to": user, "status": "in_use"})).await.data();
    assert_eq!((changed["assigned_to"].as_str(), changed["serial_number"].as_str()), (Some(user.as_str()), Some("S1")));
    assert!(changed["updated_at"].as_str() > changed["created_at"].as_str());
    let clear = json!({"assigned_to": null, "serial_number": null, "notes": null, "purchase_price": null, "custom_fields": null});
    let cleared = client.patch(&path, clear).await.data();
    for field in ["assigned_to", "serial_number", "notes", "purchase_price"] {
        assert!(cleared[field].is_null(), "{field}");
    }
    assert_eq!((&cleared["custom_fields"], &cleared["status"]), (&json!({}), &json!("in_use")));
    assert_eq!(client.patch(&path, json!({"name": null, "status": null})).await.field_errors(), ["/name", "/status"]);
    let same = client.patch(&path, json!({})).await.data();
    assert_eq!(same["updated_at"], cleared["updated_at"], "nothing changed");
    client.patch(&format!("/assets/{NOBODY}"), json!({"name": "x"})).await.problem(404, "NOT_FOUND");
}

#[tokio::test]
async fn a_deleted_asset_is_gone_and_its_tag_is_not_given_again() {
    let (_api, client) = Api::with_tenant().await;
    let id = client.asset(json!({"name": "x"})).await;
    let reply = client.delete(&format!("/assets/{id}")).await;
    assert_eq!((reply.status.as_u16(), reply.json()), (200, json!({"message": "Asset deleted."})));
    client.get(&format!("/assets/{id}")).await.problem(404, "NOT_FOUND");
    client.delete(&format!("/assets/{id}")).await.problem(404, "NOT_FOUND");
    assert_eq!(client.post("/assets", json!({"name": "y"})).await.data()["asset_tag"], "AST-000002");
}

#[tokio::test]
async fn a_types_schema_binds_its_assets() {
    let (_api, client) = Api::with_tenant().await;
    let schema =
        json!({"type": "object", "required": ["ram"], "properties": {"ram": {"type": "integer"}}, "additionalProperties": false});
    let body = json!({"name": "Laptop", "code": "LAP", "kind": "physical", "custom_fields_schema": schema});
    let asset_type = client.post("/catalog/asset-types", body).await.id();
    let new = |fields| json!({"name": "x", "asset_type_id": asset_type, "custom_fields": fields});
    assert_eq!(
        client.post("/assets", new(json!({"ram": "16", "cpu": 1}))).await.field_errors(),
        ["/custom_fields", "/custom_fields/ram"]
    );
    assert_eq!(
        client.post("/assets", json!({"name": "x", "asset_type_id": asset_type})).await.field_errors(),
        ["/custom_fields"]
    );
    let path = format!("/assets/{}", client.asset(new(json!({"ram": 16}))).await);
    assert_eq!(client.patch(&path, json!({"custom_fields": {}})).await.field_errors(), ["/custom_fields"]);
    // A new schema binds at the next change of custom fields or type, not before.
    let loose = json!({"custom_fields_schema": {"required": ["cpu"]}});
    client.patch(&format!("/catalog/asset-types/{asset_type}"), loose).await.data();
    client.patch(&path, json!({"name": "renamed"})).await.data();
    assert_eq!(client.patch(&path, json!({"custom_fields": {"ram": 16}})).await.field_errors(), ["/custom_fields"]);
    client.patch(&path, json!({"custom_fields": {"cpu": 1}})).await.data();
    let free = format!("/assets/{}", client.asset(json!({"name": "free"})).await);
    assert_eq!(client.patch(&free, json!({"asset_type_id": asset_type})).await.field_errors(), ["/custom_fields"]);
    client.patch(&free, json!({"asset_type_id": asset_type, "custom_fields": {"cpu": 2}})).await.data();
}

#[tokio::test]
async fn custom_fields_come_back_as_sent() {
    let (_api, client) = Api::with_tenant().await;
    let fields = json!({"z": 1, "a": {"deep": [1.5, null, true, "ü"]}, "": "", "9007199254740992": -9_007_199_254_740_992_i64});
    let id = client.asset(json!({"name": "x", "custom_fields": fields})).await;
    let read = client.get(&format!("/assets/{id}")).await;
    assert_eq!(read.data()["custom_fields"], fields);
    assert!(read.text().contains(r#""custom_fields":{"z":1,"a":"#), "in the order of sending");
    let reordered = r#"{"custom_fields":{"9007199254740992":-9007199254740992,"":"","a":{"deep":[1.5,null,true,"ü"]},"z":1}}"#;
    let sent = client.send("PATCH", &format!("/assets/{id}"), Some("application/json"), reordered).await;
    assert_eq!((sent.header("etag"), sent.data()), (read.header("etag"), read.data()), "an object's members have no order");
    for wrong in [r#"{"n":9007199254740993}"#, r#"{"a":1,"a":2}"#, "[]", r#""x""#, r#"{"a":[[[[[[[[1]]]]]]]]}"#] {
        let body = format!(r#"{{"name":"x","custom_fields":{wrong}}}"#);
        assert_eq!(client.post_text("/assets", &body).await.field_errors(), ["/custom_fields"], "{wrong}");
    }
}

#[tokio::test]
async fn tags_follow_the_template_of_their_type_and_month() {
    let (api, client) = Api::with_tenant().await;
    let laptop = client.asset_type("Laptop", "LAP", "physical").await;
    let set = json!({"asset_tag_prefix": "ACME", "asset_tag_template": "{PREFIX}/{TYPE_CODE}/{YY}{MM}/NNN"});
    client.patch("/settings", set).await.data();
    let tag = async |body| client.post("/assets", body).await.data()["asset_tag"].as_str().unwrap().to_owned();
    assert_eq!(tag(json!({"name": "a"})).await, "ACME/GEN/2603/001");
    assert_eq!(tag(json!({"name": "b", "asset_type_id": laptop})).await, "ACME/LAP/2603/001");
    assert_eq!(tag(json!({"name": "c", "asset_type_id": laptop})).await, "ACME/LAP/2603/002");
    api.wait(31 * 24 * 3600);
    assert_eq!(tag(json!({"name": "d"})).await, "ACME/GEN/2604/001");
}

#[tokio::test]
async fn a_full_range_takes_a_digit_more_and_tags_of_another_template_are_skipped() {
    let (api, client) = Api::with_tenant().await;
    client.patch("/settings", json!({"asset_tag_template": "A-1NNN"})).await.data();
    let tag = async || client.post("/assets", json!({"name": "x"})).await.data()["asset_tag"].as_str().unwrap().to_owned();
    assert_eq!((tag().await, tag().await), ("A-1001".into(), "A-1002".into()));
    client.patch("/settings", json!({"asset_tag_template": "A-NNN"})).await.data();
    // Brings the counter of A-NNN to where its tags meet those of A-1NNN.
    let range = "A-NNN".parse::<shared::domain::asset_tag::TagTemplate>().unwrap();
    let range = range.range(&"AST".parse().unwrap(), None, api.now());
    let store = api.store.tenant(client.tenant);
    while store.next_number(&range, 1).await.unwrap() < 999 {}
    assert_eq!(tag().await, "A-1000");
    assert_eq!(tag().await, "A-1003");
}

#[tokio::test]
async fn faults_by_the_hundred_thousand_are_told_in_a_small_answer() {
    let (_api, client) = Api::with_tenant().await;
    let members: Vec<String> = (0..90_000).map(|n| format!("\"{n:x}\":1")).collect();
    let refused = client.post_text("/assets", &format!("{{\"name\":\"x\",{}}}", members.join(","))).await;
    assert_eq!(refused.field_errors().len(), 1000);
    let schema = json!({"additionalProperties": {"type": "null"}, "maxProperties": 1});
    let body = json!({"name": "T", "code": "TT", "kind": "physical", "custom_fields_schema": schema});
    let kind = client.post("/catalog/asset-types", body).await.id();
    let fields: serde_json::Map<String, serde_json::Value> = (0..20).map(|n| (n.to_string(), json!("x".repeat(1_500)))).collect();
    let refused = client.post("/assets", json!({"name": "x", "asset_type_id": kind, "custom_fields": fields})).await;
    assert_eq!(refused.field_errors().len(), 21);
    assert!(refused.bytes.len() < 12_000, "{}", refused.bytes.len());
}

#[tokio::test]
async fn however_many_tags_are_taken_already_there_is_another() {
    let (_api, client) = Api::with_tenant().await;
    client.patch("/settings", json!({"asset_tag_template": "A-0NNN"})).await.data();
    for _ in 0..70 {
        client.asset(json!({"name": "x"})).await;
    }
    client.patch("/settings", json!({"asset_tag_template": "A-NNNN"})).await.data();
    let tag = client.post("/assets", json!({"name": "x"})).await.data()["asset_tag"].as_str().unwrap().to_owned();
    assert!(("A-0071".."A-0200").contains(&tag.as_str()), "{tag}");
}
