//! The company's settings, and an administrator's reports in the evening.

use super::people::People;
use super::recorder::Scenario;
use serde_json::json;

/// Chooses names, tags and labels.
pub async fn choose(scenario: &Scenario) {
    scenario.at("10:01");
    scenario.client.use_key_once().await;
    let settings = json!({
        "name": "Analytical Engines Ltd", "asset_tag_template": "{TYPE_CODE}-NNNN", "time_zone": "Europe/London",
        "locale": "en-GB", "label_url_template": "https://assets.example.com/a/{asset_tag}",
        "status_transitions": {"scrapped": [], "returned": ["in_stock", "in_service", "scrapped"]}
    });
    scenario.patch("/settings", settings).await;
}

/// Reads statistics and histories.
pub async fn read_reports(scenario: &Scenario, people: &People, laptop: &str) {
    scenario.at("17:00");
    let anonymous = scenario.by(scenario.client.with_key(""));
    anonymous.get("/health").await;
    anonymous.get(&format!("/.well-known/receipt-keys?tenant={}", scenario.client.tenant)).await;
    scenario.get("/settings").await;
    scenario.get("/stats").await;
    scenario.get(&format!("/users/{}/assets", people.ada)).await;
    scenario.get(&format!("/events?types=asset.*&entity_id={laptop}&limit=2")).await;
}
