//! Statistics: every count, right after every write.

use crate::support::processes::{cancel, create_process, start};
use crate::support::{Api, Client, over_http};
use serde_json::{Value, json};

async fn stats(client: &Client) -> Value {
    client.get("/stats").await.data()
}

#[tokio::test(start_paused = true)]
async fn every_write_is_counted_at_once() {
    let client = over_http().await;
    let empty = stats(&client).await;
    assert_eq!(empty["assets"]["total"], 0);
    assert_eq!(empty["assets"]["by_type"], json!({}));
    assert_eq!(empty["assets"]["value_by_status"]["in_stock"], "0.00");
    assert_eq!(empty["instances"], json!({"by_status": {"in_progress": 0, "completed": 0, "cancelled": 0}, "by_process": {}}));

    let laptop = client.asset_type("Laptop", "LAP", "physical").await;
    let license = client.asset_type("License", "LIC", "logical").await;
    let model = client.model("Lenovo", "T14", &laptop).await;
    let user = client.user("Ada").await;
    let linked = client.asset(json!({"name": "a", "model_id": model, "purchase_price": 1249.1, "assigned_to": user})).await;
    client.asset(json!({"name": "b", "manufacturer": "Dell", "purchase_price": 0.2, "warranty_until": "2020-01-01"})).await;
    let software = client.asset(json!({"name": "c", "asset_type_id": license, "status": "in_use", "purchase_price": 3})).await;
    let assets = stats(&client).await["assets"].clone();
    let expected = json!({
        "total": 3, "assigned": 1, "unassigned": 2,
        "by_status": {"in_stock": 2, "preparing": 0, "in_use": 1, "in_service": 0, "returned": 0, "scrapped": 0},
        "by_kind": {"physical": 2, "logical": 1},
        "by_type": {"": 1, "Laptop": 1, "License": 1},
        "by_manufacturer": {"": 1, "Dell": 1, "Lenovo": 1},
        "value_by_status": {"in_stock": "1249.30", "preparing": "0.00", "in_use": "3.00", "in_service": "0.00",
            "returned": "0.00", "scrapped": "0.00"},
        "warranty": {"ended": 1, "within_30": 0, "within_60": 0, "within_90": 0},
    });
    assert_eq!(assets, expected);

    // The catalog's name of today, and no longer what is deleted.
    let manufacturer = client.get("/catalog/manufacturers").await.data()[0]["id"].as_str().unwrap().to_owned();
    client.patch(&format!("/catalog/manufacturers/{manufacturer}"), json!({"name": "Lenovo Group"})).await.data();
    client.patch(&format!("/assets/{linked}"), json!({"purchase_price": null, "assigned_to": null})).await.data();
    client.delete(&format!("/assets/{software}")).await;
    let assets = stats(&client).await["assets"].clone();
    assert_eq!(assets["by_manufacturer"], json!({"Dell": 1, "Lenovo Group": 1}));
    assert_eq!((&assets["value_by_status"]["in_stock"], &assets["assigned"]), (&json!("0.20"), &json!(0)));
    assert_eq!(assets["by_kind"], json!({"physical": 2, "logical": 0}));

    let process = create_process(&client, json!([{"type": "complete", "key": "c", "label": "C"}])).await;
    let instance = start(&client, &process, &linked).await;
    let counted = |status: &str| {
        json!({"by_status": {"in_progress": u8::from(status == "in_progress"), "completed": 0,
        "cancelled": u8::from(status == "cancelled")}, "by_process": {"Own": 1}})
    };
    assert_eq!(stats(&client).await["instances"], counted("in_progress"));
    cancel(&client, &instance).await.data();
    assert_eq!(stats(&client).await["instances"], counted("cancelled"));
    client.delete(&format!("/processes/{process}")).await.data();
    assert_eq!(stats(&client).await["instances"]["by_process"], json!({process: 1}), "its name is gone");
}

#[tokio::test(start_paused = true)]
async fn a_tenant_without_an_index_is_counted_in_the_table() {
    let (api, client) = Api::with_tenant().await;
    let laptop = client.asset_type("Laptop", "LAP", "physical").await;
    let model = client.model("Lenovo", "T14", &laptop).await;
    client.asset(json!({"name": "a", "model_id": model, "purchase_price": 10.5})).await;
    client.asset(json!({"name": "b", "manufacturer": "Dell"})).await;
    let without_index = api.replica(0, 0).client(&client);
    assert_eq!(stats(&without_index).await, stats(&client).await);
    assert_eq!(stats(&client).await["assets"]["by_manufacturer"], json!({"Dell": 1, "Lenovo": 1}));
}

#[tokio::test(start_paused = true)]
async fn statistics_are_of_one_tenant_and_need_a_scope() {
    let (api, client) = Api::with_tenant().await;
    client.asset(json!({"name": "a"})).await;
    assert_eq!(stats(&api.tenant().await).await["assets"]["total"], 0);
    assert_eq!(client.scoped(&["users:read"]).await.get("/stats").await.status, 403);
    let instances = |stats: Value| stats["instances"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(instances(stats(&client.scoped(&["assets:read"]).await).await), ["by_status"], "processes have names");
    assert_eq!(instances(stats(&client.scoped(&["assets:read", "processes:read"]).await).await), ["by_status", "by_process"]);
    assert_eq!(client.get("/stats?page=1").await.status, 422);
}
