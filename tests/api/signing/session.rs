//! A signer's session: steps to submit, submitted values, and the page's texts.

use crate::support::prelude::*;

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

fn keys(session: &Value) -> Vec<&str> {
    session["steps"].as_array().unwrap().iter().map(|entry| entry["step"]["key"].as_str().unwrap()).collect()
}

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
        let link = Link::create(&client, &path, json!({"signer": {"name": "Grace Hopper"}, "until": "done"})).await;
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
async fn a_movement_is_signed_for_as_a_whole_without_cancelled_instances() {
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

    // Cancelled instances don't hand their assets over, so nobody signs for them.
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

/// A link's holder can't read or probe others' later values, and can't change earlier ones.
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
    // A session contains no signature images, even for the link's own steps.
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
    let at: Timestamp = opened["opened_at"].as_str().unwrap().parse().unwrap();
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
async fn signer_continues_after_steps_that_others_submitted() {
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
    let done = signer.sign(json!({"step_data": {"a": "mine", "c": "x", "sign": SIGNATURE}, "through": "sign"})).await;
    assert_eq!(done.data()["is_completed"], true);
    assert_eq!(link_status(&signer.sign(json!({"step_data": {}})).await), "used");
}

/// Returns the office's steps, before the recipient's signature.
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

/// Submits the office's steps. Returns the values as a session shows them.
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
    assert!(!reply.text().contains("base64"), "a session contains no images");
    let session = reply.data();
    let submitted = &session["submitted"];
    let mut steps = office_steps().as_array().unwrap()[..9].to_vec();
    steps[8] = stated(&steps[8]);
    assert_eq!(members(submitted, "step"), steps);
    assert_eq!(members(submitted, "value"), values);
    assert_eq!(members(submitted, "index"), (0..9).map(Value::from).collect::<Vec<_>>());
    assert_eq!((&submitted[0]["user_name"], &submitted[1]["user_name"]), (&json!("Ada"), &Value::Null));
    assert_eq!(members(submitted, "is_stored").iter().position(|stored| *stored == json!(false)), Some(7));
    let instance = client.get(&path).await.data();
    let history = client.get(&format!("{path}/history?limit=100")).await.data();
    let of_office = history.as_array().unwrap().iter().find(|entry| entry["changes"].to_string().contains("sha256")).unwrap();
    assert_eq!(submitted[8]["signed_by"], instance["started_by_name"]);
    assert_eq!(submitted[8]["signed_at"], of_office["at"]);
    assert_eq!((&submitted[2]["signed_by"], &submitted[2]["signed_at"]), (&Value::Null, &Value::Null));
    assert_eq!(members(&session["steps"], "step"), [stated(&signature_step())]);
}

/// The second signer sees the first signature. A used link shows only the receipt.
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
async fn the_statement_of_a_step_is_checked_shown_everywhere_and_repeated_by_the_receipt() {
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
    // A later change to the definition doesn't affect the instance.
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

/// `app::tests` in `functions/meta` checks that each text is in every language.
#[tokio::test(start_paused = true)]
async fn each_text_of_the_page_is_used_and_none_is_missing() {
    let client = over_http().await.with_key("");
    let page = client.get("/sign").await.text().to_owned();
    let (table, script) = page.split_once("const TEXTS = '").unwrap().1.split_once("';\n").unwrap();
    let names: BTreeSet<&str> = table.split(r"\n").map(|line| line.split('|').next().unwrap()).collect();
    for name in &names {
        let is_of_family = name.split_once('.').is_some_and(|(family, _)| script.contains(&format!("`{family}.${{")));
        assert!(is_of_family || script.contains(&format!("'{name}'")), "{name} is not used");
    }
    let mut used = 0;
    for call in ["t('", "sentence('"] {
        let parts: Vec<&str> = script.split(call).collect();
        // Excludes longer names, such as `createElement('`.
        let is_call = |before: &str| !before.ends_with(|last: char| last.is_alphanumeric() || last == '.');
        for part in parts.windows(2).filter(|part| is_call(part[0])) {
            let name = part[1].split('\'').next().unwrap();
            assert!(names.contains(name), "{name} has no text");
            used += 1;
        }
    }
    assert!(used > 60, "only {used} calls were found");
}

#[tokio::test(start_paused = true)]
async fn the_statement_that_a_signer_read_is_stored_and_repeated_in_its_language_also_to_the_next_signer() {
    let client = over_http().await;
    let path = started(&client, json!([signature_step()])).await;
    let signer = Link::for_guest(&client, &path).await.signer(&client);
    let french = [("accept-language", "fr-CH, en;q=0.5")];
    let session = signer.send_with("GET", "/sign/session", None, "", &french).await.data();
    let statement = "Je confirme ce qui est indiqué ci-dessus.";
    assert_eq!(session["steps"][0]["step"]["statement"], statement);
    let body = json!({"step_data": {"sign": SIGNATURE}}).to_string();
    let session = signer.send_with("POST", "/sign/advance", Some("application/json"), body, &french).await.data();
    assert_eq!(session["is_completed"], true);
    let receipt = client.get(&format!("{path}/receipt")).await.json();
    let signed = &receipt["receipt"]["steps"][0];
    assert_eq!(signed["value"]["statement"], statement);
    assert_eq!(signed["step"]["statement"], "I confirm what is stated above.");
    let page = client.get(&format!("{path}/receipt?format=html")).await;
    assert!(page.text().contains(&format!("<bdi>{statement}</bdi>")), "{}", page.text());
    let history = client.get(&format!("{path}/history?verify=true")).await.json();
    assert_eq!(history["verification"]["valid"], true, "{history}");

    let own = json!({"type": "signature", "key": "own", "label": "Own", "required": true, "statement": "I got it."});
    let second = json!({"type": "signature", "key": "second", "label": "Second", "required": true});
    let path = started(&client, json!([signature_step(), own, second])).await;
    client.patch("/settings", json!({"locale": "de"})).await.data();
    let first = Link::create(&client, &path, json!({"signer": {"name": "Ada"}, "until": "sign"})).await.signer(&client);
    first.sign(json!({"step_data": {"sign": SIGNATURE}})).await.data();
    let next = Link::create(&client, &path, json!({"signer": {"name": "Grace"}, "until": "second"})).await.signer(&client);
    let session = next.send_with("GET", "/sign/session", None, "", &[("accept-language", "es")]).await.data();
    assert_eq!(session["submitted"][0]["step"]["statement"], "Ich bestätige, was oben steht.");
    assert_eq!(session["steps"][0]["step"]["statement"], "I got it.");
    assert_eq!(session["steps"][1]["step"]["statement"], "Confirmo lo indicado arriba.");
}
