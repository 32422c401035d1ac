//! Compares template.yaml with the code: the table, the gateway, and the permissions of each function's role with the calls
//! that its routes make.

use crate::support::prelude::*;
use crate::support::queue::TestQueue;
use crate::table::requests::partitions;
use aws_sdk_dynamodb::types::{AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType};
use dev_server::{server, table};
use serde_json::Value as Json;
use shared::fields::ASSET_FILTERS;
use yaml_serde::Value;

#[test]
fn the_table_is_protected_and_backed_up() {
    let table = resource("Table");
    assert_eq!(table["DeletionPolicy"], "Retain");
    assert_eq!(table["UpdateReplacePolicy"], "Retain");
    let properties = &table["Properties"];
    assert_eq!(properties["BillingMode"], "PAY_PER_REQUEST");
    assert_eq!(properties["DeletionProtectionEnabled"], true);
    assert_eq!(properties["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"], true);
    assert_eq!(texts(&properties["PointInTimeRecoverySpecification"]["RecoveryPeriodInDays"]), ["BackupDays"]);
    assert_eq!(properties["SSESpecification"]["SSEEnabled"], true);
    assert_eq!(properties["TimeToLiveSpecification"]["Enabled"], true);
}

/// With a shorter timeout, the function could stop before it has written a snapshot.
#[test]
fn snapshot_writer_has_two_minutes_before_its_last_snapshot() {
    let seconds = resource("SnapshotsFunction")["Properties"]["Timeout"].as_u64().unwrap();
    let before_the_last = seconds.saturating_sub(shared::store::MAX_SNAPSHOT_TIME.as_secs() + 60);
    assert!(before_the_last >= 120, "{before_the_last} s");
}

/// If samconfig.toml named a template, `sam deploy` would deploy the source instead of the result of `sam build`.
#[test]
fn sam_deploys_what_it_has_built() {
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("../samconfig.toml");
    let config = std::fs::read_to_string(config).unwrap();
    assert!(config.contains("[prod.deploy.parameters]"));
    assert!(!config.lines().any(|line| line.trim_start().starts_with("template")), "samconfig.toml names a template");
}

#[test]
fn the_gateway_responds_to_preflights_like_the_dev_server() {
    let cors = resource("Api")["Properties"]["CorsConfiguration"].clone();
    let names = |list: &str| -> Vec<String> {
        cors[list].as_sequence().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("ExposeHeaders"), server::CORS_RESPONSE_HEADERS);
    assert_eq!(names("AllowHeaders"), server::CORS_REQUEST_HEADERS);
    assert_eq!(cors["MaxAge"].as_u64(), Some(server::CORS_MAX_AGE.as_secs()));
    // The gateway only responds to preflight requests itself if OPTIONS is among the methods.
    let methods = server::CORS_METHODS.iter().map(ToString::to_string).chain(["OPTIONS".to_owned()]);
    assert_eq!(names("AllowMethods"), methods.collect::<Vec<_>>());
}

#[test]
fn every_request_gets_to_the_function_that_has_its_path() {
    let routes = routes();
    let mut unused: BTreeSet<&str> = routes.iter().map(|route| route.key.as_str()).collect();
    assert_eq!(unused.len(), routes.len(), "two functions have the same route");
    let mut errors = Vec::new();
    for function in FUNCTIONS {
        for (method, path) in function.operations() {
            let route = select(&routes, method, &path);
            unused.remove(route.key.as_str());
            if route.function.package != function.package {
                errors
                    .push(format!("{method} {path} of {} gets to {} by {}", function.package, route.function.package, route.key));
            }
        }
    }
    errors.extend(unused.iter().map(|key| format!("{key} leads nowhere")));
    assert!(errors.is_empty(), "the Events in template.yaml and the routes in functions/ differ:\n{}", errors.join("\n"));
}

/// Anyone can call the signing page's routes, even without a link.
#[test]
fn every_route_of_the_signing_page_has_a_throttle_of_its_own() {
    let settings = resource("Api")["Properties"]["RouteSettings"].clone();
    let limited = settings.as_mapping().unwrap().iter().map(|(route, limits)| {
        assert_eq!(texts(&limits["ThrottlingRateLimit"]), ["SignThrottleRate"]);
        assert_eq!(texts(&limits["ThrottlingBurstLimit"]), ["SignThrottleBurst"]);
        route.as_str().unwrap().to_owned()
    });
    let limited: BTreeSet<String> = limited.collect();
    let routes = routes();
    let of_sign = routes.iter().filter(|route| route.function.package == "sign").map(|route| route.key.clone());
    assert_eq!(limited, of_sign.collect());
    // Requests to one path must not use up the limit for a different path.
    let paths: BTreeSet<String> = Function::named("sign").operations().into_iter().map(|(_, path)| path).collect();
    assert_eq!(limited, paths.iter().map(|path| format!("ANY {path}")).collect());
}

/// Without `PUBLIC_URL`, links would start with the host from the request.
#[test]
fn links_begin_with_the_public_url_or_else_with_the_custom_domain() {
    for function in FUNCTIONS {
        let variables = &resource(&format!("{}Function", function.resource))["Properties"]["Environment"]["Variables"];
        let expected: &[&str] = if function.package == "processes" { &["PublicUrl", "https://${DomainName}", ""] } else { &[] };
        let url = variables.get("PUBLIC_URL").map(texts).unwrap_or_default();
        assert_eq!(url, expected, "{}", function.package);
    }
}

#[tokio::test(start_paused = true)]
async fn the_index_list_index_has_the_attributes_of_lists_and_history_every_event() {
    let (api, client) = Api::with_tenant().await;
    let laptop = client.asset_type("Laptop", "LAP", "physical").await;
    let model = client.model("Dell", "XPS", &laptop).await;
    let mut body = json!({"name": "x", "warranty_until": "2028-01-01", "model_id": model, "notes": "long", "purchase_price": 1});
    let texts: Vec<&str> = ASSET_FILTERS.iter().map(|(field, _)| *field).filter(|field| *field != "asset_tag").collect();
    texts.iter().for_each(|field| body[field] = "s".into());
    let id = client.asset(body).await;
    client.patch(&format!("/assets/{id}"), json!({"assigned_to": client.user("Ada").await})).await.data();
    let query = |index: &str, sort: &str, prefix: String| {
        let query = api.dynamo.query().table_name(&api.table).index_name(index).expression_attribute_names("#sort", sort);
        let query = query.key_condition_expression("PK = :pk AND begins_with(#sort, :prefix)");
        let query = query.expression_attribute_values(":pk", Keys::of(client.tenant).partition());
        query.expression_attribute_values(":prefix", AttributeValue::S(prefix)).send()
    };
    start(&client, &system_process(&client, "prepare").await, &id).await;
    for (letter, expected, filters) in [
        (
            "A",
            "LS PK SK asset_tag asset_type_id assigned_to listed manufacturer model_id name purchase_price status updated_at version \
             warranty_until",
            texts.as_slice(),
        ),
        ("U", "LS PK SK display_name email is_active role updated_at version", &[]),
        ("I", "LS PK SK asset_id asset_tag process_id status updated_at version", &[]),
    ] {
        let rows = query("list_index", "LS", letter.into()).await.unwrap().items.unwrap();
        let attributes: BTreeSet<&str> = rows[0].keys().map(String::as_str).collect();
        assert_eq!(attributes, expected.split(' ').chain(filters.iter().copied()).collect());
        assert_eq!(rows.len(), 1);
    }
    let short = id.parse::<AssetId>().unwrap().short();
    assert_eq!(query("history", "HS", format!("{short}#")).await.unwrap().count, 3);
}

#[tokio::test(start_paused = true)]
async fn a_table_with_other_indexes_is_refused() {
    let api = Api::start().await;
    table::create(&api.dynamo, &api.table).await.unwrap();
    let older = format!("{}-older", api.table);
    let key = |name, kind| KeySchemaElement::builder().attribute_name(name).key_type(kind).build().unwrap();
    let text = |name| AttributeDefinition::builder().attribute_name(name).attribute_type(ScalarAttributeType::S).build().unwrap();
    let creation = api.dynamo.create_table().table_name(&older).billing_mode(BillingMode::PayPerRequest);
    let creation = creation.key_schema(key("PK", KeyType::Hash)).key_schema(key("SK", KeyType::Range));
    creation.attribute_definitions(text("PK")).attribute_definitions(text("SK")).send().await.unwrap();
    let error = table::create(&api.dynamo, &older).await.unwrap_err().to_string();
    api.dynamo.delete_table().table_name(&older).send().await.unwrap();
    assert!(error.contains("index list_index differs"), "{error}");
}

/// The ARN of a table that was restored from a backup.
const RESTORED: &str = "arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/${RestoredTable}";

/// What an action applies to (`table`, `stream` or the name of an index), and the action.
type Permission = (String, String);

/// Returns the permissions needed for requests to the table, and the partitions named in the requests. A transaction needs the
/// permissions of its items ("DynamoDB API permissions" in the AWS developer guide).
pub fn needed(requests: Vec<(String, Json)>) -> (BTreeSet<Permission>, BTreeSet<String>) {
    let mut permissions = BTreeSet::new();
    let mut found = Vec::new();
    for (operation, request) in requests {
        let place = request["IndexName"].as_str().unwrap_or("table").to_owned();
        let items = request["TransactItems"].as_array().into_iter().flatten().flat_map(|item| item.as_object().unwrap());
        let actions: Vec<String> = match operation.as_str() {
            "TransactWriteItems" => items.map(|(write, _)| format!("{write}Item")).collect(),
            other => vec![other.to_owned()],
        };
        permissions.extend(actions.into_iter().map(|action| (place.clone(), action)));
        partitions(&request, &mut found);
    }
    (permissions, found.into_iter().collect())
}

/// Reads a string or a list of strings, as IAM writes lists.
pub fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Sequence(items) => items.iter().flat_map(texts).collect(),
        Value::String(text) => vec![text.clone()],
        // The condition's name, followed by its two values.
        Value::Tagged(tagged) if tagged.tag == "If" => texts(&tagged.value).split_off(1),
        Value::Tagged(tagged) => texts(&tagged.value),
        other => panic!("{other:?} is not a list of texts"),
    }
}

/// Returns the statements of a function's role and of its shared policies. `function` is the role's name without `Role`.
pub fn statements(function: &str) -> Vec<Value> {
    let role = resource(&format!("{function}Role"))["Properties"].clone();
    // `resource` panics for AWS managed policies, which aren't in the template.
    let shared = role
        .get("ManagedPolicyArns")
        .map(texts)
        .unwrap_or_default()
        .into_iter()
        .map(|name| resource(&name)["Properties"].clone());
    let own = role.get("Policies").map(|policies| policies.as_sequence().unwrap().clone()).unwrap_or_default();
    let policies = shared.chain(own);
    let statements = policies.flat_map(|policy| policy["PolicyDocument"]["Statement"].as_sequence().unwrap().clone());
    // A conditional statement has the form `!If [condition, statement, nothing]`.
    let unconditional = |statement: Value| match statement {
        Value::Tagged(tagged) => tagged.value[1].clone(),
        statement => statement,
    };
    statements.map(unconditional).collect()
}

/// Returns the role's permissions on the stack's own table. Checks that the role has the same permissions on a restored table.
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

/// Returns, for each of the role's statements on the table, whether the statement permits access to the partition.
pub fn allows_partition(function: &str, partition: &str) -> Vec<bool> {
    // The leading-keys condition doesn't apply to streams.
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

/// The functions that serve requests and encrypt or decrypt receipt keys or webhook secrets.
const HAS_KEY_ENCRYPTION: [&str; 3] = ["processes", "sign", "webhooks"];

/// Returns the secret of a link to a new instance on this asset. The link covers all steps: a user and a signature.
async fn signing_link(owner: &Client, asset: &str) -> String {
    let steps =
        json!([{"type": "user_picker", "key": "who", "label": "Who"}, {"type": "signature", "key": "sign", "label": "Sign"}]);
    let instance = start(owner, &create_process(owner, steps).await, asset).await;
    let link = owner.post(&format!("/processes/instances/{instance}/links"), json!({"signer": {"name": "Ada"}})).await.data();
    link["url"].as_str().unwrap().split_once('#').unwrap().1.to_owned()
}

/// Sends every kind of request that causes different calls to the table.
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
    // The next request writes the key's last use.
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
            // The holder gets one asset and gives another back, so the holder's asset count is checked but unchanged.
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
        assert!(!allows_partition(function.resource, "REGISTRY").contains(&true), "{role} must not reach the tenant registry");
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
                // These permissions need wildcards: policies name S3 objects by pattern, and a stream's name contains its
                // creation time.
                let is_object = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"].contains(&action.as_str())
                    || statement["Sid"] == "Stream";
                assert_eq!(everywhere, action.starts_with("xray:") || is_object, "{action}");
            }
        }
    }
}
