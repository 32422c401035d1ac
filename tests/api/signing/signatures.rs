//! Values that signers submit: drawn and typed signatures, users, and limits.

use crate::http::dry_run::check_only_reads;
use crate::support::prelude::*;

/// Starts a process with a note and a required signature, and creates a link for both steps.
async fn two_steps(client: &Client) -> (String, Link) {
    let path = started(client, json!([step("text", "note"), signature_step()])).await;
    let link = Link::create(client, &path, json!({"signer": {"name": "Mary"}, "until": "sign"})).await;
    (path, link)
}

#[tokio::test(start_paused = true)]
async fn a_signature_that_others_have_stored_does_not_count_and_an_optional_one_can_be_left_out() {
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
    assert!(gone["link_status"] == "ended" && gone["detail"].as_str().unwrap().contains("the signer was deleted"), "{gone}");
    assert_eq!(client.get(&format!("{path}/links")).await.data()[0]["status"], "ended");
    let link = client.get(&format!("{path}/links")).await.data()[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(client.get(&format!("{path}/links/{link}")).await.data()["status"], "ended");
    signer.sign(json!({"step_data": {}})).await.problem(401, "UNAUTHORIZED");
}

#[tokio::test(start_paused = true)]
async fn picked_user_who_became_inactive_gets_no_link_and_no_session() {
    let client = over_http().await;
    let user = client.user("Leaver").await;
    let steps = json!([step("user_picker", "who"), step("text", "note"), signature_step(), step("complete", "done")]);
    let path = started(&client, steps.clone()).await;
    client.post(&format!("{path}/advance"), json!({"step_data": {"who": user}})).await.data();
    let link = Link::create(&client, &path, json!({"signer": {"user_id": user}})).await;
    let signer = link.signer(&client);
    signer.session().await;
    client.patch(&format!("/users/{user}"), json!({"is_active": false})).await.data();
    for signer_of in [json!({"user_id": user}), json!({"name": "Somebody"})] {
        let refused = client.post(&format!("{path}/links"), json!({"signer": signer_of})).await;
        assert_eq!(refused.problem(409, "CONFLICT")["user_id"], user.as_str());
    }
    assert_eq!(signer.get("/sign/session").await.problem(409, "CONFLICT")["user_id"], user.as_str());
    let signed = signer.sign(json!({"step_data": {"note": "n", "sign": SIGNATURE}, "through": "sign"})).await;
    assert_eq!(signed.problem(409, "CONFLICT")["user_id"], user.as_str());
    client.patch(&format!("/users/{user}"), json!({"is_active": true})).await.data();
    signer.session().await;
    signer.sign(json!({"step_data": {"note": "n", "sign": SIGNATURE}, "through": "done"})).await.data();
}

#[tokio::test(start_paused = true)]
async fn a_session_names_whom_a_submission_picks_for_a_later_step() {
    let client = over_http().await;
    let user = client.post("/users", json!({"email": "boss@example.com", "display_name": "Boss"})).await.id();
    for pick in ["boss@example.com", user.as_str()] {
        let path = started(&client, json!([step("text", "note"), step("user_picker", "who"), signature_step()])).await;
        let signer = Link::for_guest(&client, &path).await.signer(&client);
        let after = signer.sign(json!({"step_data": {"note": "n", "who": pick}})).await.data();
        let picked = &after["steps"][0];
        assert_eq!((&picked["value"], &picked["user_name"], &picked["is_stored"]), (&json!(user), &json!("Boss"), &json!(true)));
        assert_eq!(signer.session().await, after);
    }
}

#[tokio::test(start_paused = true)]
async fn a_user_is_picked_by_id_or_by_the_exact_address() {
    let (api, client) = Api::with_tenant().await;
    let ada = client.post("/users", json!({"email": "Ada.Straße@example.com", "display_name": "Ada"})).await.id();
    let gone = client.user("Gone").await;
    client.patch(&format!("/users/{gone}"), json!({"is_active": false})).await.data();
    api.tenant().await.user("Eve").await;
    let picker = json!({"type": "user_picker", "key": "who", "label": "Who", "required": true});
    let steps = json!([picker, signature_step()]);
    for pick in [ada.as_str(), "Ada.Straße@example.com", "ADA.STRASSE@EXAMPLE.COM", "ada.straße@example.com"] {
        let path = started(&client, steps.clone()).await;
        let link = Link::for_guest(&client, &path).await;
        let signer = link.signer(&client);
        let before = api.dump().await;
        let mut details = Vec::new();
        for unknown in ["gone@example.com", "nobody@example.com", "eve@example.com", &gone, "Ada", "", "ada", "example.com"] {
            let refused = signer.sign(json!({"step_data": {"who": unknown}})).await;
            assert_eq!(refused.field_errors(), ["/step_data/who"], "{unknown}");
            details.push(refused.json()["errors"][0]["detail"].clone());
        }
        assert_eq!((&details[0], &details[0]), (&details[1], &details[2]), "the error must not reveal which addresses exist");
        assert_eq!(api.dump().await, before);
        signer.sign(json!({"step_data": {"who": pick}})).await.data();
        assert_eq!(client.get(&path).await.data()["step_data"]["who"], ada.as_str(), "{pick}");
        let history = client.get(&format!("{path}/history")).await;
        assert!(!history.text().to_lowercase().contains("@example.com"), "the history has only the user's ID");
    }
}

#[tokio::test(start_paused = true)]
async fn a_typed_signature_is_marked_as_such() {
    let (api, client) = Api::with_tenant().await;
    let path = started(&client, json!([step("signature", "drawn"), step("text", "note"), step("signature", "typed")])).await;
    let link = Link::create(&client, &path, json!({"signer": {"name": "Grace"}, "until": "typed"})).await;
    let signer = link.signer(&client);
    let values = json!({"drawn": SIGNATURE, "note": "n", "typed": SIGNATURE});
    let before = api.dump().await;
    for typed in [json!(["other"]), json!(["note"]), json!([1]), json!("typed")] {
        let body = json!({"step_data": values, "through": "typed", "typed_signatures": typed});
        let errors = signer.sign(body).await.field_errors();
        assert!(!errors.is_empty() && errors.iter().all(|error| error.starts_with("/typed_signatures")), "{typed}: {errors:?}");
    }
    assert_eq!(api.dump().await, before);
    signer.sign(json!({"step_data": values, "through": "typed", "typed_signatures": ["typed"]})).await.data();
    assert_eq!(client.get(&path).await.data()["step_data"], values);
    let events = event_chain(&api, &client, id_of(&path)).await;
    let stored = events.iter().map(|event| &event["changes"]["step_data"]["new"]["typed"]);
    let stored: Vec<&Value> = stored.filter(|value| value.is_object()).collect();
    assert!(!stored.is_empty() && stored.iter().all(|value| value["typed"] == true && value["bytes"].is_u64()), "{stored:?}");
    let drawn = &events.last().unwrap()["changes"]["step_data"]["new"]["drawn"];
    assert!(drawn.get("typed").is_none(), "{drawn}");
}

#[tokio::test(start_paused = true)]
async fn signature_by_link_has_the_usual_limits() {
    let (api, client) = Api::with_tenant().await;
    let path = started(&client, json!([signature_step()])).await;
    let link = Link::for_guest(&client, &path).await;
    let signer = link.signer(&client);
    signer.session().await;
    let before = api.dump().await;
    let too_many_bytes = shared::domain::values::signature_image::data_url(&[0; 128 * 1024 + 1]);
    // A single white pixel.
    let blank =
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2FAAAAABJRU5ErkJggg==";
    for wrong in [json!(too_many_bytes), json!(blank), Value::Null] {
        assert_eq!(signer.sign(json!({"step_data": {"sign": wrong}})).await.field_errors(), ["/step_data/sign"]);
    }
    assert_eq!(api.dump().await, before);
    let large = large_signature();
    signer.sign(json!({"step_data": {"sign": large}})).await.data();
    assert_eq!(client.get(&path).await.data()["step_data"]["sign"], large);
}

/// If a transaction can't hold all steps, the page submits them in halves.
#[tokio::test(start_paused = true)]
async fn more_steps_than_a_transaction_holds_can_be_submitted_in_parts() {
    let (api, client) = Api::with_tenant().await;
    let keys: Vec<String> = (0..50).map(|n| format!("s{n}")).collect();
    let path = started(&client, keys.iter().map(|key| step("signature", key)).collect()).await;
    let link = Link::create(&client, &path, json!({"signer": {"name": "Grace"}, "until": "s49"})).await;
    let signer = link.signer(&client);
    signer.session().await;
    let before = api.dump().await;
    let values = |keys: &[String]| keys.iter().map(|key| (key.clone(), json!(SIGNATURE))).collect::<Map<_, _>>();
    let all = signer.sign(json!({"step_data": values(&keys), "through": "s49"})).await;
    assert_eq!(all.field_errors(), ["/through"]);
    assert_eq!(api.dump().await, before);
    let mut left = &keys[..];
    while !left.is_empty() {
        let mut part = left;
        let session = loop {
            let reply = signer.sign(json!({"step_data": values(part), "through": part.last().unwrap()})).await;
            if reply.status == 200 {
                break reply.data();
            }
            assert_eq!(reply.field_errors(), ["/through"], "{} steps", part.len());
            part = &part[..part.len() / 2];
        };
        left = &left[part.len()..];
        assert_eq!((session["status"] == "used", session["is_completed"] == true), (left.is_empty(), left.is_empty()));
    }
    assert_eq!(link_status(&signer.sign(json!({"step_data": {}})).await), "used");
}

#[tokio::test(start_paused = true)]
async fn names_of_signers_are_kept_as_they_were_when_the_link_was_made() {
    let client = over_http().await;
    let user = client.user("Ada").await;
    let path = started(&client, json!([signature_step()])).await;
    let link = Link::create(&client, &path, json!({"signer": {"user_id": user}})).await;
    let hostile = "<img src=x onerror=alert(1)>\"'&";
    let guest = Link::create(&client, &path, signer_named(hostile)).await;
    assert_eq!(guest.signer(&client).session().await["signer"]["name"], hostile);
    client.patch(&format!("/users/{user}"), json!({"is_active": false})).await.data();
    assert_eq!(link.signer(&client).session().await["signer"]["name"], "Ada");
    client.patch(&format!("/users/{user}"), json!({"display_name": "Countess"})).await.data();
    assert_eq!(link.signer(&client).session().await["signer"]["name"], "Ada");
    link.signer(&client).sign(json!({"step_data": {"sign": SIGNATURE}})).await.data();
    assert_eq!(link.shown(&client).await["signer"]["name"], "Ada");
}

/// A signer must not be able to probe for existing addresses, or for the values of steps outside the link.
#[tokio::test(start_paused = true)]
async fn responses_do_not_disclose_steps_outside_the_link() {
    let client = over_http().await;
    client.user("Ada").await;
    let steps =
        json!([step("user_picker", "before"), signature_step(), step("user_picker", "after"), step("signature", "witness")]);
    let path = started(&client, steps).await;
    advance(&client, id_of(&path), json!({})).await.data();
    let signer = Link::for_guest(&client, &path).await.signer(&client);
    for key in ["before", "after"] {
        let mut answers = Vec::new();
        for guess in ["ada@example.com", "nobody@example.com", "nothing"] {
            let refused = signer.sign(json!({"step_data": {key: guess, "sign": SIGNATURE}})).await;
            assert_eq!(refused.field_errors(), [format!("/step_data/{key}")], "{guess}");
            answers.push(refused.json()["errors"].clone());
        }
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    }
    let mut details = Vec::new();
    for guess in ["witness", "nothing"] {
        let body = json!({"step_data": {"sign": SIGNATURE}, "typed_signatures": [guess]});
        let refused = signer.sign(body).await;
        assert_eq!(refused.field_errors(), ["/typed_signatures/0"], "{guess}");
        details.push(refused.json()["errors"][0]["detail"].as_str().unwrap().replace(guess, "…"));
    }
    assert_eq!(details[0], details[1]);
    assert!(!details[1].contains("witness"), "{}", details[1]);
}

#[tokio::test(start_paused = true)]
async fn only_an_image_of_the_same_request_is_marked_as_typed_and_may_be_sent_again_unchanged() {
    let client = over_http().await;
    let path = started(&client, json!([step("text", "note"), signature_step()])).await;
    // The stored signature was drawn by somebody else.
    advance(&client, id_of(&path), json!({"note": "n", "sign": SIGNATURE})).await.data();
    let signer = Link::for_guest(&client, &path).await.signer(&client);
    let reply = signer.sign(json!({"step_data": {}, "typed_signatures": ["sign"]})).await;
    assert_eq!(reply.field_errors(), ["/typed_signatures/0"]);
    signer.sign(json!({"step_data": {"sign": SIGNATURE}})).await.data();
    let receipt = client.get(&format!("{path}/receipt")).await.json();
    assert!(receipt["receipt"]["steps"][1]["value"].get("typed").is_none(), "{receipt}");

    // Clients can repeat all earlier values with each call.
    let path = started(&client, json!([signature_step(), step("text", "a"), step("text", "b")])).await;
    let link = Link::create(&client, &path, json!({"signer": {"name": "Grace"}, "until": "a"})).await;
    let signer = link.signer(&client);
    signer.sign(json!({"step_data": {"sign": SIGNATURE}, "typed_signatures": ["sign"]})).await.data();
    let again = json!({"step_data": {"sign": SIGNATURE, "a": "x"}, "typed_signatures": ["sign"]});
    assert_eq!(signer.sign(again).await.data()["status"], "used");
    let gathered = client.get(&path).await.data()["step_data"].clone();
    advance(&client, id_of(&path), gathered).await.data();
    let receipt = client.get(&format!("{path}/receipt")).await.json();
    assert_eq!(receipt["receipt"]["steps"][0]["value"]["typed"], true);
}

#[tokio::test(start_paused = true)]
async fn a_submission_can_be_tried_without_a_trace() {
    let (api, client) = Api::with_tenant().await;
    let path = started(&client, json!([step("text", "note"), signature_step()])).await;
    let signer = Link::for_guest(&client, &path).await.signer(&client);
    signer.session().await;
    let before = api.dump().await;
    let body = json!({"step_data": {"note": "n", "sign": SIGNATURE}, "through": "sign"});
    api.faults.take_requests();
    api.meter.take();
    let dry = signer.post("/sign/advance?dry_run=true", body.clone()).await;
    assert_eq!((dry.status.as_u16(), dry.header("dry-run")), (200, "true"), "{}", dry.text());
    check_only_reads(&api, "a submission");
    assert_eq!((&dry.data()["status"], &dry.data()["is_completed"]), (&json!("used"), &json!(true)));
    let refused = signer.post("/sign/advance?dry_run=true", json!({"step_data": {"note": 1}})).await;
    assert_eq!(refused.field_errors(), ["/step_data/note"]);
    let headers = ("idempotency-key", "k");
    let both = signer.send_json("POST", "/sign/advance?dry_run=true", &body.to_string(), headers).await;
    assert_eq!(both.field_errors(), ["Idempotency-Key"]);
    assert_eq!(signer.get("/sign/session?dry_run=true").await.field_errors(), ["dry_run"]);
    assert_eq!(api.dump().await, before);
    signer.sign(body).await.data();
}
