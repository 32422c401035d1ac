//! Rules for every route. The routes and fields come from the OpenAPI document, so a new route is covered automatically.

use crate::support::prelude::*;

#[tokio::test(start_paused = true)]
async fn without_a_valid_key_every_route_responds_with_the_same_401() {
    let (api, client, samples) = Api::with_samples().await;
    let (_, operations) = operations();
    let other = api.tenant().await;
    let revoked = client.scoped(&["assets:read"]).await;
    let id = client.get("/keys?limit=1").await.data()[0]["id"].as_str().unwrap().to_owned();
    client.delete(&format!("/keys/{id}")).await.data();
    let mut mistyped = client.key.clone();
    mistyped.replace_range(40..41, if &mistyped[40..41] == "0" { "1" } else { "0" });
    let token = Token::parse(&client.key).unwrap();
    let of_another_tenant = Token::new(other.tenant, token.id, token.secret).expose();
    let before = api.dump().await;
    for operation in sample(operations.iter().filter(|operation| operation.needs_key), 12) {
        for key in ["", "x", "apl_", &mistyped, &revoked.key, &of_another_tenant] {
            let reply = operation.send(&client.with_key(key), &samples).await;
            let problem = reply.problem(401, "UNAUTHORIZED");
            assert_eq!(reply.header("www-authenticate"), "Bearer");
            assert_eq!(problem["detail"], "Send a valid API key as 'Authorization: Bearer <API_KEY>'.");
        }
    }
    assert_eq!(api.dump().await, before, "a refused request changed the table");
}

#[tokio::test(start_paused = true)]
async fn every_route_needs_the_scopes_in_its_description_and_no_others() {
    let (api, client, samples) = Api::with_samples().await;
    let (_, operations) = operations();
    for operation in sample(operations, 8) {
        for scope in &operation.scopes {
            let others: Vec<&str> = Scope::ALL.iter().map(|s| s.as_str()).filter(|s| s != scope).collect();
            let lacking = client.scoped(&others).await;
            let before = api.dump().await;
            let problem = operation.send(&lacking, &samples).await.problem(403, "FORBIDDEN");
            assert_eq!(problem["scope"], *scope, "{operation}");
            assert_eq!(api.dump().await, before, "{operation} changed the table");
        }
    }
    for operation in sample(by_method(operations, &METHODS), 12) {
        let scopes: Vec<&str> = operation.scopes.iter().map(String::as_str).collect();
        if scopes.is_empty() {
            continue;
        }
        let reply = operation.send(&client.scoped(&scopes).await, &samples).await;
        let grants_scopes = operation.path.starts_with("/v1/keys") && operation.method == "POST";
        let is_for_admins = ["/report", "/erase"].iter().any(|end| operation.path.ends_with(end));
        let changes_instance = ["/advance", "/cancel", "/offboard", "/webhooks/{id}/rotate", "/test", "/retry", "/replay"]
            .iter()
            .any(|end| operation.path.ends_with(end));
        let answers_for_each_part = ["/batch", "/import", "/suggest", "/seen"].iter().any(|end| operation.path.ends_with(end));
        let expected = if changes_instance {
            200
        } else if grants_scopes || is_for_admins {
            403
        } else if ["POST", "PUT"].contains(&operation.method.as_str()) && !answers_for_each_part {
            201
        } else {
            200
        };
        assert_eq!(reply.status.as_u16(), expected, "{operation}: {}", reply.text());
    }
}

#[tokio::test(start_paused = true)]
async fn another_tenants_resources_look_as_if_they_did_not_exist() {
    let (api, _, samples) = Api::with_samples().await;
    let other = api.tenant().await;
    let (_, operations) = operations();
    let before = api.dump().await;
    for operation in operations.iter().filter(|operation| operation.path.contains("{id}")) {
        let of_owner = operation.send(&other, &samples).await.problem(404, "NOT_FOUND");
        let path = operation.path.strip_prefix("/v1").unwrap().replace("{id}", UNKNOWN_ID).replace("{link_id}", UNKNOWN_ID);
        let path = path.replace("{delivery_id}", UNKNOWN_ID);
        let (_, body) = samples.request(&operation.method, &operation.path);
        let unknown = other.send(&operation.method, &path, Some("application/json"), body).await.problem(404, "NOT_FOUND");
        assert_eq!(of_owner["detail"], unknown["detail"], "{operation}: the two responses differ");
    }
    assert_eq!(api.dump().await, before);
    for operation in operations.iter().filter(|operation| operation.method == "GET" && !operation.path.contains("{id}")) {
        let reply = operation.send(&other, &samples).await;
        let has_samples = ["Sample", "Unused", "sample"].iter().any(|text| reply.text().contains(&format!("\"{text}")));
        assert!(!has_samples || operation.path == "/v1/openapi.json", "{}", reply.text());
        if operation.path.ends_with("/export") {
            assert_eq!(reply.text().lines().count(), 1, "{operation}: more than the header row");
        } else if ["/v1/docs", INVENTORY_PAGE, SIGNING_PAGE].contains(&operation.path.as_str()) {
            assert_eq!(reply.header("content-type"), "text/html; charset=utf-8");
        } else if let Some(total) = reply.json()["meta"]["total"].as_u64() {
            // Every tenant has its first key and the system processes.
            let own = match operation.path.as_str() {
                "/v1/keys" => 1,
                "/v1/processes" => 7,
                _ => 0,
            };
            assert_eq!(total, own, "{operation}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_response_has_a_new_id_and_must_not_be_stored() {
    let (client, samples) = samples_over_http().await;
    let (_, operations) = operations();
    let mut ids = BTreeSet::new();
    for operation in operations {
        for key in ["", client.key.as_str()] {
            let reply = operation.send(&client.with_key(key), &samples).await;
            let expected = match operation.path.as_str() {
                INVENTORY_PAGE => "no-cache",
                SIGNING_PAGE => "public, max-age=300",
                _ => "no-store",
            };
            assert_eq!(reply.header("cache-control"), expected, "{operation}");
            assert!(ids.insert(reply.header("x-request-id").to_owned()), "{operation}: the ID was used before");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn head_works_like_get() {
    let (client, samples) = samples_over_http().await;
    let (_, operations) = operations();
    for operation in operations.iter().filter(|operation| operation.method == "GET") {
        let path = samples.path(&operation.path);
        for key in [client.key.as_str(), ""] {
            let client = client.with_key(key);
            let (head, get) = (client.send("HEAD", &path, None, "").await, client.get(&path).await);
            assert_eq!((head.status, head.bytes.len()), (get.status, 0), "{path}");
            assert_eq!(head.header("content-length"), get.bytes.len().to_string(), "{path}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_route_refuses_unknown_query_parameters_by_name() {
    let (client, samples) = samples_over_http().await;
    let (_, operations) = operations();
    for operation in operations.iter().filter(|operation| operation.needs_key) {
        let (path, body) = samples.request(&operation.method, &operation.path);
        let content_type = Some(content_type(&operation.path));
        let separator = if path.contains('?') { '&' } else { '?' };
        let reply = client.send(&operation.method, &format!("{path}{separator}colour=red"), content_type, body).await;
        assert_eq!(reply.field_errors(), ["colour"], "{operation}");
    }
}

struct References {
    users: [String; 2],
    asset_types: [String; 2],
    manufacturers: [String; 2],
    models: [String; 2],
}

impl References {
    async fn create(client: &Client) -> Self {
        let asset_types =
            [client.asset_type("Laptop", "LAP", "physical").await, client.asset_type("Licence", "LIC", "logical").await];
        let mut manufacturers = Vec::new();
        let mut models = Vec::new();
        for (name, asset_type) in [("Dell", &asset_types[0]), ("JetBrains", &asset_types[1])] {
            let manufacturer = client.post("/catalog/manufacturers", json!({"name": name})).await.id();
            let body = json!({"name": "M", "manufacturer_id": manufacturer, "asset_type_id": asset_type});
            models.push(client.post("/catalog/models", body).await.id());
            manufacturers.push(manufacturer);
        }
        Self {
            users: [client.user("Ada").await, client.user("Grace").await],
            asset_types,
            manufacturers: manufacturers.try_into().unwrap(),
            models: models.try_into().unwrap(),
        }
    }

    /// Returns a body; `n` makes unique values differ.
    fn creation(&self, path: &str, n: usize) -> Value {
        match path {
            "/v1/assets/{id}" => json!({"name": "x"}),
            "/v1/users/{id}" => json!({"email": format!("user{n}@example.com"), "display_name": "x"}),
            "/v1/catalog/asset-types/{id}" => json!({"name": "x", "code": format!("T{n}"), "kind": "physical"}),
            "/v1/catalog/manufacturers/{id}" => json!({"name": format!("x{n}")}),
            "/v1/catalog/models/{id}" => {
                json!({"name": "x", "manufacturer_id": self.manufacturers[0], "asset_type_id": self.asset_types[0]})
            }
            "/v1/processes/{id}" => json!({
                "name": "x", "trigger_status": "in_stock", "target_status": "in_use",
                "steps": [{"type": "text", "key": "k", "label": "L"}]
            }),
            "/v1/webhooks/{id}" => json!({"url": "https://example.com/x", "events": ["asset.created"]}),
            other => panic!("no body to create a resource for PATCH {other}: add one to References::creation"),
        }
    }

    /// Returns two different valid values for each property, by path and property.
    fn values(&self) -> Vec<(&'static str, &'static str, [Value; 2])> {
        let ids = |ids: &[String; 2]| ids.clone().map(Value::String);
        let steps = |key: &str| json!([{"type": "confirmation", "key": key, "label": "L", "required": true}]);
        let schema = |field: &str| json!({"type": "object", "properties": {field: {"type": "string"}}});
        vec![
            ("/v1/assets/{id}", "name", ["y", "z"].map(Value::from)),
            ("/v1/assets/{id}", "asset_type_id", ids(&self.asset_types)),
            ("/v1/assets/{id}", "assigned_to", ids(&self.users)),
            ("/v1/assets/{id}", "custom_fields", [json!({"a": 1}), json!({"b": [true, null]})]),
            ("/v1/assets/{id}", "custom_fields_patch", [json!({"a": 1}), json!({"a": [2]})]),
            ("/v1/assets/{id}", "location", ["Berlin / 1", "Bonn"].map(Value::from)),
            ("/v1/assets/{id}", "model_id", ids(&self.models)),
            ("/v1/assets/{id}", "notes", ["one\ntwo", "three"].map(Value::from)),
            ("/v1/assets/{id}", "purchase_price", [json!(2499.5), json!(0)]),
            ("/v1/assets/{id}", "status", ["in_use", "returned"].map(Value::from)),
            ("/v1/users/{id}", "display_name", ["y", "z"].map(Value::from)),
            ("/v1/users/{id}", "email", ["y@example.com", "z@example.com"].map(Value::from)),
            ("/v1/users/{id}", "is_active", [json!(false), json!(true)]),
            ("/v1/users/{id}", "role", ["technician", "admin"].map(Value::from)),
            ("/v1/catalog/asset-types/{id}", "name", ["y", "z"].map(Value::from)),
            ("/v1/catalog/asset-types/{id}", "code", ["YY", "ZZ"].map(Value::from)),
            ("/v1/catalog/asset-types/{id}", "kind", ["logical", "physical"].map(Value::from)),
            ("/v1/catalog/asset-types/{id}", "custom_fields_schema", [schema("a"), schema("b")]),
            ("/v1/catalog/manufacturers/{id}", "name", ["y", "z"].map(Value::from)),
            ("/v1/catalog/manufacturers/{id}", "notes", ["one\ntwo", "three"].map(Value::from)),
            ("/v1/catalog/manufacturers/{id}", "website", ["https://example.com/y", "https://example.com/z"].map(Value::from)),
            ("/v1/catalog/models/{id}", "name", ["y", "z"].map(Value::from)),
            ("/v1/catalog/models/{id}", "notes", ["one\ntwo", "three"].map(Value::from)),
            ("/v1/catalog/models/{id}", "manufacturer_id", ids(&self.manufacturers)),
            ("/v1/catalog/models/{id}", "asset_type_id", ids(&self.asset_types)),
            ("/v1/processes/{id}", "name", ["y", "z"].map(Value::from)),
            ("/v1/processes/{id}", "description", ["one\ntwo", "three"].map(Value::from)),
            ("/v1/processes/{id}", "status", ["inactive", "active"].map(Value::from)),
            ("/v1/processes/{id}", "steps", [steps("y"), steps("z")]),
            ("/v1/processes/{id}", "target_status", ["in_service", "returned"].map(Value::from)),
            ("/v1/processes/{id}", "trigger_status", ["preparing", "scrapped"].map(Value::from)),
            ("/v1/webhooks/{id}", "url", ["https://example.com/y", "https://example.com/z"].map(Value::from)),
            ("/v1/webhooks/{id}", "description", ["one\ntwo", "three"].map(Value::from)),
            ("/v1/webhooks/{id}", "events", [json!(["asset.*", "user.deleted"]), json!(["*"])]),
            ("/v1/webhooks/{id}", "is_active", [json!(false), json!(true)]),
            ("/v1/settings", "name", ["y", "z"].map(Value::from)),
            ("/v1/settings", "time_zone", ["Europe/Berlin", "America/Sao_Paulo"].map(Value::from)),
            ("/v1/settings", "locale", ["de-CH", "pt-BR"].map(Value::from)),
            ("/v1/settings", "asset_tag_prefix", ["YY", "ZZ"].map(Value::from)),
            ("/v1/settings", "asset_tag_template", ["{PREFIX}-NNN", "{PREFIX}-{YYYY}-NNNN"].map(Value::from)),
            ("/v1/settings", "label_url_template", ["https://e.com/{id}", "http://e.com?t={asset_tag}"].map(Value::from)),
            ("/v1/settings", "status_transitions", [json!({"scrapped": []}), json!({"in_stock": ["preparing", "in_use"]})]),
        ]
    }
}

/// Returns the resource's path and ID. Settings always exist; their ID is the tenant's.
async fn create(client: &Client, references: &References, path: &str, n: usize) -> (String, String) {
    let path = path.strip_prefix("/v1").unwrap();
    let Some(collection) = path.strip_suffix("/{id}") else { return (path.to_owned(), client.tenant.to_string()) };
    let id = client.post(collection, references.creation(&format!("/v1{path}"), n)).await.id();
    (format!("{collection}/{id}"), id)
}

/// Returns two values for a type without special rules.
fn values_of_type(schema: &Value) -> Option<[Value; 2]> {
    let values = match schema["anyOf"][0]["$ref"].as_str()?.rsplit('/').next()? {
        "Line" | "SerialNumber" => ["one", "two"],
        "CalendarDate" => ["2028-02-29", "2029-12-31"],
        _ => return None,
    };
    Some(values.map(Value::from))
}

fn is_nullable(schema: &Value) -> bool {
    let is_null = |schema: &Value| schema["type"] == "null";
    let alternatives = ["anyOf", "oneOf"].iter().filter_map(|name| schema[name].as_array()).flatten();
    let has_null_type = schema["type"].as_array().is_some_and(|types| types.contains(&json!("null")));
    has_null_type || alternatives.into_iter().any(is_null)
}

fn properties<'a>(document: &'a Value, operation: &'a Operation) -> impl Iterator<Item = (&'a String, &'a Value)> {
    let schema = &operation.description["requestBody"]["content"]["application/json"]["schema"];
    at(document, schema)["properties"].as_object().unwrap_or_else(|| panic!("{operation} has no properties")).iter()
}

/// Changes one property and checks everything that depends on it.
async fn patch(api: &Api, client: &Client, path: &str, id: &str, property: &str, value: &Value) {
    let before = client.get(path).await.data();
    let shown = if property == "custom_fields_patch" { "custom_fields" } else { property };
    assert_ne!(before[shown], *value, "{path}: {property} already has this value");
    let events = event_chain(api, client, id).await.len();
    let patched = client.patch(path, json!({property: value})).await.data();
    let after = client.get(path).await.data();
    // An asset without custom fields has an empty object.
    let expected = if property == "custom_fields" && value.is_null() { json!({}) } else { value.clone() };
    assert_eq!(after[shown], expected, "{path}: {property} was not stored");
    assert_eq!(patched, after, "{path}: the response differs from what is stored");
    if let Some(updated_at) = before["updated_at"].as_str() {
        assert!(after["updated_at"].as_str() > Some(updated_at), "{path}: updated_at did not move with {property}");
    }
    let chain = event_chain(api, client, id).await;
    assert_eq!(chain.len(), events + 1, "{path}: {property} must add one event");
    let changes = &chain[events]["changes"];
    assert!(changes.get(shown).is_some(), "{path}: the event does not have {property}: {changes}");
}

#[tokio::test(start_paused = true)]
async fn every_property_of_every_patch_is_stored_and_recorded() {
    let (api, client) = Api::with_tenant().await;
    let references = References::create(&client).await;
    let (document, operations) = operations();
    let values = references.values();
    let mut unused: BTreeSet<(&str, &str)> = values.iter().map(|(path, property, _)| (*path, *property)).collect();
    let mut n = 0;
    // `updated_at` changes nothing: another test sends it.
    let patches = operations.iter().filter(|operation| operation.method == "PATCH");
    let properties = patches.flat_map(|operation| properties(document, operation).map(move |it| (operation, it)));
    let properties = properties.filter(|(_, (property, _))| *property != "updated_at");
    let (all, mut tried) = (properties.collect::<Vec<_>>(), Vec::new());
    for (operation, (property, schema)) in all {
        let found = values.iter().find(|(path, known, _)| (*path, *known) == (&operation.path, property));
        let values = found.map(|(path, known, values)| {
            unused.remove(&(*path, *known));
            values.clone()
        });
        let values = values.or_else(|| values_of_type(schema));
        let values = values.unwrap_or_else(|| panic!("no values for {property} of {operation}: add two to References::values"));
        tried.push((operation, property, schema, values));
    }
    assert!(unused.is_empty(), "values for properties that no PATCH has: {unused:?}");
    for (operation, property, schema, values) in sample(tried, 8) {
        let (path, id) = create(&client, &references, &operation.path, n).await;
        let mut values = values;
        if client.get(&path).await.data()[property] == values[0] {
            values.reverse();
        }
        for value in values.iter().chain(is_nullable(schema).then_some(&Value::Null)) {
            patch(&api, &client, &path, &id, property, value).await;
        }
        n += 1;
    }
}

fn writable(document: &Value, operation: &Operation) -> BTreeSet<String> {
    let schema = &operation.description["requestBody"]["content"]["application/json"]["schema"];
    at(document, schema)["properties"].as_object().unwrap().keys().cloned().collect()
}

fn another(value: &Value) -> Value {
    match value {
        Value::Null => json!("x"),
        Value::Bool(flag) => json!(!flag),
        Value::String(text) => json!(format!("{text}x")),
        Value::Number(_) => json!(-1),
        Value::Array(_) => json!([1]),
        Value::Object(_) => json!({"x": 1}),
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_was_read_can_be_sent_back_and_changes_nothing() {
    let (api, client, samples) = Api::with_samples().await;
    let asset = samples.path("/v1/assets/{id}");
    // An asset with every field, whose user is inactive and whose custom fields no longer match the schema.
    let asset_type = client.asset_type("Laptop", "LAP", "physical").await;
    let model = client.model("Dell", "XPS", &asset_type).await;
    let user = client.user("Ada").await;
    let all = json!({"model_id": model, "assigned_to": user, "custom_fields": {"a": 1.5}, "purchase_price": 10.50, "notes": "n"});
    client.patch(&asset, all).await.data();
    client.patch(&format!("/users/{user}"), json!({"is_active": false})).await.data();
    let schema = json!({"type": "object", "required": ["b"]});
    client.patch(&format!("/catalog/asset-types/{asset_type}"), json!({"custom_fields_schema": schema})).await.data();

    let (document, operations) = operations();
    let mut read_only_fields = 0;
    for operation in by_method(operations, &["PATCH"]) {
        let path = samples.path(&operation.path);
        let read = client.get(&path).await;
        let before = api.dump().await;
        let sent = client.send("PATCH", &path, Some("application/json"), read.data().to_string()).await;
        assert_eq!(sent.status.as_u16(), 200, "{operation}: {}", sent.text());
        assert_eq!((sent.data(), sent.header("etag")), (read.data(), read.header("etag")), "{operation}");
        let after = api.dump().await;
        let new: Vec<_> = after.0.iter().filter(|item| !before.0.contains(item)).collect();
        assert!(after == before, "{operation} has written {new:?}");
        let writable = writable(document, operation);
        for (field, value) in read.data().as_object().unwrap().iter().filter(|(field, _)| !writable.contains(*field)) {
            let mut changed = read.data();
            changed[field] = another(value);
            assert_eq!(client.patch(&path, changed).await.field_errors(), [format!("/{field}")], "{operation}");
            read_only_fields += 1;
        }
        assert_eq!(client.patch(&path, json!({"id": null, "nothing": 1})).await.field_errors().len(), 2, "{operation}");
        assert_eq!(api.dump().await, before, "{operation} has written");
    }
    assert!(read_only_fields > 20, "{read_only_fields}");
}

#[tokio::test(start_paused = true)]
async fn a_definition_of_the_system_can_be_sent_back() {
    let client = over_http().await;
    let definitions = client.get("/processes").await.data();
    for definition in definitions.as_array().unwrap() {
        let path = format!("/processes/{}", definition["id"].as_str().unwrap());
        assert_eq!(client.patch(&path, definition.clone()).await.data(), *definition);
    }
}

#[tokio::test(start_paused = true)]
async fn an_instance_can_be_sent_back_before_and_after_its_end() {
    let (api, client) = Api::with_tenant().await;
    let steps = json!([{"type": "signature", "key": "sign", "label": "Sign"}, {"type": "text", "key": "a", "label": "A"}]);
    let process = create_process(&client, steps).await;
    let start = json!({"asset_id": client.assets(1).await[0], "step_data": {"sign": SIGNATURE}, "through": "sign"});
    let instance = client.post(&format!("/processes/{process}/start"), start).await.id();
    let (get, patch) = (format!("/processes/instances/{instance}"), format!("/processes/{instance}"));
    let is_sent_back = async |status: &str| {
        for shown in ["", "?omit=signatures"] {
            let read = client.get(&format!("{get}{shown}")).await.data();
            assert_eq!(read["status"], status);
            let before = api.dump().await;
            let sent = client.patch(&patch, read.clone()).await;
            let etag = client.get(&get).await;
            assert_eq!((sent.data(), sent.header("etag")), (etag.data(), etag.header("etag")), "{shown}");
            for field in read.as_object().unwrap().keys() {
                let mut changed = read.clone();
                changed[field] = another(&read[field]);
                assert_eq!(client.patch(&patch, changed).await.field_errors(), [format!("/{field}")]);
            }
            assert!(api.dump().await == before, "something was written");
        }
    };
    is_sent_back("in_progress").await;
    let mut cancelled = client.get(&get).await.data();
    cancelled["status"] = json!("cancelled");
    assert_eq!(client.patch(&patch, cancelled).await.data()["status"], "cancelled");
    is_sent_back("cancelled").await;
    let stale = client.send_json("PATCH", &patch, "{}", ("if-match", "\"999-0\"")).await;
    stale.problem(412, "PRECONDITION_FAILED");
}
