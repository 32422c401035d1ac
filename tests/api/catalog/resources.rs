//! Asset types, manufacturers and models.

use crate::support::{UNKNOWN_ID, over_http};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn entries_are_created_read_changed_and_deleted() {
    let client = over_http().await;
    let asset_type = client.asset_type("Laptop", "LAP", "physical").await;
    let manufacturer =
        client.post("/catalog/manufacturers", json!({"name": "Dell", "website": "https://dell.com", "notes": "n"})).await.id();
    let model = json!({"name": "XPS", "manufacturer_id": manufacturer, "asset_type_id": asset_type});
    let created = client.post("/catalog/models", model).await;
    assert_eq!(created.status, 201);
    assert_eq!(created.header("location"), format!("/v1/catalog/models/{}", created.id()));
    assert!(created.data()["notes"].is_null());
    for (path, change, field) in [
        (format!("/catalog/asset-types/{asset_type}"), json!({"kind": "logical"}), "kind"),
        (format!("/catalog/manufacturers/{manufacturer}"), json!({"website": null}), "website"),
        (format!("/catalog/models/{}", created.id()), json!({"notes": "x\ny"}), "notes"),
    ] {
        let changed = client.patch(&path, change.clone()).await.data();
        assert_eq!(changed[field], change[field]);
        assert_eq!(client.get(&path).await.data(), changed);
    }
    // An entry that another one refers to can't be deleted.
    assert_eq!(client.delete(&format!("/catalog/asset-types/{asset_type}")).await.problem(409, "IN_USE")["count"], 1);
    assert_eq!(client.delete(&format!("/catalog/manufacturers/{manufacturer}")).await.problem(409, "IN_USE")["count"], 1);
    client.delete(&format!("/catalog/models/{}", created.id())).await.data();
    client.delete(&format!("/catalog/asset-types/{asset_type}")).await.data();
    client.delete(&format!("/catalog/manufacturers/{manufacturer}")).await.data();
    for list in ["asset-types", "manufacturers", "models"] {
        assert_eq!(client.total(&format!("/catalog/{list}")).await, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn codes_and_names_of_manufacturers_are_unique() {
    let client = over_http().await;
    let laptop = client.asset_type("Laptop", "LAP", "physical").await;
    let again = client.post("/catalog/asset-types", json!({"name": "Other", "code": "LAP", "kind": "physical"})).await;
    let taken = again.problem(409, "DUPLICATE");
    assert_eq!((&taken["field"], &taken["asset_type_id"]), (&json!("code"), &json!(laptop)));
    client.post("/catalog/manufacturers", json!({"name": "Groß AG"})).await.data();
    let again = client.post("/catalog/manufacturers", json!({"name": " GROSS ag "})).await;
    assert_eq!(again.problem(409, "DUPLICATE")["field"], "name");
    let long = "é".repeat(255);
    client.post("/catalog/manufacturers", json!({"name": long})).await.data();
    client.post("/catalog/manufacturers", json!({"name": long})).await.problem(409, "DUPLICATE");
}

#[tokio::test(start_paused = true)]
async fn a_model_must_refer_to_an_existing_manufacturer_and_type() {
    let client = over_http().await;
    let body = json!({"name": "XPS", "manufacturer_id": UNKNOWN_ID, "asset_type_id": UNKNOWN_ID});
    assert_eq!(client.post("/catalog/models", body).await.field_errors(), ["/asset_type_id", "/manufacturer_id"]);
    let asset_type = client.asset_type("Laptop", "LAP", "physical").await;
    let model = client.model("Dell", "XPS", &asset_type).await;
    let path = format!("/catalog/models/{model}");
    assert_eq!(client.patch(&path, json!({"manufacturer_id": UNKNOWN_ID})).await.field_errors(), ["/manufacturer_id"]);
    assert_eq!(client.patch(&path, json!({"manufacturer_id": null})).await.field_errors(), ["/manufacturer_id"]);
}

#[tokio::test(start_paused = true)]
async fn a_model_in_use_keeps_its_type() {
    let client = over_http().await;
    let (laptop, phone) =
        (client.asset_type("Laptop", "LAP", "physical").await, client.asset_type("Phone", "PHN", "physical").await);
    let model = client.model("Dell", "XPS", &laptop).await;
    let path = format!("/catalog/models/{model}");
    let asset = client.asset(json!({"name": "x", "model_id": model})).await;
    assert_eq!(client.patch(&path, json!({"asset_type_id": phone})).await.problem(409, "IN_USE")["count"], 1);
    client.patch(&path, json!({"name": "XPS 13"})).await.data();
    assert_eq!(client.delete(&path).await.problem(409, "IN_USE")["count"], 1);
    // Both the model and the asset use the type.
    assert_eq!(client.delete(&format!("/catalog/asset-types/{laptop}")).await.problem(409, "IN_USE")["count"], 2);
    client.patch(&format!("/assets/{asset}"), json!({"model_id": null})).await.data();
    client.patch(&path, json!({"asset_type_id": phone})).await.data();
    assert_eq!(client.delete(&format!("/catalog/asset-types/{laptop}")).await.problem(409, "IN_USE")["count"], 1);
    client.delete(&format!("/assets/{asset}")).await;
    client.delete(&format!("/catalog/asset-types/{laptop}")).await.data();
}

#[tokio::test(start_paused = true)]
async fn an_invalid_schema_is_refused() {
    let client = over_http().await;
    for schema in [
        json!([]),
        json!("x"),
        json!({"type": "text"}),
        json!({"$ref": "#"}),
        json!({"$ref": "http://example.com/"}),
        json!({"pattern": "("}),
    ] {
        let body = json!({"name": "Laptop", "code": "LAP", "kind": "physical", "custom_fields_schema": schema});
        assert_eq!(client.post("/catalog/asset-types", body).await.field_errors(), ["/custom_fields_schema"], "{schema}");
    }
    let schema = json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"});
    let body = json!({"name": "Laptop", "code": "LAP", "kind": "physical", "custom_fields_schema": schema});
    assert_eq!(client.post("/catalog/asset-types", body).await.data()["custom_fields_schema"], schema);
}

#[tokio::test(start_paused = true)]
async fn lists_are_searched_and_filtered() {
    let client = over_http().await;
    let laptop = client.asset_type("Laptop", "LAP", "physical").await;
    client.asset_type("Phone", "PHN", "physical").await;
    let xps = client.model("Dell", "XPS", &laptop).await;
    client.model("Apple", "MacBook", &laptop).await;
    let manufacturer = client.get(&format!("/catalog/models/{xps}")).await.data()["manufacturer_id"].as_str().unwrap().to_owned();
    for (path, total) in [
        ("/catalog/asset-types?q=phn".to_owned(), 1),
        ("/catalog/manufacturers?q=e".to_owned(), 2),
        ("/catalog/models?q=mac".to_owned(), 1),
        (format!("/catalog/models?manufacturer_id={manufacturer}"), 1),
        (format!("/catalog/models?asset_type_id={laptop}&limit=1&page=2"), 2),
        (format!("/catalog/models?asset_type_id={UNKNOWN_ID}"), 0),
    ] {
        assert_eq!(client.total(&path).await, total, "{path}");
    }
    assert_eq!(client.get("/catalog/models?manufacturer_id=x&kind=y").await.field_errors(), ["kind", "manufacturer_id"]);
}
