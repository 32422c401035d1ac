//! What signing links cost: consecutive round trips, and capacity units as the table reports them.

use crate::support::processes::{create_process, start_movement};
use crate::support::samples::SIGNATURE;
use crate::support::signing::{Link, signature_step, signer_named, started, step};
use crate::support::{Api, Client, Reply};
use local::meter::Cost;
use serde_json::json;
use std::io::Write;

fn cost(round_trips: usize, calls: usize, read_units: f64, write_units: f64) -> Cost {
    Cost { round_trips, calls, read_units, write_units }
}

/// Waits for a request, checks that it costs no more than `max`, and prints a line about it.
async fn measured(api: &Api, name: &str, request: impl Future<Output = Reply>, max: Cost) {
    api.meter.take();
    let reply = request.await;
    assert!(reply.status.is_success(), "{name}: {}", reply.text());
    let cost = api.meter.take();
    let is_cheap = cost.round_trips <= max.round_trips
        && cost.calls <= max.calls
        && cost.read_units <= max.read_units
        && cost.write_units <= max.write_units;
    // Written to stdout directly, so that the line is shown even when the test passes.
    let Cost { round_trips, calls, read_units, write_units } = cost;
    let line = format!("{name:<34}{round_trips:>12}{calls:>7}{read_units:>12.1}{write_units:>13.1}");
    writeln!(std::io::stdout().lock(), "{line}").unwrap();
    assert!(is_cheap, "{name} costs {cost:?}, more than {max:?}");
}

#[tokio::test]
async fn links_cost_no_more_round_trips_and_units_than_planned() {
    let (api, client) = Api::with_tenant().await;
    client.use_key_once().await;
    let user = client.user("Ada").await;
    let path = started(&client, json!([step("text", "note"), signature_step()])).await;
    let body = json!({"signer": {"user_id": user}});
    let links = format!("{path}/links");
    measured(&api, "create a link", client.post(&links, body), cost(2, 6, 4.0, 12.0)).await;
    let link = Link::for_guest(&client, &path).await;
    let signer = link.signer(&client);
    let page = client.with_key("");
    measured(&api, "the page", page.get("/sign"), cost(0, 0, 0.0, 0.0)).await;
    measured(&api, "first session", signer.get("/sign/session"), cost(5, 5, 4.0, 6.0)).await;
    measured(&api, "later session", signer.get("/sign/session"), cost(4, 4, 4.0, 1.0)).await;
    let note = json!({"step_data": {"note": "n"}});
    measured(&api, "advance one step", signer.sign(note), cost(6, 7, 6.0, 9.0)).await;
    let sign = json!({"step_data": {"sign": SIGNATURE}});
    measured(&api, "advance the last step", signer.sign_once(&sign, "k"), cost(7, 9, 8.0, 25.0)).await;
    measured(&api, "replay", signer.sign_once(&sign, "k"), cost(3, 3, 2.0, 1.0)).await;
    measured(&api, "session of a used link", signer.get("/sign/session"), cost(4, 4, 4.0, 1.0)).await;
    measured(&api, "receipt", signer.get("/sign/receipt"), cost(8, 11, 12.0, 6.0)).await;
    measured(&api, "list two links", client.get(&links), cost(3, 5, 5.0, 1.0)).await;
    let other = Link::create(&client, &started(&client, json!([signature_step()])).await, signer_named("G")).await;
    measured(&api, "revoke", client.delete(&other.path), cost(2, 5, 3.0, 6.0)).await;

    let process = create_process(&client, json!([signature_step()])).await;
    let movement = start_movement(&client, &process, &client.assets(20).await).await;
    let link = Link::for_guest(&client, &format!("/movements/{}", movement["id"].as_str().unwrap())).await;
    let signer: Client = link.signer(&client);
    measured(&api, "first session, 20 assets", signer.get("/sign/session"), cost(6, 6, 43.0, 6.0)).await;
    measured(&api, "later session, 20 assets", signer.get("/sign/session"), cost(5, 5, 43.0, 1.0)).await;
}
