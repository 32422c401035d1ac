//! Scanned codes, in scans and lists.

use crate::support::prelude::*;

/// Returns the tags of the assets that the code means, by a scan and by a list.
async fn found(client: &Client, code: &str) -> Vec<String> {
    let seen = client.post("/assets/seen", json!({"items": [{"code": code}]})).await.data();
    let candidates = seen[0]["candidates"].as_array().cloned().unwrap_or_else(|| vec![seen[0].clone()]);
    let encoded: String = code.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let listed = client.get(&format!("/assets?code={encoded}")).await.data();
    let tags = |assets: &[Value]| {
        let mut tags: Vec<String> = assets.iter().filter_map(|asset| Some(asset["asset_tag"].as_str()?.to_owned())).collect();
        tags.sort();
        tags
    };
    let listed = tags(listed.as_array().unwrap());
    assert_eq!(tags(&candidates), listed, "{code}");
    listed
}

#[tokio::test(start_paused = true)]
async fn a_label_finds_its_asset_and_never_another() {
    let (_, client) = Api::with_tenant().await;
    for tag in ["2", "2026", "AST-1", "A/1"] {
        client.asset(json!({"name": tag, "asset_tag": tag, "serial_number": format!("SN-{tag}")})).await;
    }
    let id = client.get("/assets/by-tag/AST-1").await.id();
    for (template, code, tags) in [
        ("https://h/a/{asset_tag}?src=qr&v=2", "https://h/a/AST-1?src=qr&v=2", &["AST-1"][..]),
        ("https://h/a/{asset_tag}?src=qr&v=2", "https://h/a/AST-9?src=qr&v=2", &[]),
        ("https://h/{asset_tag}/2026", "https://h/AST-1/2026", &["AST-1"]),
        ("https://h/{asset_tag}/2026", "https://h/AST-9/2026", &[]),
        ("https://h/{asset_tag}/2026", "HTTPS://H/AST-1/2026", &["AST-1"]),
        ("https://h/{asset_tag}", "]Q1https://h/A%2F1\r", &["A/1"]),
        ("https://h/{asset_tag}", "https://elsewhere/AST-1", &[]),
        ("https://h/i/{id}", &format!("HTTPS://H/I/{}", id.to_uppercase()), &["AST-1"]),
        ("https://h/i/{id}", "https://h/i/2", &[]),
        ("https://h/i/{id}", "https://elsewhere/v1/assets/by-tag/ast-1", &["AST-1"]),
        ("https://h/i/{id}", &id, &["AST-1"]),
        ("https://h/i/{id}", "\u{2}]C1ast-1\u{3}", &["AST-1"]),
        ("https://h/i/{id}", "*SN-AST-1*", &["AST-1"]),
        ("https://h/i/{id}", "]d201095060001343522", &[]),
        ("https://h/i/{id}", "]C121SN-AST-1", &["AST-1"]),
        ("https://h/i/{id}", "21SN-2", &["2"]),
        ("https://h/i/{id}", "212026", &[]),
        ("https://h/i/{id}", "  ", &[]),
    ] {
        client.patch("/settings", json!({"label_url_template": template})).await.data();
        assert_eq!(found(&client, code).await, tags, "{template} {code:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn code_matches_a_tag_before_serial_numbers() {
    let (_, client) = Api::with_tenant().await;
    client.asset(json!({"name": "tag", "asset_tag": "X1"})).await;
    client.asset(json!({"name": "serial", "asset_tag": "S1", "serial_number": "X1"})).await;
    assert_eq!(found(&client, "x1").await, ["X1"]);
    for tag in ["D1", "D2"] {
        client.asset(json!({"name": "double", "asset_tag": tag, "serial_number": "double", "location": tag})).await;
    }
    assert_eq!(found(&client, "]C1DOUBLE").await, ["D1", "D2"]);
    assert_eq!(client.total("/assets?code=double&location=D2&sort=name").await, 1);
    assert_eq!(client.total("/assets?code=x1&location=D2").await, 0);
    let path = format!("/assets/{}", client.get("/assets/by-tag/X1").await.id());
    client.delete(&path).await;
    // The tag is still taken, so the label isn't another asset's.
    assert_eq!(found(&client, "x1").await, [""; 0]);
    client.get("/assets?code=a&code=b").await.problem(422, "VALIDATION_ERROR");
    let reader = client.scoped(&["assets:read"]).await;
    assert_eq!(reader.total("/assets?code=s1").await, 1);
}

#[tokio::test(start_paused = true)]
async fn label_with_a_foreign_host_finds_its_asset_without_moving_it() {
    let (_, client) = Api::with_tenant().await;
    client.patch("/settings", json!({"label_url_template": "https://labels.example/{id}"})).await.data();
    client.asset(json!({"name": "a", "asset_tag": "A-1", "location": "Bonn"})).await;
    let scan = async |codes: &[&str]| {
        let items: Vec<Value> = codes.iter().map(|code| json!({"code": code})).collect();
        outcomes(&client.post("/assets/seen", json!({"location": "Ulm", "move": true, "items": items})).await)
    };
    assert_eq!(scan(&["https://evil.example/by-tag/A-1"]).await, ["elsewhere"]);
    assert_eq!(client.get("/assets/by-tag/A-1").await.data()["location"], "Bonn");
    // A code of this asset that isn't foreign moves it, in either order.
    assert_eq!(scan(&["https://evil.example/by-tag/A-1", "a-1"]).await, ["moved", "moved"]);
    let back = json!({"location": "Bonn", "move": true, "items": [{"code": "https://labels.example/by-tag/A-1"}]});
    assert_eq!(outcomes(&client.post("/assets/seen", back).await), ["moved"]);
}

#[tokio::test(start_paused = true)]
async fn codes_of_the_same_asset_are_one_and_the_latest_time_counts() {
    let (api, client) = Api::with_tenant().await;
    let id = client.asset(json!({"name": "a", "asset_tag": "A-1", "serial_number": "PF3"})).await;
    api.advance_clock(600);
    let (early, late) = (api.now().plus_seconds(60), api.now().plus_seconds(120));
    api.advance_clock(600);
    let items = json!([{"code": "pf3", "at": early}, {"code": "*A-1*", "at": late}, {"tag": "a-1", "at": early}, {"code": "no"}, {"code": "no"}]);
    let body = json!({"items": items});
    let reply = client.post_once("/assets/seen", &body, "once").await;
    assert_eq!(reply.json()["meta"], json!({"items": 5, "seen": 1, "moved": 0, "elsewhere": 0, "unknown": 1, "ambiguous": 0}));
    let asset = client.get(&format!("/assets/{id}")).await.data();
    assert_eq!(asset["last_seen_at"], json!(late));
    api.advance_clock(60);
    assert_eq!(client.post_once("/assets/seen", &body, "once").await.json(), reply.json());
    assert_eq!(client.get(&format!("/assets/{id}/history")).await.json()["meta"]["total"], 2);
    // An item without a time has the request's.
    let items = json!([{"id": id, "at": null}]);
    let at = json!(api.now());
    client.post("/assets/seen", json!({"items": items, "at": at})).await.data();
    assert_eq!(client.get(&format!("/assets/{id}")).await.data()["last_seen_at"], at);
    let wrong = json!([{"code": "a", "at": "2099-01-01T00:00:00Z"}, {"code": 7}, {"code": "a", "tag": "a"}, {"tag": "a", "at": "2020-01-01T00:00:00Z"}]);
    let errors = client.post("/assets/seen", json!({"items": wrong})).await.field_errors();
    assert_eq!(errors, ["/items/1/code", "/items/2"]);
    let wrong = json!([{"code": "a", "at": "2099-01-01T00:00:00Z"}, {"tag": "a", "at": "2020-01-01T00:00:00Z"}]);
    assert_eq!(client.post("/assets/seen", json!({"items": wrong})).await.field_errors(), ["/items/0/at", "/items/1/at"]);
}

#[tokio::test(start_paused = true)]
async fn a_hundred_codes_take_as_many_round_trips_as_one() {
    let (api, client) = Api::with_tenant().await;
    client.patch("/settings", json!({"label_url_template": "https://h/{asset_tag}?id={id}"})).await.data();
    let reader = client.scoped(&["assets:read", "assets:write"]).await;
    let codes = |count: usize| -> Value {
        (0..count)
            .map(|n| json!({"code": format!("]C1*https://h/U-{n}?id=0190163d-8694-739b-aea5-{n:012}\u{1d}21U{n}*")}))
            .collect()
    };
    let cost = async |count: usize| {
        let body = json!({"items": codes(count)});
        client.use_key_once().await;
        let (reply, cost) = api.cost(async { client.post("/assets/seen?dry_run=true", body).await }).await;
        assert_eq!(reply.json()["meta"]["unknown"], count);
        cost.round_trips
    };
    cost(1).await;
    let (one, hundred) = (cost(1).await, cost(100).await);
    assert!(hundred <= one && one <= 6, "{one} {hundred}");
    let _ = reader.get("/assets?code=https%3A%2F%2Fh%2FU-1").await.data();
    let (_, listed) = api.cost(async { reader.get("/assets?code=https%3A%2F%2Fh%2FU-1").await.data() }).await;
    assert!(listed.round_trips <= 6, "{listed:?}");
}
