//! Users, the keys that they use, and a user who leaves.

use super::catalog::Catalog;
use super::recorder::{Scenario, id};
use crate::support::bulk::outcomes;
use serde_json::json;

pub struct People {
    /// Gets a laptop.
    pub ada: String,
    /// The technician.
    pub grace: String,
}

/// Creates users.
pub async fn join(scenario: &Scenario) -> People {
    scenario.at("10:10");
    let grace = json!({"email": "grace@example.com", "display_name": "Grace Hopper", "role": "technician"});
    let grace = id(&scenario.post("/users", grace).await);
    let ada = json!({"email": "ada@example.com", "display_name": "Ada Byron"});
    let ada = id(&scenario.prepare("/users", ada).await);
    scenario.patch(&format!("/users/{ada}"), json!({"display_name": "Ada Lovelace"})).await;
    scenario.get(&format!("/users/{ada}")).await;
    scenario.get("/users?q=ada").await;

    scenario.at("10:20");
    let batch = json!({"operations": [
        {"op": "create", "body": {"email": "katherine@example.com", "display_name": "Katherine Johnson"}},
        {"op": "update", "id": grace, "body": {"email": "grace.hopper@example.com"}}
    ]});
    scenario.post("/users/batch", batch).await;
    let csv = "email,display_name,role\nalan@example.com,Alan Turing,helpdesk\nbarbara@example.com,Barbara Liskov,viewer\n";
    let imported = scenario.send("POST", "/users/import?match=email", "text/csv", csv).await;
    assert_eq!(outcomes(&imported), ["created", "created"]);
    let rows = "{\"email\":\"alan@example.com\",\"role\":\"technician\"}\n{\"email\":\"radia@example.com\",\"display_name\":\"Radia Perlman\"}\n";
    let imported = scenario.send("POST", "/users/import?match=email", "application/x-ndjson", rows).await;
    assert_eq!(outcomes(&imported), ["updated", "created"]);
    scenario.get("/users/export?role=technician").await;
    scenario.get("/users/export?role=technician&format=ndjson").await;
    let temporary = id(&scenario.prepare("/users", json!({"email": "guest@example.com", "display_name": "Guest"})).await);
    scenario.get(&format!("/users/{temporary}/report")).await;
    scenario.delete(&format!("/users/{temporary}")).await;
    scenario.at("10:35");
    scenario.post(&format!("/users/{temporary}/erase"), json!({})).await;
    People { ada, grace }
}

/// Creates keys, of which the technician's continues the scenario.
pub async fn give_key(scenario: &Scenario, people: &People) -> Scenario {
    scenario.at("12:00");
    let key = json!({
        "name": "Inventory sync", "scopes": ["assets:read", "assets:write"], "expires_at": "2027-03-05T00:00:00Z",
        "rate_limit_per_minute": 120
    });
    let key = id(&scenario.post("/keys", key).await);
    scenario.get(&format!("/keys/{key}")).await;
    scenario.get("/keys?limit=2").await;
    scenario.post(&format!("/keys/{key}/rotate"), json!({"grace_seconds": 3600})).await;
    scenario.delete(&format!("/keys/{key}")).await;
    let scopes = ["assets:read", "assets:write", "processes:read", "processes:write", "users:read"];
    let key = json!({"name": "Grace's tablet", "scopes": scopes, "user_id": people.grace});
    let grace = scenario.by(scenario.client.with_key_of(&scenario.prepare("/keys", key).await));
    grace.get("/me").await;
    grace
}

/// Katherine leaves, who has two laptops and a phone that is being repaired.
pub async fn leave(scenario: &Scenario, catalog: &Catalog) {
    scenario.at("15:00");
    let users = scenario.client.get("/users?email=katherine@example.com").await.data();
    let katherine = id(&users[0]);
    for (model, serial) in [(&catalog.laptop, "C02ZX52PMD6M"), (&catalog.laptop, "C02ZX53PMD6M"), (&catalog.phone, "F17D20ABC1")]
    {
        let status = if *model == catalog.phone { "in_service" } else { "in_use" };
        let name = if *model == catalog.phone { "iPhone 17" } else { "MacBook Pro 14" };
        let asset = json!({
            "name": name, "model_id": model, "serial_number": serial, "status": status, "assigned_to": katherine
        });
        scenario.prepare("/assets", asset).await;
    }
    scenario.post(&format!("/users/{katherine}/offboard"), json!({"deactivate": true})).await;
}
