//! A process of the company's own, and assets that are moved together.

use super::catalog::Catalog;
use super::recorder::{Scenario, id};
use crate::support::samples::SIGNATURE;
use serde_json::json;

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
