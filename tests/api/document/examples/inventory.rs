//! Examples of the catalog, of people and of the inventory.

use super::recorder::{Scenario, id};
use crate::support::bulk::outcomes;
use serde_json::{Value, json};

pub struct Catalog {
    /// The manufacturer "Apple".
    pub apple: String,
    /// The model "MacBook Pro 14".
    pub laptop: String,
    /// The model "iPhone 17".
    pub phone: String,
}

pub async fn fill(scenario: &Scenario) -> Catalog {
    scenario.at("10:40");
    let schema = json!({
        "type": "object", "properties": {"ram_gb": {"type": "integer", "minimum": 8}}, "additionalProperties": false
    });
    let laptop_type = json!({"name": "Notebook", "code": "LAP", "kind": "physical", "custom_fields_schema": schema});
    let laptop_type = id(&scenario.post("/catalog/asset-types", laptop_type).await);
    scenario.patch(&format!("/catalog/asset-types/{laptop_type}"), json!({"name": "Laptop"})).await;
    scenario.get(&format!("/catalog/asset-types/{laptop_type}")).await;
    scenario.get("/catalog/asset-types?code=LAP").await;
    let unused = json!({"name": "Fax machine", "code": "FAX", "kind": "physical"});
    let unused = id(&scenario.prepare("/catalog/asset-types", unused).await);
    scenario.delete(&format!("/catalog/asset-types/{unused}")).await;
    let phone_type = json!({"name": "Phone", "code": "PHN", "kind": "physical"});
    let phone_type = id(&scenario.prepare("/catalog/asset-types", phone_type).await);

    scenario.at("10:50");
    let apple = json!({"name": "Apple", "website": "https://www.apple.com"});
    let apple = id(&scenario.post("/catalog/manufacturers", apple).await);
    scenario.patch(&format!("/catalog/manufacturers/{apple}"), json!({"notes": "Customer number 4711"})).await;
    scenario.get(&format!("/catalog/manufacturers/{apple}")).await;
    scenario.get("/catalog/manufacturers?name=apple").await;
    let unused = id(&scenario.prepare("/catalog/manufacturers", json!({"name": "Commodore"})).await);
    scenario.delete(&format!("/catalog/manufacturers/{unused}")).await;

    let model = json!({"name": "MacBook Pro 14", "manufacturer_id": apple, "asset_type_id": laptop_type});
    let laptop = id(&scenario.post("/catalog/models", model).await);
    scenario.patch(&format!("/catalog/models/{laptop}"), json!({"notes": "Order with the British keyboard."})).await;
    scenario.get(&format!("/catalog/models/{laptop}")).await;
    scenario.get("/catalog/models?q=macbook").await;
    let model = json!({"name": "iPhone 17", "manufacturer_id": apple, "asset_type_id": phone_type});
    let phone = id(&scenario.prepare("/catalog/models", model).await);
    let model = json!({"name": "iPod", "manufacturer_id": apple, "asset_type_id": phone_type});
    let unused = id(&scenario.prepare("/catalog/models", model).await);
    scenario.delete(&format!("/catalog/models/{unused}")).await;
    Catalog { apple, laptop, phone }
}

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
