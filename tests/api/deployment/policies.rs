//! Each function's role, compared with the calls of its routes.

use crate::support::functions::{FUNCTIONS, Function, resource, resources};
use crate::support::operations::{METHODS, dry_run};
use crate::support::processes::{advance, create_process, start};
use crate::support::queue::TestQueue;
use crate::support::samples::{SIGNATURE, Samples, content_type};
use crate::support::{Api, Client, sample};
use crate::table::requests::partitions;
use serde_json::{Value as Json, json};
use shared::app::App;
use std::collections::BTreeSet;
use std::sync::Arc;
use yaml_serde::Value;

/// The ARN of a table that was restored from a backup.
const RESTORED: &str = "arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/${RestoredTable}";

/// An action on the table (`table`), on one of its indexes, or on its stream (`stream`).
type Permission = (String, String);

/// The permissions that requests to the table need, and the partitions that they name. A transaction needs the permissions of its
/// items ("DynamoDB API permissions" in the AWS developer guide).
pub fn needed(requests: Vec<(String, Json)>) -> (BTreeSet<Permission>, BTreeSet<String>) {
    let mut permissions = BTreeSet::new();
    let mut found = Vec::new();
    for (operation, request) in requests {
        let place = request["IndexName"].as_str().unwrap_or("table").to_owned();
        let items = request["TransactItems"].as_array().into_iter().flatten().flat_map(|item| item.as_object().unwrap());
        let actions: Vec<String> = match operation.as_str() {
            "TransactWriteItems" => items.map(|(write, _)| action_of(write)).collect(),
            other => vec![other.to_owned()],
        };
        permissions.extend(actions.into_iter().map(|action| (place.clone(), action)));
        partitions(&request, &mut found);
    }
    (permissions, found.into_iter().collect())
}

/// The action that an item of a transaction needs.
fn action_of(write: &str) -> String {
    format!("{write}Item")
}

/// One text or several, as IAM writes lists.
pub fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Sequence(items) => items.iter().flat_map(texts).collect(),
        Value::String(text) => vec![text.clone()],
        // The two values of a condition, after its name.
        Value::Tagged(tagged) if tagged.tag == "If" => texts(&tagged.value).split_off(1),
        Value::Tagged(tagged) => texts(&tagged.value),
        other => panic!("{other:?} is not a list of texts"),
    }
}

/// `function` is the name in the template. Includes the statements of policies that roles share.
pub fn statements(function: &str) -> Vec<Value> {
    let role = resource(&format!("{function}Role"))["Properties"].clone();
    // A policy of AWS would have another name than those of the template, which `resource` would not find.
    let shared = role
        .get("ManagedPolicyArns")
        .map(texts)
        .unwrap_or_default()
        .into_iter()
        .map(|name| resource(&name)["Properties"].clone());
    let own = role.get("Policies").map(|policies| policies.as_sequence().unwrap().clone()).unwrap_or_default();
    let policies = shared.chain(own);
    let statements = policies.flat_map(|policy| policy["PolicyDocument"]["Statement"].as_sequence().unwrap().clone());
    // `!If [condition, statement, nothing]`.
    let unconditional = |statement: Value| match statement {
        Value::Tagged(tagged) => tagged.value[1].clone(),
        statement => statement,
    };
    statements.map(unconditional).collect()
}

/// The role's permissions on the stack's own table, after checking that it has the same on a restored one.
pub fn granted(function: &str) -> BTreeSet<Permission> {
    let (mut own, mut restored) = (BTreeSet::new(), BTreeSet::new());
    for statement in statements(function) {
        assert_eq!(statement["Effect"], "Allow");
        for action in texts(&statement["Action"]) {
            let Some(action) = action.strip_prefix("dynamodb:") else { continue };
            for place in texts(&statement["Resource"]) {
                let place = place.replace("${Table.Arn}", "Table.Arn");
                let (granted, rest) = match (place.strip_prefix("Table.Arn"), place.strip_prefix(RESTORED)) {
                    (Some(rest), _) => (&mut own, rest),
                    (_, Some(rest)) => (&mut restored, rest),
                    _ => panic!("{place}: which table?"),
                };
                let place = if rest == "/stream/*" { "stream" } else { rest.strip_prefix("/index/").unwrap_or("table") };
                granted.insert((place.to_owned(), action.to_owned()));
            }
        }
    }
    assert_eq!(own, restored, "{function}");
    own
}

/// For each of the role's statements about the table.
pub fn allows_partition(function: &str, partition: &str) -> Vec<bool> {
    // A stream has no leading keys.
    let of_table = |statement: &&Value| texts(&statement["Action"])[0].starts_with("dynamodb:") && statement["Sid"] != "Stream";
    let allows = |statement: &Value| {
        let condition = statement["Condition"].as_mapping().unwrap_or_else(|| panic!("{function} has no condition"));
        let keys = &condition["ForAllValues:StringLike"];
        assert_eq!(
            (condition.len(), keys.as_mapping().unwrap().len()),
            (1, 1),
            "{function} has a condition that this test can't read"
        );
        texts(&keys["dynamodb:LeadingKeys"]).iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(prefix) => partition.starts_with(prefix),
            None => partition == pattern,
        })
    };
    statements(function).iter().filter(of_table).map(allows).collect()
}

/// The functions that serve requests and encrypt or decrypt receipts' keys or secrets of webhooks.
const HAS_KEY_ENCRYPTION: [&str; 3] = ["processes", "sign", "webhooks"];

/// The secret of a link that opens all steps of a new instance for this asset: a user and a signature.
async fn signing_link(owner: &Client, asset: &str) -> String {
    let steps =
        json!([{"type": "user_picker", "key": "who", "label": "Who"}, {"type": "signature", "key": "sign", "label": "Sign"}]);
    let instance = start(owner, &create_process(owner, steps).await, asset).await;
    let link = owner.post(&format!("/processes/instances/{instance}/links"), json!({"signer": {"name": "Ada"}})).await.data();
    link["url"].as_str().unwrap().split_once('#').unwrap().1.to_owned()
}

/// Sends every request that leads to other calls to the table.
async fn use_everything(api: &Api, owner: &Client, function: &Function) {
    let asset_type = owner.asset_type("Laptop", "LAP", "physical").await;
    let model = owner.model("Dell", "XPS", &asset_type).await;
    let other = owner.model("Lenovo", "T14", &asset_type).await;
    let user = owner.user("Ada").await;
    let linked = owner.asset(json!({"name": "linked", "model_id": model})).await;
    let holder = owner.user("Holder").await;
    let assigned = owner.assigned_asset("assigned", &holder).await;
    let leaver = owner.user("Leaver").await;
    owner.patch(&format!("/users/{leaver}"), json!({"is_active": false})).await.data();
    let bound = json!({"name": "bound", "scopes": ["assets:read", "assets:write", "processes:read", "users:read",
        "catalog:read", "settings:read", "keys:read"], "user_id": owner.user("Grace").await});
    let samples = Samples::create(owner).await;
    let secret = if function.package == "sign" { signing_link(owner, &linked).await } else { String::new() };
    let bound = owner.post("/keys", bound).await.data()["api_key"].as_str().unwrap().to_owned();
    // The next request writes the last use of the key.
    api.advance_clock(7200);
    api.faults.take_requests();
    let store = api.replica(0, 1 << 20).store;
    let has_key_encryption = HAS_KEY_ENCRYPTION.contains(&function.package);
    let app = App::new(store).with_key_encryption(has_key_encryption.then(|| api.key_encryption.clone()));
    let queue = (function.package == "webhooks").then(|| TestQueue::new(api.store.clone()));
    let app = app.with_queue(queue.map(|queue| Arc::new(queue) as Arc<dyn shared::queue::Queue>));
    let router = shared::http::service((function.routes)(), app);
    let own = Client { router, ..owner.clone() };
    own.with_key(&bound).get("/settings").await;
    for method in METHODS {
        // Operations for signing links have no samples, and are called below.
        let takes_link = |path: &str| path.starts_with("/v1/sign/");
        for (_, path) in function.operations().iter().filter(|(known, path)| *known == method && !takes_link(path)) {
            let content_type = Some(content_type(path));
            let (path, body) = samples.request(method, path);
            own.with_key(&bound).send(method, &path, content_type, "").await;
            if method != "GET" {
                own.send(method, &dry_run(&path), content_type, body.clone()).await.json();
            }
            let reply = own.send(method, &path, content_type, body).await;
            assert!(reply.status.as_u16() < 500, "{method} {path}: {}", reply.text());
        }
    }
    match function.package {
        "assets" => {
            let path = format!("/assets/{linked}");
            own.get(&path).await.data();
            own.get(&format!("{path}?as_of={}", api.now())).await.data();
            own.get("/assets?kind=physical&limit=100").await;
            for body in [json!({"assigned_to": user}), json!({"model_id": other}), json!({"assigned_to": null, "model_id": null})]
            {
                own.patch(&path, body).await.data();
            }
            own.post("/assets", json!({"name": "x", "model_id": model})).await.data();
            // The holder gets one asset for another, so the count of their assets is checked and not changed.
            let operations = json!([{"op": "update", "id": linked, "body": {"assigned_to": holder, "model_id": other}},
                {"op": "update", "id": assigned, "body": {"assigned_to": user}},
                {"op": "delete", "id": owner.asset(json!({"name": "old"})).await}]);
            own.post("/assets/batch", json!({"operations": operations})).await.data();
            let rows = "serial_number,name,asset_type_code,manufacturer_name,model_name,assigned_to_email\n\
                        s,x,LAP,Dell,XPS,ada@example.com\n";
            own.import("/assets", "?match=serial_number&on_error=abort", rows).await.data();
            own.delete(&path).await;
        }
        "processes" => {
            let steps = json!([{"type": "user_picker", "key": "who", "label": "Who"},
                {"type": "signature", "key": "sign", "label": "Sign"}]);
            let process = create_process(&own, steps).await;
            let instance = start(&own, &process, &linked).await;
            for value in [json!({"who": user}), json!({"sign": SIGNATURE})] {
                advance(&own, &instance, value).await.data();
            }
            assert_eq!(own.get(&format!("/processes/instances/{instance}/receipt")).await.status, 200);
            own.get("/processes/instances").await;
        }
        "catalog" => {
            let body = json!({"name": "Z13", "manufacturer_id": own.get("/catalog/manufacturers").await.data()[0]["id"],
                "asset_type_id": asset_type});
            let model = own.post("/catalog/models", body).await.id();
            own.delete(&format!("/catalog/models/{model}")).await.data();
            own.patch(&format!("/catalog/asset-types/{asset_type}"), json!({"code": "NBK"})).await.data();
        }
        "sign" => {
            let signer = own.with_key(&secret);
            signer.get("/sign/session").await.data();
            for value in [json!({"who": "ada@example.com"}), json!({"sign": SIGNATURE})] {
                signer.post("/sign/advance", json!({"step_data": value})).await.data();
            }
            assert_eq!(signer.get("/sign/receipt").await.status, 200);
        }
        "users" => {
            own.get(&format!("/users/{holder}/assets")).await.data();
            own.get(&format!("/users/{holder}/assets?as_of={}", api.now())).await.data();
            own.import("/users", "?match=email", "email,display_name\nada@example.com,Countess\n").await.data();
            own.patch(&format!("/users/{user}"), json!({"email": "countess@example.com"})).await.data();
            own.delete(&format!("/users/{user}")).await.data();
            own.post(&format!("/users/{leaver}/erase"), json!({})).await.data();
        }
        "webhooks" => {
            let body = json!({"url": "https://example.com/hooks", "events": ["asset.*"]});
            let webhook = own.post("/webhooks", body).await.id();
            let path = format!("/webhooks/{webhook}");
            own.patch(&path, json!({"url": "https://example.org/hooks"})).await.data();
            own.post(&format!("{path}/rotate"), json!({"grace_seconds": 60})).await.data();
            own.post(&format!("{path}/test"), json!({})).await.data();
            own.post(&format!("{path}/replay"), json!({"since": "2026-03-01T00:00:00Z"})).await.data();
            for status in ["pending", "failed", "delivered"] {
                own.get(&format!("{path}/deliveries?status={status}")).await.data();
            }
            own.delete(&path).await.data();
        }
        "account" => {
            let made = own.post("/keys", json!({"name": "x", "scopes": ["assets:read"], "user_id": user})).await.id();
            own.delete(&format!("/keys/{made}")).await.data();
            own.get(&format!("/events?entity_id={user}")).await.data();
        }
        _ => {}
    }
}

#[tokio::test]
async fn each_role_allows_the_calls_that_its_function_makes_and_no_others() {
    let mut advice = Vec::new();
    for function in sample(FUNCTIONS, 3) {
        let (api, client) = Api::with_tenant().await;
        use_everything(&api, &client, &function).await;
        let (needed, partitions) = needed(api.faults.take_requests());
        let granted = granted(function.resource);
        let role = format!("{}Role", function.resource);
        advice.extend(needed.difference(&granted).map(|(place, action)| format!("allow {role} dynamodb:{action} on {place}")));
        let unused = granted.difference(&needed);
        advice.extend(unused.map(|(place, action)| {
            format!("{role} never used dynamodb:{action} on {place}: remove it, or add the use to use_everything")
        }));
        for partition in partitions {
            assert!(!allows_partition(function.resource, &partition).contains(&false), "{role} does not allow {partition}");
        }
        assert!(
            !allows_partition(function.resource, "REGISTRY").contains(&true),
            "{role} must not reach the registry of tenants"
        );
    }
    assert!(advice.is_empty(), "the roles in template.yaml differ from what the functions do:\n{}", advice.join("\n"));
}

#[test]
fn wildcards_are_used_only_for_actions_without_resources() {
    for function in resources() {
        for statement in statements(function) {
            for action in texts(&statement["Action"]) {
                assert!(!action.contains('*'), "{action}");
                assert_ne!(action, "dynamodb:Scan");
                let everywhere = texts(&statement["Resource"]).iter().any(|resource| resource.contains('*'));
                // The objects of a bucket have no other name, and those of streams are times.
                let is_object = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"].contains(&action.as_str())
                    || statement["Sid"] == "Stream";
                assert_eq!(everywhere, action.starts_with("xray:") || is_object, "{action}");
            }
        }
    }
}
