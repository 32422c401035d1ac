//! The catalog: types, manufacturers and models.

use super::recorder::{Scenario, id};
use serde_json::json;

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
