//! The catalog.

use crate::support::prelude::*;
use shared::domain::catalog::{AssetType, MAX_ASSET_TYPES};

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
async fn a_model_must_refer_to_an_existing_manufacturer_and_type_and_keeps_its_type_in_use() {
    let client = over_http().await;
    let body = json!({"name": "XPS", "manufacturer_id": UNKNOWN_ID, "asset_type_id": UNKNOWN_ID});
    assert_eq!(client.post("/catalog/models", body).await.field_errors(), ["/asset_type_id", "/manufacturer_id"]);
    let asset_type = client.asset_type("Laptop", "LAP", "physical").await;
    let model = client.model("Dell", "XPS", &asset_type).await;
    let path = format!("/catalog/models/{model}");
    assert_eq!(client.patch(&path, json!({"manufacturer_id": UNKNOWN_ID})).await.field_errors(), ["/manufacturer_id"]);
    assert_eq!(client.patch(&path, json!({"manufacturer_id": null})).await.field_errors(), ["/manufacturer_id"]);

    let phone = client.asset_type("Phone", "PHN", "physical").await;
    let asset = client.asset(json!({"name": "x", "model_id": model})).await;
    assert_eq!(client.patch(&path, json!({"asset_type_id": phone})).await.problem(409, "IN_USE")["count"], 1);
    client.patch(&path, json!({"name": "XPS 13"})).await.data();
    assert_eq!(client.delete(&path).await.problem(409, "IN_USE")["count"], 1);
    // The model and the asset both use the type.
    assert_eq!(client.delete(&format!("/catalog/asset-types/{asset_type}")).await.problem(409, "IN_USE")["count"], 2);
    client.patch(&format!("/assets/{asset}"), json!({"model_id": null})).await.data();
    client.patch(&path, json!({"asset_type_id": phone})).await.data();
    assert_eq!(client.delete(&format!("/catalog/asset-types/{asset_type}")).await.problem(409, "IN_USE")["count"], 1);
    client.delete(&format!("/assets/{asset}")).await;
    client.delete(&format!("/catalog/asset-types/{asset_type}")).await.data();
}

#[tokio::test(start_paused = true)]
async fn lists_are_searched_and_filtered_and_codes_and_names_of_manufacturers_are_unique() {
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

/// Creates asset types with schemas of 32 KB, every tenth of kind `logical`.
async fn create_types(api: &Api, client: &Client, count: usize) {
    let store = api.store.writer(client.tenant);
    for n in 0..count {
        let schema = json!({"type": "object", "title": format!("{n} {}", "x".repeat(32_000))});
        let context = ChangeContext::operator(api.now());
        let id = store.new_id(context.at).unwrap();
        let kind = if n % 10 == 0 { "logical" } else { "physical" };
        let asset_type = AssetType {
            id,
            name: format!("Type {n}").parse().unwrap(),
            code: format!("T{n:04}").parse().unwrap(),
            kind: kind.parse().unwrap(),
            custom_fields_schema: Some(schema.to_string().try_into().unwrap()),
        };
        let mut unit = UnitOfWork::new(&store, &context);
        unit.create(asset_type).unwrap();
        unit.commit().await.unwrap();
        api.advance_clock_millis(1);
        assert_eq!(id.timestamp(), context.at);
    }
}

#[tokio::test(start_paused = true)]
async fn lists_and_filters_read_no_schemas_but_those_of_their_page() {
    let (api, client) = Api::with_tenant().await;
    let count = if full_tests() { MAX_ASSET_TYPES } else { 250 };
    create_types(&api, &client, count).await;
    let types = client.get("/catalog/asset-types?limit=2").await;
    assert_eq!(
        (types.json()["meta"]["total"].as_u64(), types.data()[0]["code"].as_str()),
        (Some(count as u64), Some(&*format!("T{:04}", count - 1)))
    );
    let title = types.data()[0]["custom_fields_schema"]["title"].as_str().unwrap().len();
    assert!(title > 32_000, "{title}");
    let types = client.get("/catalog/asset-types?limit=20").await.data();
    let logical = types.as_array().unwrap().iter().find(|found| found["kind"] == "logical").unwrap()["id"].as_str().unwrap();
    let asset = client.asset(json!({"name": "licence", "asset_type_id": logical})).await;
    client.asset(json!({"name": "laptop"})).await;
    api.advance_clock(120);
    // A type takes about 410 bytes in the index, and a listed type's schema takes 8 read units.
    let of_all = count as f64 * 410.0 / 4096.0;
    for (name, index_bytes) in [("a cold list index", 64 << 20), ("no list index", 0)] {
        for (path, more) in
            [("/catalog/asset-types?limit=1", 12.0), ("/catalog/asset-types?q=t0001", 12.0), ("/assets?kind=logical", 40.0)]
        {
            let cold = api.replica(0, index_bytes).client(&client);
            cold.get("/settings").await.data();
            let (page, cost) = api.cost(cold.get(path)).await;
            assert!(page.status.is_success(), "{}", page.text());
            // Without an index, the types of this kind are looked up first, and again for each attempt at a page.
            let times = if index_bytes == 0 && path.starts_with("/assets") { 2.0 } else { 1.0 };
            assert!(cost.read_units <= times * of_all + more, "{name}, {path}: {cost:?}");
            if path.starts_with("/assets") {
                assert_eq!((page.data()[0]["id"].as_str(), page.json()["meta"]["total"].as_u64()), (Some(&*asset), Some(1)));
            }
        }
    }
    if count == MAX_ASSET_TYPES {
        let body = json!({"name": "n", "code": "NEW", "kind": "physical"});
        client.post("/catalog/asset-types", body).await.problem(409, "CONFLICT");
    }
}

/// Above a few megabytes, a list doesn't keep the records in memory, but reads the page again.
#[tokio::test(start_paused = true)]
async fn a_list_of_large_records_has_the_same_pages() {
    let client = over_http().await;
    let notes = "\u{1d11e}".repeat(10_000);
    for n in 0..120 {
        client.post("/catalog/manufacturers", json!({"name": format!("M{n}"), "notes": notes})).await.data();
    }
    let mut names = Vec::new();
    for page in 1..=4 {
        let page = client.get(&format!("/catalog/manufacturers?limit=40&page={page}")).await.json();
        assert_eq!(page["meta"]["total"], 120);
        names.extend(page["data"].as_array().unwrap().iter().map(|it: &Value| it["name"].as_str().unwrap().to_owned()));
    }
    assert_eq!(names, (0..120).rev().map(|n| format!("M{n}")).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_schema_comes_back_as_sent_and_is_read_once() {
    let (api, client) = Api::with_tenant().await;
    let dialect = "https://json-schema.org/draft/2020-12/schema";
    let schema = format!(
        r#"{{"$schema":"{dialect}","type":"object","properties":{{"z":{{"type":"number","minimum":1.0}}}},"required":["z"]}}"#
    );
    let body = format!(r#"{{"name":"T","code":"TT","kind":"physical","custom_fields_schema":{schema}}}"#);
    let asset_type = client.post_text("/catalog/asset-types", &body).await.id();
    let path = format!("/catalog/asset-types/{asset_type}");
    let cold = api.replica(0, 0).client(&client);
    assert!(cold.get(&path).await.text().contains(&schema));
    api.faults.take_requests();
    cold.get(&path).await.data();
    let requests = api.faults.take_requests();
    assert!(!requests.iter().any(|(_, request)| request.to_string().contains("SCHEMA#")), "{requests:?}");
    // Sending an equal schema changes nothing.
    let version = client.get(&path).await.header("etag").to_owned();
    let fields = json!({"z": {"minimum": 1, "type": "number"}});
    let equal = json!({"required": ["z"], "properties": fields, "type": "object", "$schema": dialect});
    assert_eq!(client.patch(&path, json!({"custom_fields_schema": equal})).await.header("etag"), version);
    let refused = cold.post("/assets", json!({"name": "x", "asset_type_id": asset_type})).await;
    assert_eq!(refused.field_errors(), ["/custom_fields"]);
}
