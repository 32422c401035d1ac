//! What requests cost: consecutive round trips, and capacity units as the table reports them.

use crate::support::processes::{complete_onboarding, system_process};
use crate::support::samples::SIGNATURE;
use crate::support::{Api, Client};
use local::meter::Cost;
use serde_json::json;
use std::io::Write;

/// Sends a request, checks that it costs no more than `max`, and returns a line about it for the printed table.
async fn measured(api: &Api, client: &Client, name: &str, request: (&str, String, serde_json::Value), max: Cost) -> String {
    let (method, path, body) = request;
    api.meter.take();
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let reply = client.send(method, &path, Some("application/json"), body).await;
    assert!(reply.status.is_success(), "{name}: {}", reply.text());
    let cost = api.meter.take();
    assert!(
        cost.round_trips <= max.round_trips
            && cost.calls <= max.calls
            && cost.read_units <= max.read_units
            && cost.write_units <= max.write_units,
        "{name} costs {cost:?}, more than {max:?}"
    );
    assert!(cost.round_trips > 0 && cost.read_units > 0.0, "{name} was not measured: {cost:?}");
    format!("{name:<38}{:>12}{:>7}{:>12.1}{:>13.1}", cost.round_trips, cost.calls, cost.read_units, cost.write_units)
}

fn cost(round_trips: usize, calls: usize, read_units: f64, write_units: f64) -> Cost {
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

    // The check of the key costs one read unit, and counting the request one write unit, both in the same round trip as
    // the request's own first read.
    let rows = [
        measured(&api, &client, "GET one asset", ("GET", plain.clone(), none.clone()), cost(1, 3, 2.0, 1.0)).await,
        measured(&api, &client, "GET one asset with model", ("GET", linked.clone(), none.clone()), cost(2, 4, 5.0, 1.0)).await,
        measured(&api, &client, "POST an asset", ("POST", "/assets".into(), json!({"name": "new"})), cost(3, 5, 2.0, 11.0)).await,
        measured(
            &api,
            &client,
            "POST an asset, dry run",
            ("POST", "/assets?dry_run=true".into(), json!({"name": "new"})),
            cost(2, 4, 2.0, 7.0),
        )
        .await,
        measured(
            &api,
            &client,
            "POST an asset with model",
            ("POST", "/assets".into(), json!({"name": "new", "model_id": model})),
            cost(4, 6, 5.0, 15.0),
        )
        .await,
        measured(&api, &client, "PATCH a name", ("PATCH", plain.clone(), json!({"name": "newer"})), cost(2, 4, 2.0, 8.0)).await,
        measured(
            &api,
            &client,
            "PATCH an assignment",
            ("PATCH", plain.clone(), json!({"assigned_to": user})),
            cost(2, 4, 3.0, 10.0),
        )
        .await,
        measured(
            &api,
            &client,
            "PATCH without a change",
            ("PATCH", plain.clone(), json!({"name": "newer"})),
            cost(1, 3, 2.0, 1.0),
        )
        .await,
        measured(
            &api,
            &client,
            "GET the first page, list index not loaded",
            ("GET", "/assets".into(), none.clone()),
            cost(3, 9, 40.0, 1.0),
        )
        .await,
        measured(
            &api,
            &client,
            "GET an asset with model, as of now",
            ("GET", format!("{linked}?as_of={}", api.now()), none.clone()),
            cost(7, 14, 11.0, 1.0),
        )
        .await,
        measured(
            &api,
            &client,
            "GET a history of three changes",
            ("GET", format!("{plain}/history"), none.clone()),
            cost(2, 5, 6.0, 1.0),
        )
        .await,
    ];
    let instance = complete_onboarding(&client, &user).await;
    let receipt = format!("/processes/instances/{instance}/receipt");
    client.get(&receipt).await.json();
    // Recent events are read again with every list, because earlier ones may still appear. After two minutes none is
    // recent.
    api.advance_clock(120);
    client.get("/assets").await.data();
    client.get("/stats").await.data();
    let warm = [
        // Four consecutive round trips; the three histories are read in parallel, which the meter may count as more.
        measured(&api, &client, "GET a receipt of four steps", ("GET", receipt, none.clone()), cost(6, 13, 20.0, 1.0)).await,
        measured(&api, &client, "GET 20 events", ("GET", "/events".into(), none.clone()), cost(3, 4, 36.0, 1.0)).await,
        measured(&api, &client, "GET a page of 20 of 23 assets", ("GET", "/assets".into(), none.clone()), cost(2, 4, 22.0, 1.0))
            .await,
        measured(&api, &client, "GET statistics", ("GET", "/stats".into(), none.clone()), cost(2, 6, 5.0, 1.0)).await,
        measured(&api, &client, "GET page 2", ("GET", "/assets?page=2".into(), none.clone()), cost(2, 4, 5.0, 1.0)).await,
        measured(&api, &client, "GET a search for nothing", ("GET", "/assets?q=none".into(), none.clone()), cost(1, 3, 2.0, 1.0))
            .await,
        measured(
            &api,
            &client,
            "GET by kind and status",
            ("GET", "/assets?kind=physical&status=in_stock&sort=name".into(), none.clone()),
            cost(2, 4, 22.0, 1.0),
        )
        .await,
    ];
    let laptop = client.asset(json!({"name": "Laptop", "status": "preparing"})).await;
    let onboarding = system_process(&client, "employee-onboarding").await;
    let values = json!({"employee": user, "handover": ["Device"], "signature": SIGNATURE});
    let body = json!({"asset_id": laptop, "step_data": values, "through": "complete"});
    let start = ("POST", format!("/processes/{onboarding}/start"), body);
    // The response shows the signature, which is read back.
    let whole = measured(&api, &client, "POST a whole onboarding", start, cost(3, 5, 5.0, 35.0)).await;
    let rows = [rows.as_slice(), warm.as_slice(), &[whole]].concat();
    // Written to stdout directly, so that the table is shown even when the test passes.
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{:<38}{:>12}{:>7}{:>12}{:>13}", "request", "round trips", "calls", "read units", "write units").unwrap();
    writeln!(out, "{}", rows.join("\n")).unwrap();
}

#[tokio::test]
async fn a_row_of_an_import_costs_no_more_than_a_single_request() {
    let (api, client) = Api::with_tenant().await;
    client.asset_type("Laptop", "LAP", "physical").await;
    client.use_key_once().await;
    let rows: String = (0..100).map(|n| format!("n{n},s{n},LAP\n")).collect();
    let rows = format!("name,serial_number,asset_type_code\n{rows}");
    let import = async |query: &str, headers: &[(&str, &str)], limit: Cost| {
        api.meter.take();
        let path = format!("/assets/import{query}");
        let reply = client.send_with("POST", &path, Some("text/csv"), rows.clone(), headers).await;
        assert_eq!(reply.json()["meta"]["refused"], 0, "{}", reply.text());
        let cost = api.meter.take();
        let is_cheap = cost.calls <= limit.calls && cost.read_units <= limit.read_units && cost.write_units <= limit.write_units;
        assert!(is_cheap, "100 rows, {query} {headers:?}: {cost:?}, more than {limit:?}");
        format!("100 rows, {query:<22} {headers:?}: {cost:?}")
    };
    let lines = [
        import("", &[], cost(0, 108, 5.0, 1_010.0)).await,
        import("?dry_run=true", &[], cost(0, 108, 5.0, 810.0)).await,
        import("?on_error=abort", &[("idempotency-key", "1")], cost(0, 215, 10.0, 2_020.0)).await,
        import("?on_error=abort", &[("idempotency-key", "1")], cost(0, 6, 105.0, 1.0)).await,
    ];
    writeln!(std::io::stdout().lock(), "\n{}", lines.join("\n")).unwrap();
}
