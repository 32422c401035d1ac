//! Assets: bought, imported, exported, changed and deleted.

use super::catalog::Catalog;
use super::people::People;
use super::recorder::{Scenario, id};
use crate::support::bulk::outcomes;
use serde_json::{Value, json};

/// Creates assets, of which Ada's laptop is the first.
pub async fn buy(scenario: &Scenario, people: &People, catalog: &Catalog) -> String {
    scenario.at("11:00");
    // Without IDs, so that the example can be sent to any tenant.
    let laptop = json!({
        "name": "MacBook Pro 14", "manufacturer": "Apple", "model": "MacBook Pro 14", "serial_number": "C02ZX41PMD6M",
        "purchase_date": "2026-02-27", "purchase_price": 2249.95, "warranty_until": "2029-02-26", "custom_fields": {"ram_gb": 32}
    });
    let laptop = id(&scenario.post("/assets", laptop).await);
    let path = format!("/assets/{laptop}");
    scenario
        .patch(
            &path,
            json!({"status": "preparing", "model_id": catalog.laptop, "notes": "For Ada Lovelace, who starts on Monday."}),
        )
        .await;
    scenario.get(&path).await;
    let tag = scenario.client.get(&path).await.data()["asset_tag"].as_str().unwrap().to_owned();
    scenario.get(&format!("/assets/by-tag/{tag}")).await;
    scenario.get("/assets?q=macbook&sort=-created_at&limit=2").await;
    scenario.get(&format!("{path}/processes")).await;
    let scanned = json!({"location": "Berlin / 3rd floor", "items": [{"tag": tag}, {"serial_number": "C02ZX41PMD6N"}]});
    scenario.post("/assets/seen", scanned).await;

    scenario.at("11:10");
    let by_serial = "/assets/by-serial/PF3XK201";
    scenario.put(by_serial, json!({"name": "ThinkPad X1 Carbon", "purchase_price": 1899.0})).await;
    scenario.put(by_serial, json!({"name": "ThinkPad X1 Carbon", "notes": "Spare device"})).await;
    let created = scenario.client.get(&format!("{path}?expand=assigned_to")).await;
    assert_eq!(created.data()["assigned_user"], Value::Null);
    let version = created.header("etag");
    let batch = json!({"operations": [
        {"op": "create", "body": {"name": "Thunderbolt dock", "serial_number": "WD-4711", "assigned_to": people.grace}},
        {"op": "update", "id": laptop, "if_match": version, "body": {"notes": "For Ada Lovelace"}}
    ]});
    scenario.post("/assets/batch", batch).await;

    scenario.at("11:20");
    let csv = "name,serial_number,asset_type_code,purchase_price,assigned_to_email,custom_fields.ram_gb\n\
        ThinkPad T14,PF4AB101,LAP,1249.5,alan@example.com,16\nThinkPad T14,PF4AB102,LPT,1249.5,,16\n";
    let imported = scenario.send("POST", "/assets/import?match=serial_number", "text/csv", csv).await;
    assert_eq!(outcomes(&imported), ["created", "refused"]);
    let rows = "{\"serial_number\":\"PF4AB101\",\"status\":\"in_use\"}\n\
        {\"name\":\"ThinkPad T14\",\"serial_number\":\"PF4AB102\",\"asset_type_code\":\"LAP\",\"status\":\"in_use\"}\n";
    let imported = scenario.send("POST", "/assets/import?match=serial_number", "application/x-ndjson", rows).await;
    assert_eq!(outcomes(&imported), ["updated", "created"]);
    scenario.get("/assets/export?status=in_use").await;
    scenario.get("/assets/export?status=in_use&format=ndjson").await;
    laptop
}

/// Deletes an asset that was created by mistake.
pub async fn clean_up(scenario: &Scenario) {
    let asset = id(&scenario.prepare("/assets", json!({"name": "Test"})).await);
    scenario.delete(&format!("/assets/{asset}")).await;
}
