//! Tenants and their settings.

use crate::support::prelude::*;
use shared::store::Writer;

#[tokio::test(start_paused = true)]
async fn new_settings_have_defaults_and_show_number_ranges() {
    let client = over_http().await;
    client.asset(json!({"name": "x"})).await;
    assert_json_snapshot!(client.get("/settings").await.data(), {".number_ranges[].fill_level" => "[level]"}, @r#"
    {
      "name": "Acme",
      "asset_tag_prefix": "AST",
      "asset_tag_template": "{PREFIX}-NNNNNN",
      "status_transitions": null,
      "time_zone": "UTC",
      "locale": "en",
      "label_url_template": null,
      "number_ranges": [
        {
          "pattern": "AST-{N}",
          "last_number": 1,
          "capacity": 999999,
          "fill_level": "[level]"
        }
      ],
      "number_range_count": 1
    }
    "#);
}

#[tokio::test(start_paused = true)]
async fn invalid_settings_are_refused_and_change_nothing() {
    let (api, client) = Api::with_tenant().await;
    let before = api.dump().await;
    let body = json!({"name": "", "asset_tag_prefix": "A B", "asset_tag_template": "NN", "label_url_template": "javascript:{id}",
        "status_transitions": {"lost": []}, "number_ranges": [{}]});
    let errors = "/asset_tag_prefix /asset_tag_template /label_url_template /name /number_ranges /status_transitions";
    assert_eq!(client.patch("/settings", body).await.field_errors().join(" "), errors);
    let twice = r#"{"status_transitions":{"in_use":[],"in_use":["scrapped"]}}"#;
    let twice = client.send("PATCH", "/settings", Some("application/json"), twice).await;
    assert_eq!(twice.field_errors(), ["/status_transitions"]);
    assert_eq!(client.patch("/settings", json!({"asset_tag_template": null})).await.field_errors(), ["/asset_tag_template"]);
    assert_eq!(api.dump().await, before);
}

#[tokio::test(start_paused = true)]
async fn a_time_zone_has_the_databases_name_and_a_locale_canonical_case() {
    let (api, client) = Api::with_tenant().await;
    let changed = client.patch("/settings", json!({"time_zone": "europe/berlin", "locale": "DE-ch"})).await.data();
    assert_eq!((&changed["time_zone"], &changed["locale"]), (&json!("Europe/Berlin"), &json!("de-CH")));
    assert_eq!(client.get("/settings").await.data(), changed);
    let chain = event_chain(&api, &client, &client.tenant.to_string()).await;
    let expected = json!({
        "locale": {"old": "en", "new": "de-CH"}, "time_zone": {"old": "UTC", "new": "Europe/Berlin"}
    });
    assert_eq!(chain.last().unwrap()["changes"], expected);
    let refused = client.patch("/settings", json!({"time_zone": "Europe/Belrin", "locale": "de_CH"})).await;
    assert_eq!(refused.field_errors(), ["/locale", "/time_zone"]);
    assert!(refused.text().contains("the nearest are Europe/Berlin, "), "{}", refused.text());
    for wrong in [json!(null), json!(1), json!(""), json!("CEST"), json!("+01:00")] {
        assert_eq!(client.patch("/settings", json!({"time_zone": wrong})).await.field_errors(), ["/time_zone"], "{wrong}");
    }
    assert_eq!(client.get("/settings").await.data(), changed);
}

#[tokio::test(start_paused = true)]
async fn every_change_of_status_is_allowed_until_the_settings_restrict_it() {
    let client = over_http().await;
    let path = format!("/assets/{}", client.asset(json!({"name": "x", "status": "scrapped"})).await);
    for status in ["returned", "in_service", "in_use", "preparing", "in_stock"] {
        client.patch(&path, json!({"status": status})).await.data();
    }
    client.patch("/settings", json!({"status_transitions": {"in_stock": ["preparing", "in_use"], "scrapped": []}})).await.data();
    let refused = client.patch(&path, json!({"status": "scrapped"})).await.problem(409, "TRANSITION_NOT_ALLOWED");
    assert_eq!(refused["allowed"], json!(["preparing", "in_use"]));
    client.patch(&path, json!({"status": "in_stock", "name": "same status"})).await.data();
    client.patch(&path, json!({"status": "in_use"})).await.data();
    client.patch(&path, json!({"status": "scrapped"})).await.data();
    let refused = client.patch(&path, json!({"status": "in_stock"})).await.problem(409, "TRANSITION_NOT_ALLOWED");
    assert_eq!(refused["allowed"], json!([]));
    client.patch("/settings", json!({"status_transitions": null})).await.data();
    client.patch(&path, json!({"status": "in_stock"})).await.data();
}

async fn fill(client: &Client) {
    let user = client.user("Ada").await;
    let laptop = client.asset_type("Laptop", "LAP", "physical").await;
    client.model("Lenovo", "T14", &laptop).await;
    client.assigned_asset("Old", &user).await;
    complete_onboarding(client, &user).await;
    let assets = client.assets(3).await;
    let process = create_process(client, json!([{"type": "complete", "key": "done", "label": "Done"}])).await;
    start_movement(client, &process, &assets[..2]).await;
    client.delete(&format!("/assets/{}", assets[2])).await;
    client.send_json("POST", "/assets", "{\"name\": \"Once\"}", ("idempotency-key", "k")).await.data();
    client.send_json("PUT", "/assets/by-serial/S-10", "{\"name\": \"Upserted\"}", ("x", "x")).await;
    client.post("/keys", json!({"name": "second", "scopes": ["assets:read"]})).await;
}

fn store(api: &Api, client: &Client) -> Writer {
    api.store.writer(client.tenant)
}

async fn delete(store: &Writer) -> u64 {
    store.begin_deletion().await.unwrap();
    let deleted = store.delete_items(Duration::ZERO, |_| {}).await.unwrap();
    store.finish_deletion().await.unwrap();
    deleted
}

async fn registered(api: &Api) -> usize {
    api.store.tenants().await.unwrap().len()
}

#[tokio::test(start_paused = true)]
async fn deletion_removes_all_items_of_the_tenant_and_none_of_others() {
    let (api, other) = Api::with_tenant().await;
    fill(&other).await;
    let before = api.dump().await;
    let client = api.tenant().await;
    fill(&client).await;
    let counts = store(&api, &client).count_items(|_| {}).await.unwrap();
    for kind in ["tenant", "key", "asset", "user", "process", "instance", "movement", "event", "marker", "stored_response"] {
        assert!(counts.get(kind).is_some_and(|count| *count > 0), "{kind}: {counts:?}");
    }
    let deleted = delete(&store(&api, &client)).await;
    assert_eq!(deleted + 1, counts.values().sum::<u64>());
    assert_eq!(api.dump().await, before);
    assert!(api.list_index_rows(client.tenant).await.values().all(|rows| rows == &json!([]) || rows.is_null()));
    assert!(api.history_rows(client.tenant).await.is_empty());
    assert_eq!(registered(&api).await, 1);
    client.get("/assets").await.problem(401, "UNAUTHORIZED");
    assert_eq!(other.get("/assets").await.status, 200);
    assert!(store(&api, &client).count_items(|_| {}).await.unwrap().is_empty());
    // A table that throttles only takes longer.
    let client = api.tenant().await;
    fill(&client).await;
    let store = store(&api, &client);
    store.begin_deletion().await.unwrap();
    // More failures than the SDK makes attempts.
    api.faults.throttle("Query", 7);
    api.faults.throttle("BatchWriteItem", 7);
    let key = json!({"PK": {"S": "T#x"}, "SK": {"S": "x"}});
    let unprocessed = json!({"UnprocessedItems": {(&api.table): [{"DeleteRequest": {"Key": key}}]}});
    api.faults.plan("BatchWriteItem", 1, 200, &unprocessed, true);
    store.delete_items(Duration::ZERO, |_| {}).await.unwrap();
    store.finish_deletion().await.unwrap();
    assert_eq!((api.faults.planned(), api.dump().await), (0, before));
}

#[tokio::test(start_paused = true)]
async fn interrupted_deletion_continues_and_concurrent_requests_leave_nothing() {
    let (api, other) = Api::with_tenant().await;
    other.asset(json!({"name": "stays"})).await;
    let before = api.dump().await;
    let places =
        [("UpdateItem", 0), ("BatchWriteItem", 0), ("BatchWriteItem", 1), ("BatchWriteItem", 2), ("TransactWriteItems", 0)];
    for (operation, place) in places {
        let client = api.tenant().await;
        fill(&client).await;
        let store = store(&api, &client);
        let mut held = api.faults.hold(operation);
        let deletion = tokio::spawn({
            let store = store.clone();
            async move { delete(&store).await }
        });
        for _ in 0..place {
            held.arrived().await;
            let next = api.faults.hold(operation);
            std::mem::replace(&mut held, next).release();
        }
        held.arrived().await;
        // Interrupts the deletion, as with Ctrl-C.
        deletion.abort();
        assert!(deletion.await.unwrap_err().is_cancelled());
        drop(held);
        let listed = api.store.tenants().await.unwrap();
        let interrupted = listed.iter().find(|tenant| tenant.id == client.tenant).unwrap();
        assert!(interrupted.record.is_some(), "the operator can no longer find the tenant by its name");
        assert_eq!(interrupted.deletion_began.is_some(), operation != "UpdateItem");
        delete(&store).await;
        assert!(api.dump().await == before, "{operation} {place}");
        assert_eq!(registered(&api).await, 1);
    }

    let client = api.tenant().await;
    client.use_key_once().await;
    let mut held = api.faults.hold("TransactWriteItems");
    let late = tokio::spawn({
        let client = client.clone();
        async move { client.post("/assets", json!({"name": "late"})).await.status }
    });
    held.arrived().await;
    let store = store(&api, &client);
    store.begin_deletion().await.unwrap();
    let deletion = tokio::spawn({
        let store = store.clone();
        async move { store.delete_items(Duration::from_secs(1), |_| {}).await.unwrap() }
    });
    while !store.count_items(|_| {}).await.unwrap().keys().eq(["tenant"]) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    held.release();
    assert_eq!(late.await.unwrap(), 201);
    deletion.await.unwrap();
    store.finish_deletion().await.unwrap();
    assert_eq!(api.dump().await, before);
}

#[tokio::test(start_paused = true)]
async fn finishing_a_deletion_that_was_not_started_is_refused() {
    let (api, client) = Api::with_tenant().await;
    let before = api.dump().await;
    let refused = store(&api, &client).finish_deletion().await;
    assert!(matches!(refused, Err(WriteError::Stale)), "{refused:?}");
    assert_eq!(api.dump().await, before);
    let _: Value = client.get("/settings").await.data();
}
