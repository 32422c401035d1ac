//! template.yaml, compared with the code.

use crate::deployment::policies::texts;
use crate::support::functions::{FUNCTIONS, Function, resource};
use crate::support::{Api, gateway};
use aws_sdk_dynamodb::types::{AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType};
use dev_server::{server, table};
use serde_json::json;
use shared::fields::ASSET_FILTERS;
use std::collections::BTreeSet;

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

/// Otherwise none would ever be begun.
#[test]
fn the_function_of_snapshots_has_time_for_one_and_for_others_before_it() {
    let seconds = resource("SnapshotsFunction")["Properties"]["Timeout"].as_u64().unwrap();
    let before_the_last = seconds.saturating_sub(shared::store::MAX_SNAPSHOT_TIME.as_secs() + 60);
    assert!(before_the_last >= 120, "{before_the_last} s");
}

/// With a template in its configuration, `sam deploy` would deploy the source instead of the result of `sam build`.
#[test]
fn sam_deploys_what_it_has_built() {
    let config = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../samconfig.toml");
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
    // The gateway responds to a preflight by itself only if OPTIONS is among the methods.
    let methods = server::CORS_METHODS.iter().map(ToString::to_string).chain(["OPTIONS".to_owned()]);
    assert_eq!(names("AllowMethods"), methods.collect::<Vec<_>>());
}

#[test]
fn every_request_gets_to_the_function_that_has_its_path() {
    let routes = gateway::routes();
    let mut unused: BTreeSet<&str> = routes.iter().map(|route| route.key.as_str()).collect();
    assert_eq!(unused.len(), routes.len(), "two functions have the same route");
    let mut errors = Vec::new();
    for function in FUNCTIONS {
        for (method, path) in function.operations() {
            let route = gateway::select(&routes, method, &path);
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

/// Anybody can call these, with or without a link.
#[test]
fn every_route_of_the_signing_page_has_a_throttle_of_its_own() {
    let settings = resource("Api")["Properties"]["RouteSettings"].clone();
    let limited = settings.as_mapping().unwrap().iter().map(|(route, limits)| {
        assert_eq!(texts(&limits["ThrottlingRateLimit"]), ["SignThrottleRate"]);
        assert_eq!(texts(&limits["ThrottlingBurstLimit"]), ["SignThrottleBurst"]);
        route.as_str().unwrap().to_owned()
    });
    let limited: BTreeSet<String> = limited.collect();
    let routes = gateway::routes();
    let of_sign = routes.iter().filter(|route| route.function.package == "sign").map(|route| route.key.clone());
    assert_eq!(limited, of_sign.collect());
    // Requests to one path don't use up what another may have.
    let paths: BTreeSet<String> = Function::named("sign").operations().into_iter().map(|(_, path)| path).collect();
    assert_eq!(limited, paths.iter().map(|path| format!("ANY {path}")).collect());
}

/// The address that a request came by would begin links otherwise.
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
        api.dynamo
            .query()
            .table_name(&api.table)
            .index_name(index)
            .key_condition_expression("PK = :pk AND begins_with(#sort, :prefix)")
            .expression_attribute_names("#sort", sort)
            .expression_attribute_values(":pk", shared::store::keys::Keys::of(client.tenant).partition())
            .expression_attribute_values(":prefix", aws_sdk_dynamodb::types::AttributeValue::S(prefix))
            .send()
    };
    let prepare = client
        .get("/processes")
        .await
        .data()
        .as_array()
        .unwrap()
        .iter()
        .find(|p| p["trigger_status"] == "in_stock")
        .unwrap()["id"]
        .clone();
    client.post(&format!("/processes/{}/start", prepare.as_str().unwrap()), json!({"asset_id": id})).await.data();
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
    let short = shared::domain::values::id::Id::short(id.parse::<shared::domain::values::id::AssetId>().unwrap());
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
