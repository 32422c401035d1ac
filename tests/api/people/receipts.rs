//! Receipts of processes with a person who was erased since.

use crate::support::people::{MARK, Person, erase_all, leaves, person, steps};
use crate::support::processes::{advance_movement, create_process, start_movement};
use crate::support::receipts::public_keys;
use crate::support::samples::SIGNATURE;
use crate::support::{Api, Client};
use serde_json::{Value, json};
use shared::domain::receipts::key::check;

const SENTENCE: &str = "The data of a person was erased.";

fn pseudonym(person: &Person) -> String {
    shared::domain::people::pseudonym(person.id.parse().unwrap())
}

/// A key of the person's own.
async fn own_key(client: &Client, person: &Person) -> Client {
    let scopes = ["processes:read", "processes:write"];
    let key = client.post("/keys", json!({"name": format!("{MARK} key"), "user_id": person.id, "scopes": scopes})).await.data();
    client.with_key(key["api_key"].as_str().unwrap())
}

/// Everything but what people said and did.
fn facts(steps: &Value) -> Vec<Value> {
    let fact = |step: &Value| {
        json!([step["step"], step["submitted_at"], step["closed_at"], step["submitted_by"]["user_id"], step["event_id"]])
    };
    steps.as_array().unwrap().iter().map(fact).collect()
}

#[tokio::test(start_paused = true)]
async fn a_receipt_from_before_verifies_and_one_from_afterwards_says_that_a_person_was_erased() {
    let (api, client) = Api::with_tenant().await;
    let ada = person(&client).await;
    let path = format!("{}/receipt", ada.instance);
    let (handed_out, keys) = (client.get(&path).await.text().to_owned(), public_keys(&client).await);
    let before = check(&handed_out, &keys).unwrap();
    assert!(before.get("erased_people").is_none() && handed_out.contains(MARK), "{before}");
    assert!(!client.get(&format!("{path}?format=html")).await.text().contains(SENTENCE));
    leaves(&api, &client, &ada).await;
    erase_all(&client, &ada.id).await;
    for keys in [&keys, &public_keys(&client).await] {
        assert_eq!(check(&handed_out, keys).as_ref(), Ok(&before));
    }
    let text = client.get(&path).await.text().to_owned();
    let after = check(&text, &keys).unwrap();
    assert!(!text.contains(MARK), "{text}");
    assert_eq!((&after["erased_people"], &after["format"]), (&json!([ada.id]), &before["format"]));
    // The erasure has an event, after those that the receipt had.
    let events = |receipt: &Value| receipt["events"].as_array().unwrap().clone();
    assert_eq!(events(&after)[..events(&before).len()], events(&before));
    assert_eq!(facts(&after["steps"]), facts(&before["steps"]));
    let values: Vec<&Value> = after["steps"].as_array().unwrap().iter().map(|step| &step["value"]).collect();
    let name = json!(pseudonym(&ada));
    assert_eq!(values[..5], [&json!(ada.id), &name, &name, &name, &name]);
    assert_eq!((&after["steps"][0]["user_name"], &after["started_by"]["user_name"]), (&name, &name));
    let page = client.get(&format!("{path}?format=html")).await.text().to_owned();
    assert!(page.contains(SENTENCE) && page.contains(name.as_str().unwrap()) && !page.contains(MARK), "{page}");
    assert!(!page.contains("The image is missing") && !page.contains("<img"), "{page}");
}

#[tokio::test(start_paused = true)]
async fn the_last_of_several_texts_that_became_one_pseudonym_is_the_submission() {
    let (api, client) = Api::with_tenant().await;
    let ada = person(&client).await;
    let own = own_key(&client, &ada).await;
    let asset = client.asset(json!({"name": "Tablet"})).await;
    let instance = crate::support::processes::start(&own, &create_process(&client, steps()).await, &asset).await;
    let path = format!("/processes/instances/{instance}");
    for data in [
        json!({"who": ada.id, "note": format!("{MARK} first"), "story": format!("{MARK} story")}),
        json!({"note": format!("{MARK} second"), "last": format!("{MARK} last")}),
        json!({"story": format!("{MARK} story")}),
        json!({"sign": SIGNATURE, "last": format!("{MARK} last")}),
        json!({"last": format!("{MARK} at last")}),
        json!({}),
    ] {
        api.advance_clock(5);
        own.post(&format!("{path}/advance"), json!({"step_data": data})).await.data();
    }
    let receipt = async || client.get(&format!("{path}/receipt")).await.json()["receipt"].clone();
    let before = receipt().await;
    leaves(&api, &client, &ada).await;
    client.patch(&format!("/assets/{asset}"), json!({"assigned_to": null})).await.data();
    api.advance_clock(60);
    erase_all(&client, &ada.id).await;
    let after = receipt().await;
    assert_eq!(facts(&after["steps"]), facts(&before["steps"]));
    assert!(!after.to_string().contains(MARK), "{after}");
}

#[tokio::test(start_paused = true)]
async fn a_movements_receipt_says_it_once() {
    let (api, client) = Api::with_tenant().await;
    let ada = person(&client).await;
    let own = own_key(&client, &ada).await;
    let process = create_process(&client, json!([steps()[3], steps()[1]])).await;
    let movement = start_movement(&own, &process, &client.assets(2).await).await;
    let id = movement["id"].as_str().unwrap();
    for data in [json!({"sign": SIGNATURE}), json!({"note": format!("{MARK} note")})] {
        advance_movement(&own, id, data).await.data();
    }
    let path = format!("/movements/{id}/receipt");
    let before = client.get(&path).await.json()["receipt"].clone();
    leaves(&api, &client, &ada).await;
    erase_all(&client, &ada.id).await;
    let text = client.get(&path).await.text().to_owned();
    let after = check(&text, &public_keys(&client).await).unwrap();
    assert_eq!((&after["erased_people"], text.contains(MARK)), (&json!([ada.id]), false), "{text}");
    assert_eq!(facts(&after["steps"]), facts(&before["steps"]));
    let page = client.get(&format!("{path}?format=html")).await.text().to_owned();
    assert!(page.contains(SENTENCE) && page.contains(&pseudonym(&ada)) && !page.contains("<img"), "{page}");
}

#[tokio::test(start_paused = true)]
async fn the_signing_page_shows_a_pseudonym_in_place_of_an_earlier_signer() {
    let (api, client) = Api::with_tenant().await;
    let ada = person(&client).await;
    let own = own_key(&client, &ada).await;
    let process = create_process(&client, json!([steps()[3], steps()[1], steps()[4]])).await;
    let asset = client.asset(json!({"name": "Tablet"})).await;
    let path = format!("/processes/instances/{}", crate::support::processes::start(&own, &process, &asset).await);
    own.post(&format!("{path}/advance"), json!({"step_data": {"sign": SIGNATURE}})).await.data();
    let link = crate::support::signing::Link::for_guest(&client, &path).await;
    leaves(&api, &client, &ada).await;
    erase_all(&client, &ada.id).await;
    let session = link.signer(&client).session().await;
    let signed = &session["submitted"][0];
    assert_eq!((&signed["signed_by"], &signed["value"]), (&json!(pseudonym(&ada)), &Value::Null), "{session}");
    link.signer(&client).sign(json!({"step_data": {"note": "of a guest"}})).await.data();
    let session = link.signer(&client).session().await;
    assert_eq!(session["submitted"][0]["signed_by"], pseudonym(&ada), "{session}");
    client.get(&format!("{path}/signatures/sign")).await.problem(404, "NOT_FOUND");
}
