//! Signing links with every call to the table failing in every way, and with requests that are dropped at every point: a repeated
//! request is done once, and nothing half done.

use crate::support::processes::{create_process, start_movement};
use crate::support::samples::SIGNATURE;
use crate::support::signing::{Link, id_of, signature_step, started, step};
use crate::support::table::history::event_chain;
use crate::support::{Api, Client, Disturbance, at_each_place, sample};
use dev_server::faulty_table::planned::CallFailure;
use dev_server::invariants::violations;
use serde_json::{Value, json};

/// Calls `case` with a disturbance of its request, and with a tenant of its own, because events are found by reading all of a
/// tenant's. The request makes at least `least` calls. The case returns whether the request was disturbed.
async fn with_each_disturbance(api: &Api, least: usize, case: impl AsyncFn(&Client, &str, usize, Disturbance) -> bool) {
    let case = async |place, way| {
        let client = api.tenant().await;
        client.use_key_once().await;
        let name = format!("{way:?} {place}");
        let is_disturbed = case(&client, &name, place, way).await;
        let found = violations(&api.store.tenant(client.tenant), &api.dynamo, &api.table).await.unwrap();
        assert!(found.is_empty(), "{name}: {found:?}");
        is_disturbed
    };
    at_each_place(&CallFailure::ALL.map(Disturbance::Fails), least, 4, &case).await;
    at_each_place(&[Disturbance::IsDropped], least.min(3), 1, &case).await;
}

/// Two steps, the second a signature. Returns the instance's path.
async fn two_steps(client: &Client) -> String {
    started(client, json!([step("text", "note"), signature_step()])).await
}

#[tokio::test(start_paused = true)]
async fn a_creation_survives_any_disturbance() {
    let api = Api::start().await;
    with_each_disturbance(&api, 3, async |client, name, place, way| {
        let path = two_steps(client).await;
        let links = format!("{path}/links");
        let body = json!({"signer": {"user_id": client.user("Ada").await}}).to_string();
        let send = async || client.send_json("POST", &links, &body, ("idempotency-key", name)).await;
        let (reply, is_disturbed) = way.at(&api, place, &send).await;
        assert_eq!(reply.status, 201, "{name}: {}", reply.text());
        assert_eq!(client.total(&links).await, 1, "{name}");
        let again = send().await;
        assert_eq!((again.id(), again.header("idempotent-replayed")), (reply.id(), "true"), "{name}");
        assert_eq!(event_chain(&api, client, &reply.id()).await.len(), 1, "{name}");
        // The URL is lost with the response that had it.
        if let Some(url) = reply.data()["url"].as_str() {
            client.with_key(url.split_once('#').unwrap().1).session().await;
        } else {
            assert_eq!(reply.header("idempotent-replayed"), "true", "{name}");
        }
        is_disturbed
    })
    .await;
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
        // If that it was opened could not be written, the next session writes it.
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

/// Submits both steps of a new link, the first one alone; one is disturbed. Returns whether it was.
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

/// Two steps. Returns the path of the instance or of the movement.
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
    // The number of assets, and the step that is disturbed.
    for (count, step) in sample([(1, 1), (2, 0), (1, 0), (2, 1)], 1) {
        with_each_disturbance(&api, 7, async |client, _, place, way| {
            submits_once(&api, client, &started_for(client, count).await, step, place, way).await
        })
        .await;
    }
}

/// Without an idempotency key, `current_step` keeps a repeated submission from being made twice.
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

#[tokio::test(start_paused = true)]
async fn a_revocation_survives_any_disturbance() {
    let api = Api::start().await;
    with_each_disturbance(&api, 2, async |client, name, place, way| {
        let link = Link::for_guest(client, &two_steps(client).await).await;
        let (revoked, is_disturbed) = way.at(&api, place, async || client.delete(&link.path).await).await;
        assert_eq!(revoked.data()["status"], "revoked", "{name}");
        assert_eq!(link.shown(client).await, revoked.data(), "{name}");
        assert_eq!(event_chain(&api, client, &link.id).await.len(), 2, "{name}");
        link.signer(client).get("/sign/session").await.problem(401, "UNAUTHORIZED");
        is_disturbed
    })
    .await;
}

/// The tenant's first receipt, for which its keys are made.
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

/// The page's draft is sent again with the same key: a lost response changes nothing.
#[tokio::test(start_paused = true)]
async fn a_lost_response_is_replayed_to_the_page() {
    let (api, client) = Api::with_tenant().await;
    let path = started(&client, json!([signature_step()])).await;
    let link = Link::for_guest(&client, &path).await;
    let signer = link.signer(&client);
    signer.session().await;
    api.faults.throttle("TransactWriteItems", 3);
    let body: Value = json!({"step_data": {"sign": SIGNATURE}});
    let busy = signer.sign_once(&body, "k").await;
    busy.problem(503, "UNAVAILABLE");
    assert!(busy.header("retry-after").parse::<u64>().is_ok());
    assert_eq!(client.get(&path).await.data()["current_step"], 0);
    api.faults.lose_response("TransactWriteItems");
    let done = signer.sign_once(&body, "k").await;
    assert_eq!(done.data()["is_completed"], true);
    assert_eq!(signer.sign_once(&body, "k").await.data(), done.data());
    assert_eq!(event_chain(&api, &client, id_of(&path)).await.len(), 2);
}
