//! The author of a signature: values that others have stored for a step never count as the signer's.

use crate::support::processes::{advance, cancel, dotted_signature};
use crate::support::samples::SIGNATURE;
use crate::support::signing::{Link, id_of, signature_step, started, step};
use crate::support::{Client, over_http};
use serde_json::{Value, json};

/// Starts a process with a note and a required signature, and a link for both.
async fn two_steps(client: &Client) -> (String, Link) {
    let path = started(client, json!([step("text", "note"), signature_step()])).await;
    let link = Link::create(client, &path, json!({"signer": {"name": "Mary"}, "until": "sign"})).await;
    (path, link)
}

#[tokio::test(start_paused = true)]
async fn a_signature_that_others_have_stored_does_not_count() {
    let client = over_http().await;
    for by_key in [true, false] {
        let (path, link) = two_steps(&client).await;
        let ahead = json!({"note": "n", "sign": SIGNATURE});
        if by_key {
            advance(&client, id_of(&path), ahead).await.data();
        } else {
            let eve = Link::create(&client, &path, json!({"signer": {"name": "Eve"}, "until": "sign"})).await;
            eve.signer(&client).sign(json!({"step_data": ahead})).await.data();
            client.delete(&eve.path).await.data();
        }
        let mary = link.signer(&client);
        let stored = client.get(&format!("{path}?omit=signatures")).await.data()["step_data"]["sign"].clone();
        for data in [json!({}), json!({"sign": stored}), json!({"sign": null})] {
            let refused = mary.sign(json!({"step_data": data, "through": "sign"})).await;
            assert_eq!(refused.field_errors(), ["/step_data/sign"], "{data}");
        }
        assert_eq!(mary.session().await["steps"][0]["is_stored"], true);
        let own = dotted_signature(3, 2);
        mary.sign(json!({"step_data": {"sign": own}})).await.data();
        let receipt = mary.get("/sign/receipt").await.json()["receipt"].clone();
        let step = receipt["steps"].as_array().unwrap().iter().find(|step| step["step"]["key"] == "sign").unwrap().clone();
        assert_eq!(step["submitted_by"]["user_name"], "Mary", "{step}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_optional_signature_can_be_left_out_although_one_is_stored() {
    let client = over_http().await;
    let path = started(&client, json!([step("text", "note"), step("signature", "optional")])).await;
    advance(&client, id_of(&path), json!({"optional": SIGNATURE})).await.data();
    let signer = Link::for_guest(&client, &path).await.signer(&client);
    signer.sign(json!({"step_data": {}})).await.problem(422, "VALIDATION_ERROR");
    signer.sign(json!({"step_data": {"optional": null}})).await.data();
    assert_eq!(client.get(&path).await.data()["step_data"].get("optional"), None);
}

#[tokio::test(start_paused = true)]
async fn an_inactive_user_signs_and_a_deleted_one_does_not() {
    let client = over_http().await;
    let user = client.user("Leaver").await;
    let path = started(&client, json!([step("user_picker", "who"), signature_step()])).await;
    let signer = Link::create(&client, &path, json!({"signer": {"user_id": user}})).await.signer(&client);
    assert_eq!(signer.session().await["signer"], json!({"name": "Leaver", "user_id": user}));
    client.patch(&format!("/users/{user}"), json!({"is_active": false})).await.data();
    assert_eq!(signer.session().await["signer"], json!({"name": "Leaver", "user_id": Value::Null}), "nobody to be picked");
    assert_eq!(signer.sign(json!({"step_data": {"who": user}})).await.field_errors(), ["/step_data/who"]);
    client.delete(&format!("/users/{user}")).await.data();
    let gone = signer.get("/sign/session").await.problem(401, "UNAUTHORIZED");
    assert_eq!(gone.get("link_status"), None);
    signer.sign(json!({"step_data": {}})).await.problem(401, "UNAUTHORIZED");
}

#[tokio::test(start_paused = true)]
async fn a_process_that_is_cancelled_after_the_link_was_used_has_no_receipt() {
    let client = over_http().await;
    let path = started(&client, json!([signature_step(), step("text", "after")])).await;
    let signer = Link::for_guest(&client, &path).await.signer(&client);
    signer.sign(json!({"step_data": {"sign": SIGNATURE}})).await.data();
    cancel(&client, id_of(&path)).await.data();
    let session = signer.session().await;
    let ended = (&session["status"], &session["is_completed"], &session["is_cancelled"]);
    assert_eq!(ended, (&json!("used"), &json!(false), &json!(true)));
    assert_eq!(session["assets"].as_array().unwrap().len(), 1);
    signer.get("/sign/receipt").await.problem(409, "CONFLICT");
}

#[tokio::test(start_paused = true)]
async fn a_session_names_whom_a_submission_picks_for_a_later_step() {
    let client = over_http().await;
    let user = client.post("/users", json!({"email": "boss@example.com", "display_name": "Boss"})).await.id();
    for pick in ["boss@example.com", user.as_str()] {
        let path = started(&client, json!([step("text", "note"), step("user_picker", "who"), signature_step()])).await;
        let signer = Link::for_guest(&client, &path).await.signer(&client);
        let after = signer.sign(json!({"step_data": {"note": "n", "who": pick}})).await.data();
        assert_eq!((&after["steps"][0]["value"], &after["steps"][0]["user_name"]), (&json!(user), &json!("Boss")));
        assert_eq!(signer.session().await, after);
    }
}

#[tokio::test(start_paused = true)]
async fn a_blank_image_is_no_signature() {
    let client = over_http().await;
    let path = started(&client, json!([signature_step()])).await;
    let signer = Link::for_guest(&client, &path).await.signer(&client);
    for blank in [
        // A white pixel, and two transparent ones of different colours.
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2FAAAAABJRU5ErkJggg==",
        "iVBORw0KGgoAAAANSUhEUgAAAAIAAAABCAYAAAD0In+KAAAAEUlEQVR42mNgZGJmOMHJyQAAA34A4Y34FcwAAAAASUVORK5CYII=",
    ] {
        let body = json!({"step_data": {"sign": format!("data:image/png;base64,{blank}")}});
        for refused in [signer.sign(body.clone()).await, client.post(&format!("{path}/advance"), body).await] {
            assert_eq!(refused.field_errors(), ["/step_data/sign"]);
            assert!(refused.text().contains("is blank"), "{}", refused.text());
        }
    }
    signer.sign(json!({"step_data": {"sign": SIGNATURE}})).await.data();
}
