//! The costs of signing links: consecutive round trips, and capacity units as the table reports them.

use crate::support::costs::{Costs, cost};
use crate::support::processes::{create_process, start_movement};
use crate::support::samples::SIGNATURE;
use crate::support::signing::{Link, signature_step, signer_named, started, step};
use crate::support::{Api, Client};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn links_cost_no_more_round_trips_and_units_than_planned() {
    let (api, client) = Api::with_tenant().await;
    client.use_key_once().await;
    let mut costs = Costs::new(&api);
    // A link's first request, its fifth and so on take a share of its 60 requests a minute, in a round trip and a write.
    let user = client.user("Ada").await;
    let path = started(&client, json!([step("text", "note"), signature_step()])).await;
    let body = json!({"signer": {"user_id": user}});
    let links = format!("{path}/links");
    costs.of("create a link", client.post(&links, body), cost(2, 5, 4.0, 11.0)).await;
    let link = Link::for_guest(&client, &path).await;
    let signer = link.signer(&client);
    let page = client.with_key("");
    costs.of("the page", page.get("/sign"), cost(0, 0, 0.0, 0.0)).await;
    costs.of("first session", signer.get("/sign/session"), cost(5, 5, 4.0, 6.0)).await;
    costs.of("later session", signer.get("/sign/session"), cost(3, 3, 4.0, 0.0)).await;
    let note = json!({"step_data": {"note": "n"}});
    costs.of("advance one step", signer.sign(note), cost(5, 6, 6.0, 8.0)).await;
    let sign = json!({"step_data": {"sign": SIGNATURE}});
    costs.of("advance the last step", signer.sign_once(&sign, "k"), cost(6, 8, 8.0, 24.0)).await;
    costs.of("replay", signer.sign_once(&sign, "k"), cost(3, 3, 2.0, 1.0)).await;
    costs.of("session of a used link", signer.get("/sign/session"), cost(3, 3, 4.0, 0.0)).await;
    costs.of("receipt", signer.get("/sign/receipt"), cost(7, 10, 12.0, 5.0)).await;
    costs.of("list two links", client.get(&links), cost(3, 4, 5.0, 0.0)).await;
    let other = Link::create(&client, &started(&client, json!([signature_step()])).await, signer_named("G")).await;
    costs.of("revoke", client.delete(&other.path), cost(2, 4, 3.0, 5.0)).await;

    let process = create_process(&client, json!([signature_step()])).await;
    let movement = start_movement(&client, &process, &client.assets(20).await).await;
    let link = Link::for_guest(&client, &format!("/movements/{}", movement["id"].as_str().unwrap())).await;
    let signer: Client = link.signer(&client);
    costs.of("first session, 20 assets", signer.get("/sign/session"), cost(6, 6, 43.0, 6.0)).await;
    costs.of("later session, 20 assets", signer.get("/sign/session"), cost(4, 4, 43.0, 0.0)).await;
    costs.print();
}
