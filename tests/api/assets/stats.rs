//! Statistics: every count, right after every write, and groups of assets by a value.

use crate::support::prelude::*;

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

    // Statistics use the catalog's current names, and leave out deleted assets.
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

/// Returns value, count and price of each group.
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
    let (ada, bob) = (client.user("Ada").await, client.user("Bob").await);
    for body in [
        json!({"name": "a", "location": "Berlin/1", "model_id": model, "purchase_price": 0.1, "assigned_to": ada,
            "purchase_date": "2026-01-31", "warranty_until": "2028-12-31"}),
        json!({"name": "b", "location": "berlin/2", "manufacturer": "DELL", "model": "xps", "purchase_price": 0.2}),
        json!({"name": "c", "location": "Bonn", "status": "in_use", "custom_fields": {"ram": 16}, "model": "XPS"}),
        json!({"name": "d", "custom_fields": {"ram": "16"}, "assigned_to": bob, "purchase_date": "2026-01-01"}),
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
            ("group_by=purchase_month", json!([["2026-01", 2, "0.10"], [null, 2, "0.20"]])),
            ("group_by=warranty_month", json!([[null, 3, "0.20"], ["2028-12", 1, "0.10"]])),
        ] {
            assert_eq!(json!(groups(client, query).await), expected, "{query}");
        }
        let age = |day: &str| {
            let (day, today): (chrono::NaiveDate, _) = (day.parse().unwrap(), api.now().date());
            (today - day).num_days()
        };
        let bought = |days: &[&str]| {
            let mean =
                (!days.is_empty()).then(|| days.iter().map(|day| age(day)).sum::<i64>() / i64::try_from(days.len()).unwrap());
            json!({"oldest": days.first(), "newest": days.last(), "mean_age_days": mean})
        };
        let by_month = client.get("/stats?group_by=purchase_month").await.data()["groups"].clone();
        assert_eq!(by_month[0]["purchase_date"], bought(&["2026-01-01", "2026-01-31"]));
        let by_model = client.get("/stats?group_by=model").await.data()["groups"].clone();
        let expected = json!([
            {"value": null, "id": null, "count": 1, "purchase_price": "0.00", "purchase_date": bought(&["2026-01-01"])},
            {"value": "xps", "id": null, "count": 2, "purchase_price": "0.20", "purchase_date": bought(&[])},
            {"value": "XPS", "id": model, "count": 1, "purchase_price": "0.10", "purchase_date": bought(&["2026-01-31"])},
        ]);
        let sorted = |groups: &Value| {
            let mut groups = groups.as_array().unwrap().clone();
            groups.sort_by_key(Value::to_string);
            groups
        };
        assert_eq!(sorted(&by_model), sorted(&expected));
        let by_user = client.get("/stats?group_by=assigned_to").await.data()["groups"].clone();
        let expected = json!([
            {"value": null, "id": null, "count": 2, "purchase_price": "0.20", "purchase_date": bought(&[])},
            {"value": ada, "id": ada, "count": 1, "purchase_price": "0.10", "purchase_date": bought(&["2026-01-31"])},
            {"value": bob, "id": bob, "count": 1, "purchase_price": "0.00", "purchase_date": bought(&["2026-01-01"])},
        ]);
        assert_eq!(sorted(&by_user), sorted(&expected));
        for (query, wrong) in
            [("group_by=name", "group_by"), ("group_by=status&depth=2", "depth"), ("group_by=location&depth=9", "depth")]
        {
            assert_eq!(client.get(&format!("/stats?{query}")).await.field_errors(), [wrong]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn groups_beyond_the_first_thousand_are_in_the_rest() {
    let (api, client) = Api::with_tenant().await;
    let id = client.asset(json!({"name": "n", "manufacturer": "Maker 0000", "purchase_price": "1.50"})).await;
    copy_record(&api, &client, (Kind::Asset, &id, false), 1_001, |n, copy| {
        copy.insert("manufacturer".into(), AttributeValue::S(format!("Maker {n:04}")));
    })
    .await;
    let data = client.get("/stats?group_by=manufacturer").await.data();
    assert_eq!(data["groups"].as_array().unwrap().len(), 1_000);
    assert_eq!(data["groups"][9]["value"], "Maker 0009");
    assert_eq!(data["rest"], json!({"groups": 2, "count": 2, "purchase_price": "3.00"}));
}
