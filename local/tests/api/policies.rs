//! What each function may do with the table, against what its routes do.

use crate::support::functions::{FUNCTIONS, Function, resource};
use crate::support::samples::{SIGNATURE, Samples};
use crate::support::{Api, Client};
use serde_json::{Value as Json, json};
use shared::app::App;
use std::collections::BTreeSet;
use yaml_serde::Value;

/// The ARN of a table that was restored from a backup.
const RESTORED: &str = "arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/${RestoredTable}";

/// An action on the table (`table`) or on one of its indexes.
type Permission = (String, String);

/// The permissions that requests to the table need ("DynamoDB API permissions" in the AWS guide): a transaction those
/// of its parts.
fn needed(requests: Vec<(String, Json)>) -> (BTreeSet<Permission>, BTreeSet<String>) {
    let mut permissions = BTreeSet::new();
    let mut partitions = BTreeSet::new();
    for (operation, request) in requests {
        let place = request["IndexName"].as_str().unwrap_or("table").to_owned();
        let parts = request["TransactItems"].as_array().into_iter().flatten().flat_map(|part| part.as_object().unwrap());
        let actions: Vec<String> = match operation.as_str() {
            "TransactWriteItems" => parts.map(|(kind, _)| action_of(kind)).collect(),
            other => vec![other.to_owned()],
        };
        permissions.extend(actions.into_iter().map(|action| (place.clone(), action)));
        collect_partitions(&request, &mut partitions);
    }
    (permissions, partitions)
}

fn action_of(part: &str) -> String {
    if part == "ConditionCheck" { "ConditionCheckItem".into() } else { format!("{part}Item") }
}

/// Every `PK` and every `:pk` of a request.
fn collect_partitions(value: &Json, found: &mut BTreeSet<String>) {
    match value {
        Json::Object(map) => {
            for name in ["PK", ":pk"] {
                found.extend(map.get(name).and_then(|key| key["S"].as_str()).map(str::to_owned));
            }
            map.values().for_each(|value| collect_partitions(value, found));
        }
        Json::Array(items) => items.iter().for_each(|value| collect_partitions(value, found)),
        _ => {}
    }
}

/// One text or several, as IAM writes lists.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Sequence(items) => items.iter().flat_map(texts).collect(),
        Value::String(text) => vec![text.clone()],
        // What a condition chooses from; its name comes first.
        Value::Tagged(tagged) if tagged.tag == "If" => texts(&tagged.value).split_off(1),
        Value::Tagged(tagged) => texts(&tagged.value),
        other => panic!("{other:?} is no list of texts"),
    }
}

/// The statements of a function's role.
fn statements(function: &Function) -> Vec<Value> {
    let role = resource(&format!("{}Role", function.resource));
    let policies = role["Properties"]["Policies"].as_sequence().unwrap();
    assert_eq!(policies.len(), 1);
    assert!(role["Properties"].get("ManagedPolicyArns").is_none(), "what AWS's own policies allow is not looked at here");
    policies[0]["PolicyDocument"]["Statement"].as_sequence().unwrap().clone()
}

/// What the role grants on the stack's own table; on a restored one it must grant the same.
fn granted(function: &Function) -> BTreeSet<Permission> {
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
                let index = rest.strip_prefix("/index/").unwrap_or("table");
                granted.insert((index.to_owned(), action.to_owned()));
            }
        }
    }
    assert_eq!(own, restored, "{}", function.resource);
    own
}

/// Whether the condition of each of the role's statements about the table lets a partition through.
fn let_through(function: &Function, partition: &str) -> Vec<bool> {
    let of_table = |statement: &&Value| texts(&statement["Action"])[0].starts_with("dynamodb:");
    let lets = |statement: &Value| {
        let condition = statement["Condition"].as_mapping().unwrap_or_else(|| panic!("{} has no condition", function.resource));
        let keys = &condition["ForAllValues:StringLike"];
        assert_eq!(
            (condition.len(), keys.as_mapping().unwrap().len()),
            (1, 1),
            "{} has a condition that is not understood",
            function.resource
        );
        texts(&keys["dynamodb:LeadingKeys"]).iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(prefix) => partition.starts_with(prefix),
            None => partition == pattern,
        })
    };
    statements(function).iter().filter(of_table).map(lets).collect()
}

/// Everything that makes a function ask the table in another way, through the function itself.
async fn use_everything(api: &Api, owner: &Client, function: &Function) {
    let everything = owner.clone();
    let asset_type = owner.asset_type("Laptop", "LAP", "physical").await;
    let model = owner.model("Dell", "XPS", &asset_type).await;
    let other = owner.model("Lenovo", "T14", &asset_type).await;
    let user = owner.user("Ada").await;
    let linked = owner.asset(json!({"name": "linked", "model_id": model})).await;
    let bound = json!({"name": "bound", "scopes": ["assets:read", "assets:write", "processes:read", "users:read",
        "catalog:read", "settings:read", "keys:read"], "user_id": owner.user("Grace").await});
    let samples = Samples::of(owner).await;
    let bound = owner.post("/keys", bound).await.data()["api_key"].as_str().unwrap().to_owned();
    // The last use of a key is written by whichever function is asked first.
    api.wait(7200);
    api.faults.take_seen();
    let store = api.instance(0, 1 << 20).store;
    // Receipts ask the table for the key that signs them.
    let app = App::new(store).with_key_encryption((function.package == "processes").then(|| api.key_encryption.clone()));
    let router = shared::http::service((function.routes)(), app);
    let own = Client { router, ..everything };
    own.with_key(&bound).get("/settings").await;
    let order = ["GET", "PATCH", "POST", "DELETE"];
    for method in order {
        for (_, path) in function.operations().iter().filter(|(known, _)| *known == method) {
            let filled = samples.fill(path);
            let body = samples.body(method, path);
            let body = if body.is_null() { String::new() } else { body.to_string() };
            let path = filled.strip_prefix("/v1").unwrap();
            own.with_key(&bound).send(method, path, Some("application/json"), "").await;
            let reply = own.send(method, path, Some("application/json"), body).await;
            assert!(reply.status.as_u16() < 500, "{method} {path}: {}", reply.text());
        }
    }
    match function.package {
        "assets" => {
            let path = format!("/assets/{linked}");
            own.get(&path).await.data();
            own.get("/assets?kind=physical&limit=100").await;
            for body in [json!({"assigned_to": user}), json!({"model_id": other}), json!({"assigned_to": null, "model_id": null})]
            {
                own.patch(&path, body).await.data();
            }
            own.post("/assets", json!({"name": "x", "model_id": model})).await.data();
            own.delete(&path).await;
        }
        "processes" => {
            let steps = json!([{"type": "user_picker", "key": "who", "label": "Who"},
                {"type": "signature", "key": "sign", "label": "Sign"}]);
            let made = json!({"name": "all", "trigger_status": "in_stock", "target_status": "in_use", "steps": steps});
            let process = own.post("/processes", made).await.id();
            let run = own.post(&format!("/processes/{process}/start"), json!({"asset_id": linked})).await.id();
            for value in [json!({"who": user}), json!({"sign": SIGNATURE})] {
                own.post(&format!("/processes/instances/{run}/advance"), json!({"step_data": value})).await.data();
            }
            assert_eq!(own.get(&format!("/processes/instances/{run}/receipt")).await.status, 200);
            own.get("/processes/instances").await;
        }
        "catalog" => {
            let body = json!({"name": "Z13", "manufacturer_id": own.get("/catalog/manufacturers").await.data()[0]["id"],
                "asset_type_id": asset_type});
            let model = own.post("/catalog/models", body).await.id();
            own.delete(&format!("/catalog/models/{model}")).await.data();
            own.patch(&format!("/catalog/asset-types/{asset_type}"), json!({"code": "NBK"})).await.data();
        }
        "users" => {
            own.patch(&format!("/users/{user}"), json!({"email": "countess@example.com"})).await.data();
            own.delete(&format!("/users/{user}")).await.data();
        }
        "account" => {
            let made = own.post("/keys", json!({"name": "x", "scopes": ["assets:read"], "user_id": user})).await.id();
            own.delete(&format!("/keys/{made}")).await.data();
        }
        _ => {}
    }
}

#[tokio::test]
async fn each_function_may_do_with_the_table_what_it_does_and_no_more() {
    let mut advice = Vec::new();
    for function in FUNCTIONS {
        let (api, client) = Api::with_tenant().await;
        use_everything(&api, &client, &function).await;
        let (needed, partitions) = needed(api.faults.take_seen());
        let granted = granted(&function);
        let role = format!("{}Role", function.resource);
        advice.extend(needed.difference(&granted).map(|(place, action)| format!("allow {role} dynamodb:{action} on {place}")));
        let idle = granted.difference(&needed);
        advice.extend(idle.map(|(place, action)| {
            format!("{role} never did dynamodb:{action} on {place}: take it away, or show the use in use_everything")
        }));
        for partition in partitions {
            assert!(!let_through(&function, &partition).contains(&false), "{role} keeps {partition} out");
        }
        assert!(!let_through(&function, "REGISTRY").contains(&true), "the registry is the operator's, not {role}'s");
    }
    assert!(advice.is_empty(), "the roles in template.yaml and what the functions do differ:\n{}", advice.join("\n"));
}

/// The engine knows no KMS: what the key_encryption sends is for vault's tests, here it is compared with what the role may do.
#[test]
fn the_function_that_signs_receipts_may_use_their_key_and_no_other_may() {
    for function in FUNCTIONS {
        let statements = statements(&function);
        let of_kms = |statement: &&Value| texts(&statement["Action"]).iter().any(|action| action.starts_with("kms:"));
        let found: Vec<&Value> = statements.iter().filter(of_kms).collect();
        let variable = &resource(&format!("{}Function", function.resource))["Properties"]["Environment"]["Variables"]
            [key_encryption::KMS_KEY];
        if function.package != "processes" {
            assert!(found.is_empty() && variable.is_null(), "{}", function.package);
            continue;
        }
        let [statement] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(texts(variable), ["ReceiptKey.Arn"]);
        assert_eq!(texts(&statement["Resource"]), ["ReceiptKey.Arn"]);
        assert_eq!(texts(&statement["Action"]), ["kms:Encrypt", "kms:Decrypt"]);
        assert_eq!(statement["Condition"]["StringEquals"]["kms:EncryptionContext:purpose"], key_encryption::PURPOSE);
    }
}

#[test]
fn a_wildcard_stands_only_where_aws_knows_no_resource() {
    for function in FUNCTIONS {
        for statement in statements(&function) {
            for action in texts(&statement["Action"]) {
                assert!(!action.contains('*'), "{action}");
                assert_ne!(action, "dynamodb:Scan");
                let everywhere = texts(&statement["Resource"]).iter().any(|resource| resource.contains('*'));
                assert_eq!(everywhere, action.starts_with("xray:"), "{action}");
            }
        }
    }
}
