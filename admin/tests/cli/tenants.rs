//! Tenants and keys.

use crate::operator::Operator;
use aws_sdk_dynamodb::Client;
use local::{engine, server};

/// The status of a request with this key.
async fn status(operator: &Operator, key: &str, path: &str) -> u16 {
    use tower::ServiceExt;
    let client = Client::from_conf(engine::config(&operator.engine.url).build());
    let store = shared::store::Store::new(client, server::TABLE, shared::app::system_clock());
    let request = axum::http::Request::builder().uri(path).header("authorization", format!("Bearer {key}"));
    let request = request.body(axum::body::Body::empty()).unwrap();
    server::router(shared::app::App::new(store)).oneshot(request).await.unwrap().status().as_u16()
}

#[tokio::test]
async fn an_operator_makes_a_tenant_whose_first_key_works() {
    let operator = Operator::start().await;
    let made = operator.json(&["tenant", "create", "--name", "Acme", "--admin-email", "ada@example.com"]);
    let key = made["api_key"].as_str().unwrap();
    assert_eq!(status(&operator, key, "/v1/assets").await, 200);
    assert_eq!(status(&operator, key, &format!("/v1/users/{}", made["user_id"].as_str().unwrap())).await, 200);
    assert_eq!(status(&operator, key, &format!("/v1/keys/{}", made["key_id"].as_str().unwrap())).await, 200);
    operator.json(&["tenant", "create", "--name", "Beta"]);
    let list = operator.json(&["tenant", "list"]);
    let names: Vec<&str> = list.as_array().unwrap().iter().map(|tenant| tenant["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["Acme", "Beta"]);
    assert!(!list.to_string().contains("apl_"));
}

#[tokio::test]
async fn an_operator_makes_and_revokes_a_key() {
    let operator = Operator::start().await;
    let tenant = operator.json(&["tenant", "create", "--name", "Acme"])["tenant_id"].as_str().unwrap().to_owned();
    let create =
        ["key", "create", "--tenant", &tenant, "--name", "ci", "--scopes", "assets:read,users:read", "--rate-limit", "5"];
    let made = operator.json(&[&create[..], &["--expires-at", "2190-01-01T00:00:00Z"]].concat());
    let key = made["api_key"].as_str().unwrap();
    assert_eq!(status(&operator, key, "/v1/assets").await, 200);
    assert_eq!(status(&operator, key, "/v1/settings").await, 403);
    let revoke = ["key", "revoke", "--tenant", &tenant, "--key", made["key_id"].as_str().unwrap()];
    operator.json(&revoke);
    assert_eq!(status(&operator, key, "/v1/assets").await, 401);
    assert!(operator.refusal(&revoke).contains("not found in tenant"));
}

#[tokio::test]
async fn an_upgrade_adds_the_system_processes_that_are_missing() {
    let operator = Operator::start().await;
    let tenant = operator.json(&["tenant", "create", "--name", "Acme"])["tenant_id"].as_str().unwrap().to_owned();
    assert_eq!(operator.json(&["tenant", "upgrade"]), serde_json::json!([{"tenant_id": tenant, "added": []}]));
    // A tenant from before there was this process.
    let client = aws_sdk_dynamodb::Client::from_conf(engine::config(&operator.engine.url).build());
    let store =
        shared::store::Store::new(client.clone(), server::TABLE, shared::app::system_clock()).tenant(tenant.parse().unwrap());
    let all: Vec<shared::domain::record::Stored<shared::domain::process::Process>> = store.all().await.unwrap();
    let repair = all.into_iter().find(|process| process.value.slug.as_str() == "repair").unwrap();
    let context = shared::store::ChangeContext::operator(store.store().now());
    store.delete(&repair, &context).await.unwrap();
    let upgrade = ["tenant", "upgrade", "--tenant", &tenant];
    assert_eq!(operator.json(&upgrade), serde_json::json!([{"tenant_id": tenant, "added": ["repair"]}]));
    assert_eq!(operator.json(&upgrade), serde_json::json!([{"tenant_id": tenant, "added": []}]));
}

#[tokio::test]
async fn what_can_not_be_done_is_said_in_one_line() {
    let operator = Operator::start().await;
    let nobody = "01890a5d-ac96-774b-bcce-b302099a8057";
    let create = ["key", "create", "--tenant", nobody, "--name", "ci", "--scopes", "assets:read"];
    assert!(operator.refusal(&create).contains(&format!("tenant {nobody} not found")));
    assert!(operator.refusal(&["--table", "nowhere", "tenant", "list"]).contains("nowhere"));
    let wrong = operator.run(&["key", "create", "--tenant", nobody, "--name", "ci", "--scopes", "assets"]);
    assert_eq!(wrong.status.code(), Some(2), "clap's code for a wrong command line");
}
