//! The session and the requests of a signer.

use crate::support::processes::{advance, cancel, create_process, start_movement};
use crate::support::samples::SIGNATURE;
use crate::support::signing::{Link, id_of, link_status, signature_step, started, stated, step};
use crate::support::table::history::event_chain;
use crate::support::{Api, Client, Reply, over_http};
use serde_json::{Map, Value, json};
use shared::domain::values::id::{Id, LinkId};

/// One step of each type.
fn every_type() -> Value {
    json!([
        {"type": "user_picker", "key": "who", "label": "Who", "required": true},
        {"type": "checklist", "key": "list", "label": "List", "items": ["a", "b"]},
        {"type": "text", "key": "note", "label": "Note"},
        {"type": "textarea", "key": "comment", "label": "Comment"},
        {"type": "select", "key": "choice", "label": "Choice", "options": ["red", "blue"]},
        {"type": "date", "key": "day", "label": "Day"},
        {"type": "confirmation", "key": "agree", "label": "I agree"},
        signature_step(),
        {"type": "complete", "key": "done", "label": "Done"}
    ])
}

fn every_value(user: &str) -> Value {
    json!({"who": user, "list": ["b"], "note": "fine", "comment": "a\nb", "choice": "red", "day": "2026-03-05",
           "agree": true, "sign": SIGNATURE, "done": true})
}

async fn link_until(client: &Client, path: &str, until: &str) -> Link {
    Link::create(client, path, json!({"signer": {"name": "Grace Hopper"}, "until": until})).await
}

fn keys(session: &Value) -> Vec<&str> {
    session["steps"].as_array().unwrap().iter().map(|entry| entry["step"]["key"].as_str().unwrap()).collect()
}

/// A problem without its request ID.
fn plain(reply: &Reply) -> Value {
    let mut problem = reply.json();
    problem.as_object_mut().unwrap().remove("request_id");
    problem
}

#[tokio::test(start_paused = true)]
async fn every_type_of_step_can_be_submitted_one_by_one_or_all_at_once() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let values = every_value(&user);
    for at_once in [false, true] {
        let path = started(&client, every_type()).await;
        let link = link_until(&client, &path, "done").await;
        let signer = link.signer(&client);
        let mut session = signer.session().await;
        let all = keys(&session).into_iter().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(all, ["who", "list", "note", "comment", "choice", "day", "agree", "sign", "done"]);
        assert_eq!(session["steps"][7]["step"], stated(&signature_step()));
        if at_once {
            session = signer.sign(json!({"step_data": values, "through": "done"})).await.data();
        } else {
            for (index, key) in all.iter().enumerate() {
                assert_eq!(keys(&session)[0], key);
                assert_eq!(session["steps"][0]["index"], index);
                assert_eq!((&session["status"], &session["is_completed"]), (&json!("open"), &json!(false)));
                let data: Map<String, Value> = [(key.clone(), values[key].clone())].into_iter().collect();
                session = signer.sign(json!({"step_data": data, "current_step": index})).await.data();
            }
        }
        assert_eq!((&session["status"], &session["is_completed"]), (&json!("used"), &json!(true)));
        assert_eq!(session["steps"], json!([]));
        let instance = client.get(&path).await.data();
        assert_eq!((&instance["status"], &instance["step_data"]), (&json!("completed"), &values));
        let asset = client.get(&format!("/assets/{}", instance["asset_id"].as_str().unwrap())).await.data();
        assert_eq!((&asset["status"], &asset["assigned_to"]), (&json!("in_use"), &json!(user)));
        assert_eq!(event_chain(&api, &client, id_of(&path)).await.len(), 10);
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_names_the_process_the_assets_and_the_signer() {
    let client = over_http().await;
    client.patch("/settings", json!({"name": "Analytical Engines"})).await.data();
    let user = client.user("Ada").await;
    let path = started(&client, json!([signature_step()])).await;
    let link = Link::create(&client, &path, json!({"signer": {"user_id": user}})).await;
    let session = link.signer(&client).session().await;
    let asset = json!({"asset_tag": "AST-000001", "name": "Laptop", "manufacturer": "Dell", "model": "XPS", "serial_number": "S-1",
        "location": null});
    assert_eq!(
        session,
        json!({
            "link_id": link.id, "organization": "Analytical Engines", "locale": "en", "process_name": "Own", "target_status": "in_use",
            "movement_number": null,
            "assets": [asset], "signer": {"name": "Ada", "user_id": user}, "status": "open",
            "ends_at": link.shown(&client).await["expires_at"], "is_completed": false, "is_cancelled": false, "submitted": [],
            "steps": [{
                "index": 0, "step": stated(&signature_step()), "value": null, "user_name": null, "is_stored": false,
                "is_typed": false, "signed_by": null, "signed_at": null
            }]
        })
    );
}

#[tokio::test(start_paused = true)]
async fn a_movement_is_signed_for_as_a_whole() {
    let client = over_http().await;
    let process = create_process(&client, json!([step("text", "note"), signature_step()])).await;
    let movement = start_movement(&client, &process, &client.assets(3).await).await;
    let path = format!("/movements/{}", movement["id"].as_str().unwrap());
    let link = Link::for_guest(&client, &path).await;
    let signer = link.signer(&client);
    let session = signer.session().await;
    assert_eq!((&session["movement_number"], &session["signer"]["user_id"]), (&movement["number"], &Value::Null));
    let names: Vec<&Value> = session["assets"].as_array().unwrap().iter().map(|asset| &asset["name"]).collect();
    assert_eq!(names, ["a0", "a1", "a2"]);
    assert_eq!(session["assets"][0]["model"], Value::Null);
    assert_eq!(keys(&session), ["note", "sign"]);
    let session = signer.sign(json!({"step_data": {"note": "n"}})).await.data();
    assert_eq!((keys(&session), &session["steps"][0]["index"]), (vec!["sign"], &json!(1)));
    let session = signer.sign(json!({"step_data": {"sign": SIGNATURE}})).await.data();
    assert_eq!((&session["status"], &session["is_completed"]), (&json!("used"), &json!(true)));
    let done = client.get(&path).await.data();
    assert_eq!(done["status"], "completed");
    for instance in done["instances"].as_array().unwrap() {
        assert_eq!(instance["step_data"], json!({"note": "n", "sign": SIGNATURE}));
    }
}

/// Nobody signs for an asset that is not handed over any more.
#[tokio::test(start_paused = true)]
async fn assets_whose_instance_was_cancelled_are_not_shown() {
    let client = over_http().await;
    let process = create_process(&client, json!([signature_step()])).await;
    let movement = start_movement(&client, &process, &client.assets(3).await).await;
    let link = Link::for_guest(&client, &format!("/movements/{}", movement["id"].as_str().unwrap())).await;
    cancel(&client, movement["instances"][1]["id"].as_str().unwrap()).await.data();
    let signer = link.signer(&client);
    let open = signer.session().await;
    let used = signer.sign(json!({"step_data": {"sign": SIGNATURE}})).await.data();
    for session in [open, used, signer.session().await] {
        let names: Vec<&Value> = session["assets"].as_array().unwrap().iter().map(|asset| &asset["name"]).collect();
        assert_eq!(names, ["a0", "a2"], "{}", session["status"]);
    }
}

/// The holder of a link learns nothing of others' later values, not even by trying, and can't change the earlier ones.
#[tokio::test(start_paused = true)]
async fn only_the_steps_of_the_link_are_shown_and_accepted() {
    let (api, client) = Api::with_tenant().await;
    let steps = json!([
        {"type": "text", "key": "before", "label": "Before"}, step("text", "own"), signature_step(),
        {"type": "select", "key": "hidden_after", "label": "Qwert after", "options": ["Qwert option"]}
    ]);
    let path = started(&client, steps).await;
    let ahead = json!({"before": "shown", "own": "ahead", "sign": SIGNATURE, "hidden_after": "Qwert option"});
    advance(&client, id_of(&path), ahead).await.data();
    let link = Link::for_guest(&client, &path).await;
    let signer = link.signer(&client);
    let reply = signer.get("/sign/session").await;
    let session = reply.data();
    assert_eq!(keys(&session), ["own", "sign"]);
    assert_eq!((&session["steps"][0]["index"], &session["steps"][0]["value"]), (&json!(1), &json!("ahead")));
    // The image of a signature is not shown, not even that of a link's own step.
    let signature = &session["steps"][1];
    assert_eq!((&signature["value"], &signature["is_stored"]), (&Value::Null, &json!(true)));
    let mut answers = vec![reply.text().to_owned()];

    let before = api.dump().await;
    let refused = async |data: Value, more: Value| {
        let mut body = json!({"step_data": data});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        signer.sign(body).await
    };
    let mut guesses = Vec::new();
    for guess in ["shown", "changed"] {
        guesses.push(refused(json!({"before": guess}), json!({})).await);
    }
    assert_eq!(plain(&guesses[0]), plain(&guesses[1]));
    assert_eq!(guesses[0].field_errors(), ["/step_data/before"]);
    let mut after = Vec::new();
    for guess in [json!("Qwert option"), json!("red"), json!(1), Value::Null] {
        after.push(refused(json!({"hidden_after": guess, "own": 1}), json!({})).await);
        assert_eq!(after.last().unwrap().field_errors(), ["/step_data/hidden_after", "/step_data/own"]);
        assert_eq!(plain(after.last().unwrap()), plain(&after[0]));
    }
    let through = refused(json!({}), json!({"through": "hidden_after"})).await;
    assert_eq!(through.field_errors(), ["/through"]);
    let unknown = refused(json!({"hidden": 1}), json!({"through": "hidden"})).await;
    answers.extend([&guesses[0], &after[0], &through, &unknown].map(|reply| reply.text().replace("/step_data/hidden_after", "")));
    assert_eq!(unknown.status.as_u16(), 422);
    assert_eq!(api.dump().await, before);
    let session = signer.sign(json!({"step_data": {"sign": SIGNATURE}, "through": "sign"})).await;
    answers.push(session.text().to_owned());
    for answer in answers {
        assert!(!answer.contains("Qwert") && !answer.contains("hidden_") && !answer.contains("base64"), "{answer}");
    }
    assert_eq!((&session.data()["status"], &session.data()["is_completed"]), (&json!("used"), &json!(false)));
    let instance = client.get(&path).await.data();
    assert_eq!((&instance["current_step"], &instance["step_data"]["own"]), (&json!(3), &json!("ahead")));
}

#[tokio::test(start_paused = true)]
async fn the_first_session_opens_the_link_and_the_last_step_uses_it_up() {
    let (api, client) = Api::with_tenant().await;
    let path = started(&client, json!([step("text", "note"), signature_step()])).await;
    let link = Link::for_guest(&client, &path).await;
    let signer = link.signer(&client);
    let before = api.now();
    signer.session().await;
    let opened = link.shown(&client).await;
    let at: shared::domain::values::time::Timestamp = opened["opened_at"].as_str().unwrap().parse().unwrap();
    assert!(before <= at && at <= api.now(), "{at}");
    let table = api.dump().await;
    signer.session().await;
    signer.get("/sign/session").await.data();
    assert_eq!(api.dump().await, table, "a later session writes");
    api.faults.take_requests();
    signer.sign(json!({"step_data": {"note": "n"}})).await.data();
    let after_first = link.shown(&client).await;
    assert_eq!((&after_first["opened_at"], &after_first["used_at"]), (&opened["opened_at"], &Value::Null));
    api.faults.take_requests();
    signer.sign(json!({"step_data": {"sign": SIGNATURE}})).await.data();
    let transactions: Vec<String> = api
        .faults
        .take_requests()
        .into_iter()
        .filter(|(operation, _)| operation == "TransactWriteItems")
        .map(|(_, body)| body["TransactItems"].to_string())
        .collect();
    let short = link.id.parse::<LinkId>().unwrap().short();
    assert!(transactions.len() == 1 && transactions[0].contains(&format!("#{short}\"")), "{} transactions", transactions.len());
    let used = link.shown(&client).await;
    assert_eq!((&used["status"], &used["opened_at"]), (&json!("used"), &opened["opened_at"]));
    assert_eq!(used["used_at"], client.get(&path).await.data()["completed_at"]);
    let types: Vec<Value> = event_chain(&api, &client, &link.id).await.iter().map(|event| event["type"].clone()).collect();
    assert_eq!(types, ["link.created", "link.updated", "link.updated"]);
}

#[tokio::test(start_paused = true)]
async fn a_step_goes_on_from_where_others_left_off() {
    let (api, client) = Api::with_tenant().await;
    let steps = json!([step("text", "a"), step("text", "b"), step("text", "c"), signature_step()]);
    let path = started(&client, steps).await;
    let link = Link::for_guest(&client, &path).await;
    let signer = link.signer(&client);
    signer.sign(json!({"step_data": {"a": "mine"}, "current_step": 0})).await.data();
    advance(&client, id_of(&path), json!({"b": "theirs"})).await.data();
    assert_eq!(keys(&signer.session().await), ["c", "sign"]);
    let before = api.dump().await;
    let moved = signer.sign(json!({"step_data": {"b": "mine"}, "current_step": 1})).await;
    assert_eq!(moved.problem(409, "STEP_MOVED")["current_step"], 2);
    let submitted = signer.sign(json!({"step_data": {"a": "another"}})).await;
    submitted.problem(409, "STEP_SUBMITTED");
    signer.sign(json!({"step_data": {}, "through": "a"})).await.problem(409, "STEP_SUBMITTED");
    assert_eq!(signer.sign(json!({"step_data": {"c": 1}, "through": "sign"})).await.field_errors(), ["/step_data/c"]);
    let missing = signer.sign(json!({"step_data": {"c": "x"}, "through": "sign"})).await;
    assert_eq!(
        (missing.field_errors(), &missing.json()["errors"][0]["detail"]),
        (vec!["/step_data/sign".into()], &json!("is required"))
    );
    let unknown = signer.sign(json!({"step_data": {}, "colour": 1, "typed_signatures": "sign"})).await;
    assert_eq!(unknown.field_errors(), ["/colour", "/typed_signatures"]);
    assert_eq!(signer.get("/sign/session?colour=red").await.field_errors(), ["colour"]);
    signer.post_text("/sign/advance", "{").await.problem(400, "MALFORMED_REQUEST");
    assert_eq!(signer.post_text("/sign/advance", "{}").await.field_errors(), ["/step_data"]);
    assert_eq!(api.dump().await, before);
    // Earlier values are sent along.
    let done = signer.sign(json!({"step_data": {"a": "mine", "c": "x", "sign": SIGNATURE}, "through": "sign"})).await;
    assert_eq!(done.data()["is_completed"], true);
    assert_eq!(link_status(&signer.sign(json!({"step_data": {}})).await), "used");
}
