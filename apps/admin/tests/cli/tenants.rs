//! `admin tenant` and `admin key`.

use crate::UNKNOWN_ID;
use crate::operator::Operator;
use axum::body::Body;
use axum::http::Request;
use dev_server::server;
use serde_json::json;
use shared::app::App;
use shared::domain::processes::process::Process;
use shared::domain::record::Stored;
use shared::store::ChangeContext;
use tower::ServiceExt;

async fn status(operator: &Operator, key: &str, path: &str) -> u16 {
    let request = Request::builder().uri(path).header("authorization", format!("Bearer {key}"));
    let request = request.body(Body::empty()).unwrap();
    server::router(App::new(operator.store())).oneshot(request).await.unwrap().status().as_u16()
}

#[tokio::test]
async fn the_first_key_of_a_new_tenant_works() {
    let operator = Operator::start().await;
    let made = operator.json(&["tenant", "create", "--name", "Acme", "--admin-email", "ada@example.com"]);
    let key = made["api_key"].as_str().unwrap();
    assert_eq!(status(&operator, key, "/v1/assets").await, 200);
    assert_eq!(status(&operator, key, &format!("/v1/users/{}", made["user_id"].as_str().unwrap())).await, 200);
    assert_eq!(status(&operator, key, &format!("/v1/keys/{}", made["key_id"].as_str().unwrap())).await, 200);
    operator.json(&["tenant", "create", "--name", "Beta"]);
    let again = operator.error(&["tenant", "create", "--name", "ACME ", "--dry-run"]);
    assert!(again.contains(made["tenant_id"].as_str().unwrap()) && again.contains("--allow-same-name"), "{again}");
    let list = operator.lines(&["tenant", "list"]);
    let names: Vec<&str> = list.iter().map(|tenant| tenant["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["Acme", "Beta"]);
    assert!(!json!(list).to_string().contains("apl_"));
}

#[tokio::test]
async fn a_key_works_until_it_is_revoked() {
    let operator = Operator::start().await;
    let tenant = operator.create_tenant();
    let create =
        ["key", "create", "--tenant", &tenant, "--name", "ci", "--scopes", "assets:read,users:read", "--rate-limit", "5"];
    let made = operator.json(&[&create[..], &["--expires-at", "2190-01-01T00:00:00Z"]].concat());
    let key = made["api_key"].as_str().unwrap();
    assert_eq!(status(&operator, key, "/v1/assets").await, 200);
    assert_eq!(status(&operator, key, "/v1/settings").await, 403);
    let revoke = ["key", "revoke", "--tenant", &tenant, "--key", made["key_id"].as_str().unwrap()];
    operator.json(&revoke);
    assert_eq!(status(&operator, key, "/v1/assets").await, 401);
    assert!(operator.error(&revoke).contains("not found in tenant"));
}

#[tokio::test]
async fn a_tenants_requests_can_be_limited_and_the_limit_removed() {
    let operator = Operator::start().await;
    let made = operator.json(&["tenant", "create", "--name", "Acme"]);
    let (tenant, key) = (&made["tenant_id"], made["api_key"].as_str().unwrap());
    let limit = ["tenant", "limit", "--tenant", "acme", "--per-minute", "3"];
    let set =
        |limit: Option<u32>, before: Option<u32>| json!({"tenant_id": tenant, "requests_per_minute": limit, "before": before});
    let mut planned = set(Some(3), None);
    planned["dry_run"] = true.into();
    assert_eq!(operator.json(&[&limit[..], &["--dry-run"]].concat()), planned);
    let listed = || operator.lines(&["tenant", "list"])[0]["requests_per_minute"].clone();
    assert_eq!(listed(), json!(null));
    assert_eq!(operator.json(&limit), set(Some(3), None));
    assert_eq!(listed(), 3);
    let router = server::router(App::new(operator.store()));
    let request = || {
        let request = Request::builder().uri("/v1/settings").header("authorization", format!("Bearer {key}"));
        router.clone().oneshot(request.body(Body::empty()).unwrap())
    };
    let mut statuses = Vec::new();
    // A minute may begin meanwhile.
    for _ in 0..8 {
        statuses.push(request().await.unwrap().status().as_u16());
    }
    assert!(statuses[..3] == [200; 3] && statuses.contains(&429), "{statuses:?}");
    assert_eq!(operator.json(&["tenant", "limit", "--tenant", "acme", "--none"]), set(None, Some(3)));
    assert_eq!(listed(), json!(null));
    for wrong in [&limit[..4], &[&limit[..], &["--none"]].concat(), &["tenant", "limit", "--tenant", "acme", "--per-minute", "0"]]
    {
        assert_eq!(operator.run(wrong).status.code(), Some(2), "{wrong:?}");
    }
}

#[tokio::test]
async fn an_upgrade_adds_missing_system_processes() {
    let operator = Operator::start().await;
    let tenant = operator.create_tenant();
    assert_eq!(operator.json(&["tenant", "upgrade"]), json!({"tenant_id": tenant, "added": []}));
    // A tenant that is older than this process.
    let store = operator.store().tenant(tenant.parse().unwrap());
    let processes: Vec<Stored<Process>> = store.all().await.unwrap();
    let repair = processes.into_iter().find(|process| process.value.slug.as_str() == "repair").unwrap();
    let context = ChangeContext::operator(store.store().now());
    store.delete(&repair, &context).await.unwrap();
    let upgrade = ["tenant", "upgrade", "--tenant", &tenant];
    assert_eq!(operator.json(&upgrade), json!({"tenant_id": tenant, "added": ["repair"]}));
    assert_eq!(operator.json(&upgrade), json!({"tenant_id": tenant, "added": []}));
}

#[tokio::test]
async fn errors_are_one_line() {
    let operator = Operator::start().await;
    let create = ["key", "create", "--tenant", UNKNOWN_ID, "--name", "ci", "--scopes", "assets:read"];
    assert!(operator.error(&create).contains(&format!("tenant {UNKNOWN_ID} not found")));
    assert!(operator.error(&["--table", "nowhere", "tenant", "list"]).contains("nowhere"));
    let invalid = operator.run(&["key", "create", "--tenant", UNKNOWN_ID, "--name", "ci", "--scopes", "assets"]);
    assert_eq!(invalid.status.code(), Some(2), "clap's exit code for invalid arguments");
}
