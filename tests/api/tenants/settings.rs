//! The tenant's settings.

use crate::support::table::history::event_chain;
use crate::support::{Api, over_http};
use insta::assert_json_snapshot;
use serde_json::json;

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
    let body = json!({"name": "", "asset_tag_prefix": "A B", "asset_tag_template": "NN", "status_transitions": {"lost": []}, "number_ranges": [{}]});
    let errors = ["/asset_tag_prefix", "/asset_tag_template", "/name", "/number_ranges", "/status_transitions"];
    assert_eq!(client.patch("/settings", body).await.field_errors(), errors);
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
