//! Receipts of movements: one for all assets, as JSON that anybody can verify, and as a page to print.

use crate::support::processes::{advance_movement, cancel, create_process, large_signature, start_movement};
use crate::support::receipts::public_keys;
use crate::support::samples::SIGNATURE;
use crate::support::table::history::{event_chain, event_key, set_text};
use crate::support::{Api, Client, over_http};
use serde_json::{Value, json};
use shared::domain::history::event::hash;
use shared::domain::receipts::key::check;

const MAX_BODY: usize = 4 * 1024 * 1024;

fn steps() -> Value {
    json!([
        {"type": "user_picker", "key": "who", "label": "Who", "required": true},
        {"type": "signature", "key": "sign", "label": "Sign", "required": true},
        {"type": "text", "key": "note", "label": "Note"}
    ])
}

/// Three assets to Ada, the second cancelled. Returns the path and the movement.
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
        assert_eq!(instance["instance_id"], started["id"]);
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
    // An instance's own receipt has the same facts.
    let own = client.get(&format!("/processes/instances/{}/receipt", instances[0]["instance_id"].as_str().unwrap())).await.json();
    for (step, own) in steps.iter().zip(own["receipt"]["steps"].as_array().unwrap()) {
        let mut own = own.clone();
        own.as_object_mut().unwrap().remove("event_id");
        assert_eq!(*step, own);
    }
    assert_eq!(instances[0]["asset"], own["receipt"]["asset"]);
}

#[tokio::test(start_paused = true)]
async fn a_movements_receipt_stays_the_same_and_cannot_be_changed() {
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
    for place in (11..first.find(",\"signature\":{\"alg\"").unwrap()).step_by(11) {
        let mut changed = first.clone().into_bytes();
        changed[place] ^= 1;
        let Ok(changed) = String::from_utf8(changed) else { continue };
        assert!(check(&changed, &keys).is_err(), "byte {place}");
    }
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
    client.get(&format!("/movements/{}/receipt", crate::support::UNKNOWN_ID)).await.problem(404, "NOT_FOUND");
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
    assert!(text.contains("(UTC+05:30)</time>") && text.contains("those of Asia/Kolkata."), "{text}");
    assert!(!text.contains(" style=") && !text.contains("http") && !text.contains("<script"), "the page must load nothing");
    assert!(page.header("content-security-policy").starts_with("default-src 'none'; img-src data:; style-src 'sha256-"));
}

#[tokio::test(start_paused = true)]
async fn a_receipt_of_twenty_assets_is_bounded() {
    let (api, client) = Api::with_tenant().await;
    let mut steps = vec![json!({"type": "signature", "key": "sign", "label": "S"})];
    steps.extend((0..9).map(|n| json!({"type": "textarea", "key": format!("t{n}"), "label": "T"})));
    let process = create_process(&client, json!(steps)).await;
    let started = start_movement(&client, &process, &client.assets(20).await).await;
    let id = started["id"].as_str().unwrap();
    advance_movement(&client, id, json!({"sign": large_signature()})).await.data();
    for n in 0..9 {
        advance_movement(&client, id, json!({format!("t{n}"): "x".repeat(2_000)})).await.data();
    }
    let path = format!("/movements/{id}/receipt");
    client.get(&path).await.json();
    for format in ["json", "html"] {
        api.meter.take();
        let reply = client.get(&format!("{path}?format={format}")).await;
        let cost = api.meter.take();
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert!(reply.bytes.len() < MAX_BODY, "{format}: {} bytes", reply.bytes.len());
        // The histories of ten assets at a time are read in parallel, which the meter may count as more.
        assert!(cost.calls <= 140 && cost.round_trips <= 20, "{format}: {cost:?}");
    }
}
