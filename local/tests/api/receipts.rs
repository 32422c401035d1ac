//! Receipts: what they say, that anybody can check them, and the keys that sign them.

use crate::processes::{advance, define, handover, start, system};
use crate::support::samples::SIGNATURE;
use crate::support::{Api, Client};
use insta::assert_json_snapshot;
use serde_json::{Value, json};
use shared::app::App;
use shared::domain::event::hash;
use shared::domain::receipt_key::Jwks;
use shared::domain::signed_receipt::check;
use shared::store::ChangeContext;

/// A completed handover's asset, and where its receipt is.
async fn completed(client: &Client, user: &str) -> (String, String) {
    let run = handover(client, user).await;
    let asset = client.get(&format!("/processes/instances/{run}")).await.data()["asset_id"].as_str().unwrap().to_owned();
    (asset, format!("/processes/instances/{run}/receipt"))
}

async fn keys(client: &Client) -> Jwks {
    let path = format!("/.well-known/receipt-keys?tenant={}", client.tenant);
    serde_json::from_value(client.with_key("").get(&path).await.json()).unwrap()
}

#[tokio::test]
async fn a_receipt_says_who_did_what_when() {
    let (_api, client) = Api::with_tenant().await;
    let user = client.user("Ada Lovelace").await;
    let (_, path) = completed(&client, &user).await;
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
            "event_id": "[id]",
            "closed_at": "[time]",
            "closed_by": {
              "key_id": "[id]",
              "key_name": "first key",
              "user_id": null,
              "user_name": null
            }
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
}

/// With nothing but the answers: the signature, the hashes of the images, and those of the history.
#[tokio::test]
async fn anybody_can_check_a_receipt() {
    let (_api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let (_, path) = completed(&client, &user).await;
    let text = client.get(&path).await.text().to_owned();
    let keys = keys(&client).await;
    let receipt = check(&text, &keys).unwrap();
    let image = client.get(&path.replace("/receipt", "/signatures/signature")).await.bytes;
    let sha256 = <sha2::Sha256 as sha2::Digest>::digest(&image).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(receipt["steps"][2]["value"], json!({"sha256": sha256, "bytes": image.len()}));
    let history = client.get(&path.replace("/receipt", "/history?limit=100")).await.data();
    let told: Vec<(&Value, &Value)> =
        history.as_array().unwrap().iter().rev().map(|event| (&event["id"], &event["hash"])).collect();
    let said: Vec<(&Value, &Value)> =
        receipt["events"].as_array().unwrap().iter().map(|event| (&event["id"], &event["hash"])).collect();
    assert_eq!((said.len(), said), (5, told));
    // Every byte of what is signed counts.
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

#[tokio::test]
async fn a_receipt_is_the_same_whenever_it_is_asked_for() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let (asset, path) = completed(&client, &user).await;
    let first = client.get(&path).await;
    api.wait(3600 * 24 * 400);
    client.patch(&format!("/users/{user}"), json!({"display_name": "Countess"})).await.data();
    client.patch(&format!("/assets/{asset}"), json!({"name": "New", "serial_number": "S-2", "assigned_to": null})).await.data();
    assert_eq!(client.get(&path).await.text(), first.text());
    client.delete(&format!("/assets/{asset}")).await;
    client.delete(&format!("/users/{user}")).await.data();
    assert_eq!(client.get(&path).await.text(), first.text());
    assert_eq!(client.get(&format!("{path}?format=json")).await.text(), first.text());
    assert_eq!(first.json()["receipt"]["steps"][0]["user_name"], "Ada");
}

#[tokio::test]
async fn every_run_of_a_movement_has_its_receipt() {
    let (_api, client) = Api::with_tenant().await;
    let process = define(&client, json!([{"type": "signature", "key": "sign", "label": "S", "required": true}])).await;
    let mut assets = Vec::new();
    for name in ["a", "b"] {
        assets.push(client.asset(json!({"name": name})).await);
    }
    let movement = client.post(&format!("/processes/{process}/start"), json!({"asset_ids": assets})).await.data();
    let id = movement["id"].as_str().unwrap();
    client.post(&format!("/movements/{id}/advance"), json!({"step_data": {"sign": SIGNATURE}})).await.data();
    for run in movement["instances"].as_array().unwrap() {
        let path = format!("/processes/instances/{}/receipt", run["id"].as_str().unwrap());
        let receipt = client.get(&path).await.json()["receipt"].clone();
        assert_eq!((&receipt["movement_id"], &receipt["asset"]["id"]), (&movement["id"], &run["asset_id"]));
        assert!(client.get(&format!("{path}?format=html")).await.text().contains(SIGNATURE));
    }
}

#[tokio::test]
async fn only_completed_runs_have_receipts() {
    let (_api, client) = Api::with_tenant().await;
    let asset = client.asset(json!({"name": "x"})).await;
    let run = start(&client, &system(&client, "prepare").await, &asset).await;
    let path = format!("/processes/instances/{run}/receipt");
    assert_eq!(client.get(&path).await.problem(409, "CONFLICT")["instance_status"], "in_progress");
    client.post(&format!("/processes/instances/{run}/cancel"), json!({})).await.data();
    assert_eq!(client.get(&path).await.problem(409, "CONFLICT")["instance_status"], "cancelled");
    assert_eq!(client.get(&format!("{path}?format=pdf")).await.field_errors(), ["format"]);
    assert_eq!(keys(&client).await.keys, [], "a refusal makes no key");
}

#[tokio::test]
async fn no_receipt_is_made_from_a_history_that_does_not_hold() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let (_, path) = completed(&client, &user).await;
    let history = client.get(&path.replace("/receipt", "/history")).await.data();
    let event = history[1]["id"].as_str().unwrap().parse().unwrap();
    let key = shared::store::keys::Keys::of(client.tenant).event(event).item();
    let update = api.dynamo.update_item().table_name(&api.table).set_key(Some(key)).update_expression("SET #hash = :hash");
    let forged = aws_sdk_dynamodb::types::AttributeValue::S(hash("forged"));
    let update = update.expression_attribute_names("#hash", "hash").expression_attribute_values(":hash", forged);
    update.send().await.unwrap();
    assert_eq!(client.get(&path).await.problem(409, "CONFLICT")["broken"]["reason"], "wrong_hash");
}

#[tokio::test]
async fn where_nothing_seals_keys_there_are_no_receipts_and_it_is_said() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let (_, path) = completed(&client, &user).await;
    let bare = Client { router: local::server::router(App::new(api.store.clone())), ..client.clone() };
    let said = bare.get(&path).await.problem(409, "CONFLICT");
    assert!(said["detail"].as_str().unwrap().contains("not set up"));
    assert_eq!(keys(&client).await.keys, []);
}

#[tokio::test]
async fn receipts_at_once_make_one_key_and_its_event() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let (_, path) = completed(&client, &user).await;
    let all = futures_util::future::join_all((0..8).map(|_| client.get(&path))).await;
    assert!(all.iter().all(|reply| reply.text() == all[0].text()));
    let keys = keys(&client).await;
    assert_eq!(keys.keys.len(), 1);
    api.wait(11);
    let events = client.get("/events?limit=100").await.data();
    let made: Vec<&Value> = events.as_array().unwrap().iter().filter(|event| event["type"] == "receipt_keys.created").collect();
    assert_eq!(made.len(), 1);
    assert_eq!(made[0]["changes"]["kid"]["new"], keys.keys[0].kid);
    // Nothing of the secret half is told, nor kept in the open.
    let key = api.store.tenant(client.tenant).receipt_keys().await.unwrap().unwrap().value.current;
    let sealed = String::from(key.encrypted_seed.clone());
    assert!(!json!(events).to_string().contains(&sealed));
    let seed = api.key_encryption.decrypt_key(client.tenant, &key.encrypted_seed.0).await.unwrap();
    assert!(!api.dump().await.0.iter().any(|item| item.contains(&format!("{seed:?}"))));
    assert!(!key.encrypted_seed.0.windows(seed.len()).any(|window| window == seed));
    let other = api.tenant().await;
    assert!(api.key_encryption.decrypt_key(other.tenant, &key.encrypted_seed.0).await.is_err());
    // Lists know the new kind of event.
    assert_eq!(client.get("/assets").await.json()["meta"]["total"], 1);
}

#[tokio::test]
async fn a_rotated_key_leaves_old_receipts_verifiable() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let (_, path) = completed(&client, &user).await;
    let old = client.get(&path).await.text().to_owned();
    let store = api.store.tenant(client.tenant);
    let context = ChangeContext::operator(api.now());
    store.rotate_receipt_key(api.key_encryption.as_ref(), &context).await.unwrap();
    let new = client.get(&path).await.text().to_owned();
    assert_ne!(old, new);
    let keys = keys(&client).await;
    assert_eq!(check(&old, &keys), check(&new, &keys));
    assert!(check(&old, &keys).is_ok());
    let untils: Vec<bool> = keys.keys.iter().map(|key| key.until.is_some()).collect();
    assert_eq!(untils, [false, true]);
}

#[tokio::test]
async fn public_keys_need_no_key_and_tell_nothing_of_tenants() {
    let (api, client) = Api::with_tenant().await;
    let open = client.with_key("");
    let path = "/.well-known/receipt-keys";
    for tenant in [client.tenant.to_string(), "01890a5d-ac96-774b-bcce-b302099a8057".into()] {
        assert_eq!(open.get(&format!("{path}?tenant={tenant}")).await.json(), json!({"keys": []}));
    }
    assert_eq!(open.get(path).await.field_errors(), ["tenant"]);
    assert_eq!(open.get(&format!("{path}?tenant=x&page=1")).await.field_errors(), ["page", "tenant"]);
    let user = client.user("Ada").await;
    let (_, receipt) = completed(&client, &user).await;
    let kid = client.get(&receipt).await.json()["signature"]["kid"].clone();
    let known = json!(keys(&client).await.keys[0]);
    assert_eq!((&known["kty"], &known["crv"], &known["alg"]), (&json!("OKP"), &json!("Ed25519"), &json!("EdDSA")));
    assert_eq!((&known["use"], &known["kid"], &known["until"]), (&json!("sig"), &kid, &Value::Null));
    assert_eq!(keys(&api.tenant().await).await.keys, []);
}

#[tokio::test]
async fn the_page_pictures_signatures_and_escapes_everything() {
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
    let key = client.post("/keys", json!({"name": evil, "scopes": ["processes:read", "processes:write"]})).await.data();
    let client = client.with_key(key["api_key"].as_str().unwrap());
    let run = start(&client, &process, &asset).await;
    for data in [
        json!({"t": evil}),
        json!({"l": [evil, "b"]}),
        json!({"s": evil}),
        json!({"u": user}),
        json!({"g": SIGNATURE}),
        json!({"c": true}),
        json!({}),
    ] {
        advance(&client, &run, data).await.data();
    }
    let path = format!("/processes/instances/{run}/receipt?format=html");
    let page = client.get(&path).await;
    assert_eq!((page.status.as_u16(), page.header("content-type")), (200, "text/html; charset=utf-8"));
    let text = page.text();
    assert!(!text.contains("<script") && !text.contains("alert('x')"), "{text}");
    assert!(text.matches("&#60;script&#62;alert(&#39;x&#39;)&#60;/script&#62;&#38;&#34;").count() >= 12, "{text}");
    assert!(text.contains(&format!("<img alt=\"Signature\" src=\"{SIGNATURE}\">")));
    let signed = client.get(&path.replace("?format=html", "")).await.json();
    assert!(text.contains(signed["signature"]["value"].as_str().unwrap()));
    // The policy lets nothing run or load, and the one style is the page's own.
    let policy = page.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'; img-src data:; style-src 'sha256-"), "{policy}");
    let style = text.split_once("<style>").unwrap().1.split_once("</style>").unwrap().0;
    let digest = <sha2::Sha256 as sha2::Digest>::digest(style);
    assert!(policy.contains(&base64_simd::STANDARD.encode_to_string(digest)));
    assert!(!text.contains(" style=") && !text.contains("http"), "nothing is loaded");
    assert_eq!(page.header("x-content-type-options"), "nosniff");
    // An image that is not what was signed for is not shown.
    let run: shared::domain::id::InstanceId = run.parse().unwrap();
    let run = api.store.tenant(client.tenant).get::<shared::domain::instance::Instance>(run).await.unwrap().unwrap();
    let (name, _) = run.value.signatures().find(|(name, _)| name.step == "g").unwrap();
    let key = shared::store::keys::Keys::of(client.tenant).signature(&name).item();
    let update = api.dynamo.update_item().table_name(&api.table).set_key(Some(key)).update_expression("SET image = :image");
    let other = aws_sdk_dynamodb::types::AttributeValue::B(aws_sdk_dynamodb::primitives::Blob::new(b"other"));
    update.expression_attribute_values(":image", other).send().await.unwrap();
    let text = client.get(&path).await.text().to_owned();
    assert!(!text.contains("<img") && text.contains("a different one now"), "{text}");
}

#[tokio::test]
async fn a_value_sent_ahead_is_that_of_whoever_sent_it() {
    let (_api, client) = Api::with_tenant().await;
    let steps = json!([
        {"type": "text", "key": "a", "label": "A"}, {"type": "signature", "key": "s", "label": "S"},
        {"type": "complete", "key": "c", "label": "C"}
    ]);
    let process = json!({"name": "P", "trigger_status": "in_stock", "target_status": "in_use", "steps": steps});
    let process = client.post("/processes", process).await.id();
    let asset = client.asset(json!({"name": "x"})).await;
    let run = client.post(&format!("/processes/{process}/start"), json!({"asset_id": asset})).await.id();
    let mut people = Vec::new();
    for name in ["Alice", "Bob"] {
        let made = client.post("/keys", json!({"name": name, "scopes": ["processes:write"]})).await.data();
        people.push(client.with_key(made["api_key"].as_str().unwrap()));
    }
    let path = format!("/processes/instances/{run}/advance");
    people[0].post(&path, json!({"step_data": {"a": "1", "s": SIGNATURE}})).await.data();
    for _ in 0..2 {
        people[1].post(&path, json!({"step_data": {}})).await.data();
    }
    let receipt = client.get(&format!("/processes/instances/{run}/receipt")).await.json();
    let by = |step: usize, who: &str| receipt["receipt"]["steps"][step][who]["key_name"].as_str().unwrap().to_owned();
    assert_eq!((by(0, "submitted_by"), by(0, "closed_by")), ("Alice".into(), "Alice".into()));
    assert_eq!((by(1, "submitted_by"), by(1, "closed_by")), ("Alice".into(), "Bob".into()), "{receipt}");
    assert_eq!((by(2, "submitted_by"), by(2, "closed_by")), ("Bob".into(), "Bob".into()));
}

#[tokio::test]
async fn no_receipt_signs_what_was_put_behind_the_history() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada Lovelace").await;
    let (_, path) = completed(&client, &user).await;
    client.get(&path).await.json();
    let history = client.get(&path.replace("/receipt", "/history")).await.json();
    crate::history::append(&api, &client, &history, "instance.approved").await;
    let refused = client.get(&path).await.problem(409, "CONFLICT");
    assert_eq!(refused["broken"]["reason"], "wrong_head", "{refused}");
}
