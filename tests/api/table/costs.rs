//! Costs of requests: consecutive round trips, and the capacity units that the table reports.

use crate::support::prelude::*;
use dev_server::meter::Cost;
use shared::domain::keys::api_key::DEFAULT_RATE_LIMIT;
use std::io::Write;

/// Price in dollars of a million read units and of a million write units: docs/costs.md.
const READ_UNIT_PRICE: f64 = 0.125;
const WRITE_UNIT_PRICE: f64 = 0.625;

#[tokio::test(start_paused = true)]
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
    let new = || json!({"name": "new"});
    let mut costs = Costs::new(&api);

    // Checking the key takes a call and one read unit, beside the request's own reads. Counting the request costs nothing here,
    // because an earlier request leased a share of the limit.
    costs.of("GET one asset", client.get(&plain), cost(1, 2, 2.0, 0.0)).await;
    costs.of("GET one asset with model", client.get(&linked), cost(2, 3, 5.0, 0.0)).await;
    costs.of("POST an asset", client.post("/assets", new()), cost(3, 4, 2.0, 10.0)).await;
    costs.of("POST an asset, dry run", client.post("/assets?dry_run=true", new()), cost(2, 3, 4.0, 0.0)).await;
    let with_model = json!({"name": "new", "model_id": model});
    costs.of("POST an asset with model", client.post("/assets", with_model), cost(4, 5, 5.0, 14.0)).await;
    costs.of("PATCH a name", client.patch(&plain, json!({"name": "newer"})), cost(2, 3, 2.0, 7.0)).await;
    costs.of("PATCH an assignment", client.patch(&plain, json!({"assigned_to": user})), cost(2, 3, 3.0, 9.0)).await;
    costs.of("PATCH without a change", client.patch(&plain, json!({"name": "newer"})), cost(1, 2, 2.0, 0.0)).await;
    costs.of("GET the first page, list index not loaded", client.get("/assets"), cost(3, 8, 40.0, 0.0)).await;
    let as_of_now = format!("{linked}?as_of={}", api.now());
    costs.of("GET an asset with model, as of now", client.get(&as_of_now), cost(7, 13, 11.0, 0.0)).await;
    costs.of("GET a history of three changes", client.get(&format!("{plain}/history")), cost(2, 4, 6.0, 0.0)).await;

    let instance = complete_onboarding(&client, &user).await;
    let receipt = format!("/processes/instances/{instance}/receipt");
    client.get(&receipt).await.json();
    // Every list rereads recent events, because events with earlier IDs can still appear. After two minutes, none is recent.
    api.advance_clock(120);
    client.get("/assets").await.data();
    client.get("/stats").await.data();
    // Four consecutive round trips. Three histories are read in parallel, which the meter can count as more.
    costs.of("GET a receipt of four steps", client.get(&receipt), cost(6, 12, 20.0, 0.0)).await;
    costs.of("GET 20 events", client.get("/events"), cost(2, 3, 36.0, 0.0)).await;
    costs.of("GET a page of 20 of 23 assets", client.get("/assets"), cost(2, 3, 22.0, 0.0)).await;
    costs.of("GET statistics", client.get("/stats"), cost(1, 5, 5.0, 0.0)).await;
    costs.of("GET page 2", client.get("/assets?page=2"), cost(2, 3, 5.0, 0.0)).await;
    costs.of("GET a search for nothing", client.get("/assets?q=none"), cost(1, 2, 2.0, 0.0)).await;
    let by_kind = "/assets?kind=physical&status=in_stock&sort=name";
    costs.of("GET by kind and status", client.get(by_kind), cost(2, 3, 22.0, 0.0)).await;

    let laptop = client.asset(json!({"name": "Laptop", "status": "preparing"})).await;
    let onboarding = system_process(&client, "employee-onboarding").await;
    let values = json!({"employee": user, "handover": ["Device"], "signature": SIGNATURE});
    let body = json!({"asset_id": laptop, "step_data": values, "through": "complete"});
    let start = format!("/processes/{onboarding}/start");
    // The response includes the signature, which is read again.
    costs.of("POST a whole onboarding", client.post(&start, body), cost(3, 4, 5.0, 34.0)).await;
    costs.print();
}

/// A record and its event take two units per KB each, and the record's row in the list index takes one. docs/scale.md has these
/// costs.
#[tokio::test(start_paused = true)]
async fn custom_fields_cost_nothing_more_until_they_fill_a_kilobyte() {
    let (api, client) = Api::with_tenant().await;
    client.asset(json!({"name": "first"})).await;
    let mut units = Vec::new();
    for count in [0, 5, 20] {
        let fields: Map<String, Value> = (0..count).map(|n| (format!("field_{n:02}"), json!(format!("value {n:06}")))).collect();
        api.meter.take();
        let id = client.asset(json!({"name": "Laptop", "custom_fields": fields})).await;
        let created = api.meter.take().write_units;
        client.patch(&format!("/assets/{id}"), json!({"custom_fields_patch": {"field_00": "other"}})).await.data();
        units.push((count, created, api.meter.take().write_units));
    }
    assert_eq!(units, [(0, 9.0, 6.0), (5, 9.0, 6.0), (20, 13.0, 10.0)]);
}

#[tokio::test(start_paused = true)]
async fn counting_takes_few_writes_with_the_default_limit_and_the_tenants_ceiling_few_more() {
    let api = Api::start().await;
    let client = api.limited_tenant(DEFAULT_RATE_LIMIT).await;
    let path = format!("/assets/{}", client.asset(json!({"name": "a"})).await);
    // Each instance reads the tenant's limit once a minute.
    for (ceiling, calls, write_units) in [(None, 214, 13.0), (Some(6_000), 216, 15.0), (Some(600), 227, 26.0)] {
        api.store.writer(client.tenant).set_ceiling(ceiling).await.unwrap();
        api.advance_clock(60);
        api.meter.take();
        for _ in 0..100 {
            client.get(&path).await.data();
        }
        let cost = api.meter.take();
        let is_cheap = cost.calls <= calls && cost.read_units <= 200.5 && cost.write_units <= write_units;
        assert!(is_cheap, "100 requests, ceiling {ceiling:?}: {cost:?}");
    }
}

#[tokio::test(start_paused = true)]
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
        import("", &[], cost(0, 107, 5.0, 1_009.0)).await,
        import("?dry_run=true", &[], cost(0, 107, 305.0, 1.0)).await,
        import("?on_error=abort", &[("idempotency-key", "1")], cost(0, 214, 310.0, 1_219.0)).await,
        import("?on_error=abort", &[("idempotency-key", "1")], cost(0, 5, 105.0, 0.0)).await,
    ];
    writeln!(std::io::stdout().lock(), "\n{}", lines.join("\n")).unwrap();
}

#[tokio::test(start_paused = true)]
async fn links_cost_no_more_round_trips_and_units_than_planned() {
    let (api, client) = Api::with_tenant().await;
    client.use_key_once().await;
    let mut costs = Costs::new(&api);
    // A link can send 60 requests a minute. Starting with the first, every fourth request leases the next four, which takes a
    // round trip and a write.
    let user = client.user("Ada").await;
    let path = started(&client, json!([step("text", "note"), signature_step()])).await;
    let body = json!({"signer": {"user_id": user}});
    let links = format!("{path}/links");
    costs.of("create a link", client.post(&links, body), cost(2, 5, 4.0, 11.0)).await;
    let link = Link::for_guest(&client, &path).await;
    let signer = link.signer(&client);
    let page = client.with_key("");
    costs.of("the page", page.get("/sign"), cost(0, 0, 0.0, 0.0)).await;
    costs.of("first session", signer.get("/sign/session"), cost(5, 5, 4.0, 6.0)).await;
    costs.of("later session", signer.get("/sign/session"), cost(3, 3, 4.0, 0.0)).await;
    let note = json!({"step_data": {"note": "n"}});
    costs.of("advance one step", signer.sign(note), cost(5, 6, 6.0, 8.0)).await;
    let sign = json!({"step_data": {"sign": SIGNATURE}});
    costs.of("advance the last step", signer.sign_once(&sign, "k"), cost(6, 8, 8.0, 24.0)).await;
    costs.of("replay", signer.sign_once(&sign, "k"), cost(3, 3, 2.0, 1.0)).await;
    costs.of("session of a used link", signer.get("/sign/session"), cost(3, 3, 4.0, 0.0)).await;
    costs.of("receipt", signer.get("/sign/receipt"), cost(7, 10, 12.0, 5.0)).await;
    costs.of("list two links", client.get(&links), cost(4, 5, 6.0, 0.0)).await;
    let other = Link::create(&client, &started(&client, json!([signature_step()])).await, signer_named("G")).await;
    costs.of("revoke", client.delete(&other.path), cost(2, 4, 3.0, 5.0)).await;

    let process = create_process(&client, json!([signature_step()])).await;
    let movement = start_movement(&client, &process, &client.assets(20).await).await;
    let link = Link::for_guest(&client, &format!("/movements/{}", movement["id"].as_str().unwrap())).await;
    let signer: Client = link.signer(&client);
    costs.of("first session, 20 assets", signer.get("/sign/session"), cost(6, 6, 43.0, 6.0)).await;
    costs.of("later session, 20 assets", signer.get("/sign/session"), cost(4, 4, 43.0, 0.0)).await;
    costs.print();
}

/// Measures requests, and collects the rows of a table.
pub struct Costs<'a> {
    api: &'a Api,
    lines: Vec<String>,
}

pub fn cost(round_trips: usize, calls: usize, read_units: f64, write_units: f64) -> Cost {
    Cost { round_trips, calls, read_units, write_units }
}

impl<'a> Costs<'a> {
    pub fn new(api: &'a Api) -> Self {
        Self { api, lines: Vec::new() }
    }

    /// Fails unless the request succeeds and costs at most `max`.
    pub async fn of(&mut self, name: &str, request: impl Future<Output = Reply>, max: Cost) -> Reply {
        self.api.meter.take();
        let reply = request.await;
        assert!(reply.status.is_success(), "{name}: {}", reply.text());
        let cost = self.api.meter.take();
        let Cost { round_trips, calls, read_units, write_units } = cost;
        let is_cheap = round_trips <= max.round_trips
            && calls <= max.calls
            && read_units <= max.read_units
            && write_units <= max.write_units;
        assert!(is_cheap, "{name} costs {cost:?}, more than {max:?}");
        assert!(max.calls == 0 || round_trips > 0 && read_units > 0.0, "{name} was not measured: {cost:?}");
        let dollars = read_units * READ_UNIT_PRICE + write_units * WRITE_UNIT_PRICE;
        self.lines.push(format!("{name:<52}{round_trips:>12}{calls:>7}{read_units:>12.1}{write_units:>13.1}{dollars:>15.2}"));
        reply
    }

    /// Prints to stdout directly, so that passing tests show it, too.
    pub fn print(self) {
        let mut out = std::io::stdout().lock();
        let [trips, reads, writes] = ["round trips", "read units", "write units"];
        writeln!(out, "\n{:<52}{trips:>12}{:>7}{reads:>12}{writes:>13}{:>15}", "request", "calls", "$ per million").unwrap();
        writeln!(out, "{}", self.lines.join("\n")).unwrap();
    }
}
