//! Signatures with a typed name: histories and receipts show them as such. The table is written as a link's submission writes it.

use crate::support::processes::{advance, advance_movement, create_process, start, start_movement};
use crate::support::receipts::public_keys;
use crate::support::samples::SIGNATURE;
use crate::support::{Api, Client, UNKNOWN_ID};
use serde_json::{Map, Value, json};
use shared::domain::actor::Actor;
use shared::domain::processes::instance::Instance;
use shared::domain::receipts::key::check;
use shared::domain::values::signature_image::DecodedImages;
use shared::store::{ChangeContext, UnitOfWork};
use std::collections::BTreeSet;

const LINK: &str = UNKNOWN_ID;

fn steps() -> Value {
    json!([{"type": "signature", "key": "sign", "label": "Sign"}, {"type": "text", "key": "note", "label": "Note"}])
}

/// Signs for these instances in one transaction, as "Ada <b>" and with an image that shows a typed name.
async fn sign(api: &Api, client: &Client, instances: &[&str]) {
    let store = api.store.tenant(client.tenant);
    let actor = Actor::signer(LINK.parse().unwrap(), "Ada <b>", None);
    let context = ChangeContext { actor, ..ChangeContext::operator(api.now()) };
    let images = DecodedImages::with_typed(vec!["sign".into()]);
    let data = Map::from_iter([("sign".to_owned(), json!(SIGNATURE))]);
    let mut unit = UnitOfWork::new(&store, &context);
    for (index, id) in instances.iter().enumerate() {
        let instance = store.get::<Instance>(id.parse().unwrap()).await.unwrap().unwrap();
        let next = instance.value.advance(None, &data, Some(0), &BTreeSet::new(), &images, context.at).unwrap();
        let image = &next.signatures["sign"];
        if index == 0 {
            unit.put_signature_image(&store, &next.instance.image_name("sign", image.hash()), image);
        }
        unit.update(&instance, next.instance).unwrap();
    }
    unit.commit().await.unwrap();
}

/// Checks the two steps in a receipt and on its page.
async fn assert_says_who_typed(client: &Client, path: &str) {
    let text = client.get(path).await.text().to_owned();
    let receipt = check(&text, &public_keys(client).await).unwrap();
    let signature = &receipt["steps"][0];
    let hash = signature["value"]["sha256"].as_str().unwrap();
    assert_eq!(signature["value"], json!({"sha256": hash, "bytes": 68, "typed": true}));
    let signer = json!({"key_id": null, "key_name": "signing link", "user_id": null, "user_name": "Ada <b>", "link_id": LINK});
    assert_eq!((&signature["submitted_by"], &signature["closed_by"]), (&signer, &signer));
    let of_key = receipt["steps"][1]["submitted_by"].as_object().unwrap();
    assert!(of_key["key_name"] == "first key" && !of_key.contains_key("link_id"), "{of_key:?}");
    let page = client.get(&format!("{path}?format=html")).await.text().to_owned();
    assert_eq!(page.matches("typed, not drawn").count(), 1);
    let beside = "\nThe name was typed, not drawn.</td>";
    assert!(page.contains(beside), "{page}");
    let by = format!("<bdi>Ada &#60;b&#62;</bdi> (signing link)\n<code>{LINK}</code></td>");
    assert_eq!(page.matches(&by).count(), 1, "{page}");
}

#[tokio::test(start_paused = true)]
async fn history_and_receipt_say_that_a_signer_typed_a_name() {
    let (api, client) = Api::with_tenant().await;
    let process = create_process(&client, steps()).await;
    let instance = start(&client, &process, &client.asset(json!({"name": "Laptop"})).await).await;
    sign(&api, &client, &[&instance]).await;
    let path = format!("/processes/instances/{instance}");
    assert_eq!(client.get(&path).await.data()["step_data"]["sign"], SIGNATURE);
    // Clients send back all values that they have read.
    let completed = advance(&client, &instance, json!({"sign": SIGNATURE, "note": "fine"})).await.data();
    assert_eq!(completed["status"], "completed");
    assert_says_who_typed(&client, &format!("{path}/receipt")).await;

    let history = client.get(&format!("{path}/history?verify=true")).await.json();
    assert_eq!(history["verification"]["valid"], true, "{history}");
    let signed = &history["data"][1];
    assert_eq!((&signed["actor"]["link_id"], &signed["actor"]["user_name"]), (&json!(LINK), &json!("Ada <b>")));
    assert_eq!(signed["changes"]["step_data"]["new"]["sign"]["typed"], true);
    api.advance_clock(60);
    let events = client.get(&format!("/events?entity_id={instance}")).await.data();
    let links: Vec<&Value> = events.as_array().unwrap().iter().map(|event| &event["actor"]["link_id"]).collect();
    assert_eq!(links, [&Value::Null, &json!(LINK), &Value::Null]);
}

#[tokio::test(start_paused = true)]
async fn a_movements_receipt_says_that_a_signer_typed_a_name() {
    let (api, client) = Api::with_tenant().await;
    let process = create_process(&client, steps()).await;
    let movement = start_movement(&client, &process, &client.assets(2).await).await;
    let [id, first, second] =
        [&movement["id"], &movement["instances"][0]["id"], &movement["instances"][1]["id"]].map(|id| id.as_str().unwrap());
    sign(&api, &client, &[first, second]).await;
    advance_movement(&client, id, json!({"sign": SIGNATURE, "note": "fine"})).await.data();
    assert_says_who_typed(&client, &format!("/movements/{id}/receipt")).await;
}
