//! How signing links end: after their last step, on expiry, with their process, or by revocation.

use crate::support::prelude::*;

/// How long the page offers the receipt after the last step.
const RECEIPT_SECONDS: u32 = 24 * 3600;

fn steps() -> Value {
    json!([step("text", "note"), signature_step(), step("text", "after")])
}

/// Sends each kind of request with a link. Fails unless all are refused for the same reason. Returns the reason.
async fn refused(signer: &Client) -> String {
    let replies: [Reply; 3] = [
        signer.get("/sign/session").await,
        signer.sign(json!({"step_data": {"note": "too late"}})).await,
        signer.get("/sign/receipt").await,
    ];
    let reason = link_status(&replies[0]);
    for reply in &replies {
        assert_eq!(link_status(reply), reason);
        assert_eq!(reply.json()["detail"], replies[0].json()["detail"]);
    }
    reason
}

async fn status(client: &Client, link: &Link) -> String {
    let shown = link.shown(client).await;
    let list = client.get(link.path.rsplit_once('/').unwrap().0).await.data();
    assert!(list.as_array().unwrap().contains(&shown), "the list shows a different state than {shown}");
    shown["status"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_link_expires_to_the_millisecond() {
    let (api, client) = Api::with_tenant().await;
    let path = started(&client, steps()).await;
    let link = Link::create(&client, &path, json!({"signer": {"name": "Grace"}, "expires_in": 60})).await;
    api.stop_clock();
    let end: Timestamp = link.shown(&client).await["expires_at"].as_str().unwrap().parse().unwrap();
    api.advance_clock_millis(end.millis() - 1 - api.now().millis());
    let signer = link.signer(&client);
    assert_eq!(signer.session().await["ends_at"], end.to_string());
    api.advance_clock_millis(1);
    let before = api.dump().await;
    assert_eq!(refused(&signer).await, "expired");
    assert_eq!(status(&client, &link).await, "expired");
    assert_eq!(api.dump().await, before);
    assert_eq!(client.get(&path).await.data()["current_step"], 0);
}

#[tokio::test(start_paused = true)]
async fn a_revoked_link_is_refused_with_the_next_request() {
    let (api, client) = Api::with_tenant().await;
    let path = started(&client, steps()).await;
    let (link, other) = (Link::for_guest(&client, &path).await, Link::for_guest(&client, &path).await);
    let signer = link.signer(&client);
    signer.sign(json!({"step_data": {"note": "n"}})).await.data();
    let revoked = client.delete(&link.path).await.data();
    assert!(revoked["revoked_at"].is_string() && revoked["used_at"].is_null() && revoked.get("url").is_none(), "{revoked}");
    assert_eq!(refused(&signer).await, "revoked");
    assert_eq!(refused(&Client { router: api.replica(0, 1 << 20).router, ..signer.clone() }).await, "revoked");
    assert_eq!(status(&client, &link).await, "revoked");
    let before = api.dump().await;
    assert_eq!(client.delete(&link.path).await.data(), revoked);
    assert_eq!(api.dump().await, before, "a second revocation writes something");
    assert_eq!(link.shown(&client).await, revoked);
    assert_eq!(event_chain(&api, &client, &link.id).await.len(), 2, "one creation, one revocation");
    other.signer(&client).sign(json!({"step_data": {"sign": SIGNATURE}})).await.data();
    assert_eq!(status(&client, &link).await, "revoked", "steps submitted by others change nothing");
}

#[tokio::test(start_paused = true)]
async fn a_link_ends_with_its_process_or_when_others_have_submitted_its_steps() {
    let client = over_http().await;
    for how in ["cancelled", "its steps", "completed"] {
        let path = started(&client, steps()).await;
        let link = Link::for_guest(&client, &path).await;
        let signer = link.signer(&client);
        signer.session().await;
        if how == "cancelled" {
            cancel(&client, id_of(&path)).await.data();
        } else {
            let through = if how == "completed" { "after" } else { "sign" };
            let body = json!({"step_data": {"sign": SIGNATURE}, "through": through});
            client.post(&format!("{path}/advance"), body).await.data();
        }
        assert_eq!(refused(&signer).await, "ended", "{how}");
        assert_eq!(status(&client, &link).await, "ended", "{how}");
        let shown = link.shown(&client).await;
        assert!(shown["used_at"].is_null() && shown["revoked_at"].is_null(), "{shown}");
    }
    let process = create_process(&client, steps()).await;
    for how in ["cancelled", "completed"] {
        let movement = start_movement(&client, &process, &client.assets(2).await).await;
        let id = movement["id"].as_str().unwrap();
        let link = Link::for_guest(&client, &format!("/movements/{id}")).await;
        let signer = link.signer(&client);
        if how == "cancelled" {
            client.post(&format!("/movements/{id}/cancel"), json!({})).await.data();
        } else {
            for data in [json!({}), json!({"sign": SIGNATURE}), json!({})] {
                advance_movement(&client, id, data).await.data();
            }
        }
        assert_eq!(refused(&signer).await, "ended", "{how}");
        assert_eq!(status(&client, &link).await, "ended", "{how}");
    }
}

/// Later changes to the process don't affect a used link.
#[tokio::test(start_paused = true)]
async fn a_used_link_shows_the_end_and_the_receipt_for_a_day() {
    let (api, client) = Api::with_tenant().await;
    let path = started(&client, steps()).await;
    let link = Link::create(&client, &path, json!({"signer": {"name": "Grace"}, "expires_in": 3600})).await;
    let signer = link.signer(&client);
    let body = json!({"step_data": {"note": "n", "sign": SIGNATURE}, "through": "sign"});
    let first = signer.sign_once(&body, "k").await;
    let session = first.data();
    let used = link.shown(&client).await;
    let used_at: Timestamp = used["used_at"].as_str().unwrap().parse().unwrap();
    let end = used_at.plus_seconds(RECEIPT_SECONDS);
    assert_eq!((&session["status"], &session["ends_at"]), (&json!("used"), &json!(end)));
    assert_eq!((&session["steps"], &session["is_completed"]), (&json!([]), &json!(false)));
    assert_eq!(status(&client, &link).await, "used");
    signer.get("/sign/receipt").await.problem(409, "CONFLICT");
    api.advance_clock(2 * 3600);
    advance(&client, id_of(&path), json!({"after": "x"})).await.data();
    let before = client.total(&format!("{path}/history")).await;
    let now = signer.session().await;
    assert_eq!((&now["status"], &now["is_completed"], &now["ends_at"]), (&json!("used"), &json!(true), &json!(end)));
    assert_eq!(signer.get("/sign/receipt").await.status, 200);
    let again = signer.sign_once(&body, "k").await;
    assert_eq!((again.header("idempotent-replayed"), again.data()), ("true", session));
    assert_eq!(link_status(&signer.sign(body.clone()).await), "used");
    assert_eq!(link_status(&signer.sign_once(&body, "another").await), "used");
    assert_eq!(status(&client, &link).await, "used", "not expired, and not ended");
    assert_eq!(client.total(&format!("{path}/history")).await, before);
    api.stop_clock();
    api.advance_clock_millis(end.millis() - 1 - api.now().millis());
    signer.session().await;
    api.advance_clock_millis(1);
    assert_eq!(refused(&signer).await, "used");
    assert_eq!(status(&client, &link).await, "used");
}

#[tokio::test(start_paused = true)]
async fn the_session_of_a_link_that_is_over_costs_little_and_says_why_in_words() {
    let (api, client) = Api::with_tenant().await;
    let mut details = Vec::new();
    for end in ["revoked", "expired", "ended"] {
        let path = started(&client, steps()).await;
        let link = Link::create(&client, &path, json!({"signer": {"name": "Qwert"}, "expires_in": 60})).await;
        let signer = link.signer(&client);
        signer.session().await;
        match end {
            "revoked" => drop(client.delete(&link.path).await.data()),
            "expired" => api.advance_clock(61),
            _ => drop(cancel(&client, id_of(&path)).await.data()),
        }
        let before = api.dump().await;
        // A cancellation is stored only in the process, which takes more reads. A new minute's requests are counted in a new
        // item.
        let most = match end {
            "ended" => 5.0,
            "expired" => 1.5,
            _ => 1.0,
        };
        for n in 0..3 {
            let (_, cost) = api.cost(signer.get("/sign/session")).await;
            assert!(cost.read_units <= most && cost.write_units <= 1.0, "{end}, {n}: {cost:?}");
        }
        let reply = signer.get("/sign/session").await;
        assert_eq!((link_status(&reply), api.dump().await), (end.to_owned(), before));
        let detail = reply.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.len() > 15 && !details.contains(&detail), "{detail}");
        assert!(!reply.text().contains("Qwert") && !reply.text().contains("Own"), "{}", reply.text());
        details.push(detail);
    }
}

/// The first reason remains: a revoked link doesn't become expired or ended later, for example.
#[tokio::test(start_paused = true)]
async fn a_link_that_is_over_stays_over_for_the_same_reason() {
    let (api, client) = Api::with_tenant().await;
    let path = started(&client, steps()).await;
    let create = async || Link::create(&client, &path, json!({"signer": {"name": "Grace"}, "expires_in": 60})).await;
    let (used, revoked) = (create().await, create().await);
    client.delete(&revoked.path).await.data();
    let body = json!({"step_data": {"sign": SIGNATURE}, "through": "sign"});
    used.signer(&client).sign(body).await.data();
    api.advance_clock(3600);
    cancel(&client, id_of(&path)).await.data();
    assert_eq!((status(&client, &used).await, status(&client, &revoked).await), ("used".to_owned(), "revoked".to_owned()));
    let session = used.signer(&client).session().await;
    let ended = (&session["status"], &session["is_completed"], &session["is_cancelled"]);
    assert_eq!(ended, (&json!("used"), &json!(false), &json!(true)));
    assert_eq!(session["assets"].as_array().unwrap().len(), 1);
    used.signer(&client).get("/sign/receipt").await.problem(409, "CONFLICT");
    assert_eq!(refused(&revoked.signer(&client)).await, "revoked");
}

#[tokio::test(start_paused = true)]
async fn links_of_one_process_are_independent() {
    let client = over_http().await;
    let path = started(&client, steps()).await;
    let first = Link::create(&client, &path, json!({"signer": {"name": "A"}, "until": "note"})).await;
    let second = Link::create(&client, &path, signer_named("B")).await;
    let third = Link::create(&client, &path, json!({"signer": {"name": "C"}, "until": "after"})).await;
    first.signer(&client).sign(json!({"step_data": {"note": "by A"}})).await.data();
    second.signer(&client).sign(json!({"step_data": {"sign": SIGNATURE}})).await.data();
    third.signer(&client).sign(json!({"step_data": {"after": "by C"}})).await.data();
    for link in [&first, &second, &third] {
        assert_eq!(status(&client, link).await, "used");
    }
    let history = client.get(&format!("{path}/history")).await.data();
    let names: Vec<&Value> = history.as_array().unwrap().iter().map(|event| &event["actor"]["user_name"]).collect();
    assert_eq!(names, [&json!("C"), &json!("B"), &json!("A"), &Value::Null]);
}
