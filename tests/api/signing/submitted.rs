//! What a signer reads before the signature: everything that is submitted so far, and the sentence to confirm.

use crate::support::processes::{advance, cancel, create_process, start, start_movement};
use crate::support::samples::SIGNATURE;
use crate::support::signing::{Link, id_of, signature_step, started, stated, step};
use crate::support::{Api, Client, over_http};
use serde_json::{Value, json};

/// The steps of an office, before the signature of the recipient.
fn office_steps() -> Value {
    json!([
        {"type": "user_picker", "key": "who", "label": "Who gets it?"},
        {"type": "checklist", "key": "list", "label": "Handed over", "items": ["Device", "Bag"]},
        step("text", "note"), step("textarea", "comment"),
        {"type": "select", "key": "choice", "label": "Colour", "options": ["red", "blue"]},
        step("date", "day"), step("confirmation", "agree"), step("text", "nothing"),
        {"type": "signature", "key": "office", "label": "For the office"}, signature_step()
    ])
}

/// Submits the steps of the office. Returns the values as a session shows them.
async fn submit_office_steps(client: &Client, path: &str, user: &str) -> [Value; 9] {
    let data = json!({"who": user, "list": ["Bag"], "note": "fine", "comment": "a\nb", "choice": "red", "day": "2026-03-05",
                      "agree": true, "office": SIGNATURE});
    let body = json!({"step_data": data, "through": "office"});
    client.post(&format!("{path}/advance"), body).await.data();
    let value = |key: &str| data[key].clone();
    let values = ["who", "list", "note", "comment", "choice", "day", "agree"].map(value);
    let [a, b, c, d, e, f, g] = values;
    [a, b, c, d, e, f, g, Value::Null, Value::Null]
}

fn members(entries: &Value, member: &str) -> Vec<Value> {
    entries.as_array().unwrap().iter().map(|entry| entry[member].clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn the_signer_reads_everything_that_is_submitted_before_signing() {
    let client = over_http().await;
    let user = client.user("Ada").await;
    let path = started(&client, office_steps()).await;
    let values = submit_office_steps(&client, &path, &user).await;
    let link = Link::for_guest(&client, &path).await;
    let reply = link.signer(&client).get("/sign/session").await;
    assert!(!reply.text().contains("base64"), "a session has no image");
    let session = reply.data();
    let submitted = &session["submitted"];
    let mut steps = office_steps().as_array().unwrap()[..9].to_vec();
    steps[8] = stated(&steps[8]);
    assert_eq!(members(submitted, "step"), steps);
    assert_eq!(members(submitted, "value"), values);
    assert_eq!(members(submitted, "index"), (0..9).map(Value::from).collect::<Vec<_>>());
    assert_eq!((&submitted[0]["user_name"], &submitted[1]["user_name"]), (&json!("Ada"), &Value::Null));
    assert_eq!(members(submitted, "is_stored").iter().position(|stored| *stored == json!(false)), Some(7));
    // The office signed with its API key.
    let instance = client.get(&path).await.data();
    let history = client.get(&format!("{path}/history?limit=100")).await.data();
    let of_office = history.as_array().unwrap().iter().find(|entry| entry["changes"].to_string().contains("sha256")).unwrap();
    assert_eq!(submitted[8]["signed_by"], instance["started_by_name"]);
    assert_eq!(submitted[8]["signed_at"], of_office["at"]);
    assert_eq!((&submitted[2]["signed_by"], &submitted[2]["signed_at"]), (&Value::Null, &Value::Null));
    assert_eq!(members(&session["steps"], "step"), [stated(&signature_step())]);
}

/// The second signer sees who signed first. A used link shows the receipt only.
#[tokio::test(start_paused = true)]
async fn a_signature_with_a_link_is_that_of_its_signer() {
    let client = over_http().await;
    let steps = json!([
        step("text", "note"), {"type": "signature", "key": "first", "label": "First"}, signature_step(), step("text", "later")
    ]);
    let path = started(&client, steps).await;
    let first = Link::for_guest(&client, &path).await.signer(&client);
    let after = first.sign(json!({"step_data": {"note": "n"}})).await.data();
    assert_eq!(members(&after["submitted"], "value"), ["n"]);
    let used = first.sign(json!({"step_data": {"first": SIGNATURE}, "typed_signatures": ["first"]})).await.data();
    let second = Link::create(&client, &path, json!({"signer": {"name": "Mary"}})).await.signer(&client);
    let session = second.session().await;
    assert_eq!(members(&session["submitted"], "signed_by"), [Value::Null, json!("Grace Hopper")]);
    assert_eq!(members(&session["submitted"], "is_typed"), [false, true]);
    assert_eq!(members(&session["steps"], "is_typed"), [false]);
    second.sign(json!({"step_data": {"sign": SIGNATURE}})).await.data();
    advance(&client, id_of(&path), json!({"later": "x"})).await.data();
    for used in [used, first.session().await, second.session().await] {
        assert_eq!((&used["status"], &used["submitted"]), (&json!("used"), &json!([])));
    }
    let receipt = client.get(&format!("{path}/receipt")).await.json();
    let signed = &receipt["receipt"]["steps"][1];
    assert_eq!(
        (&signed["submitted_by"]["user_name"], &signed["submitted_at"]),
        (&json!("Grace Hopper"), &session["submitted"][1]["signed_at"])
    );
}

#[tokio::test(start_paused = true)]
async fn a_movement_shows_what_is_submitted_for_all_its_assets() {
    let client = over_http().await;
    let user = client.user("Ada").await;
    let process = create_process(&client, office_steps()).await;
    let movement = start_movement(&client, &process, &client.assets(3).await).await;
    let path = format!("/movements/{}", movement["id"].as_str().unwrap());
    // The first instance stays at its first step.
    cancel(&client, movement["instances"][0]["id"].as_str().unwrap()).await.data();
    let values = submit_office_steps(&client, &path, &user).await;
    let signer = Link::for_guest(&client, &path).await.signer(&client);
    let submitted = &signer.session().await["submitted"];
    assert_eq!(members(submitted, "value"), values);
    assert_eq!((&submitted[0]["user_name"], &submitted[8]["is_stored"]), (&json!("Ada"), &json!(true)));
    assert_ne!(submitted[8]["signed_by"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn a_session_shows_nothing_of_other_instances_and_tenants() {
    let (api, client) = Api::with_tenant().await;
    let other = api.tenant().await;
    let steps = json!([step("text", "note"), signature_step(), step("text", "later")]);
    let process = create_process(&client, steps.clone()).await;
    let mut signers = Vec::new();
    for (client, text) in [(&client, "own"), (&client, "neighbour"), (&other, "stranger")] {
        let process = if text == "stranger" { create_process(client, steps.clone()).await } else { process.clone() };
        let instance = start(client, &process, &client.asset(json!({"name": "Laptop"})).await).await;
        advance(client, &instance, json!({"note": format!("Qwert {text}"), "later": "Qwert later"})).await.data();
        signers.push((Link::for_guest(client, &format!("/processes/instances/{instance}")).await.signer(client), text));
    }
    for (signer, text) in signers {
        let reply = signer.get("/sign/session").await;
        assert_eq!(members(&reply.data()["submitted"], "value"), [json!(format!("Qwert {text}"))]);
        assert_eq!(reply.text().matches("Qwert").count(), 1, "{}", reply.text());
    }
}

#[tokio::test(start_paused = true)]
async fn the_statement_of_a_step_is_shown_everywhere_and_repeated_by_the_receipt() {
    let client = over_http().await;
    let statement = "I received what is listed above.\nI return it <when> asked.";
    let own = json!({"type": "signature", "key": "own", "label": "Own", "statement": statement});
    let process = create_process(&client, json!([own, signature_step()])).await;
    let definition = format!("/processes/{process}");
    let steps = json!([own, stated(&signature_step())]);
    assert_eq!(client.get(&definition).await.data()["steps"], steps);
    let asset = client.asset(json!({"name": "Laptop"})).await;
    let path = format!("/processes/instances/{}", start(&client, &process, &asset).await);
    assert_eq!(client.get(&path).await.data()["steps"], steps);
    // A later change of the definition is not confirmed.
    let changed = json!({"type": "signature", "key": "own", "label": "Own", "statement": "Something else."});
    assert_eq!(client.patch(&definition, json!({"steps": [changed]})).await.data()["steps"], json!([changed]));
    let link = Link::create(&client, &path, json!({"signer": {"name": "Ada"}, "until": "sign"})).await;
    let signer = link.signer(&client);
    assert_eq!(json!(members(&signer.session().await["steps"], "step")), steps);
    signer.sign(json!({"step_data": {"own": SIGNATURE, "sign": SIGNATURE}, "through": "sign"})).await.data();
    let receipt = client.get(&format!("{path}/receipt")).await.json();
    assert_eq!(json!(members(&receipt["receipt"]["steps"], "step")), steps);
    let page = client.get(&format!("{path}/receipt?format=html")).await.text().to_owned();
    assert!(page.contains("I received what is listed above.\nI return it &#60;when&#62; asked."), "{page}");
    assert!(page.contains("I confirm what is stated above."), "{page}");
}

#[tokio::test(start_paused = true)]
async fn a_statement_is_checked_as_other_texts_are() {
    let client = over_http().await;
    let with = |statement: Value| {
        let step = json!({"type": "signature", "key": "sign", "label": "Sign", "statement": statement});
        json!({"name": "Own", "trigger_status": "in_stock", "target_status": "in_use", "steps": [step]})
    };
    for wrong in [json!(""), json!(" "), json!("a\u{7}"), json!("a\u{202e}b"), json!("ä".repeat(501)), json!(1), Value::Null] {
        assert_eq!(client.post("/processes", with(wrong.clone())).await.field_errors(), ["/steps/0/statement"], "{wrong}");
    }
    let created = client.post("/processes", with(json!(format!(" {} ", "ä".repeat(500))))).await.data();
    assert_eq!(created["steps"][0]["statement"], "ä".repeat(500));
    let text = json!([{"type": "text", "key": "t", "label": "T", "statement": "x"}]);
    let id = created["id"].as_str().unwrap();
    assert_eq!(client.patch(&format!("/processes/{id}"), json!({"steps": text})).await.field_errors(), ["/steps/0/statement"]);
}
