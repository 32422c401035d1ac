//! Notes, and processes without a picked user, such as a return: texts and signatures are about the person who had the assets.
//! Also receipts of processes with a person who was erased later.

use crate::support::prelude::*;
use shared::domain::receipts::key::check;

/// Creates a technician, and a client with a key bound to the technician.
async fn technician(client: &Client) -> (Client, String) {
    let id = client.post("/users", json!({"email": "t@example.com", "display_name": "T", "role": "technician"})).await.id();
    let scopes = ["assets:read", "processes:read", "processes:write"];
    let key = client.post("/keys", json!({"name": "T", "user_id": id, "scopes": scopes})).await.data();
    (client.with_key(key["api_key"].as_str().unwrap()), id)
}

/// Completes the return of these assets with one signature. Returns the movement.
async fn take_back(client: &Client, technician: &Client, assets: &[String]) -> String {
    let movement = start_movement(technician, &system_process(client, "device-return").await, assets).await;
    let path = format!("/movements/{}", movement["id"].as_str().unwrap());
    let data = json!({"condition": format!("{MARK} scratched"), "signature": SIGNATURE, "received": true});
    technician.post(&format!("{path}/advance"), json!({"step_data": data, "through": "complete"})).await.data();
    path
}

async fn reported(client: &Client, user: &str) -> Value {
    client.get(&format!("/users/{user}/report")).await.data()["instances"].clone()
}

async fn in_use(client: &Client, user: &str) -> String {
    client.asset(json!({"name": "Phone", "status": "in_use", "assigned_to": user})).await
}

#[tokio::test(start_paused = true)]
async fn the_signature_of_a_return_is_about_the_user_who_had_the_assets() {
    let (api, client) = Api::with_tenant().await;
    let ((key, technician), ada) = (technician(&client).await, client.user("Ada").await);
    let assets = [in_use(&client, &ada).await, in_use(&client, &ada).await];
    let movement = take_back(&client, &key, &assets).await;

    let of_ada = reported(&client, &ada).await;
    assert_eq!(of_ada.as_array().unwrap().len(), 2, "{of_ada}");
    assert_eq!((&of_ada[0]["parts"], &of_ada[0]["signatures"][0]["image"]), (&json!(["holder"]), &json!(SIGNATURE)));
    assert_eq!(of_ada[0]["step_data"]["condition"], format!("{MARK} scratched"));
    let of_technician = reported(&client, &technician).await;
    assert_eq!((&of_technician[0]["parts"], &of_technician[0]["step_data"]), (&json!(["started", "submitted"]), &json!({})));

    erase_leaver(&api, &client, &ada).await;
    assert_eq!(items_with(&api, MARK).await, Vec::<String>::new());
    assert!(all_items(&api).await.iter().all(|item| item["type"].as_s().unwrap() != "signature"));
    let verified = api.store.writer(client.tenant).verify_chains(|_, _| {}).await.unwrap();
    assert_eq!(verified.broken_links, []);
    let shown = client.get(&movement).await.data();
    assert!(shown["instances"][0]["step_data"]["signature"].as_str().unwrap().starts_with("Erased user "), "{shown}");
    let instance = shown["instances"][0]["id"].as_str().unwrap();
    let receipt = client.get(&format!("/processes/instances/{instance}/receipt")).await.json();
    assert_eq!(receipt["receipt"]["erased_people"], json!([ada]));
}

#[tokio::test(start_paused = true)]
async fn a_signature_for_assets_of_several_users_is_about_none_of_them() {
    let (_, client) = Api::with_tenant().await;
    let ((key, technician), ada, grace) = (technician(&client).await, client.user("Ada").await, client.user("Grace").await);
    let assets = [in_use(&client, &ada).await, in_use(&client, &grace).await];
    take_back(&client, &key, &assets).await;
    for user in [&ada, &grace] {
        assert_eq!(reported(&client, user).await, json!([]));
    }
    assert_eq!(reported(&client, &technician).await[0]["signatures"][0]["image"], SIGNATURE);
}

#[tokio::test(start_paused = true)]
async fn user_of_a_replaced_value_is_not_a_subject_of_the_texts() {
    let (api, client) = Api::with_tenant().await;
    let (ada, grace) = (client.user("Ada").await, client.user("Grace").await);
    let process =
        create_process(&client, json!([step("user_picker", "who"), step("text", "note"), step("complete", "done")])).await;
    let asset = client.asset(json!({"name": "Phone"})).await;
    let body = json!({"asset_id": asset, "step_data": {"who": grace, "note": MARK}});
    let instance = client.post(&format!("/processes/{process}/start"), body).await.id();
    advance(&client, &instance, json!({"who": ada})).await.data();

    assert_eq!(reported(&client, &grace).await[0]["step_data"], json!({}));
    assert_eq!(reported(&client, &ada).await[0]["step_data"], json!({"note": MARK}));
    erase_leaver(&api, &client, &grace).await;
    let shown = client.get(&format!("/processes/instances/{instance}")).await.data();
    assert_eq!(shown["step_data"]["note"], MARK);
}

#[tokio::test(start_paused = true)]
async fn notes_of_the_change_that_hands_an_asset_on_are_not_about_the_user_before() {
    let (api, client) = Api::with_tenant().await;
    let (ada, grace) = (client.user("Ada").await, client.user("Grace").await);
    let body = json!({"name": "Phone", "assigned_to": ada, "notes": format!("{MARK} old")});
    let handed_on = [(json!(grace), "Grace gets a case"), (Value::Null, "back in stock, scratch on lid")];
    let mut assets = Vec::new();
    for (next, notes) in &handed_on {
        let asset = format!("/assets/{}", client.asset(body.clone()).await);
        client.patch(&asset, json!({"assigned_to": next, "notes": notes})).await.data();
        assets.push(asset);
    }
    let report = async |user: &str| client.get(&format!("/users/{user}/report")).await.data().to_string();
    let (of_ada, of_grace) = (report(&ada).await, report(&grace).await);
    assert!(of_ada.contains(MARK) && handed_on.iter().all(|(_, notes)| !of_ada.contains(notes)), "{of_ada}");
    assert!(of_grace.contains("Grace gets a case") && !of_grace.contains(MARK), "{of_grace}");

    erase_leaver(&api, &client, &ada).await;
    assert_eq!(items_with(&api, MARK).await, Vec::<String>::new());
    for (asset, (_, notes)) in assets.iter().zip(&handed_on) {
        assert_eq!(client.get(asset).await.data()["notes"], *notes);
    }
    let verified = api.store.writer(client.tenant).verify_chains(|_, _| {}).await.unwrap();
    assert_eq!(verified.broken_links, []);
}

#[tokio::test(start_paused = true)]
async fn pseudonyms_can_be_sent_back_with_the_next_step() {
    let (api, client) = Api::with_tenant().await;
    let ada = client.user("Ada").await;
    let path = signed_return(&client, &ada).await;
    erase_leaver(&api, &client, &ada).await;
    let read = client.get(&path).await.data()["step_data"].clone();
    assert!(read["signature"] == read["condition"] && read["signature"].is_string(), "{read}");
    let advance = async |signature: &Value| {
        let data = json!({"condition": read["condition"], "signature": signature, "received": true});
        client.post(&format!("{path}/advance"), json!({"step_data": data})).await
    };
    for other in [json!("Erased user Somebody"), json!(SIGNATURE), Value::Null] {
        assert_eq!(advance(&other).await.problem(409, "STEP_SUBMITTED")["step"], "signature");
    }
    let shown = advance(&read["signature"]).await.data();
    assert_eq!((&shown["step_data"]["signature"], &shown["step_data"]["received"]), (&read["signature"], &json!(true)));
}

const SENTENCE: &str = "The data of a person was erased.";

fn pseudonym(person: &Person) -> String {
    shared::domain::people::pseudonym(person.id.parse::<UserId>().unwrap())
}

/// Creates a key bound to the person.
async fn own_key(client: &Client, person: &Person) -> Client {
    let scopes = ["processes:read", "processes:write"];
    let key = client.post("/keys", json!({"name": format!("{MARK} key"), "user_id": person.id, "scopes": scopes})).await.data();
    client.with_key(key["api_key"].as_str().unwrap())
}

/// Returns the parts of steps that are not typed or signed by people.
fn facts(steps: &Value) -> Vec<Value> {
    let fact = |step: &Value| {
        json!([step["step"], step["submitted_at"], step["closed_at"], step["submitted_by"]["user_id"], step["event_id"]])
    };
    steps.as_array().unwrap().iter().map(fact).collect()
}

#[tokio::test(start_paused = true)]
async fn a_receipt_from_before_verifies_and_one_from_afterwards_says_that_a_person_was_erased() {
    let (api, client, ada) = with_person().await;
    let path = format!("{}/receipt", ada.instance);
    let (handed_out, keys) = (client.get(&path).await.text().to_owned(), public_keys(&client).await);
    let before = check(&handed_out, &keys).unwrap();
    assert!(before.get("erased_people").is_none() && handed_out.contains(MARK), "{before}");
    assert!(!client.get(&format!("{path}?format=html")).await.text().contains(SENTENCE));
    erase_person(&api, &client, &ada).await;
    for keys in [&keys, &public_keys(&client).await] {
        assert_eq!(check(&handed_out, keys).as_ref(), Ok(&before));
    }
    let text = client.get(&path).await.text().to_owned();
    let after = check(&text, &keys).unwrap();
    assert!(!text.contains(MARK), "{text}");
    assert_eq!((&after["erased_people"], &after["format"]), (&json!([ada.id]), &before["format"]));
    // The erasure adds an event after the receipt's earlier events.
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
    let (api, client, ada) = with_person().await;
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
async fn the_signing_page_and_a_movements_receipt_show_a_pseudonym_in_place_of_an_earlier_signer() {
    let (api, client, ada) = with_person().await;
    let own = own_key(&client, &ada).await;
    let process = create_process(&client, json!([steps()[3], steps()[1], steps()[4]])).await;
    let asset = client.asset(json!({"name": "Tablet"})).await;
    let path = format!("/processes/instances/{}", crate::support::processes::start(&own, &process, &asset).await);
    own.post(&format!("{path}/advance"), json!({"step_data": {"sign": SIGNATURE}})).await.data();
    let link = Link::for_guest(&client, &path).await;
    let process = create_process(&client, json!([steps()[3], steps()[1]])).await;
    let movement = start_movement(&own, &process, &client.assets(2).await).await;
    let id = movement["id"].as_str().unwrap();
    for data in [json!({"sign": SIGNATURE}), json!({"note": format!("{MARK} note")})] {
        advance_movement(&own, id, data).await.data();
    }
    let receipt = format!("/movements/{id}/receipt");
    let before = client.get(&receipt).await.json()["receipt"].clone();
    erase_person(&api, &client, &ada).await;
    let session = link.signer(&client).session().await;
    let signed = &session["submitted"][0];
    assert_eq!((&signed["signed_by"], &signed["value"]), (&json!(pseudonym(&ada)), &Value::Null), "{session}");
    link.signer(&client).sign(json!({"step_data": {"note": "of a guest"}})).await.data();
    let session = link.signer(&client).session().await;
    assert_eq!(session["submitted"][0]["signed_by"], pseudonym(&ada), "{session}");
    client.get(&format!("{path}/signatures/sign")).await.problem(404, "NOT_FOUND");

    let text = client.get(&receipt).await.text().to_owned();
    let after = check(&text, &public_keys(&client).await).unwrap();
    assert_eq!((&after["erased_people"], text.contains(MARK)), (&json!([ada.id]), false), "{text}");
    assert_eq!(facts(&after["steps"]), facts(&before["steps"]));
    let page = client.get(&format!("{receipt}?format=html")).await.text().to_owned();
    assert!(page.contains(SENTENCE) && page.contains(&pseudonym(&ada)) && !page.contains("<img"), "{page}");
}
