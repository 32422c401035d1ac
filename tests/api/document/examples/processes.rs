//! Examples of handovers, movements and signing links.

use super::inventory::{Catalog, People};
use super::recorder::{Scenario, id};
use crate::support::processes::system_process;
use crate::support::samples::SIGNATURE;
use crate::support::signing::Link;
use serde_json::json;

/// Hands the laptop over. `scenario` is continued by the technician.
pub async fn hand_over(scenario: &Scenario, people: &People, laptop: &str) {
    scenario.at("13:00");
    scenario.get("/processes?slug=employee-onboarding").await;
    let process = system_process(&scenario.client, "employee-onboarding").await;
    scenario.get(&format!("/processes/{process}")).await;
    let start = format!("/processes/{process}/start");
    let instance = id(&scenario.post(&start, json!({"asset_id": laptop})).await);
    let instance = format!("/processes/instances/{instance}");
    scenario.prepare(&format!("{instance}/advance"), json!({"current_step": 0, "step_data": {"employee": people.ada}})).await;
    let rest = json!({
        "current_step": 1, "through": "complete",
        "step_data": {"handover": ["Device", "Power supply"], "signature": SIGNATURE}
    });
    let completed = scenario.post(&format!("{instance}/advance"), rest).await;
    assert_eq!(completed["status"], "completed");

    scenario.at("13:10");
    scenario.get(&instance).await;
    scenario.get(&format!("/processes/instances?asset_id={laptop}&omit=signatures")).await;
    scenario.get(&format!("{instance}/history?limit=2")).await;
    scenario.get(&format!("{instance}/receipt")).await;
    scenario.get(&format!("/assets/{laptop}/history?verify=true&limit=2")).await;
}

/// Lends two assets together, and others that come back at once.
pub async fn move_together(scenario: &Scenario, catalog: &Catalog) {
    scenario.at("14:00");
    let process = json!({
        "name": "Loan", "description": "Lends assets for a few days.", "trigger_status": "in_stock", "target_status": "in_use",
        "steps": [
            {"type": "date", "key": "until", "label": "Until when?", "required": true},
            {"type": "signature", "key": "signature", "label": "Signature of the borrower", "required": true,
             "statement": "I received the devices in good condition, and bring them back in time."}
        ]
    });
    let process = id(&scenario.post("/processes", process).await);
    scenario.patch(&format!("/processes/{process}"), json!({"description": "Lends assets for at most a week."})).await;
    let mut assets = Vec::new();
    for serial in ["C02ZX42PMD6M", "C02ZX43PMD6M"] {
        let asset = json!({"name": "MacBook Pro 14", "model_id": catalog.laptop, "serial_number": serial});
        assets.push(id(&scenario.prepare("/assets", asset).await));
    }
    let start = format!("/processes/{process}/start");
    let movement = id(&scenario.prepare(&start, json!({"asset_ids": assets})).await);
    scenario.post(&format!("/movements/{movement}/cancel"), json!({"reason": "The borrower is ill."})).await;
    let movement = id(&scenario.prepare(&start, json!({"asset_ids": assets})).await);
    let movement = format!("/movements/{movement}");
    scenario.post(&format!("{movement}/advance"), json!({"current_step": 0, "step_data": {"until": "2026-03-12"}})).await;
    scenario.prepare(&format!("{movement}/advance"), json!({"step_data": {"signature": SIGNATURE}})).await;
    scenario.get(&movement).await;
    scenario.get("/movements?limit=1").await;
    scenario.get(&format!("{movement}/receipt")).await;

    scenario.at("14:20");
    let asset = id(&scenario.prepare("/assets", json!({"name": "Projector"})).await);
    let instance = id(&scenario.prepare(&start, json!({"asset_id": asset})).await);
    scenario.post(&format!("/processes/instances/{instance}/cancel"), json!({"reason": "The lamp is broken."})).await;
    let unused = json!({
        "name": "Inventory count", "trigger_status": "in_use", "target_status": "in_use",
        "steps": [{"type": "confirmation", "key": "seen", "label": "The asset is there"}]
    });
    let unused = id(&scenario.prepare("/processes", unused).await);
    scenario.delete(&format!("/processes/{unused}")).await;
}

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
