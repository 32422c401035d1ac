//! What requests cost: round trips one after the other, and capacity units, as the table reports them.

use crate::support::{Api, Client};
use local::meter::Cost;
use serde_json::json;
use std::io::Write;

async fn measured(api: &Api, client: &Client, name: &str, request: (&str, String, serde_json::Value), most: Cost) -> String {
    let (method, path, body) = request;
    api.meter.take();
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let reply = client.send(method, &path, Some("application/json"), body).await;
    assert!(reply.status.is_success(), "{name}: {}", reply.text());
    let cost = api.meter.take();
    assert!(
        cost.round_trips <= most.round_trips
            && cost.calls <= most.calls
            && cost.read_units <= most.read_units
            && cost.write_units <= most.write_units,
        "{name} costs {cost:?}, more than {most:?}"
    );
    assert!(cost.round_trips > 0 && cost.read_units > 0.0, "{name} was not measured: {cost:?}");
    format!("{name:<38}{:>12}{:>7}{:>12.1}{:>13.1}", cost.round_trips, cost.calls, cost.read_units, cost.write_units)
}

fn most(round_trips: usize, calls: usize, read_units: f64, write_units: f64) -> Cost {
    Cost { round_trips, calls, read_units, write_units }
}

#[tokio::test]
async fn requests_cost_no_more_round_trips_and_units_than_planned() {
    let (api, client) = Api::with_tenant().await;
    let asset_type = client.asset_type("Laptop", "LAP", "physical").await;
    let model = client.model("Dell", "XPS", &asset_type).await;
    let user = client.user("Ada").await;
    let plain = client.asset(json!({"name": "plain"})).await;
    let linked = client.asset(json!({"name": "linked", "model_id": model})).await;
    for n in 0..18 {
        client.asset(json!({"name": format!("more {n}"), "model_id": model})).await;
    }
    let (plain, linked) = (format!("/assets/{plain}"), format!("/assets/{linked}"));
    let none = serde_json::Value::Null;

    // The key check costs one read unit of each, and counting the request one write unit, in the same round trip as the
    // request's own first read.
    let rows = [
        measured(&api, &client, "GET one asset", ("GET", plain.clone(), none.clone()), most(1, 3, 2.0, 1.0)).await,
        measured(&api, &client, "GET one asset with model", ("GET", linked.clone(), none.clone()), most(2, 4, 5.0, 1.0)).await,
        measured(&api, &client, "POST an asset", ("POST", "/assets".into(), json!({"name": "new"})), most(3, 5, 2.0, 11.0)).await,
        measured(
            &api,
            &client,
            "POST an asset with model",
            ("POST", "/assets".into(), json!({"name": "new", "model_id": model})),
            most(4, 6, 5.0, 15.0),
        )
        .await,
        measured(&api, &client, "PATCH a name", ("PATCH", plain.clone(), json!({"name": "newer"})), most(2, 4, 2.0, 8.0)).await,
        measured(
            &api,
            &client,
            "PATCH an assignment",
            ("PATCH", plain.clone(), json!({"assigned_to": user})),
            most(2, 4, 3.0, 10.0),
        )
        .await,
        measured(
            &api,
            &client,
            "PATCH without a change",
            ("PATCH", plain.clone(), json!({"name": "newer"})),
            most(1, 3, 2.0, 1.0),
        )
        .await,
        measured(
            &api,
            &client,
            "GET the first page on a cold instance",
            ("GET", "/assets".into(), none.clone()),
            most(3, 9, 40.0, 1.0),
        )
        .await,
        measured(
            &api,
            &client,
            "GET a history of three changes",
            ("GET", format!("{plain}/history"), none.clone()),
            most(2, 5, 6.0, 1.0),
        )
        .await,
    ];
    let run = crate::processes::handover(&client, &user).await;
    let receipt = format!("/processes/instances/{run}/receipt");
    client.get(&receipt).await.json();
    // Events are read again for as long as others may still be late. Then it is quiet.
    api.wait(120);
    client.get("/assets").await.data();
    let warm = [
        // Four of its own making; three histories side by side may look like more.
        measured(&api, &client, "GET a receipt of four steps", ("GET", receipt, none.clone()), most(6, 13, 20.0, 1.0)).await,
        measured(&api, &client, "GET 20 events", ("GET", "/events".into(), none.clone()), most(2, 3, 16.0, 1.0)).await,
        measured(&api, &client, "GET a page of 20 of 23 assets", ("GET", "/assets".into(), none.clone()), most(2, 4, 22.0, 1.0))
            .await,
        measured(&api, &client, "GET page 2", ("GET", "/assets?page=2".into(), none.clone()), most(2, 4, 5.0, 1.0)).await,
        measured(&api, &client, "GET a search for nothing", ("GET", "/assets?q=none".into(), none.clone()), most(1, 3, 2.0, 1.0))
            .await,
        measured(
            &api,
            &client,
            "GET by kind and status",
            ("GET", "/assets?kind=physical&status=in_stock&sort=name".into(), none.clone()),
            most(2, 4, 22.0, 1.0),
        )
        .await,
    ];
    let rows = [rows.as_slice(), warm.as_slice()].concat();
    // Straight to stdout, so that the table shows in every run of the tests.
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{:<38}{:>12}{:>7}{:>12}{:>13}", "request", "round trips", "calls", "read units", "write units").unwrap();
    writeln!(out, "{}", rows.join("\n")).unwrap();
}
