//! Every property of every PATCH body is stored: after the request, a GET has the new value, `updated_at` has moved, and
//! there is one event. The properties are taken from the OpenAPI document, so a new one fails until it has values here.

use crate::support::document::at;
use crate::support::operations::{Operation, operations};
use crate::support::table::history::event_chain;
use crate::support::{Api, Client, sample};
use serde_json::{Value, json};
use std::collections::BTreeSet;

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

    /// `n` makes unique values different.
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

    /// Two different valid values for each property, by path and property.
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

/// Returns the resource's path and id. Settings exist already; they have the id of their tenant.
async fn create(client: &Client, references: &References, path: &str, n: usize) -> (String, String) {
    let path = path.strip_prefix("/v1").unwrap();
    let Some(collection) = path.strip_suffix("/{id}") else { return (path.to_owned(), client.tenant.to_string()) };
    let id = client.post(collection, references.creation(&format!("/v1{path}"), n)).await.id();
    (format!("{collection}/{id}"), id)
}

/// Two values of a type without rules of its own.
fn values_of_type(schema: &Value) -> Option<[Value; 2]> {
    let values = match schema["anyOf"][0]["$ref"].as_str()?.rsplit('/').next()? {
        "Line" => ["one", "two"],
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

/// The properties of the body with their schemas.
fn properties<'a>(document: &'a Value, operation: &'a Operation) -> impl Iterator<Item = (&'a String, &'a Value)> {
    let schema = &operation.description["requestBody"]["content"]["application/json"]["schema"];
    at(document, schema)["properties"].as_object().unwrap_or_else(|| panic!("{operation} has no properties")).iter()
}

/// Changes one property and checks everything that depends on it.
async fn patch(api: &Api, client: &Client, path: &str, id: &str, property: &str, value: &Value) {
    let before = client.get(path).await.data();
    let shown = if property == "custom_fields_patch" { "custom_fields" } else { property };
    assert_ne!(before[shown], *value, "{path}: {property} has this value already");
    let events = event_chain(api, client, id).await.len();
    let patched = client.patch(path, json!({property: value})).await.data();
    let after = client.get(path).await.data();
    // Without custom fields, an asset has an empty object.
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
    let (document, operations) = operations(&client).await;
    let values = references.values();
    let mut unused: BTreeSet<(&str, &str)> = values.iter().map(|(path, property, _)| (*path, *property)).collect();
    let mut n = 0;
    let patches = operations.iter().filter(|operation| operation.method == "PATCH");
    let properties = patches.flat_map(|operation| properties(&document, operation).map(move |it| (operation, it)));
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
    for (operation, property, schema, values) in sample(tried, 12) {
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
