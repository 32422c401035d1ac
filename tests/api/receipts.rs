//! Receipts of instances and movements: contents, public keys to verify them, and the printable page.

use crate::support::prelude::*;
use aws_sdk_dynamodb::primitives::Blob;
use sha2::Digest;
use shared::domain::processes::instance::Instance;
use shared::domain::receipts::key::{Jwks, check};
use shared::domain::tenants::tenant::{Language, Locale};
use shared::domain::tenants::time_zone::LocalClock;
use shared::domain::values::hex::sha256;
use shared::domain::values::id::InstanceId;

#[tokio::test(start_paused = true)]
async fn a_receipt_lists_who_did_what_and_when_and_anybody_can_verify_it() {
    let client = over_http().await;
    let user = client.user("Ada Lovelace").await;
    let (_, path) = completed_receipt(&client, &user).await;
    let mut signed = client.get(&path).await.json();
    let receipt = signed["receipt"].as_object_mut().unwrap();
    let keys: Vec<String> = ["steps", "events"]
        .iter()
        .flat_map(|list| {
            let list = receipt[*list].as_array_mut().unwrap();
            let more = list.split_off(1);
            more.into_iter().map(|more| more["step"]["key"].as_str().or(more["type"].as_str()).unwrap().to_owned())
        })
        .collect();
    let rest =
        ["handover", "signature", "complete", "instance.updated", "instance.updated", "instance.updated", "instance.updated"];
    assert_eq!(keys, rest);
    assert_json_snapshot!(signed, {
        ".**.id" => "[id]", ".**.tenant_id" => "[id]", ".**.instance_id" => "[id]", ".**.event_id" => "[id]",
        ".**.key_id" => "[id]", ".**.submitted_at" => "[time]", ".**.closed_at" => "[time]", ".**.started_at" => "[time]", ".**.completed_at" => "[time]",
        ".**.hash" => "[hash]", ".**.kid" => "[kid]", ".signature.value" => "[signature]", ".receipt.steps[0].value" => "[user]"
    }, @r#"
    {
      "receipt": {
        "format": "asset-lifecycle-receipt/1",
        "tenant_id": "[id]",
        "instance_id": "[id]",
        "movement_id": null,
        "asset": {
          "id": "[id]",
          "asset_tag": "AST-000001",
          "name": "Laptop",
          "serial_number": "S-1",
          "location": null,
          "manufacturer": "Dell",
          "model": "XPS"
        },
        "process": {
          "id": "[id]",
          "name": "Employee Onboarding",
          "target_status": "in_use"
        },
        "started_at": "[time]",
        "started_by": {
          "key_id": "[id]",
          "key_name": "first key",
          "user_id": null,
          "user_name": null
        },
        "completed_at": "[time]",
        "steps": [
          {
            "step": {
              "type": "user_picker",
              "key": "employee",
              "label": "Who gets the asset?",
              "required": true
            },
            "value": "[user]",
            "user_name": "Ada Lovelace",
            "submitted_at": "[time]",
            "submitted_by": {
              "key_id": "[id]",
              "key_name": "first key",
              "user_id": null,
              "user_name": null
            },
            "closed_at": "[time]",
            "closed_by": {
              "key_id": "[id]",
              "key_name": "first key",
              "user_id": null,
              "user_name": null
            },
            "event_id": "[id]"
          }
        ],
        "events": [
          {
            "id": "[id]",
            "version": 1,
            "type": "instance.created",
            "hash": "[hash]"
          }
        ]
      },
      "signature": {
        "alg": "EdDSA",
        "kid": "[kid]",
        "value": "[signature]"
      }
    }
    "#);

    // Verifies the signature, the image hashes and the history's hashes from responses alone.
    let text = client.get(&path).await.text().to_owned();
    let keys = public_keys(&client).await;
    let receipt = check(&text, &keys).unwrap();
    let image = client.get(&path.replace("/receipt", "/signatures/signature")).await.bytes;
    assert_eq!(receipt["steps"][2]["value"], json!({"sha256": sha256(&image), "bytes": image.len()}));
    let history = client.get(&path.replace("/receipt", "/history?limit=100")).await.data();
    let listed: Vec<(&Value, &Value)> =
        history.as_array().unwrap().iter().rev().map(|event| (&event["id"], &event["hash"])).collect();
    let in_receipt: Vec<(&Value, &Value)> =
        receipt["events"].as_array().unwrap().iter().map(|event| (&event["id"], &event["hash"])).collect();
    assert_eq!((in_receipt.len(), in_receipt), (5, listed));
    // A change to any byte invalidates the receipt.
    let start = text.find("\"receipt\"").unwrap() + 10;
    let end = text.find("\"signature\":{\"alg\"").unwrap() - 1;
    for place in (start..end).step_by(7) {
        let mut changed = text.clone().into_bytes();
        changed[place] ^= 1;
        let Ok(changed) = String::from_utf8(changed) else { continue };
        assert!(check(&changed, &keys).is_err(), "byte {place}");
    }
    assert!(check(&text.replace("\"alg\"", "\"note\":\"x\",\"alg\""), &keys).is_err());
    assert!(check(&text.replacen('{', "{\"note\":\"x\",", 1), &keys).is_err());
    assert!(check(&text, &Jwks::default()).is_err());
}

#[tokio::test(start_paused = true)]
async fn only_completed_instances_have_receipts() {
    let client = over_http().await;
    let asset = client.asset(json!({"name": "x"})).await;
    let instance = start(&client, &system_process(&client, "prepare").await, &asset).await;
    let path = format!("/processes/instances/{instance}/receipt");
    assert_eq!(client.get(&path).await.problem(409, "CONFLICT")["instance_status"], "in_progress");
    cancel(&client, &instance).await.data();
    assert_eq!(client.get(&path).await.problem(409, "CONFLICT")["instance_status"], "cancelled");
    assert_eq!(client.get(&format!("{path}?format=pdf")).await.field_errors(), ["format"]);
    assert_eq!(public_keys(&client).await.keys, [], "a refused request creates no key");
}

#[tokio::test(start_paused = true)]
async fn no_receipt_is_made_from_a_broken_history() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    for reason in ["wrong_hash", "wrong_head"] {
        let (_, path) = completed_receipt(&client, &user).await;
        client.get(&path).await.json();
        let history = client.get(&path.replace("/receipt", "/history")).await.json();
        if reason == "wrong_head" {
            append_event(&api, &client, &history, "instance.approved").await;
        } else {
            let version = history["data"][1]["version"].as_u64().unwrap();
            set_text(&api, &event_key(&client, &history, version), "hash", hash("forged")).await;
        }
        let refused = client.get(&path).await.problem(409, "CONFLICT");
        assert_eq!(refused["broken"]["reason"], reason, "{refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_value_sent_ahead_is_submitted_by_its_sender() {
    let client = over_http().await;
    let steps = json!([
        {"type": "text", "key": "a", "label": "A"}, {"type": "signature", "key": "s", "label": "S"},
        {"type": "complete", "key": "c", "label": "C"}
    ]);
    let process = create_process(&client, steps).await;
    let asset = client.asset(json!({"name": "x"})).await;
    let instance = start(&client, &process, &asset).await;
    let mut people = Vec::new();
    for name in ["Alice", "Bob"] {
        let made = client.post("/keys", json!({"name": name, "scopes": ["processes:write"]})).await.data();
        people.push(client.with_key_of(&made));
    }
    let path = format!("/processes/instances/{instance}/advance");
    people[0].post(&path, json!({"step_data": {"a": "1", "s": SIGNATURE}})).await.data();
    for _ in 0..2 {
        people[1].post(&path, json!({"step_data": {}})).await.data();
    }
    let receipt = client.get(&format!("/processes/instances/{instance}/receipt")).await.json();
    let name = |step: usize, who: &str| receipt["receipt"]["steps"][step][who]["key_name"].as_str().unwrap().to_owned();
    assert_eq!((name(0, "submitted_by"), name(0, "closed_by")), ("Alice".into(), "Alice".into()));
    assert_eq!((name(1, "submitted_by"), name(1, "closed_by")), ("Alice".into(), "Bob".into()), "{receipt}");
    assert_eq!((name(2, "submitted_by"), name(2, "closed_by")), ("Bob".into(), "Bob".into()));
}

#[tokio::test(start_paused = true)]
async fn receipts_are_refused_without_key_encryption_and_simultaneous_ones_create_one_key_and_one_event() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let (_, path) = completed_receipt(&client, &user).await;
    let without_encryption = Client { router: dev_server::server::router(App::new(api.store.clone())), ..client.clone() };
    let refused = without_encryption.get(&path).await.problem(409, "CONFLICT");
    assert!(refused["detail"].as_str().unwrap().contains("has not configured an encryption key"));
    assert_eq!(public_keys(&client).await.keys, []);

    let all = join_all((0..8).map(|_| client.get(&path))).await;
    assert!(all.iter().all(|reply| reply.text() == all[0].text()));
    let keys = public_keys(&client).await;
    assert_eq!(keys.keys.len(), 1);
    api.advance_clock(11);
    let events = client.get("/events?limit=100").await.data();
    let made: Vec<&Value> = events.as_array().unwrap().iter().filter(|event| event["type"] == "receipt_keys.created").collect();
    assert_eq!(made.len(), 1);
    assert_eq!(made[0]["changes"]["kid"]["new"], keys.keys[0].kid);
    // The private key is never in an event, and in the table only encrypted.
    let key = api.store.writer(client.tenant).receipt_keys().await.unwrap().unwrap().value.current;
    let encrypted = String::from(key.encrypted_seed.clone());
    assert!(!json!(events).to_string().contains(&encrypted));
    let seed = api.key_encryption.decrypt_key(Purpose::ReceiptKey, client.tenant, &key.encrypted_seed.0).await.unwrap();
    assert!(!api.dump().await.0.iter().any(|item| item.contains(&format!("{seed:?}"))));
    assert!(!key.encrypted_seed.0.windows(seed.len()).any(|window| window == seed));
    let other = api.tenant().await;
    assert!(api.key_encryption.decrypt_key(Purpose::ReceiptKey, other.tenant, &key.encrypted_seed.0).await.is_err());
    // The list index must accept the event `receipt_keys.created`.
    assert_eq!(client.total("/assets").await, 1);
}

#[tokio::test(start_paused = true)]
async fn old_receipts_stay_verifiable_after_a_rotation_and_a_receipt_is_the_same_whenever_it_is_requested() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let (asset, path) = completed_receipt(&client, &user).await;
    let old = client.get(&path).await.text().to_owned();
    let store = api.store.writer(client.tenant);
    let context = ChangeContext::operator(api.now());
    store.rotate_receipt_key(api.key_encryption.as_ref(), &context).await.unwrap();
    let new = client.get(&path).await.text().to_owned();
    assert_ne!(old, new);
    let keys = public_keys(&client).await;
    assert_eq!(check(&old, &keys), check(&new, &keys));
    assert!(check(&old, &keys).is_ok());
    let untils: Vec<bool> = keys.keys.iter().map(|key| key.until.is_some()).collect();
    assert_eq!(untils, [false, true]);

    let first = client.get(&path).await;
    api.advance_clock(3600 * 24 * 400);
    client.patch(&format!("/users/{user}"), json!({"display_name": "Countess"})).await.data();
    client.patch(&format!("/assets/{asset}"), json!({"name": "New", "serial_number": "S-2", "assigned_to": null})).await.data();
    assert_eq!(client.get(&path).await.text(), first.text());
    client.delete(&format!("/assets/{asset}")).await;
    client.delete(&format!("/users/{user}")).await.data();
    assert_eq!(client.get(&path).await.text(), first.text());
    assert_eq!(client.get(&format!("{path}?format=json")).await.text(), first.text());
    assert_eq!(first.json()["receipt"]["steps"][0]["user_name"], "Ada");
}

#[tokio::test(start_paused = true)]
async fn public_keys_need_no_api_key_and_do_not_show_whether_a_tenant_exists() {
    let (api, client) = Api::with_tenant().await;
    let without_key = client.with_key("");
    let path = "/.well-known/receipt-keys";
    for tenant in [client.tenant.to_string(), UNKNOWN_ID.into()] {
        assert_eq!(without_key.get(&format!("{path}?tenant={tenant}")).await.json(), json!({"keys": []}));
    }
    assert_eq!(without_key.get(path).await.field_errors(), ["tenant"]);
    assert_eq!(without_key.get(&format!("{path}?tenant=x&page=1")).await.field_errors(), ["page", "tenant"]);
    let user = client.user("Ada").await;
    let (_, receipt) = completed_receipt(&client, &user).await;
    let kid = client.get(&receipt).await.json()["signature"]["kid"].clone();
    let public_key = json!(public_keys(&client).await.keys[0]);
    assert_eq!((&public_key["kty"], &public_key["crv"], &public_key["alg"]), (&json!("OKP"), &json!("Ed25519"), &json!("EdDSA")));
    assert_eq!((&public_key["use"], &public_key["kid"], &public_key["until"]), (&json!("sig"), &kid, &Value::Null));
    assert_eq!(public_keys(&api.tenant().await).await.keys, []);
}

const MAX_BODY: usize = 4 * 1024 * 1024;

fn steps() -> Value {
    json!([
        {"type": "user_picker", "key": "who", "label": "Who", "required": true},
        {"type": "signature", "key": "sign", "label": "Sign", "required": true},
        {"type": "text", "key": "note", "label": "Note"}
    ])
}

/// Completes a movement of three assets to Ada, in which one instance is cancelled. Returns the receipt's path, and the movement
/// as it was started.
async fn movement(client: &Client) -> (String, Value) {
    let user = client.user("Ada Lovelace").await;
    let process = create_process(client, steps()).await;
    let mut assets = Vec::new();
    for name in ["Laptop", "Dock", "Screen"] {
        assets.push(client.asset(json!({"name": name, "serial_number": format!("S-{name}"), "model": "M"})).await);
    }
    let movement = start_movement(client, &process, &assets).await;
    let id = movement["id"].as_str().unwrap().to_owned();
    let second = movement["instances"][1]["id"].as_str().unwrap();
    advance_movement(client, &id, json!({"who": user})).await.data();
    let path = format!("/processes/instances/{second}/cancel");
    client.post(&path, json!({"reason": "The dock is <b>broken</b>."})).await.data();
    for data in [json!({"sign": SIGNATURE}), json!({"note": "fine"})] {
        advance_movement(client, &id, data).await.data();
    }
    (format!("/movements/{id}/receipt"), movement)
}

#[tokio::test(start_paused = true)]
async fn one_receipt_has_the_steps_once_and_each_asset_with_its_history() {
    let (api, client) = Api::with_tenant().await;
    let (path, movement) = movement(&client).await;
    let reply = client.get(&path).await;
    let receipt = check(reply.text(), &public_keys(&client).await).unwrap();
    assert_eq!(receipt["format"], "asset-lifecycle-movement-receipt/1");
    assert_eq!(receipt["tenant_id"], client.tenant.to_string());
    for (field, of_movement) in [("movement_id", "id"), ("number", "number"), ("started_at", "started_at")] {
        assert_eq!(receipt[field], movement[of_movement], "{field}");
    }
    assert_eq!((&receipt["process"]["name"], &receipt["process"]["target_status"]), (&json!("Own"), &json!("in_use")));
    let steps = receipt["steps"].as_array().unwrap();
    assert_eq!((steps.len(), &steps[0]["user_name"], &steps[2]["value"]), (3, &json!("Ada Lovelace"), &json!("fine")));
    assert_eq!(steps[1]["submitted_by"]["key_name"], "first key");
    let instances = receipt["instances"].as_array().unwrap();
    let statuses: Vec<&Value> = instances.iter().map(|instance| &instance["status"]).collect();
    assert_eq!(statuses, ["completed", "cancelled", "completed"]);
    let names: Vec<&Value> = instances.iter().map(|instance| &instance["asset"]["name"]).collect();
    assert_eq!(names, ["Laptop", "Dock", "Screen"]);
    assert_eq!(instances[1]["cancel_reason"], "The dock is <b>broken</b>.");
    assert_eq!((&instances[0]["ended_at"], &instances[0]["cancel_reason"]), (&receipt["completed_at"], &Value::Null));
    for (instance, started) in instances.iter().zip(movement["instances"].as_array().unwrap()) {
        assert_eq!((&instance["instance_id"], &instance["asset"]["id"]), (&started["id"], &started["asset_id"]));
        let id = started["id"].as_str().unwrap();
        let history = client.get(&format!("/processes/instances/{id}/history?limit=100")).await.data();
        let links = |events: &Value| -> Vec<(Value, Value)> {
            events.as_array().unwrap().iter().map(|event| (event["id"].clone(), event["hash"].clone())).collect()
        };
        assert_eq!(links(&instance["events"]), links(&history).into_iter().rev().collect::<Vec<_>>());
        let expected: Vec<Value> = match instance["status"] == "completed" {
            true => event_chain(&api, &client, id).await[1..].iter().map(|event| event["id"].clone()).collect(),
            false => Vec::new(),
        };
        assert_eq!(instance["step_event_ids"], json!(expected));
    }
    assert_eq!(receipt["events"][0]["type"], "movement.created");
    // The receipts of the movement's completed instances contain the same facts.
    for instance in [&instances[0], &instances[2]] {
        let path = format!("/processes/instances/{}/receipt", instance["instance_id"].as_str().unwrap());
        let own = client.get(&path).await.json()["receipt"].clone();
        for (step, own) in steps.iter().zip(own["steps"].as_array().unwrap()) {
            let mut own = own.clone();
            own.as_object_mut().unwrap().remove("event_id");
            assert_eq!(*step, own);
        }
        assert_eq!((&own["asset"], &own["movement_id"]), (&instance["asset"], &movement["id"]));
        assert!(client.get(&format!("{path}?format=html")).await.text().contains(SIGNATURE));
    }
}

#[tokio::test(start_paused = true)]
async fn a_movements_receipt_stays_the_same_and_passes_for_no_other_kind() {
    let (api, client) = Api::with_tenant().await;
    let (path, movement) = movement(&client).await;
    let first = client.get(&path).await.text().to_owned();
    api.advance_clock(3600 * 24);
    let asset = format!("/assets/{}", movement["instances"][0]["asset_id"].as_str().unwrap());
    client.patch(&asset, json!({"name": "New", "assigned_to": null})).await.data();
    client.patch("/settings", json!({"name": "Other", "time_zone": "Asia/Tokyo"})).await.data();
    client.delete(&asset).await;
    assert_eq!(client.get(&path).await.text(), first);
    let keys = public_keys(&client).await;
    assert!(check(&first, &keys).is_ok());
    let relabelled = first.replace("movement-receipt/1", "receipt/1").replace("lifecycle-movement", "lifecycle");
    assert!(check(&relabelled, &keys).is_err());
}

#[tokio::test(start_paused = true)]
async fn a_movement_has_a_receipt_once_it_has_ended_and_not_if_nothing_was_completed() {
    let (api, client) = Api::with_tenant().await;
    let process = create_process(&client, json!([{"type": "text", "key": "t", "label": "T"}])).await;
    let started = start_movement(&client, &process, &client.assets(2).await).await;
    let path = format!("/movements/{}/receipt", started["id"].as_str().unwrap());
    assert_eq!(client.get(&path).await.problem(409, "CONFLICT")["instance_status"], "in_progress");
    cancel(&client, started["instances"][0]["id"].as_str().unwrap()).await.data();
    assert_eq!(client.get(&path).await.problem(409, "CONFLICT")["instance_status"], "in_progress");
    cancel(&client, started["instances"][1]["id"].as_str().unwrap()).await.data();
    assert_eq!(client.get(&path).await.problem(409, "CONFLICT")["instance_status"], "cancelled");
    assert_eq!(client.get(&format!("{path}?format=pdf")).await.field_errors(), ["format"]);
    client.get(&format!("/movements/{}/receipt", UNKNOWN_ID)).await.problem(404, "NOT_FOUND");
    client.scoped(&["assets:read"]).await.get(&path).await.problem(403, "FORBIDDEN");
    assert_eq!(public_keys(&client).await.keys, [], "a refused request creates no key");

    let (path, movement) = self::movement(&client).await;
    let history = client.get(&format!("/processes/instances/{}/history", movement["instances"][1]["id"].as_str().unwrap())).await;
    set_text(&api, &event_key(&client, &history.json(), 2), "hash", hash("forged")).await;
    assert_eq!(client.get(&path).await.problem(409, "CONFLICT")["broken"]["reason"], "wrong_hash");
}

#[tokio::test(start_paused = true)]
async fn a_movements_page_shows_each_asset_and_the_signature_once() {
    let client = over_http().await;
    let (path, movement) = movement(&client).await;
    client.patch("/settings", json!({"name": "Café <شركة>", "time_zone": "Asia/Kolkata", "locale": "cs"})).await.data();
    let page = client.get(&format!("{path}?format=html")).await;
    assert_eq!((page.status.as_u16(), page.header("content-type")), (200, "text/html; charset=utf-8"));
    let text = page.text();
    assert!(text.contains("<p><bdi>Café &#60;شركة&#62;</bdi></p>"), "{text}");
    assert_eq!(text.matches(SIGNATURE).count(), 1);
    for name in ["Laptop", "Dock", "Screen"] {
        assert!(text.contains(&format!("<bdi>{name}</bdi>")) && text.contains(&format!("<bdi>S-{name}</bdi>")));
    }
    assert_eq!(text.matches("Cancelled: not handled by this movement").count(), 1);
    assert!(text.contains("<bdi>The dock is &#60;b&#62;broken&#60;/b&#62;.</bdi>"));
    let signed = client.get(&path).await.json();
    for shown in [&movement["number"], &signed["signature"]["value"], &signed["receipt"]["instances"][1]["events"][0]["hash"]] {
        assert!(text.contains(shown.as_str().unwrap()));
    }
    assert!(text.contains("(UTC+05:30)</time>") && text.contains("in the time zone Asia/Kolkata."), "{text}");
    assert!(!text.contains(" style=") && !text.contains("http") && !text.contains("<script"), "the page must load nothing");
    assert!(page.header("content-security-policy").starts_with("default-src 'none'; img-src data:; style-src 'sha256-"));
}

#[tokio::test(start_paused = true)]
async fn a_receipt_of_twenty_assets_is_bounded() {
    let (api, client) = Api::with_tenant().await;
    let mut steps: Vec<Value> = (0..9).map(|n| json!({"type": "textarea", "key": format!("t{n}"), "label": "T"})).collect();
    // The signature is last, because each later response would include it for every asset.
    steps.push(json!({"type": "signature", "key": "sign", "label": "S"}));
    let process = create_process(&client, json!(steps)).await;
    let started = start_movement(&client, &process, &client.assets(20).await).await;
    let id = started["id"].as_str().unwrap();
    for n in 0..9 {
        advance_movement(&client, id, json!({format!("t{n}"): "x".repeat(2_000)})).await.data();
    }
    advance_movement(&client, id, json!({"sign": large_signature()})).await.data();
    let path = format!("/movements/{id}/receipt");
    client.get(&path).await.json();
    for format in ["json", "html"] {
        let (reply, cost) = api.cost(client.get(&format!("{path}?format={format}"))).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert!(reply.bytes.len() < MAX_BODY, "{format}: {} bytes", reply.bytes.len());
        // Ten histories at a time are read in parallel, which the meter can count as more round trips.
        assert!(cost.calls <= 140 && cost.round_trips <= 20, "{format}: {cost:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_page_shows_signatures_and_escapes_every_text() {
    let (api, client) = Api::with_tenant().await;
    let evil = "<script>alert('x')</script>&\"";
    let steps = json!([
        {"type": "text", "key": "t", "label": evil}, {"type": "checklist", "key": "l", "label": "L", "items": [evil, "b"]},
        {"type": "select", "key": "s", "label": "S", "options": [evil]}, {"type": "user_picker", "key": "u", "label": "U"},
        {"type": "signature", "key": "g", "label": "G"}, {"type": "confirmation", "key": "c", "label": "C"},
        {"type": "text", "key": "nothing", "label": "N"}
    ]);
    let body = json!({"name": evil, "trigger_status": "in_stock", "target_status": "in_use", "steps": steps});
    let process = client.post("/processes", body).await.id();
    let user = client.post("/users", json!({"email": "a@b.c", "display_name": evil})).await.id();
    let asset = client.asset(json!({"name": evil, "serial_number": evil, "manufacturer": evil, "model": evil})).await;
    let client = client.with_new_key(json!({"name": evil, "scopes": ["processes:read", "processes:write"]})).await;
    let instance = start(&client, &process, &asset).await;
    for data in [
        json!({"t": evil}),
        json!({"l": [evil]}),
        json!({"s": evil}),
        json!({"u": user}),
        json!({"g": SIGNATURE}),
        json!({"c": true}),
        json!({}),
    ] {
        advance(&client, &instance, data).await.data();
    }
    let path = format!("/processes/instances/{instance}/receipt?format=html");
    let page = client.get(&path).await;
    assert_eq!((page.status.as_u16(), page.header("content-type")), (200, "text/html; charset=utf-8"));
    let text = page.text();
    assert!(!text.contains("<script") && !text.contains("alert('x')"), "{text}");
    assert!(text.matches("&#60;script&#62;alert(&#39;x&#39;)&#60;/script&#62;&#38;&#34;").count() >= 12, "{text}");
    assert!(text.contains("<bdi>b</bdi>, not checked\n"), "{text}");
    assert!(text.contains(&format!("<img alt=\"Signature\" src=\"{SIGNATURE}\">")));
    let signed = client.get(&path.replace("?format=html", "")).await.json();
    assert!(text.contains(signed["signature"]["value"].as_str().unwrap()));
    // The policy forbids scripts and requests, and allows only the page's own style sheet.
    let policy = page.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'; img-src data:; style-src 'sha256-"), "{policy}");
    let style = text.split_once("<style>").unwrap().1.split_once("</style>").unwrap().0;
    let digest = sha2::Sha256::digest(style);
    assert!(policy.contains(&base64_simd::STANDARD.encode_to_string(digest)));
    assert!(!text.contains(" style=") && !text.contains("http"), "the page must load nothing");
    assert_eq!(page.header("x-content-type-options"), "nosniff");
    // An image replaced after the signature is not shown.
    let id: InstanceId = instance.parse().unwrap();
    let instance = api.store.writer(client.tenant).get::<Instance>(id).await.unwrap().unwrap();
    let (name, _) = instance.value.signatures().find(|(name, _)| name.step == "g").unwrap();
    let key = Keys::of(client.tenant).signature(&name).item();
    set_attribute(&api, &key, "image", AttributeValue::B(Blob::new(b"other"))).await;
    let text = client.get(&path).await.text().to_owned();
    assert!(!text.contains("<img") && text.contains("missing or has changed"), "{text}");
}

/// People also type the tag template and the organization's name, in any text direction.
#[tokio::test(start_paused = true)]
async fn the_page_names_the_organization_and_isolates_every_typed_text() {
    let client = over_http().await;
    let settings =
        json!({"name": "שלום & Co", "asset_tag_template": "נכס-NNN", "time_zone": "America/New_York", "locale": "cs-CZ"});
    client.patch("/settings", settings).await.data();
    let steps = json!([
        {"type": "textarea", "key": "t", "label": "הערה"}, {"type": "date", "key": "d", "label": "D"},
        {"type": "complete", "key": "c", "label": "C"}
    ]);
    let process = create_process(&client, steps).await;
    let asset = client.asset(json!({"name": "מחשב", "serial_number": "ס-1"})).await;
    let body = json!({"asset_id": asset, "step_data": {"t": "א\nb", "d": "2026-03-05"}, "through": "c"});
    let instance = client.post(&format!("/processes/{process}/start"), body).await.data();
    let path = format!("/processes/instances/{}/receipt", instance["id"].as_str().unwrap());
    let page = client.get(&format!("{path}?format=html")).await.text().to_owned();
    let body = page.split_once("</head>").unwrap().1;
    let outside: String = body.split("<bdi>").map(|part| part.split_once("</bdi>").map_or(part, |(_, rest)| rest)).collect();
    assert!(!outside.chars().any(|c| ('\u{5d0}'..='\u{5ea}').contains(&c)), "{outside}");
    assert!(page.contains("<bdi>שלום &#38; Co</bdi>") && page.contains("<title>Receipt: &#x2068;Own&#x2069;</title>"), "{page}");
    // The signed receipt has times in UTC, and the page shows them in the organization's time zone.
    let signed = client.get(&path).await.json();
    let at = signed["receipt"]["completed_at"].as_str().unwrap();
    let shown = page.split_once(&format!("<time datetime=\"{at}\">")).unwrap().1.split_once("</time>").unwrap().0;
    let clock = LocalClock::from(&"America/New_York".parse().unwrap());
    assert_eq!(shown, "cs".parse::<Locale>().unwrap().format(&clock.local(at.parse().unwrap()), Language::English));
    assert!(shown.contains("E") && shown.contains("(UTC-0"), "{shown}");
    assert!(page.contains("in the time zone America/New_York.") && page.contains("are not signed."));
    assert!(!signed.to_string().contains("שלום"));
}

#[tokio::test(start_paused = true)]
async fn the_page_is_in_the_readers_language_or_else_in_the_organizations() {
    let client = over_http().await;
    let process = create_process(&client, json!([{"type": "confirmation", "key": "c", "label": "C"}])).await;
    let asset = client.asset(json!({"name": "Laptop"})).await;
    let body = json!({"asset_id": asset, "step_data": {"c": true}, "through": "c"});
    let instance = client.post(&format!("/processes/{process}/start"), body).await.data();
    let path = format!("/processes/instances/{}/receipt?format=html", instance["id"].as_str().unwrap());
    for (locale, accepted, language, heading) in [
        ("en", "de-AT, en;q=0.5", "de", "Beleg"),
        ("en", "fr", "fr", "Reçu"),
        ("de", "es, de", "es", "Recibo"),
        ("de-CH", "ja", "de", "Beleg"),
        ("de-CH", "en-GB", "en", "Receipt"),
        ("ja", "ja", "en", "Receipt"),
    ] {
        client.patch("/settings", json!({"locale": locale})).await.data();
        let page = client.send_with("GET", &path, None, "", &[("accept-language", accepted)]).await;
        let page = page.text();
        assert!(page.contains(&format!("<html lang=\"{language}\">")), "{page}");
        assert!(page.contains(&format!("<h1>{heading}: <bdi>Own</bdi></h1>")), "{page}");
    }
}
