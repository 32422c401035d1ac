//! Dry runs: every write in the document is decided like the real request, and writes nothing.

use crate::support::prelude::*;
use shared::domain::catalog::{AssetType, Model};
use shared::domain::record::Stored;
use shared::store::{DryRun, Writer};

/// Returns all writes, deletions last, so that every write finds the sample resources.
fn writes(operations: &[Operation]) -> Vec<&Operation> {
    let (deletions, others): (Vec<&Operation>, Vec<&Operation>) =
        operations.iter().filter(|operation| operation.is_write()).partition(|operation| operation.method == "DELETE");
    let (changes, creations): (Vec<_>, Vec<_>) = others.into_iter().partition(|operation| operation.method != "POST");
    [changes, creations, deletions].concat()
}

/// Compares the bodies of a dry run and the real request. Times can differ, and the dry run has null for values that only the
/// real request assigns. Returns the paths of these values.
fn assigned(place: &str, dry: &Value, earnest: &Value) -> Vec<String> {
    match (dry, earnest) {
        (Value::Object(dry), Value::Object(earnest)) => {
            // Operations of a batch show the ETag that a single request would have.
            let names = earnest.keys().filter(|name| name.as_str() != "etag" || dry.contains_key(*name));
            assert!(dry.keys().eq(names), "{place}: {dry:?}, but {earnest:?}");
            dry.iter().flat_map(|(name, value)| assigned(&format!("{place}/{name}"), value, &earnest[name])).collect()
        }
        (Value::Array(dry), Value::Array(earnest)) => {
            assert_eq!(dry.len(), earnest.len(), "{place}");
            let members = dry.iter().zip(earnest).enumerate();
            members.flat_map(|(n, (dry, earnest))| assigned(&format!("{place}/{n}"), dry, earnest)).collect()
        }
        (Value::Null, Value::String(_)) => vec![place.to_owned()],
        (Value::String(dry), Value::String(earnest)) if dry != earnest => {
            let is_time = |text: &str| text.parse::<Timestamp>().is_ok();
            assert!(is_time(dry) && is_time(earnest), "{place}: {dry}, but {earnest}");
            Vec::new()
        }
        _ => {
            assert_eq!(dry, earnest, "{place}");
            Vec::new()
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_write_can_be_tried_without_a_trace_and_says_what_it_would_do() {
    let (api, client, samples) = Api::with_samples().await;
    let (_, operations) = operations();
    let writes = writes(operations);
    assert!(writes.len() >= 27, "only {} writes", writes.len());
    for operation in sample(writes, 8) {
        let before = api.dump().await;
        let dry = operation.send_dry_run(&client, &samples).await;
        assert_eq!(dry.status, 200, "{operation}: {}", dry.text());
        assert_eq!((dry.header("dry-run"), dry.header("etag"), dry.header("location")), ("true", "", ""), "{operation}");
        assert_eq!(api.dump().await, before, "a dry run of {operation} changed the table");

        let earnest = operation.send(&client, &samples).await;
        assert!(earnest.status.is_success(), "{operation}: {}", earnest.text());
        assert_eq!(earnest.header("dry-run"), "", "{operation}");
        let left = |reply: &Reply| reply.header("x-ratelimit-remaining").parse::<u64>().unwrap();
        assert_eq!(left(&earnest) + 1, left(&dry), "{operation} was not counted");
        let nulls = assigned("", &dry.json(), &earnest.json());
        // Testing a webhook creates an event, which is not a resource.
        let is_creation = earnest.status == 201 || operation.path.ends_with("/test");
        assert_eq!(is_creation, nulls.contains(&"/data/id".to_owned()), "{operation}: {nulls:?}");
    }
}

/// Checks that `data` of a dry run has null at these paths, and nowhere else unless the real request has null there too.
async fn check_nulls(client: &Client, path: &str, body: &Value, expected: &[&str]) -> (Value, Value) {
    let dry = client.post(&dry_run(path), body.clone()).await;
    let earnest = client.post(path, body.clone()).await;
    assert!(earnest.status.is_success(), "{path}: {}", earnest.text());
    let mut nulls = assigned("", &dry.json(), &earnest.json());
    nulls.sort();
    assert_eq!(nulls, expected.iter().map(|place| format!("/data/{place}")).collect::<Vec<_>>(), "{path}");
    (dry.data(), earnest.data())
}

#[tokio::test(start_paused = true)]
async fn values_that_only_the_real_request_assigns_are_null_in_a_dry_run() {
    let client = over_http().await;
    let template = json!({"asset_tag_template": "{PREFIX}-{YYYY}-NNN-X"});
    client.patch("/settings", template).await.data();
    let asset = json!({"name": "AST-2026-001-X", "purchase_price": 1, "notes": "\"quoted\" \\"});
    check_nulls(&client, "/assets", &asset, &["asset_tag", "id"]).await;
    let text = r#"{"name":"a","purchase_price":1249.9000}"#;
    let dry = client.post_text(&dry_run("/assets"), text).await;
    assert!(dry.text().contains(r#""purchase_price":1249.9000"#), "{}", dry.text());

    let key = json!({"name": "k", "scopes": ["assets:read"]});
    let (_, key) = check_nulls(&client, "/keys", &key, &["api_key", "id", "prefix"]).await;
    let rotate = format!("/keys/{}/rotate", key["id"].as_str().unwrap());
    check_nulls(&client, &rotate, &json!({}), &["api_key"]).await;

    let webhook = json!({"url": "https://hooks.example.com/", "events": ["*"]});
    let (_, webhook) = check_nulls(&client, "/webhooks", &webhook, &["id", "secret"]).await;
    let webhook = format!("/webhooks/{}", webhook["id"].as_str().unwrap());
    check_nulls(&client, &format!("{webhook}/rotate"), &json!({}), &["secret"]).await;
    check_nulls(&client, &format!("{webhook}/test"), &json!({}), &["id"]).await;

    let steps = json!([{"type": "signature", "key": "sign", "label": "Sign"}, {"type": "text", "key": "a", "label": "A"}]);
    let process = create_process(&client, steps).await;
    let start = format!("/processes/{process}/start");
    let assets = client.assets(2).await;
    let instances = ["id", "instances/0/id", "instances/0/movement_id", "instances/1/id", "instances/1/movement_id", "number"];
    let (_, movement) = check_nulls(&client, &start, &json!({"asset_ids": assets}), &instances).await;
    assert!(movement["number"].as_str().unwrap().ends_with("000001"), "a dry run took a number: {movement}");
    let movement = format!("/movements/{}", movement["id"].as_str().unwrap());
    check_nulls(&client, &format!("{movement}/links"), &json!({"signer": {"name": "Ada"}}), &["id", "url"]).await;
    let advance = format!("{movement}/advance");
    let (dry, _) = check_nulls(&client, &advance, &json!({"step_data": {"sign": SIGNATURE}}), &[]).await;
    assert_eq!(dry["instances"][1]["step_data"]["sign"], SIGNATURE, "an image that is not stored");
}

/// Checks that no call to the table since the last check wrote anything, except the request counter.
pub fn check_only_reads(api: &Api, name: &str) {
    let mut counted = 0.0;
    for (call, request) in api.faults.take_requests() {
        match call.as_str() {
            "GetItem" | "BatchGetItem" | "Query" => {}
            "UpdateItem" if request["Key"]["PK"]["S"].as_str().unwrap().contains("#RATE#") => counted += 1.0,
            other => panic!("{name}: {other} {request}"),
        }
    }
    let cost = api.meter.take();
    assert!(cost.read_units > 0.0 && cost.write_units <= counted, "{name}: {cost:?}");
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_only_reads_and_takes_no_write_units() {
    let (api, client, samples) = Api::with_samples().await;
    client.use_key_once().await;
    let (_, operations) = operations();
    let rows: String = (0..100).map(|n| format!("n{n},s{n},SMP\n")).collect();
    let rows = format!("name,serial_number,asset_type_code\n{rows}");
    for query in ["", "&on_error=abort", "&match=serial_number"] {
        api.faults.take_requests();
        api.meter.take();
        let reply = client.import("/assets", &format!("?dry_run=true{query}"), &rows).await;
        assert_eq!(outcomes(&reply), ["created"; 100], "{query}");
        check_only_reads(&api, &format!("an import with {query}"));
    }
    for operation in sample(writes(operations), 8) {
        api.faults.take_requests();
        api.meter.take();
        let dry = operation.send_dry_run(&client, &samples).await;
        assert_eq!(dry.status, 200, "{operation}: {}", dry.text());
        check_only_reads(&api, &operation.to_string());
        operation.send(&client, &samples).await.json();
    }
}

#[tokio::test(start_paused = true)]
async fn content_of_a_dry_run_is_written_by_the_real_request() {
    let (api, client) = Api::with_tenant().await;
    let steps = json!([{"type": "text", "key": "a", "label": "A"}]);
    let definition = json!({"name": "Own", "trigger_status": "in_stock", "target_status": "in_use", "steps": steps});
    let types = json!({"name": "Own", "code": "OWN", "kind": "physical", "custom_fields_schema": {"title": "Own"}});
    for (path, body) in [("/processes", definition), ("/catalog/asset-types", types)] {
        for _ in 0..2 {
            client.post(&dry_run(path), body.clone()).await.data();
        }
        let made = client.post(path, body).await.id();
        // Another function instance has empty caches.
        let cold = api.replica(0, usize::MAX).client(&client);
        let shown = cold.get(&format!("{path}/{made}")).await.data();
        assert!(shown["steps"][0]["key"] == "a" || shown["custom_fields_schema"]["title"] == "Own", "{shown}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_parameter_is_true_or_false_for_writes_only_and_an_idempotency_key_is_refused() {
    let (api, client) = Api::with_tenant().await;
    let body = json!({"name": "x"});
    let before = api.dump().await;
    for query in ["dry_run", "dry_run=", "dry_run=yes", "dry_run=1", "dry_run=TRUE", "dry_run=true&dry_run=true"] {
        assert_eq!(client.post(&format!("/assets?{query}"), body.clone()).await.field_errors(), ["dry_run"], "{query}");
    }
    let both = client.post("/assets?dryrun=true&dry_run=2", body.clone()).await;
    assert_eq!(both.field_errors(), ["dry_run", "dryrun"]);
    assert!(both.text().contains("unknown parameter; known: dry_run"), "{}", both.text());
    assert_eq!(client.get("/assets?dry_run=true").await.field_errors(), ["dry_run"]);
    assert_eq!(client.get("/settings?dry_run=false").await.field_errors(), ["dry_run"]);
    assert_eq!(api.dump().await, before);
    let made = client.post("/assets?dry_run=false", body).await;
    assert_eq!((made.status.as_u16(), made.header("dry-run")), (201, ""));

    let body = r#"{"name":"x"}"#;
    let send = async |path: &str, key: &str| client.send_json("POST", path, body, ("idempotency-key", key)).await;
    send("/assets", "k").await.data();
    let before = api.dump().await;
    for key in ["k", "another", "\u{e4}"] {
        assert_eq!(send("/assets?dry_run=true", key).await.field_errors(), ["Idempotency-Key"]);
    }
    assert_eq!(api.dump().await, before);
    // `dry_run` is not part of the compared request, unlike the rest of the query.
    assert_eq!(send("/assets?dry_run=false", "k").await.header("idempotent-replayed"), "true");
}

/// Sends a request as a dry run and as a real request. Both must get the same error and must not change the table.
async fn check(api: &Api, client: &Client, (method, path, body): (&str, &str, Value), status: u16, code: &str) -> Value {
    // Compares without counters, because numbers taken by a refused request are not reused.
    let before = api.dump().await.without("counter");
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let mut problems = Vec::new();
    for path in [dry_run(path), path.to_owned()] {
        let reply = client.send(method, &path, Some("application/json"), body.clone()).await;
        assert_eq!(reply.header("dry-run"), "", "{method} {path}: only a success is marked");
        let mut problem = reply.problem(status, code);
        problem.as_object_mut().unwrap().remove("request_id");
        problems.push(problem);
    }
    assert_eq!(api.dump().await.without("counter"), before, "{method} {path}");
    assert_eq!(problems[0], problems[1], "{method} {path}");
    problems.remove(0)
}

#[tokio::test(start_paused = true)]
async fn dry_runs_refuse_changes_of_records_like_real_requests() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let inactive = client.user("Grace").await;
    client.patch(&format!("/users/{inactive}"), json!({"is_active": false})).await.data();
    let laptop = client.asset_type("Laptop", "LAP", "physical").await;
    client.model("Dell", "XPS", &laptop).await;
    let asset = client.assigned_asset("assigned", &user).await;
    client.patch("/settings", json!({"status_transitions": {"in_stock": ["preparing"]}})).await.data();
    let (asset, user, unknown) = (format!("/assets/{asset}"), format!("/users/{user}"), format!("/assets/{UNKNOWN_ID}"));
    let new_user = json!({"email": "ADA@example.com", "display_name": "A"});
    let duplicate = check(&api, &client, ("POST", "/users", new_user), 409, "DUPLICATE").await;
    assert!(duplicate.to_string().contains(&user[7..]), "names the owner: {duplicate}");
    let email = json!({"email": "grace@example.com"});
    check(&api, &client, ("PATCH", &user, email), 409, "DUPLICATE").await;
    let same_code = json!({"name": "x", "code": "LAP", "kind": "logical"});
    check(&api, &client, ("POST", "/catalog/asset-types", same_code), 409, "DUPLICATE").await;
    check(&api, &client, ("POST", "/catalog/manufacturers", json!({"name": "DELL"})), 409, "DUPLICATE").await;
    assert_eq!(check(&api, &client, ("DELETE", &user, Value::Null), 409, "IN_USE").await["count"], 1);
    let laptop = format!("/catalog/asset-types/{laptop}");
    check(&api, &client, ("DELETE", &laptop, Value::Null), 409, "IN_USE").await;
    let scrapped = json!({"status": "scrapped"});
    let refused = check(&api, &client, ("PATCH", &asset, scrapped), 409, "TRANSITION_NOT_ALLOWED").await;
    assert_eq!(refused["allowed"], json!(["preparing"]));
    check(&api, &client, ("PATCH", &unknown, json!({"name": "x"})), 404, "NOT_FOUND").await;
    check(&api, &client, ("DELETE", &unknown, Value::Null), 404, "NOT_FOUND").await;
    for body in [
        json!({"assigned_to": inactive}),
        json!({"assigned_to": UNKNOWN_ID}),
        json!({"nmae": "x", "purchase_price": -1}),
        json!({"model_id": UNKNOWN_ID}),
    ] {
        check(&api, &client, ("PATCH", &asset, body), 422, "VALIDATION_ERROR").await;
    }
    check(&api, &client, ("POST", "/assets", json!({"asset_type_id": UNKNOWN_ID})), 422, "VALIDATION_ERROR").await;
    let path = dry_run(&asset);
    for (method, body) in [("PATCH", r#"{"name":"x"}"#), ("DELETE", "")] {
        client.send_json(method, &path, body, ("if-match", "\"7-0\"")).await.problem(412, "PRECONDITION_FAILED");
        let reply = client.send_json(method, &path, body, ("if-match", client.get(&asset).await.header("etag"))).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
}

#[tokio::test(start_paused = true)]
async fn dry_runs_refuse_changes_of_processes_like_real_requests() {
    let (api, client) = Api::with_tenant().await;
    let step = |key: &str| json!({"type": "text", "key": key, "label": "L"});
    let process = create_process(&client, json!([step("a"), step("b")])).await;
    let (busy, free) = (client.asset(json!({"name": "busy"})).await, client.asset(json!({"name": "free"})).await);
    let in_use = client.asset(json!({"name": "in use", "status": "in_use"})).await;
    let instance = start(&client, &process, &busy).await;
    advance(&client, &instance, json!({"a": "x"})).await.data();
    let (start, asset) = (format!("/processes/{process}/start"), format!("/assets/{busy}"));
    for (method, path, body) in [
        ("POST", &start, json!({"asset_id": busy})),
        ("POST", &start, json!({"asset_ids": [free, busy]})),
        ("PATCH", &asset, json!({"status": "scrapped"})),
        ("DELETE", &asset, Value::Null),
    ] {
        let running = check(&api, &client, (method, path, body), 409, "PROCESS_RUNNING").await;
        assert!(running.to_string().contains(&instance), "{running}");
    }
    check(&api, &client, ("POST", &start, json!({"asset_id": in_use})), 409, "WRONG_ASSET_STATUS").await;
    let advance = format!("/processes/instances/{instance}/advance");
    let earlier = json!({"step_data": {"a": "other"}});
    check(&api, &client, ("POST", &advance, earlier), 409, "STEP_SUBMITTED").await;
    let moved = json!({"step_data": {}, "current_step": 0});
    check(&api, &client, ("POST", &advance, moved), 409, "STEP_MOVED").await;
    check(&api, &client, ("DELETE", &format!("/processes/{process}"), Value::Null), 409, "IN_USE").await;
    client.post(&dry_run(&format!("/processes/instances/{instance}/cancel")), json!({})).await.data();
    client.post(&format!("/processes/instances/{instance}/cancel"), json!({})).await.data();
    check(&api, &client, ("POST", &advance, json!({"step_data": {}})), 409, "INSTANCE_CLOSED").await;
}

#[tokio::test(start_paused = true)]
async fn dry_runs_refuse_invalid_requests_like_real_requests() {
    let client = over_http().await;
    let path = dry_run("/assets");
    client.with_key("").post(&path, json!({"name": "x"})).await.problem(401, "UNAUTHORIZED");
    let reader = client.scoped(&["assets:read"]).await;
    reader.post(&path, json!({"name": "x"})).await.problem(403, "FORBIDDEN");
    client.post_text(&path, "{").await.problem(400, "MALFORMED_REQUEST");
    client.send("POST", &path, Some("text/plain"), "{}").await.problem(415, "UNSUPPORTED_MEDIA_TYPE");
    let too_large = " ".repeat((1 << 20) + 1);
    client.post_text(&path, &too_large).await.problem(413, "PAYLOAD_TOO_LARGE");
    let limited = client.post("/keys", json!({"name": "k", "scopes": ["assets:write"], "rate_limit_per_minute": 2})).await;
    let limited = client.with_key_of(&limited.data());
    for _ in 0..2 {
        limited.post(&path, json!({"name": "x"})).await.data();
    }
    limited.post(&path, json!({"name": "x"})).await.problem(429, "RATE_LIMITED");
}

#[tokio::test(start_paused = true)]
async fn dry_runs_beside_writes_of_a_record_change_nothing() {
    let client = over_http().await;
    let path = format!("/assets/{}", client.asset(json!({"name": "0"})).await);
    let tried = dry_run(&path);
    let tries = async {
        for round in 0..4 {
            let all = join_all((0..4).map(|n| client.patch(&tried, json!({"notes": format!("{round} {n}")})))).await;
            for reply in all.iter().filter(|reply| reply.status != 200) {
                reply.problem(409, "CONFLICT");
            }
        }
    };
    let writes = async {
        for n in 1..=8 {
            client.patch(&path, json!({"name": n.to_string()})).await.data();
        }
    };
    tokio::join!(tries, writes);
    let asset = client.get(&path).await;
    assert!(asset.header("etag").starts_with("\"9-"));
    assert_eq!((&asset.data()["name"], &asset.data()["notes"]), (&json!("8"), &json!(null)));
}

#[test]
fn dry_runs_on_a_faulty_table_get_an_answer_and_write_nothing() {
    paused_runtime().block_on(async {
        let api = Api::on_faulty_table(5, Weaknesses { conflict_per_mille: 300, ..Weaknesses::ordinary() }).await;
        let client = api.tenant().await;
        let path = format!("/users/{}", client.user("Ada").await);
        for n in 0..10 {
            let body = json!({"email": format!("u{n}@example.com"), "display_name": "U"});
            assert_eq!(client.post("/users?dry_run=true", body).await.data()["id"], json!(null));
            client.patch(&dry_run(&path), json!({"display_name": "renamed"})).await.data();
            client.delete(&dry_run(&path)).await.data();
        }
        assert_eq!(client.get(&path).await.header("etag").split_once('-').unwrap().0, "\"1");
        assert_eq!(client.total("/users").await, 1);
    });
}

fn viewer(store: &Writer, context: &ChangeContext, email: &str) -> User {
    let (id, display_name) = (store.new_id(context.at).unwrap(), "U".parse().unwrap());
    User { id, email: email.parse().unwrap(), display_name, role: Role::Viewer, is_active: true, erased_at: None }
}

struct Units {
    store: Writer,
    context: ChangeContext,
}

impl Units {
    fn new(api: &Api, client: &Client) -> Self {
        let store = api.store.writer(client.tenant).in_dry_run(DryRun::default());
        Self { store, context: ChangeContext::operator(api.now()) }
    }

    async fn create(&self, email: &str) -> Result<Stored<User>, WriteError> {
        let mut unit = UnitOfWork::new(&self.store, &self.context);
        let user = unit.create(viewer(&self.store, &self.context, email))?;
        unit.commit().await.map(|()| user)
    }

    async fn update(&self, old: &Stored<User>, email: &str) -> Result<Stored<User>, WriteError> {
        let mut unit = UnitOfWork::new(&self.store, &self.context);
        let user = unit.update(old, User { email: email.parse().unwrap(), ..old.value.clone() })?;
        unit.commit().await.map(|()| user)
    }
}

#[tokio::test(start_paused = true)]
async fn units_of_work_in_a_dry_run_see_the_writes_of_earlier_ones() {
    let (api, client) = Api::with_tenant().await;
    client.user("Ada").await;
    let before = api.dump().await;
    let units = Units::new(&api, &client);
    let state = |user: Stored<User>| (user.value, user.version, user.last_hash);
    let get = async |id| units.store.get::<User>(id).await.unwrap().map(state);

    let first = units.create("first@example.com").await.unwrap();
    let id = first.value.id;
    assert_eq!(get(id).await, Some(state(first.clone())));
    let taken = units.create("FIRST@example.com").await;
    assert!(matches!(taken, Err(WriteError::Duplicate("email", Some((_, owner)))) if owner == id.uuid()), "{taken:?}");
    assert!(matches!(units.create("ada@example.com").await, Err(WriteError::Duplicate("email", Some(_)))));

    let second = units.update(&first, "second@example.com").await.unwrap();
    assert_eq!(get(id).await, Some(state(second.clone())));
    assert!(matches!(units.update(&first, "third@example.com").await, Err(WriteError::Stale)), "its version is the second");
    units.create("first@example.com").await.unwrap();
    assert!(matches!(units.create("second@example.com").await, Err(WriteError::Duplicate(..))));

    units.store.delete(&second, &units.context).await.unwrap();
    assert_eq!(get(id).await, None);
    assert!(matches!(units.store.delete(&second, &units.context).await, Err(WriteError::Stale)));
    units.create("second@example.com").await.unwrap();
    assert_eq!(api.dump().await, before);
    // Another dry run doesn't see the user.
    assert!(Units::new(&api, &client).create("second@example.com").await.is_ok());

    let laptop = client.asset_type("Laptop", "LAP", "physical").await;
    let model = client.model("Dell", "XPS", &laptop).await;
    let before = api.dump().await;
    let Units { store, context } = Units::new(&api, &client);
    let laptop = store.get::<AssetType>(laptop.parse().unwrap()).await.unwrap().unwrap();
    let model = store.get::<Model>(model.parse().unwrap()).await.unwrap().unwrap();
    let refused = store.delete(&laptop, &context).await;
    assert!(matches!(refused, Err(WriteError::InUse(1))), "{refused:?}");
    store.delete(&model, &context).await.unwrap();
    store.delete(&laptop, &context).await.unwrap();
    assert_eq!(api.dump().await, before);
}

#[tokio::test(start_paused = true)]
async fn a_unit_that_is_refused_leaves_nothing_to_later_ones_and_one_too_large_or_with_an_item_twice_is_refused() {
    let (api, client) = Api::with_tenant().await;
    let ada = client.user("Ada").await;
    let units = Units::new(&api, &client);
    let mut unit = UnitOfWork::new(&units.store, &units.context);
    for email in ["new@example.com", "ada@example.com"] {
        unit.create(viewer(&units.store, &units.context, email)).unwrap();
    }
    assert!(matches!(unit.commit().await, Err(WriteError::Duplicate(..))));
    units.create("new@example.com").await.unwrap();
    // A unit of work can't write an item twice.
    for store in [&units.store, &api.store.writer(client.tenant)] {
        let user = store.get::<User>(ada.parse().unwrap()).await.unwrap().unwrap();
        let mut unit = UnitOfWork::new(store, &units.context);
        for name in ["A", "B"] {
            unit.update(&user, User { display_name: name.parse().unwrap(), ..user.value.clone() }).unwrap();
        }
        let refused = unit.commit().await;
        assert!(matches!(refused, Err(WriteError::Store(StoreError::Internal(_)))), "{refused:?}");
    }
    // No transaction can hold this unit of work.
    for store in [&units.store, &api.store.writer(client.tenant)] {
        let mut unit = UnitOfWork::new(store, &units.context);
        // Creating a user writes four items.
        for n in 0..26 {
            unit.create(viewer(store, &units.context, &format!("u{n}@example.com"))).unwrap();
        }
        assert!(matches!(unit.commit().await, Err(WriteError::TooLarge)));
    }
}
