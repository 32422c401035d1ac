//! Signing links: the borrowers sign on their phones.

use super::people::People;
use super::recorder::{Scenario, id};
use crate::support::processes::system_process;
use crate::support::samples::SIGNATURE;
use crate::support::signing::Link;
use serde_json::json;

/// Has somebody sign with a link for an instance, and somebody else with one for a movement.
pub async fn sign(scenario: &Scenario, people: &People) {
    scenario.at("14:40");
    let process = system_process(&scenario.client, "employee-onboarding").await;
    let start = format!("/processes/{process}/start");
    let handover = json!({"employee": people.ada, "handover": ["Device", "Power supply"]});
    let asset = json!({"name": "ThinkPad X1", "status": "preparing", "serial_number": "PF-4711", "model": "X1 Carbon"});
    let asset = id(&scenario.prepare("/assets", asset).await);
    let begun = json!({"asset_id": asset, "step_data": handover, "through": "handover"});
    let instance = format!("/processes/instances/{}", id(&scenario.prepare(&start, begun).await));
    let body = json!({"signer": {"user_id": people.ada}, "until": "complete", "expires_in": 86400});
    let link =
        Link::of(&instance, &scenario.send("POST", &format!("{instance}/links"), "application/json", &body.to_string()).await);
    let signer = scenario.by(link.signer(&scenario.client));
    signer.get("/sign/session").await;
    let submission = json!({
        "current_step": 2, "through": "signature", "step_data": {"signature": SIGNATURE}, "typed_signatures": ["signature"]
    });
    signer.post("/sign/advance", submission).await;
    let session = signer.prepare("/sign/advance", json!({"step_data": {}})).await;
    assert_eq!(session["status"], "used");
    signer.get("/sign/receipt").await;
    scenario.get(&format!("{instance}/links")).await;
    scenario.get(&link.path).await;
    scenario.delete(&link.path).await;

    scenario.at("14:50");
    let mut assets = Vec::new();
    for name in ["Camera", "Tripod"] {
        assets.push(id(&scenario.prepare("/assets", json!({"name": name, "status": "preparing"})).await));
    }
    let begun = json!({"asset_ids": assets, "step_data": handover, "through": "handover"});
    let movement = format!("/movements/{}", id(&scenario.prepare(&start, begun).await));
    let body = json!({"signer": {"name": "Mary Shelley", "email": "mary@example.org"}});
    let link =
        Link::of(&movement, &scenario.send("POST", &format!("{movement}/links"), "application/json", &body.to_string()).await);
    scenario.get(&format!("{movement}/links")).await;
    scenario.get(&link.path).await;
    scenario.delete(&link.path).await;
}
