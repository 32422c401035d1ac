//! The company's settings, and what an administrator looks at in the evening.

use super::people::People;
use super::recorder::Story;
use serde_json::json;

/// Chooses names, tags and labels.
pub async fn choose(story: &Story) {
    story.at("10:01");
    story.client.use_key_once().await;
    let settings = json!({
        "name": "Analytical Engines Ltd", "asset_tag_template": "{TYPE_CODE}-NNNN", "time_zone": "Europe/London",
        "locale": "en-GB", "label_url_template": "https://assets.example.com/a/{asset_tag}",
        "status_transitions": {"scrapped": [], "returned": ["in_stock", "in_service", "scrapped"]}
    });
    story.patch("/settings", settings).await;
}

/// Looks at what has become of it all.
pub async fn look_back(story: &Story, people: &People, laptop: &str) {
    story.at("17:00");
    let anonymous = story.by(story.client.with_key(""));
    anonymous.get("/health").await;
    anonymous.get(&format!("/.well-known/receipt-keys?tenant={}", story.client.tenant)).await;
    story.get("/settings").await;
    story.get("/stats").await;
    story.get(&format!("/users/{}/assets", people.ada)).await;
    story.get(&format!("/events?types=asset.*&entity_id={laptop}&limit=2")).await;
}
