//! A technician hands a laptop over to its user, who signs for it.

use super::people::People;
use super::recorder::{Scenario, id};
use crate::support::processes::system_process;
use crate::support::samples::SIGNATURE;
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
