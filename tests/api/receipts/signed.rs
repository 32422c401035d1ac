//! Receipts: their contents, and that anybody can verify them.

use crate::support::processes::{cancel, create_process, start, start_movement, system_process};
use crate::support::receipts::{completed_receipt, public_keys};
use crate::support::samples::SIGNATURE;
use crate::support::table::history::{append_event, event_key, set_text};
use crate::support::{Api, over_http};
use insta::assert_json_snapshot;
use serde_json::{Value, json};
use shared::domain::history::event::hash;
use shared::domain::receipts::key::{Jwks, check};

#[tokio::test(start_paused = true)]
async fn a_receipt_lists_who_did_what_and_when() {
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
}

/// Needs only responses: the signature, the hashes of the images and those of the history.
#[tokio::test(start_paused = true)]
async fn anybody_can_verify_a_receipt() {
    let client = over_http().await;
    let user = client.user("Ada").await;
    let (_, path) = completed_receipt(&client, &user).await;
    let text = client.get(&path).await.text().to_owned();
    let keys = public_keys(&client).await;
    let receipt = check(&text, &keys).unwrap();
    let image = client.get(&path.replace("/receipt", "/signatures/signature")).await.bytes;
    let sha256 = <sha2::Sha256 as sha2::Digest>::digest(&image).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(receipt["steps"][2]["value"], json!({"sha256": sha256, "bytes": image.len()}));
    let history = client.get(&path.replace("/receipt", "/history?limit=100")).await.data();
    let listed: Vec<(&Value, &Value)> =
        history.as_array().unwrap().iter().rev().map(|event| (&event["id"], &event["hash"])).collect();
    let in_receipt: Vec<(&Value, &Value)> =
        receipt["events"].as_array().unwrap().iter().map(|event| (&event["id"], &event["hash"])).collect();
    assert_eq!((in_receipt.len(), in_receipt), (5, listed));
    // A change of any byte of the receipt is noticed.
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
async fn a_receipt_is_the_same_whenever_it_is_requested() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let (asset, path) = completed_receipt(&client, &user).await;
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
async fn every_instance_of_a_movement_has_a_receipt() {
    let client = over_http().await;
    let process = create_process(&client, json!([{"type": "signature", "key": "sign", "label": "S", "required": true}])).await;
    let assets = client.assets(2).await;
    let movement = start_movement(&client, &process, &assets).await;
    let id = movement["id"].as_str().unwrap();
    client.post(&format!("/movements/{id}/advance"), json!({"step_data": {"sign": SIGNATURE}})).await.data();
    for instance in movement["instances"].as_array().unwrap() {
        let path = format!("/processes/instances/{}/receipt", instance["id"].as_str().unwrap());
        let receipt = client.get(&path).await.json()["receipt"].clone();
        assert_eq!((&receipt["movement_id"], &receipt["asset"]["id"]), (&movement["id"], &instance["asset_id"]));
        assert!(client.get(&format!("{path}?format=html")).await.text().contains(SIGNATURE));
    }
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
    let (_, path) = completed_receipt(&client, &user).await;
    let history = client.get(&path.replace("/receipt", "/history")).await.json();
    let version = history["data"][1]["version"].as_u64().unwrap();
    set_text(&api, &event_key(&client, &history, version), "hash", hash("forged")).await;
    assert_eq!(client.get(&path).await.problem(409, "CONFLICT")["broken"]["reason"], "wrong_hash");
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
async fn no_receipt_is_made_from_a_history_with_an_appended_event() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada Lovelace").await;
    let (_, path) = completed_receipt(&client, &user).await;
    client.get(&path).await.json();
    let history = client.get(&path.replace("/receipt", "/history")).await.json();
    append_event(&api, &client, &history, "instance.approved").await;
    let refused = client.get(&path).await.problem(409, "CONFLICT");
    assert_eq!(refused["broken"]["reason"], "wrong_head", "{refused}");
}
