//! The history of a resource, and its verification, which detects every change that bypassed the service.

use crate::support::prelude::*;

#[tokio::test(start_paused = true)]
async fn a_history_lists_who_changed_what_newest_first() {
    let client = over_http().await;
    let user = client.user("Ada").await;
    let key = json!({"name": "ada's", "scopes": ["assets:read", "assets:write"], "user_id": user});
    let made = client.post("/keys", key).await.data();
    client.patch(&format!("/users/{user}"), json!({"role": "technician"})).await.data();
    let ada = client.with_key(made["api_key"].as_str().unwrap());
    let id = ada.asset(json!({"name": "x", "purchase_price": 2499.00})).await;
    client.patch(&format!("/assets/{id}"), json!({"name": "y", "notes": "n"})).await.data();
    client.patch(&format!("/assets/{id}"), json!({"name": "y"})).await.data();
    let history = ada.get(&format!("/assets/{id}/history")).await.json();
    assert_eq!(history["meta"], json!({"total": 2, "page": 1, "limit": 20, "total_pages": 1}));
    let [newest, first] = [&history["data"][0], &history["data"][1]];
    assert_json_snapshot!(newest, {
        ".id" => "[id]", ".at" => "[time]", ".entity_id" => "[id]", ".actor.key_id" => "[id]", ".previous_hash" => "[hash]", ".hash" => "[hash]", ".commitments.*.salt" => "[salt]"
    }, @r#"
    {
      "id": "[id]",
      "at": "[time]",
      "type": "asset.updated",
      "entity_id": "[id]",
      "version": 2,
      "actor": {
        "key_id": "[id]",
        "key_name": "first key",
        "user_id": null,
        "user_name": null
      },
      "changes": {
        "name": {
          "new": "y",
          "old": "x"
        },
        "notes": {
          "new": "n",
          "old": null
        }
      },
      "previous_hash": "[hash]",
      "hash": "[hash]",
      "commitments": {
        "/changes/notes/new": {
          "salt": "[salt]"
        }
      }
    }
    "#);
    assert_eq!(first["actor"], json!({"key_id": made["id"], "key_name": "ada's", "user_id": user, "user_name": "Ada"}));
    assert_eq!((&first["previous_hash"], &newest["previous_hash"]), (&Value::Null, &first["hash"]));
    assert_eq!(first["changes"]["purchase_price"], json!({"old": null, "new": "2499.0"}));
    // Anyone can verify hashes with the response alone.
    for event in [newest, first] {
        assert_eq!(event["hash"], readers_hash(event));
    }
}

#[tokio::test(start_paused = true)]
async fn a_history_has_pages() {
    let client = over_http().await;
    let id = client.asset(json!({"name": "0"})).await;
    for name in 1..25 {
        client.patch(&format!("/assets/{id}"), json!({"name": name.to_string()})).await.data();
    }
    let path = format!("/assets/{id}/history");
    let all: Vec<u64> = (1..=25).rev().collect();
    for (query, meta, expected) in [
        ("", [25, 1, 20, 2], &all[..20]),
        ("?page=2", [25, 2, 20, 2], &all[20..]),
        ("?page=3&limit=7", [25, 3, 7, 4], &all[14..21]),
        ("?page=4&limit=7&verify=true", [25, 4, 7, 4], &all[21..]),
        ("?page=9&verify=false", [25, 9, 20, 2], &[]),
        ("?limit=100", [25, 1, 100, 1], &all[..]),
    ] {
        let history = client.get(&format!("{path}{query}")).await.json();
        assert_eq!(versions(&history), expected, "{query}");
        let [total, page, limit, total_pages] = meta;
        assert_eq!(history["meta"], json!({"total": total, "page": page, "limit": limit, "total_pages": total_pages}), "{query}");
        assert_eq!(history.get("verification").is_some(), query.contains("verify=true"), "{query}");
    }
    assert_eq!(client.get(&format!("{path}?page=0&limit=101&verify=yes")).await.field_errors(), ["limit", "page", "verify"]);
}

#[tokio::test(start_paused = true)]
async fn the_history_of_an_instance_has_its_steps_without_images() {
    let client = over_http().await;
    let process = create_process(&client, json!([{"type": "signature", "key": "s", "label": "S"}])).await;
    let asset = client.asset(json!({"name": "x"})).await;
    let instance = start(&client, &process, &asset).await;
    advance(&client, &instance, json!({"s": SIGNATURE})).await.data();
    let history = client.get(&format!("/processes/instances/{instance}/history?verify=true")).await;
    assert!(!history.text().contains("base64"));
    let history = history.json();
    assert_eq!(history["verification"], json!({"valid": true, "checked": 2, "broken": null}));
    assert_eq!(history["data"][0]["changes"]["status"], json!({"old": "in_progress", "new": "completed"}));
    assert_eq!(history["data"][0]["changes"]["step_data"]["new"]["s"]["bytes"], 68);
    let history = client.get(&format!("/assets/{asset}/history")).await.json();
    assert_eq!(history["data"][0]["changes"]["status"], json!({"old": "in_stock", "new": "in_use"}));
}

#[tokio::test(start_paused = true)]
async fn a_deleted_resource_keeps_its_history_and_an_unknown_id_has_none() {
    let (api, client) = Api::with_tenant().await;
    let (id, path) = changed_asset(&client).await;
    client.delete(&format!("/assets/{id}")).await;
    for wait in [0, 3600 * 24] {
        api.advance_clock(wait);
        let history = client.get(&format!("{path}?verify=true")).await.json();
        assert_eq!(versions(&history), [4, 3, 2, 1]);
        assert_eq!(history["data"][0]["type"], "asset.deleted");
        assert_eq!(history["data"][0]["changes"]["name"], json!({"old": "c", "new": null}));
        assert_eq!(history["data"][3]["changes"]["asset_tag"], json!({"old": null, "new": "AST-000001"}));
        assert_eq!(history["verification"], json!({"valid": true, "checked": 4, "broken": null}));
        let recent = AssetId::new(api.now(), [7; 10]);
        for unknown in [UNKNOWN_ID.to_owned(), recent.to_string(), "x".into()] {
            client.get(&format!("/assets/{unknown}/history?verify=true")).await.problem(404, "NOT_FOUND");
        }
    }
    client.get(&format!("/processes/instances/{id}/history")).await;
}

#[tokio::test(start_paused = true)]
async fn a_history_is_found_only_below_its_own_collection() {
    let client = over_http().await;
    let user = client.user("Ada").await;
    let deleted = client.user("Grace").await;
    client.delete(&format!("/users/{deleted}")).await.data();
    let key = client.get("/keys").await.data()[0]["id"].as_str().unwrap().to_owned();
    let asset = client.asset(json!({"name": "a"})).await;
    let process = client.get("/processes").await.data()[0]["id"].as_str().unwrap().to_owned();
    let tenant = client.tenant.to_string();
    for id in [&user, &deleted, &key, &process, &tenant] {
        for of in ["assets", "processes/instances"] {
            for query in ["", "?verify=true", "?page=2&limit=1"] {
                client.get(&format!("/{of}/{id}/history{query}")).await.problem(404, "NOT_FOUND");
            }
        }
    }
    client.get(&format!("/processes/instances/{asset}/history")).await.problem(404, "NOT_FOUND");
    client.delete(&format!("/assets/{asset}")).await;
    client.get(&format!("/processes/instances/{asset}/history")).await.problem(404, "NOT_FOUND");
    assert_eq!(client.total(&format!("/assets/{asset}/history")).await, 2);
}

#[tokio::test(start_paused = true)]
async fn one_changed_byte_of_any_event_is_found() {
    for version in 1..=3 {
        let (api, client) = Api::with_tenant().await;
        let (_, path) = changed_asset(&client).await;
        let history = client.get(&path).await.json();
        let key = event_key(&client, &history, version);
        let entry = text_attribute(&api, &key, "entry").await;
        set_text(&api, &key, "entry", entry.replacen("first key", "First key", 1)).await;
        let found = client.get(&format!("{path}?verify=true")).await.json();
        let event = history["data"][3 - version as usize]["id"].clone();
        let broken = json!({"event_id": event, "version": version, "reason": "wrong_hash"});
        assert_eq!(found["verification"], json!({"valid": false, "checked": version - 1, "broken": broken}));
        // If the hash is adjusted, the next event or the record itself reveals the change.
        set_text(&api, &key, "hash", hash(&text_attribute(&api, &key, "entry").await)).await;
        let found = client.get(&format!("{path}?verify=true")).await.json();
        let (place, reason) = if version == 3 { (3, "wrong_head") } else { (version + 1, "wrong_previous") };
        assert_eq!(
            (&found["verification"]["broken"]["version"], &found["verification"]["broken"]["reason"]),
            (&json!(place), &json!(reason))
        );
    }
}

/// Without the tombstone, events at the end of a deleted record's chain could be removed unnoticed.
#[tokio::test(start_paused = true)]
async fn a_deleted_record_whose_last_entries_were_removed_is_found() {
    let (api, client) = Api::with_tenant().await;
    let (id, path) = changed_asset(&client).await;
    client.delete(&format!("/assets/{id}")).await.data();
    let history = client.get(&path).await.json();
    for version in [3, 4] {
        delete_item(&api, &event_key(&client, &history, version)).await;
    }
    api.advance_clock(3_700);
    let found = client.get(&format!("{path}?verify=true")).await.json();
    assert_eq!(found["verification"]["broken"], json!({"event_id": null, "version": 3, "reason": "missing"}));
    let verification = api.store.writer(client.tenant).verify_chains(|_, _| {}).await.unwrap();
    assert_eq!(verification.broken_links.len(), 1, "the operator's check must find it, too");
    let tombstone = Keys::of(client.tenant).tombstone(Kind::Asset, id.parse().unwrap()).item();
    delete_item(&api, &tombstone).await;
    let found = client.get(&format!("{path}?verify=true")).await.json();
    assert_eq!(found["verification"]["broken"], json!({"event_id": null, "version": 3, "reason": "gone"}));
    let verification = api.store.writer(client.tenant).verify_chains(|_, _| {}).await.unwrap();
    assert_eq!(verification.broken_links.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_event_is_left_out_and_found() {
    let (api, client) = Api::with_tenant().await;
    let (_, path) = changed_asset(&client).await;
    let history = client.get(&path).await.json();
    set_text(&api, &event_key(&client, &history, 2), "entry", "{}".into()).await;
    let found = client.get(&format!("{path}?verify=true")).await.json();
    assert_eq!(versions(&found), [3, 1]);
    assert_eq!(found["verification"]["broken"]["reason"], "unreadable");
}

#[tokio::test(start_paused = true)]
async fn a_caller_without_the_scope_starts_no_verification() {
    let (api, client) = Api::with_tenant().await;
    let (_, path) = changed_asset(&client).await;
    let lacking = client.scoped(&["users:read"]).await;
    api.faults.take_requests();
    lacking.get(&format!("{path}?verify=true")).await.problem(403, "FORBIDDEN");
    let batches = api.faults.take_requests().into_iter().filter(|(operation, _)| operation == "BatchGetItem").count();
    assert!(batches <= 1, "{batches} batches were read for a refused request");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_can_be_verified_while_others_write() {
    let (api, client) = Api::with_tenant().await;
    let writers = [0, -1_500, 1_500].map(|skew| {
        let client = api.replica(skew, 0).client(&client);
        tokio::spawn(async move {
            for n in 0..12 {
                let (id, _) = changed_asset(&client).await;
                if n % 3 == 0 {
                    client.delete(&format!("/assets/{id}")).await;
                }
            }
        })
    });
    let store = api.store.writer(client.tenant);
    let mut checks = 0;
    while !writers.iter().all(tokio::task::JoinHandle::is_finished) {
        let verification = store.verify_chains(|done, of| assert!(done <= of)).await.unwrap();
        assert_eq!(verification.broken_links, [], "after {checks} checks");
        checks += 1;
    }
    for writer in writers {
        writer.await.unwrap();
    }
    let verification = store.verify_chains(|_, _| {}).await.unwrap();
    assert_eq!((verification.broken_links, verification.records, verification.events), (vec![], 9 + 36, 9 + 36 * 3 + 12));
    assert!(checks > 1, "no check ended while others were writing");
}
