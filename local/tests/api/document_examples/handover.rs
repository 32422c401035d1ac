//! A technician hands a laptop over to its user, who signs for it.

use super::people::{People, id};
use super::recorder::Story;
use crate::support::processes::system_process;
use crate::support::samples::SIGNATURE;
use serde_json::json;

/// Hands the laptop over. `story` is continued by the technician.
pub async fn hand_over(story: &Story, people: &People, laptop: &str) {
    story.at("13:00");
    story.get("/processes?slug=employee-onboarding").await;
    let process = system_process(&story.client, "employee-onboarding").await;
    story.get(&format!("/processes/{process}")).await;
    let start = format!("/processes/{process}/start");
    let instance = id(&story.post(&start, json!({"asset_id": laptop})).await);
    let instance = format!("/processes/instances/{instance}");
    story.prepare(&format!("{instance}/advance"), json!({"current_step": 0, "step_data": {"employee": people.ada}})).await;
    let rest = json!({
        "current_step": 1, "through": "complete",
        "step_data": {"handover": ["Device", "Power supply"], "signature": SIGNATURE}
    });
    let completed = story.post(&format!("{instance}/advance"), rest).await;
    assert_eq!(completed["status"], "completed");

    story.at("13:10");
    story.get(&instance).await;
    story.get(&format!("/processes/instances?asset_id={laptop}&omit=signatures")).await;
    story.get(&format!("{instance}/history?limit=2")).await;
    story.get(&format!("{instance}/receipt")).await;
    story.get(&format!("/assets/{laptop}/history?verify=true&limit=2")).await;
}
