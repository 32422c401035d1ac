//! Simultaneous requests about one link: a second tab, a double tap, a revocation that comes between.

use crate::support::samples::SIGNATURE;
use crate::support::signing::{Link, link_status, signature_step, signer_named, started, step};
use crate::support::table::history::event_chain;
use crate::support::{Api, over_http};
use serde_json::json;

/// Each link has idempotency keys of its own, and so has the API key that made it.
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
        let step = client.get(&path).await.data()["current_step"].clone();
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
            assert_eq!(session["steps"].as_array().unwrap().len(), 1, "it is not made for the submitted step");
        }
    }
}
