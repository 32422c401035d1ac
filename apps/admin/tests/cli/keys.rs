//! `admin key list`, names of tenants, and dry runs.

use crate::{Operator, UNKNOWN_ID};
use aws_sdk_dynamodb::types::AttributeValue;
use dev_server::server;
use serde_json::{Value, json};
use shared::domain::keys::api_key::{ApiKey, Scope};
use shared::domain::record::{Kind, Stored};
use shared::domain::user::User;
use shared::store::keys::{Item, Keys};
use shared::store::{ChangeContext, UnitOfWork};

/// Returns all items as text, sorted.
async fn dump(operator: &Operator) -> Vec<String> {
    let mut pages = operator.client().scan().table_name(server::TABLE).into_paginator().send();
    let mut items: Vec<Item> = Vec::new();
    while let Some(page) = pages.next().await {
        items.extend(page.unwrap().items.unwrap_or_default());
    }
    let mut texts: Vec<String> = items.into_iter().map(|item| text(&AttributeValue::M(item))).collect();
    texts.sort();
    texts
}

/// Formats a value as text. Equal values have the same text.
fn text(value: &AttributeValue) -> String {
    match value {
        AttributeValue::M(members) => {
            let mut members: Vec<String> = members.iter().map(|(name, value)| format!("{name}: {}", text(value))).collect();
            members.sort();
            members.join(", ")
        }
        value => format!("{value:?}"),
    }
}

#[tokio::test]
async fn keys_are_listed_with_owner_expiry_and_scopes() {
    let operator = Operator::start().await;
    let made = operator.json(&["tenant", "create", "--name", "Acme", "--admin-email", "ada@example.com"]);
    let tenant = made["tenant_id"].as_str().unwrap();
    let scopes = ["--scopes", "assets:read"];
    operator.json(&[&["key", "create", "--tenant", tenant, "--name", "late", "--rate-limit", "5"], &scopes[..]].concat());
    // Binds the key to the user, with an expiry time an hour ago.
    let store = operator.store_with_clock(-7200).writer(tenant.parse().unwrap());
    let keys: Vec<Stored<ApiKey>> = store.all().await.unwrap();
    let late = keys.iter().find(|key| &*key.value.name == "late").unwrap();
    let users: Vec<Stored<User>> = store.all().await.unwrap();
    let (owner, hour_ago) = (users[0].value.id, store.now().plus_seconds(3600));
    let context = ChangeContext::operator(store.now());
    let mut unit = UnitOfWork::new(&store, &context);
    unit.update(late, ApiKey { user_id: Some(owner), expires_at: Some(hour_ago), ..late.value.clone() }).unwrap();
    unit.commit().await.unwrap();

    let listed = operator.lines(&["key", "list", "--tenant", "acme"]);
    assert_eq!(listed.len(), 2);
    let (first, late) = (&listed[0], &listed[1]);
    assert_eq!((&first["name"], &first["key_id"]), (&json!("first key"), &made["key_id"]));
    assert_eq!(first["scopes"].as_array().unwrap().len(), Scope::ALL.len());
    for absent in ["user_id", "user_email", "expires_at", "last_used_at"] {
        assert_eq!(first[absent], Value::Null, "{absent}");
    }
    assert_eq!((&first["expired"], &late["expired"]), (&json!(false), &json!(true)));
    assert_eq!((&late["user_id"], &late["user_email"]), (&json!(owner), &json!("ada@example.com")));
    assert_eq!((&late["scopes"], &late["rate_limit_per_minute"]), (&json!(["assets:read"]), &json!(5)));
    assert_eq!(late["expires_at"], json!(hour_ago));
    let prefix = late["prefix"].as_str().unwrap();
    assert!(prefix.len() == 12 && prefix.starts_with("apl_") && late["created_at"].is_string(), "{late}");
    assert!(!json!(listed).to_string().contains("hash"));
}

#[tokio::test]
async fn a_tenant_is_named_by_its_name_if_only_one_has_it() {
    let operator = Operator::start().await;
    let create = |name: &str| {
        let made = operator.json(&["tenant", "create", "--name", name, "--allow-same-name"]);
        made["tenant_id"].as_str().unwrap().to_owned()
    };
    let tenants = ["Müller & Söhne", "Acme", "ACME", "Beta"].map(create);
    for name in ["Müller & Söhne", "mu\u{308}LLER & SO\u{308}HNE", &tenants[0]] {
        assert_eq!(operator.json(&["verify", "--tenant", name])["tenant_id"], tenants[0].as_str(), "{name}");
    }
    for command in [&["check"][..], &["events"], &["key", "list"], &["tenant", "upgrade"]] {
        assert!(!operator.lines(&[command, &["--tenant", "beta"]].concat()).is_empty() || command == ["events"]);
    }
    let ambiguous = operator.error(&["verify", "--tenant", "acme"]);
    assert!(
        tenants[1..3].iter().all(|id| ambiguous.contains(id)) && ambiguous.starts_with("error: 2 tenants are"),
        "{ambiguous}"
    );
    let unknown = operator.error(&["verify", "--tenant", "betta"]);
    assert!(unknown.contains("tenant \"betta\" not found; the nearest: \"Beta\", "), "{unknown}");
    assert!(operator.error(&["key", "list", "--tenant", UNKNOWN_ID]).contains(&format!("tenant {UNKNOWN_ID} not found")));
}

#[tokio::test]
async fn dry_runs_say_what_would_happen_and_write_nothing() {
    let mut operator = Operator::start().await;
    let folder = tempfile::tempdir().unwrap();
    let key_file = folder.path().join("receipt.key");
    operator.more_variables = vec![("RECEIPT_KEY_FILE", key_file.to_str().unwrap().to_owned())];
    let made = operator.json(&["tenant", "create", "--name", "Acme", "--admin-email", "ada@example.com"]);
    let (tenant, key) = (made["tenant_id"].as_str().unwrap(), made["key_id"].as_str().unwrap());
    let key_item = Keys::of(tenant.parse().unwrap()).record(Kind::ApiKey, key.parse().unwrap()).item();
    let before = dump(&operator).await;
    let create = ["key", "create", "--tenant", "acme", "--name", "ci", "--scopes", "assets:read"];
    let cases: [(&[&str], Value); 6] = [
        (&["tenant", "create", "--name", "Beta"], json!({"tenant_id": null, "api_key": null, "name": "Beta"})),
        (&["tenant", "upgrade", "--tenant", "Acme"], json!({"tenant_id": tenant, "added": []})),
        (&create, json!({"tenant_id": tenant, "key_id": null, "api_key": null})),
        (&["key", "revoke", "--tenant", "acme", "--key", key], json!({"key_id": key, "revoked": false})),
        (&["receipt-key", "rotate", "--tenant", "acme"], json!({"kid": null, "retired": 0, "retires": null})),
        (&["tenant", "delete", "acme"], json!({"tenant_id": tenant, "name": "Acme"})),
    ];
    for (arguments, expected) in cases {
        let output = operator.json(&[arguments, &["--dry-run"]].concat());
        assert_eq!(output["dry_run"], true, "{arguments:?}");
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(&output[name], value, "{arguments:?} {name}");
        }
        assert_eq!(dump(&operator).await, before, "{arguments:?}");
    }
    assert!(!key_file.exists(), "a dry run created a key");
    // `--dry-run` fails if the real command would fail.
    let past = [&create[..], &["--expires-at", "2020-01-01T00:00:00Z", "--dry-run"]].concat();
    assert!(operator.error(&past).contains("in the future"));
    assert!(operator.error(&["key", "revoke", "--tenant", "acme", "--key", UNKNOWN_ID, "--dry-run"]).contains("not found"));
    let remove = ["record", "remove", "--tenant", "acme", "--kind", "key", "--id", key, "--dry-run"];
    assert!(operator.error(&remove).contains("can be read"));
    operator.set(&key_item, "created_at", "soon").await;
    let damaged = dump(&operator).await;
    assert_eq!(operator.json(&remove)["removed"], false);
    assert_eq!(dump(&operator).await, damaged);
}
