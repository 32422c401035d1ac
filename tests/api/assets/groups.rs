//! Groups of assets by a value.

use crate::support::{Api, Client};
use serde_json::{Value, json};

/// Value, count and price of each group.
async fn groups(client: &Client, query: &str) -> Vec<Value> {
    let data = client.get(&format!("/stats?{query}")).await.data();
    let members: Vec<&String> = data.as_object().unwrap().keys().collect();
    assert_eq!(members, ["groups", "rest"], "{query}");
    assert_eq!(data["rest"], json!({"groups": 0, "count": 0, "purchase_price": "0.00"}));
    data["groups"].as_array().unwrap().iter().map(|it| json!([it["value"], it["count"], it["purchase_price"]])).collect()
}

#[tokio::test(start_paused = true)]
async fn assets_are_counted_and_added_up_by_each_value() {
    let (api, client) = Api::with_tenant().await;
    let laptop = client.asset_type("Laptop", "LAP", "physical").await;
    let model = client.model("Dell", "XPS", &laptop).await;
    let ada = client.user("Ada").await;
    for body in [
        json!({"name": "a", "location": "Berlin/1", "model_id": model, "purchase_price": 0.1, "assigned_to": ada}),
        json!({"name": "b", "location": "berlin/2", "manufacturer": "DELL", "model": "xps", "purchase_price": 0.2}),
        json!({"name": "c", "location": "Bonn", "status": "in_use", "custom_fields": {"ram": 16}}),
        json!({"name": "d", "custom_fields": {"ram": "16"}}),
    ] {
        client.post("/assets", body).await.data();
        api.advance_clock(1);
    }
    let without_index = api.replica(0, 0).client(&client);
    for client in [&client, &without_index] {
        for (query, expected) in [
            ("group_by=status", json!([["in_stock", 3, "0.30"], ["in_use", 1, "0.00"]])),
            ("group_by=asset_type", json!([[null, 3, "0.20"], ["Laptop", 1, "0.10"]])),
            ("group_by=manufacturer", json!([["Dell", 2, "0.30"], [null, 2, "0.00"]])),
            ("group_by=location", json!([["Berlin", 2, "0.30"], ["Bonn", 1, "0.00"], [null, 1, "0.00"]])),
            (
                "group_by=location&depth=2",
                json!([["Berlin / 1", 1, "0.10"], ["berlin / 2", 1, "0.20"], ["Bonn", 1, "0.00"], [null, 1, "0.00"]]),
            ),
            ("group_by=custom_fields.ram", json!([["16", 2, "0.00"], [null, 2, "0.30"]])),
            ("group_by=custom_fields.nobody", json!([[null, 4, "0.30"]])),
            ("group_by=status&location=berlin&q=b", json!([["in_stock", 1, "0.20"]])),
            ("group_by=status&q=nothing", json!([])),
        ] {
            assert_eq!(json!(groups(client, query).await), expected, "{query}");
        }
        let by_model = client.get("/stats?group_by=model").await.data()["groups"].clone();
        let expected = json!([
            {"value": null, "id": null, "count": 2, "purchase_price": "0.00"},
            {"value": "xps", "id": null, "count": 1, "purchase_price": "0.20"},
            {"value": "XPS", "id": model, "count": 1, "purchase_price": "0.10"},
        ]);
        let sorted = |groups: &Value| {
            let mut groups = groups.as_array().unwrap().clone();
            groups.sort_by_key(Value::to_string);
            groups
        };
        assert_eq!(sorted(&by_model), sorted(&expected));
        let by_user = client.get("/stats?group_by=assigned_to").await.data()["groups"].clone();
        assert_eq!(by_user[1], json!({"value": ada, "id": ada, "count": 1, "purchase_price": "0.10"}));
        for (query, wrong) in
            [("group_by=name", "group_by"), ("group_by=status&depth=2", "depth"), ("group_by=location&depth=9", "depth")]
        {
            assert_eq!(client.get(&format!("/stats?{query}")).await.field_errors(), [wrong]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn groups_beyond_the_first_thousand_are_in_the_rest() {
    let (_, client) = Api::with_tenant().await;
    let body = |n: usize| json!({"name": "n", "location": format!("Room {n}"), "purchase_price": "1.50"});
    client.create_all(&(0..1_002).map(body).collect::<Vec<_>>()).await;
    let data = client.get("/stats?group_by=location").await.data();
    assert_eq!(data["groups"].as_array().unwrap().len(), 1_000);
    assert_eq!(data["groups"][9]["value"], "Room 9");
    assert_eq!(data["rest"], json!({"groups": 2, "count": 2, "purchase_price": "3.00"}));
}
