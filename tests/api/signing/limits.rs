//! The limits of links: their rate and number; and that every process that can be started can be signed with a link.

use crate::support::processes::{create_process, start_movement};
use crate::support::samples::SIGNATURE;
use crate::support::signing::{Link, link_status, signature_step, signer_named, started, step};
use crate::support::{Api, Client, over_http};
use dev_server::invariants::violations;
use futures_util::future::join_all;
use serde_json::{Value, json};

#[tokio::test(start_paused = true)]
async fn whatever_can_be_started_can_be_signed_with_a_link() {
    let client = over_http().await;
    let body = json!({"name": "Give back", "trigger_status": "in_use", "target_status": "returned", "steps": [signature_step()]});
    let process = client.post("/processes", body).await.id();
    let mut assets = Vec::new();
    let mut largest = None;
    for number in 0..20 {
        let user = client.user(&format!("Holder {number}")).await;
        let asset = client.assigned_asset("Laptop", &user).await;
        client.patch(&format!("/assets/{asset}"), json!({"status": "in_use"})).await.data();
        assets.push(asset);
    }
    // Of 20 assets with different holders, as many as can be started.
    for held in (2..=20).rev() {
        let started = client.post(&format!("/processes/{process}/start"), json!({"asset_ids": assets[..held]})).await;
        if started.status == 201 {
            largest = Some((held, started.id()));
            break;
        }
    }
    let (held, movement) = largest.unwrap();
    assert!((15..20).contains(&held), "{held}");
    let link = Link::for_guest(&client, &format!("/movements/{movement}")).await;
    let signed = link.signer(&client).sign(json!({"step_data": {"sign": SIGNATURE}, "through": "sign"})).await.data();
    assert_eq!((&signed["status"], &signed["is_completed"]), (&json!("used"), &json!(true)));
}

#[tokio::test(start_paused = true)]
async fn as_many_steps_fit_one_transaction_as_the_error_says() {
    let client = over_http().await;
    let steps: Vec<Value> = (0..8).map(|number| step("confirmation", &format!("k{number}"))).collect();
    let process = create_process(&client, json!(steps)).await;
    let movement = start_movement(&client, &process, &client.assets(11).await).await;
    let path = format!("/movements/{}", movement["id"].as_str().unwrap());
    let signer = Link::for_guest(&client, &path).await.signer(&client);
    let values: serde_json::Map<String, Value> = (0..8).map(|number| (format!("k{number}"), json!(true))).collect();
    let submit = |through: String| signer.sign(json!({"step_data": values.clone(), "through": through}));
    let detail = submit("k7".to_owned()).await.json()["errors"][0]["detail"].as_str().unwrap().to_owned();
    let last = detail.rsplit(' ').next().unwrap().to_owned();
    assert!(detail.starts_with("makes 8 steps, which are too many changes") && last != "k7", "{detail}");
    submit(last).await.data();
}

/// Returns the number of created links. The others were refused.
async fn create_at_once(client: &Client, links: &str, count: usize) -> usize {
    let replies = join_all((0..count).map(|_| client.post(links, signer_named("Grace")))).await;
    let (made, refused): (Vec<_>, Vec<_>) = replies.iter().partition(|reply| reply.status == 201);
    refused.iter().for_each(|reply| drop(reply.problem(409, "CONFLICT")));
    made.len()
}

/// Creates links until there are 100, at first 40 at the same time, and checks that there are not more.
async fn fill(client: &Client, links: &str, mut count: usize) {
    count += create_at_once(client, links, 40).await;
    // A request that lost too many races can be repeated.
    for _ in count..100 {
        assert_eq!(create_at_once(client, links, 1).await, 1);
    }
    let refused = client.post(links, signer_named("Grace")).await.problem(409, "CONFLICT");
    assert_eq!(refused["detail"], "The limit of 100 links is reached.");
    client.post(&format!("{links}?dry_run=true"), signer_named("Grace")).await.problem(409, "CONFLICT");
    assert_eq!(client.total(links).await, 100);
}

#[tokio::test(start_paused = true)]
async fn there_are_at_most_100_links_however_many_are_created_at_once() {
    let (api, client) = Api::with_tenant().await;
    let path = started(&client, json!([signature_step()])).await;
    let links = format!("{path}/links");
    let first = Link::for_guest(&client, &path).await;
    for _ in 0..4 {
        assert_eq!(create_at_once(&client, &links, 20).await, 20);
    }
    fill(&client, &links, 81).await;
    assert_eq!(client.get(&format!("{links}?limit=100")).await.data().as_array().unwrap().len(), 100);
    assert_eq!(violations(&api.store.tenant(client.tenant), &api.dynamo, &api.table).await.unwrap(), [""; 0]);
    // A link counts in every state.
    client.delete(&first.path).await.data();
    client.post(&links, signer_named("Grace")).await.problem(409, "CONFLICT");
    // Another process instance has links of its own.
    Link::for_guest(&client, &started(&client, json!([signature_step()])).await).await;
}

#[tokio::test(start_paused = true)]
async fn a_request_beyond_the_rate_reads_the_link_only() {
    let (api, client) = Api::with_tenant().await;
    api.stop_clock();
    let path = started(&client, json!([signature_step()])).await;
    let link = Link::for_guest(&client, &path).await;
    let signer = link.signer(&client);
    for _ in 0..60 {
        signer.session().await;
    }
    api.meter.take();
    signer.get("/sign/session").await.problem(429, "RATE_LIMITED");
    let cost = api.meter.take();
    assert!(cost.read_units <= 1.0 && cost.write_units <= 1.0, "{cost:?}");
    // Ended links count as well.
    api.advance_clock(60);
    client.delete(&link.path).await.data();
    for _ in 0..60 {
        assert_eq!(link_status(&signer.get("/sign/session").await), "revoked");
    }
    signer.get("/sign/session").await.problem(429, "RATE_LIMITED");
}
