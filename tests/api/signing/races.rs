//! Simultaneous requests about one link: a second tab, a double tap, a revocation that comes between.

use crate::support::processes::cancel;
use crate::support::samples::SIGNATURE;
use crate::support::signing::{Link, id_of, link_status, signature_step, signer_named, started, step};
use crate::support::table::history::event_chain;
use crate::support::{Api, Client, Reply};
use futures_util::future::join_all;
use serde_json::{Value, json};

/// Clients of several function instances whose clocks differ.
fn copies(api: &Api, client: &Client) -> Vec<Client> {
    [0, 700, -900].map(|skew| api.replica(skew, 1 << 20).client(client)).into_iter().chain([client.clone()]).collect()
}

async fn current_step(client: &Client, path: &str) -> Value {
    client.get(path).await.data()["current_step"].clone()
}

fn codes(replies: &[&Reply]) -> Vec<String> {
    replies.iter().map(|reply| reply.json()["code"].as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn of_simultaneous_submissions_of_a_step_exactly_one_succeeds() {
    let (api, client) = Api::with_tenant().await;
    for round in 0..4 {
        let path = started(&client, json!([step("text", "note"), signature_step(), step("text", "after")])).await;
        let link = Link::for_guest(&client, &path).await;
        let tabs = copies(&api, &link.signer(&client));
        for (index, data) in [json!({"note": "n"}), json!({"sign": SIGNATURE})].into_iter().enumerate() {
            let submit = |tab: &Client| {
                let tab = tab.clone();
                let mut body = json!({"step_data": data});
                if round % 2 == 0 {
                    body["current_step"] = json!(index);
                }
                async move { tab.sign(body).await }
            };
            // Without current_step, a late request may submit the next step; here that one lacks its value.
            let replies = join_all(tabs.iter().map(submit)).await;
            let (done, refused): (Vec<&Reply>, Vec<&Reply>) = replies.iter().partition(|reply| reply.status == 200);
            assert_eq!(done.len(), 1, "{:?}", codes(&refused));
            for code in codes(&refused) {
                let is_late = round % 2 == 1 && code == "VALIDATION_ERROR";
                let is_over = index == 1 && code == "UNAUTHORIZED";
                assert!(code == "STEP_MOVED" || is_late || is_over, "{code}");
            }
        }
        assert_eq!(current_step(&client, &path).await, 2, "the step after the link's was submitted as well");
        assert_eq!(event_chain(&api, &client, id_of(&path)).await.len(), 3);
        assert_eq!(link.shown(&client).await["status"], "used");
        event_chain(&api, &client, &link.id).await;
    }
}

#[tokio::test(start_paused = true)]
async fn sixteen_copies_of_a_request_are_executed_once() {
    let (api, client) = Api::with_tenant().await;
    let path = started(&client, json!([step("text", "note"), signature_step()])).await;
    let makers = copies(&api, &client);
    let links = format!("{path}/links");
    let body = signer_named("Grace").to_string();
    let made = join_all((0..16).map(|n| makers[n % 4].send_json("POST", &links, &body, ("idempotency-key", "k")))).await;
    let with_url: Vec<&Reply> = made.iter().filter(|reply| reply.text().contains("#sgn_")).collect();
    assert_eq!(with_url.len(), 1);
    assert_eq!(client.total(&links).await, 1);
    let link = Link::of(&path, with_url[0]);
    let tabs = copies(&api, &link.signer(&client));
    for body in [json!({"step_data": {"note": "n"}}), json!({"step_data": {"sign": SIGNATURE}})] {
        let key = body.to_string();
        let replies = join_all((0..16).map(|n| tabs[n % 4].sign_once(&body, &key))).await;
        let done: Vec<&Reply> = replies.iter().filter(|reply| reply.status == 200).collect();
        for reply in replies.iter().filter(|reply| reply.status != 200) {
            reply.problem(409, "REQUEST_IN_PROGRESS");
        }
        assert!(done.iter().all(|reply| reply.json() == done[0].json()));
        assert_eq!(done.iter().filter(|reply| reply.header("idempotent-replayed").is_empty()).count(), 1);
    }
    assert_eq!(event_chain(&api, &client, id_of(&path)).await.len(), 3);
    let other = tabs[0].sign_once(&json!({"step_data": {}}), &json!({"step_data": {"note": "n"}}).to_string()).await;
    assert_eq!(other.field_errors(), ["Idempotency-Key"]);
}

/// Each link has idempotency keys of its own, and so has the API key that made it.
#[tokio::test]
async fn idempotency_keys_of_links_and_api_keys_do_not_meet() {
    let (_api, client) = Api::with_tenant().await;
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

#[tokio::test]
async fn of_a_link_and_a_key_that_submit_one_step_exactly_one_succeeds() {
    let (api, client) = Api::with_tenant().await;
    for round in 0..6 {
        let path = started(&client, json!([step("text", "note"), signature_step()])).await;
        let link = Link::for_guest(&client, &path).await;
        let signer = api.replica(0, 1 << 20).client(&link.signer(&client));
        signer.session().await;
        let body = json!({"step_data": {"note": "n", "sign": SIGNATURE}, "through": "sign", "current_step": 0});
        let advance = format!("{path}/advance");
        let (signed, advanced) = tokio::join!(signer.sign(body.clone()), client.post(&advance, body.clone()));
        let shown = link.shown(&client).await;
        match (signed.status.as_u16(), advanced.status.as_u16()) {
            (200, 409) => assert_eq!(shown["status"], "used"),
            (401, 200) => assert_eq!((link_status(&signed), &shown["status"]), ("ended".to_owned(), &json!("ended"))),
            (409, 200) => assert_eq!((&shown["used_at"], &shown["status"]), (&Value::Null, &json!("ended"))),
            other => panic!("round {round}: {other:?}: {} {}", signed.text(), advanced.text()),
        }
        assert_eq!(event_chain(&api, &client, id_of(&path)).await.len(), 3);
        event_chain(&api, &client, &link.id).await;
    }
}

/// A revocation that was answered is final for all requests under way: also for a step that is not the link's last.
#[tokio::test]
async fn no_step_is_submitted_after_the_revocation_was_answered() {
    let (api, client) = Api::with_tenant().await;
    for (data, through) in [(json!({"note": "n"}), None), (json!({"note": "n", "sign": SIGNATURE}), Some("sign"))] {
        for is_opened in [false, true] {
            let path = started(&client, json!([step("text", "note"), signature_step()])).await;
            let link = Link::for_guest(&client, &path).await;
            let signer = link.signer(&client);
            if is_opened {
                signer.session().await;
            }
            client.use_key_once().await;
            let submission = signer.sign(json!({"step_data": data, "through": through.unwrap_or("note")}));
            let (late, revoked) = api.faults.overtake("TransactWriteItems", submission, client.delete(&link.path)).await;
            let revoked = revoked.data();
            assert_eq!(link_status(&late), "revoked");
            assert_eq!(current_step(&client, &path).await, 0);
            let shown = link.shown(&client).await;
            assert_eq!((&shown, &shown["used_at"]), (&revoked, &Value::Null));
            assert_eq!(event_chain(&api, &client, id_of(&path)).await.len(), 1);
        }
    }
}

#[tokio::test]
async fn a_submission_comes_before_its_links_revocation_or_is_refused() {
    let (api, client) = Api::with_tenant().await;
    for round in 0..10 {
        let path = started(&client, json!([signature_step(), step("text", "after")])).await;
        let link = Link::for_guest(&client, &path).await;
        let signer = api.replica(0, 1 << 20).client(&link.signer(&client));
        if round % 2 == 0 {
            signer.session().await;
        }
        let (signed, revoked) = tokio::join!(signer.sign(json!({"step_data": {"sign": SIGNATURE}})), client.delete(&link.path));
        let shown = link.shown(&client).await;
        let step = current_step(&client, &path).await;
        assert!(revoked.status == 200 || revoked.status == 409, "{}", revoked.text());
        match signed.status.as_u16() {
            200 => {
                assert!(shown["used_at"].is_string() && step == 1, "{shown}");
                let order = (shown["used_at"].as_str(), shown["revoked_at"].as_str());
                assert!(order.1.is_none() || order.0 <= order.1, "{shown}");
            }
            401 => {
                assert_eq!((link_status(&signed), revoked.status.as_u16()), ("revoked".to_owned(), 200));
                assert!(shown["used_at"].is_null() && shown["revoked_at"].is_string() && step == 0, "{shown}");
            }
            other => panic!("{other}: {}", signed.text()),
        }
        event_chain(&api, &client, &link.id).await;
    }
}

#[tokio::test]
async fn of_a_cancellation_and_a_links_last_step_exactly_one_succeeds() {
    let (api, client) = Api::with_tenant().await;
    for _ in 0..8 {
        let path = started(&client, json!([signature_step()])).await;
        let link = Link::for_guest(&client, &path).await;
        let signer = link.signer(&client);
        let (signed, cancelled) =
            tokio::join!(signer.sign(json!({"step_data": {"sign": SIGNATURE}})), cancel(&client, id_of(&path)));
        let status = link.shown(&client).await["status"].clone();
        match (signed.status.as_u16(), cancelled.status.as_u16()) {
            (200, 409) => assert_eq!(status, "used"),
            (401, 200) => assert_eq!((link_status(&signed), status), ("ended".to_owned(), json!("ended"))),
            (409, 200) => {
                signed.problem(409, "INSTANCE_CLOSED");
                assert_eq!(status, "ended");
            }
            other => panic!("{other:?}: {} {}", signed.text(), cancelled.text()),
        }
        assert_eq!(event_chain(&api, &client, id_of(&path)).await.len(), 2);
    }
}

#[tokio::test]
async fn a_link_is_opened_once_however_many_tabs_open_it() {
    let (api, client) = Api::with_tenant().await;
    for _ in 0..4 {
        let path = started(&client, json!([signature_step()])).await;
        let link = Link::for_guest(&client, &path).await;
        let tabs = copies(&api, &link.signer(&client));
        let sessions = join_all((0..12).map(|n| tabs[n % 4].get("/sign/session"))).await;
        for session in &sessions {
            assert_eq!(session.data()["status"], "open");
        }
        assert_eq!(event_chain(&api, &client, &link.id).await.len(), 2);
        assert!(link.shown(&client).await["opened_at"].is_string());
    }
}

#[tokio::test]
async fn a_link_that_is_revoked_while_it_is_opened_stays_revoked() {
    let (api, client) = Api::with_tenant().await;
    let path = started(&client, json!([signature_step()])).await;
    let link = Link::for_guest(&client, &path).await;
    client.use_key_once().await;
    let signer = link.signer(&client);
    let opening = signer.get("/sign/session");
    let (session, revoked) = api.faults.overtake("TransactWriteItems", opening, client.delete(&link.path)).await;
    revoked.data();
    assert_eq!(link_status(&session), "revoked");
    assert_eq!(link.shown(&client).await["status"], "revoked");
    event_chain(&api, &client, &link.id).await;
}

#[tokio::test]
async fn simultaneous_revocations_revoke_once() {
    let (api, client) = Api::with_tenant().await;
    let path = started(&client, json!([signature_step()])).await;
    let link = Link::for_guest(&client, &path).await;
    let clients = copies(&api, &client);
    let replies = join_all((0..8).map(|n| clients[n % 4].delete(&link.path))).await;
    for reply in &replies {
        assert_eq!(reply.data(), replies[0].data());
    }
    assert_eq!(event_chain(&api, &client, &link.id).await.len(), 2);
}

#[tokio::test]
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
            assert_eq!(session["steps"].as_array().unwrap().len(), 1, "it is not made for the submitted step");
        }
    }
}
