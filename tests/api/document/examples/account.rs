//! Examples of settings and webhooks.

use super::inventory::People;
use super::recorder::{Scenario, id};
use crate::support::queue::delivery;
use crate::support::webhooks::pipeline::{Pipeline, URL, webhook};
use serde_json::json;
use shared::domain::webhooks::{Attempt, Delivery, DeliveryStatus};

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

/// A program follows changes of assets, fails once, and gets the missed events.
pub async fn follow(scenario: &Scenario) {
    scenario.at("15:20");
    let webhook = json!({
        "url": "https://erp.example.com/hooks/assets", "description": "Keeps the ERP up to date",
        "events": ["asset.*", "instance.updated"]
    });
    let webhook = id(&scenario.post("/webhooks", webhook).await);
    let path = format!("/webhooks/{webhook}");
    scenario.send("POST", &format!("{path}/test"), "", "").await;
    scenario.get(&path).await;
    scenario.get("/webhooks").await;
    scenario.patch(&path, json!({"events": ["asset.*"], "is_active": true})).await;
    scenario.post(&format!("{path}/rotate"), json!({"grace_seconds": 86400})).await;

    scenario.at("15:30");
    let now = scenario.api.now();
    let missed = delivery(&webhook, now, DeliveryStatus::Pending);
    let attempt = Attempt { status: Some(503), ..missed.attempts[0].clone() };
    let missed = Delivery { attempts: vec![attempt], ..missed };
    scenario.api.queue.put(scenario.client.tenant, &missed).await;
    scenario.get(&format!("{path}/deliveries?status=pending")).await;
    scenario.send("POST", &format!("{path}/deliveries/{}/retry", missed.event_id), "", "").await;
    let replay = json!({"since": "2026-03-05T14:00:00Z", "until": "2026-03-05T15:00:00Z"});
    scenario.post(&format!("{path}/replay"), replay).await;
    scenario.delete(&path).await;
}

/// A webhook gets all events from now on.
pub async fn subscribe(scenario: &Scenario) -> Pipeline {
    let pipeline = Pipeline::start(&scenario.api).await;
    webhook(&scenario.api, scenario.client.tenant, URL, &["*"]).await;
    pipeline
}

/// Records what that webhook gets, after a small change of the settings.
pub async fn deliver(scenario: &Scenario, mut pipeline: Pipeline) {
    scenario.client.patch("/settings", json!({"locale": "en-IE"})).await.data();
    pipeline.fan_out(&scenario.api).await;
    pipeline.run_to_end(&scenario.api).await;
    scenario.deliveries(pipeline.receivers.take().into_iter().map(|arrival| arrival.body).collect());
}
