//! Signing links with failing calls and dropped requests: a retried request takes effect exactly once, and nothing is half done.
//! `table/races.rs` has concurrent requests.

use crate::support::prelude::*;

/// Calls `case` with each fault at each place of its request, for a new tenant each time, because finding events reads all events
/// of a tenant. The request makes at least `least` calls. `case` returns whether the fault was injected.
async fn with_each_disturbance(api: &Api, least: usize, case: impl AsyncFn(&Client, &str, usize, Disturbance) -> bool) {
    let case = async |place, way| {
        let client = api.tenant().await;
        client.use_key_once().await;
        let name = format!("{way:?} {place}");
        let is_disturbed = case(&client, &name, place, way).await;
        api.check_invariants(client.tenant, &name).await;
        is_disturbed
    };
    at_each_place(&CallFailure::ALL.map(Disturbance::Fails), least, 2, &case).await;
    at_each_place(&[Disturbance::IsDropped], least.min(3), 1, &case).await;
}

/// Starts a process whose second step is a signature. Returns the instance's path.
async fn two_steps(client: &Client) -> String {
    started(client, json!([step("text", "note"), signature_step()])).await
}

#[tokio::test(start_paused = true)]
async fn a_session_survives_any_disturbance() {
    let api = Api::start().await;
    with_each_disturbance(&api, 4, async |client, name, place, way| {
        let link = Link::for_guest(client, &two_steps(client).await).await;
        let signer = link.signer(client);
        let (reply, is_disturbed) = way.at(&api, place, async || signer.get("/sign/session").await).await;
        let session = reply.data();
        assert_eq!(session["steps"].as_array().unwrap().len(), 2, "{name}");
        // If recording the first opening failed, the next session records it.
        assert_eq!(signer.session().await, session, "{name}");
        let opened = link.shown(client).await["opened_at"].clone();
        assert!(opened.is_string(), "{name}");
        assert_eq!(signer.session().await, session, "{name}");
        assert_eq!(link.shown(client).await["opened_at"], opened, "{name}");
        assert_eq!(event_chain(&api, client, &link.id).await.len(), 2, "{name}");
        is_disturbed
    })
    .await;
}

/// Submits the two steps of a new link in separate requests, and injects a fault into one of them. Returns whether the fault was
/// injected.
async fn submits_once(api: &Api, client: &Client, path: &str, step: usize, place: usize, way: Disturbance) -> bool {
    let name = format!("{path}, step {step}, {way:?} {place}");
    let link = Link::for_guest(client, path).await;
    let signer = link.signer(client);
    signer.session().await;
    let mut is_disturbed = false;
    for (index, data) in [json!({"note": "n"}), json!({"sign": SIGNATURE})].into_iter().enumerate() {
        let body = json!({"step_data": data});
        let send = async || signer.sign_once(&body, &format!("step {index}")).await;
        let reply;
        (reply, is_disturbed) = if index == step { way.at(api, place, &send).await } else { (send().await, is_disturbed) };
        let session = reply.data();
        assert_eq!(session["status"], if index == 0 { "open" } else { "used" }, "{name}");
        let again = send().await;
        assert_eq!((again.data(), again.header("idempotent-replayed")), (session, "true"), "{name}");
    }
    check_done(api, client, path, &link, &name).await;
    is_disturbed
}

/// Checks that both steps were submitted once, and that the link was opened and used once.
async fn check_done(api: &Api, client: &Client, path: &str, link: &Link, name: &str) {
    let shown = client.get(path).await.data();
    let alone = [shown.clone()];
    for instance in shown["instances"].as_array().map_or(alone.as_slice(), Vec::as_slice) {
        assert_eq!((&instance["status"], &instance["step_data"]["sign"]), (&json!("completed"), &json!(SIGNATURE)), "{name}");
        assert_eq!(event_chain(api, client, instance["id"].as_str().unwrap()).await.len(), 3, "{name}");
        assert_eq!(event_chain(api, client, instance["asset_id"].as_str().unwrap()).await.len(), 3, "{name}");
    }
    assert_eq!(link.shown(client).await["status"], "used", "{name}");
    assert_eq!(event_chain(api, client, &link.id).await.len(), 3, "{name}");
}

/// Starts a process with two steps on one asset, or as a movement of several. Returns the path of the instance or movement.
async fn started_for(client: &Client, count: usize) -> String {
    if count == 1 {
        return two_steps(client).await;
    }
    let process = create_process(client, json!([step("text", "note"), signature_step()])).await;
    let movement = start_movement(client, &process, &client.assets(count).await).await;
    format!("/movements/{}", movement["id"].as_str().unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_submission_survives_any_disturbance() {
    let api = Api::start().await;
    // The number of assets, and the step whose request meets the fault.
    for (count, step) in sample([(1, 1), (2, 0), (1, 0), (2, 1)], 1) {
        with_each_disturbance(&api, 7, async |client, _, place, way| {
            submits_once(&api, client, &started_for(client, count).await, step, place, way).await
        })
        .await;
    }
}

/// Without an idempotency key, `current_step` prevents a retry from taking effect twice.
#[tokio::test(start_paused = true)]
async fn a_submission_without_a_key_is_never_done_twice() {
    let api = Api::start().await;
    with_each_disturbance(&api, 7, async |client, name, place, way| {
        let path = two_steps(client).await;
        let link = Link::for_guest(client, &path).await;
        let signer = link.signer(client);
        signer.session().await;
        let body = json!({"step_data": {"note": "n", "sign": SIGNATURE}, "through": "sign", "current_step": 0});
        let (reply, is_disturbed) = way.at(&api, place, async || signer.sign(body.clone()).await).await;
        let code = reply.json()["code"].as_str().unwrap_or_default().to_owned();
        let may_be_done = matches!(way, Disturbance::IsDropped | Disturbance::Fails(CallFailure::TimedOutAfter));
        let was_done = may_be_done && code == "UNAUTHORIZED" && reply.json()["link_status"] == "used";
        assert!(reply.status == 200 || was_done, "{name}: {}", reply.text());
        check_done(&api, client, &path, &link, name).await;
        is_disturbed
    })
    .await;
}

/// The receipt is the tenant's first one, so the request also creates the receipt keys.
#[tokio::test(start_paused = true)]
async fn a_receipt_survives_any_disturbance() {
    let api = Api::start().await;
    with_each_disturbance(&api, 10, async |client, name, place, way| {
        let path = started(client, json!([signature_step()])).await;
        let signer = Link::for_guest(client, &path).await.signer(client);
        signer.sign(json!({"step_data": {"sign": SIGNATURE}})).await.data();
        let (receipt, is_disturbed) = way.at(&api, place, async || signer.get("/sign/receipt").await).await;
        assert_eq!(receipt.text(), client.get(&format!("{path}/receipt")).await.text(), "{name}");
        is_disturbed
    })
    .await;
}

/// Each link, and the API key that created it, has separate idempotency keys.
#[tokio::test(start_paused = true)]
async fn idempotency_keys_of_links_and_api_keys_do_not_meet() {
    let client = over_http().await;
    let body = json!({"step_data": {"note": "n"}});
    let mut done = Vec::new();
    for _ in 0..2 {
        let path = started(&client, json!([step("text", "note"), signature_step()])).await;
        let link = Link::for_guest(&client, &path).await;
        let reply = link.signer(&client).sign_once(&body, "k").await;
        assert_eq!((reply.status.as_u16(), reply.header("idempotent-replayed")), (200, ""), "{}", reply.text());
        done.push(reply.data()["link_id"].clone());
    }
    assert_ne!(done[0], done[1]);
    let created = client.send_json("POST", "/assets", r#"{"name": "x"}"#, ("idempotency-key", "k")).await;
    assert_eq!(created.status, 201);
}

#[tokio::test(start_paused = true)]
async fn no_link_is_made_for_steps_that_are_submitted_meanwhile() {
    let (api, client) = Api::with_tenant().await;
    for (through, until, expected) in [("note", None, 201), ("note", Some("note"), 422), ("sign", None, 409)] {
        let path = started(&client, json!([step("text", "note"), signature_step()])).await;
        let mut body = signer_named("Grace");
        if let Some(until) = until {
            body["until"] = json!(until);
        }
        let (links, advance) = (format!("{path}/links"), format!("{path}/advance"));
        let steps = json!({"step_data": {"sign": SIGNATURE}, "through": through});
        let (creation, advance) = (client.post(&links, body), client.post(&advance, steps));
        let (late, advanced) = api.faults.overtake("TransactWriteItems", creation, advance).await;
        advanced.data();
        assert_eq!(late.status.as_u16(), expected, "{}", late.text());
        assert_eq!(client.total(&links).await, u64::from(expected == 201));
        if expected == 201 {
            let session = Link::of(&path, &late).signer(&client).session().await;
            assert_eq!(session["steps"].as_array().unwrap().len(), 1, "the link doesn't cover the submitted step");
        }
    }
}
