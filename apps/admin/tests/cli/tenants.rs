//! `admin tenant`: creates, limits, upgrades and deletes tenants, and creates their keys.

use crate::{Operator, UNKNOWN_ID};
use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use dev_server::server;
use serde_json::json;
use shared::domain::processes::process::Process;
use shared::domain::record::Stored;
use shared::store::ChangeContext;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

const DELETE: [&str; 5] = ["tenant", "delete", "acme", "--settle", "0"];

async fn status(operator: &Operator, key: &str, path: &str) -> u16 {
    operator.api(operator.store(), key).send("GET", path, &[], "").await.unwrap().0.as_u16()
}

#[tokio::test]
async fn the_first_key_of_a_new_tenant_works() {
    let operator = Operator::start().await;
    let made = operator.json(&["tenant", "create", "--name", "Acme", "--admin-email", "ada@example.com"]);
    let key = made["api_key"].as_str().unwrap();
    assert_eq!(status(&operator, key, "/assets").await, 200);
    assert_eq!(status(&operator, key, &format!("/users/{}", made["user_id"].as_str().unwrap())).await, 200);
    assert_eq!(status(&operator, key, &format!("/keys/{}", made["key_id"].as_str().unwrap())).await, 200);
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
    assert_eq!(status(&operator, key, "/assets").await, 200);
    assert_eq!(status(&operator, key, "/settings").await, 403);
    let revoke = ["key", "revoke", "--tenant", &tenant, "--key", made["key_id"].as_str().unwrap()];
    operator.json(&revoke);
    assert_eq!(status(&operator, key, "/assets").await, 401);
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
    let api = operator.api(operator.store(), key);
    let mut statuses = Vec::new();
    // A new minute, which resets the limit, can start during the requests.
    for _ in 0..8 {
        statuses.push(api.send("GET", "/settings", &[], "").await.unwrap().0.as_u16());
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
    // Removes a system process, as if the tenant had been created before the process was introduced.
    let store = operator.store().writer(tenant.parse().unwrap());
    let processes: Vec<Stored<Process>> = store.all().await.unwrap();
    let repair = processes.into_iter().find(|process| process.value.slug.as_str() == "repair").unwrap();
    let context = ChangeContext::operator(store.now());
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

/// Starts a fake bucket. Returns its URL, and the first line of each request.
async fn bucket() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/snapshots", listener.local_addr().unwrap());
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&requests);
    let respond = async move |request: Request| {
        let authorization = request.headers()["authorization"].to_str().unwrap();
        assert!(authorization.starts_with("AWS4-HMAC-SHA256"), "{authorization}");
        seen.lock().unwrap().push(format!("{} {} {:?}", request.method(), request.uri(), request.version()));
        StatusCode::NO_CONTENT
    };
    tokio::spawn(axum::serve(listener, Router::new().fallback(respond)).into_future());
    (url, requests)
}

async fn items(operator: &Operator) -> i32 {
    operator.client().scan().table_name(server::TABLE).send().await.unwrap().count
}

#[tokio::test(flavor = "multi_thread")]
async fn deletion_of_a_tenant_removes_its_items_and_snapshots() {
    let mut operator = Operator::start().await;
    operator.json(&["tenant", "create", "--name", "Beta"]);
    let before = items(&operator).await;
    let made = operator.json(&["tenant", "create", "--name", "Acme", "--admin-email", "ada@example.com"]);
    operator.json(&["tenant", "limit", "--tenant", "Acme", "--per-minute", "500"]);
    let (url, requests) = bucket().await;
    operator.more_variables = vec![("SNAPSHOTS_URL", url)];
    let plan = operator.json(&[&DELETE[..], &["--dry-run"]].concat());
    assert_eq!((&plan["items"]["user"], &plan["items"]["key"]), (&json!(1), &json!(1)));
    assert!(!plan["stays"].to_string().contains("SNAPSHOTS_URL") && requests.lock().unwrap().is_empty());
    let output = operator.run(&[&DELETE[..], &["--yes"]].concat());
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && text.contains("This deletes tenant Acme:"), "{text}");
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&result["deleted"], &result["snapshots"]), (&json!(true), &json!(true)));
    assert_eq!(items(&operator).await, before);
    let id = made["tenant_id"].as_str().unwrap();
    let expected = |kind| format!("DELETE /snapshots/list-index/asset-lifecycle/{id}/{kind} HTTP/1.1");
    assert_eq!(*requests.lock().unwrap(), ["asset", "user", "instance", "movement"].map(expected));
    assert_eq!(operator.json(&["tenant", "list"])["name"], "Beta");
    assert!(operator.error(&["tenant", "delete", id, "--yes"]).contains("not found"));
    assert!(operator.error(&["tenant", "delete", UNKNOWN_ID, "--yes"]).contains("not found"));
}

#[tokio::test]
async fn the_tenants_name_must_be_typed() {
    let operator = Operator::start().await;
    operator.json(&["tenant", "create", "--name", "Acme"]);
    let before = items(&operator).await;
    for (line, reason) in [
        ("Beta\n", "the names differ"),
        // Another tenant can have this name.
        ("acme\n", "the names differ"),
        ("\n", "the names differ"),
        ("", "or use --yes"),
    ] {
        let output = operator.run_typing(&DELETE, line);
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(1) && text.contains(reason), "{line:?}: {text}");
        assert_eq!(items(&operator).await, before);
    }
    let output = operator.run_typing(&DELETE, "Acme\n");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(items(&operator).await, 0);
}

#[tokio::test]
async fn an_interrupted_deletion_is_shown_and_finished() {
    let operator = Operator::start().await;
    let tenant = operator.create_tenant();
    let store = operator.store().writer(tenant.parse().unwrap());
    store.begin_deletion().await.unwrap();
    assert!(operator.json(&["tenant", "list"])["deletion_began"].is_string());
    for command in [&["key", "list"][..], &["check", "--repair"], &["tenant", "upgrade"], &["verify"]] {
        let refused = operator.error(&[command, &["--tenant", "acme"]].concat());
        assert!(refused.contains(&format!("is being deleted; finish that with `admin tenant delete {tenant}`")), "{refused}");
    }
    assert!(operator.lines(&["tenant", "upgrade"]).is_empty());
    operator.json(&[&DELETE[..], &["--yes"]].concat());
    assert_eq!(items(&operator).await, 0);
}
