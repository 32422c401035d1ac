//! Creating, reading, changing and deleting assets.

use crate::support::{Api, UNKNOWN_ID, over_http};
use insta::assert_json_snapshot;
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn a_new_asset_has_every_field() {
    let client = over_http().await;
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
        "location": null,
        "purchase_date": null,
        "purchase_price": null,
        "warranty_until": null,
        "assigned_to": null,
        "assigned_since": null,
        "notes": null,
        "custom_fields": {},
        "last_seen_at": null,
        "created_at": "[time]",
        "updated_at": "[time]"
      }
    }
    "#);
    assert_eq!(client.get(&format!("/assets/{}", reply.id())).await.json(), reply.json());
}

#[tokio::test(start_paused = true)]
async fn a_model_fills_manufacturer_model_and_type() {
    let client = over_http().await;
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
    // The catalog_* fields follow the catalog; manufacturer and model stay as they were filled in.
    let manufacturer = client.get("/catalog/manufacturers").await.data()[0]["id"].as_str().unwrap().to_owned();
    client.patch(&format!("/catalog/manufacturers/{manufacturer}"), json!({"name": "JB"})).await.data();
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

#[tokio::test(start_paused = true)]
async fn fields_that_contradict_the_model_are_refused() {
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
    assert_eq!(api.dump().await, before, "a refused request changed the table");
    client.patch(&linked, json!({"asset_type_id": laptop})).await.data();
}

#[tokio::test(start_paused = true)]
async fn every_reference_to_a_missing_resource_is_reported_at_once() {
    let (api, client) = Api::with_tenant().await;
    let id = client.asset(json!({"name": "x"})).await;
    let inactive = client.user("Inactive").await;
    client.patch(&format!("/users/{inactive}"), json!({"is_active": false})).await.data();
    let foreign = api.tenant().await.user("Foreign").await;
    let before = api.dump().await;
    let refused = client.post("/assets", json!({"name": "x", "asset_type_id": UNKNOWN_ID, "model_id": UNKNOWN_ID})).await;
    assert_eq!(refused.field_errors(), ["/asset_type_id", "/model_id"]);
    let mixed = json!({"name": "x", "model_id": UNKNOWN_ID, "manufacturer": "m", "purchase_date": "x", "colour": "red"});
    assert_eq!(client.post("/assets", mixed).await.field_errors(), ["/colour", "/manufacturer", "/model_id", "/purchase_date"]);
    assert_eq!(
        client.post("/assets", json!({"name": "x", "asset_type_id": UNKNOWN_ID})).await.field_errors(),
        ["/asset_type_id"]
    );
    let path = format!("/assets/{id}");
    for user in [UNKNOWN_ID, &inactive, &foreign] {
        let both = json!({"assigned_to": user, "asset_type_id": UNKNOWN_ID});
        assert_eq!(client.patch(&path, both).await.field_errors(), ["/asset_type_id", "/assigned_to"]);
    }
    for user in [UNKNOWN_ID, &inactive, &foreign] {
        let both = json!({"name": "x", "assigned_to": user, "asset_type_id": UNKNOWN_ID});
        assert_eq!(client.post("/assets", both).await.field_errors(), ["/asset_type_id", "/assigned_to"]);
    }
    assert_eq!(api.dump().await, before);
    let user = client.user("Active").await;
    let made = client.post("/assets", json!({"name": "x", "assigned_to": user})).await.data();
    assert_eq!(
        (made["assigned_to"].as_str(), client.total(&format!("/assets?assigned_to={user}")).await),
        (Some(user.as_str()), 1)
    );
}

#[tokio::test(start_paused = true)]
async fn every_error_in_a_body_is_reported() {
    let (api, client) = Api::with_tenant().await;
    let before = api.dump().await;
    let body = json!({
        "name": " ", "status": "lost", "asset_type_id": "x", "serial_number": "s".repeat(256), "purchase_date": "2024-02-30",
        "purchase_price": "12,50", "warranty_until": "2326-01-01", "notes": "n".repeat(10_001), "custom_fields": [], "id": UNKNOWN_ID,
        "asset_tag": "X 1", "assigned_to": "x", "colour": "red", "a/b~c": 1
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

#[tokio::test(start_paused = true)]
async fn a_price_keeps_every_digit() {
    let client = over_http().await;
    for digits in ["2499.00", "0", "0.1", "999999999999.9999", "123456789012.3456", "0.0001"] {
        let reply = client.post_text("/assets", &format!(r#"{{"name":"x","purchase_price":{digits}}}"#)).await;
        let expected = format!(r#""purchase_price":{digits},"#);
        assert!(reply.text().contains(&expected), "{digits}: {}", reply.text());
        let read = client.get(&format!("/assets/{}", reply.id())).await;
        assert!(read.text().contains(&expected), "{digits}: {}", read.text());
    }
    for invalid in ["-1", "1000000000000", "0.00001", "1e12", "\"1e3\"", "\"-1\"", "\"1000000000000\"", "true"] {
        let reply = client.post_text("/assets", &format!(r#"{{"name":"x","purchase_price":{invalid}}}"#)).await;
        assert_eq!(reply.field_errors(), ["/purchase_price"], "{invalid}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_price_can_be_sent_as_text_wherever_it_can_be_sent() {
    let client = over_http().await;
    let expected = r#""purchase_price":1249.00,"#;
    let created = client.post("/assets", json!({"name": "x", "purchase_price": "1249.00", "serial_number": "s"})).await;
    assert!(created.text().contains(expected), "{}", created.text());
    let path = format!("/assets/{}", created.id());
    let tag = created.header("etag").to_owned();
    let patched = client.patch(&path, json!({"purchase_price": "1249.00"})).await;
    assert_eq!(patched.header("etag"), tag, "the same price changes nothing");
    client.patch(&path, json!({"purchase_price": "1"})).await.data();
    let operations = [json!({"op": "update", "id": created.id(), "body": {"purchase_price": "1249.00"}})];
    let batch = client.batch("/assets/batch", &operations).await;
    assert!(batch.text().contains(expected), "{}", batch.text());
    let put =
        client.send("PUT", "/assets/by-serial/t", Some("application/json"), r#"{"name":"y","purchase_price":"1249.00"}"#).await;
    assert!(put.text().contains(expected), "{}", put.text());
    let line = r#"{"name":"z","purchase_price":"1249.00"}"#;
    let imported = client.send("POST", "/assets/import", Some("application/x-ndjson"), line).await;
    assert_eq!(imported.json()["meta"]["created"], 1, "{}", imported.text());
    assert_eq!(client.get("/assets").await.text().matches(expected).count(), 3);
    let reply = client.patch(&path, json!({"purchase_price": "1,249.00"})).await;
    assert!(reply.text().contains("from 0 to below 1000000000000, or its decimal text"), "{}", reply.text());
    for (id, bad) in [("1", "\"1e3\""), ("2", "\"\""), ("3", "\" 5\"")] {
        let line = format!(r#"{{"name":"{id}","purchase_price":{bad}}}"#);
        let refused = client.send("POST", "/assets/import", Some("application/x-ndjson"), line).await;
        assert_eq!(refused.json()["meta"]["refused"], 1, "{}", refused.text());
    }
}

#[tokio::test(start_paused = true)]
async fn a_patch_distinguishes_absent_fields_null_and_values() {
    let client = over_http().await;
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
    client.patch(&format!("/assets/{UNKNOWN_ID}"), json!({"name": "x"})).await.problem(404, "NOT_FOUND");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_asset_is_not_found_and_its_tag_is_not_reused() {
    let client = over_http().await;
    let id = client.asset(json!({"name": "x"})).await;
    let reply = client.delete(&format!("/assets/{id}")).await;
    assert_eq!((reply.status.as_u16(), reply.json()), (200, json!({"message": "Asset deleted."})));
    client.get(&format!("/assets/{id}")).await.problem(404, "NOT_FOUND");
    client.delete(&format!("/assets/{id}")).await.problem(404, "NOT_FOUND");
    assert_eq!(client.post("/assets", json!({"name": "y"})).await.data()["asset_tag"], "AST-000002");
}
