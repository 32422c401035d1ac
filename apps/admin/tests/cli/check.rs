//! `admin check`, with and without `--repair`.

use crate::{Operator, UNKNOWN_ID};
use axum::http::StatusCode;
use dev_server::fake_sqs::FakeSqs;
use serde_json::{Value, json};
use shared::domain::record::{Kind, Stored, Unique};
use shared::domain::user::User;
use shared::domain::values::id::{EventId, Id, WebhookId};
use shared::domain::webhooks::{Delivery, DeliveryStatus, Message, Webhook};
use shared::store::keys::{Item, Key, Keys};
use shared::store::{ChangeContext, UnitOfWork};

fn check(operator: &Operator, tenant: &str, options: &[&str]) -> (Option<i32>, Value) {
    let output = operator.run(&[&["check", "--tenant", tenant], options].concat());
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap())
}

/// Returns the tenant's ID and the key of the user's item.
async fn tenant_with_user(operator: &Operator) -> (String, Item) {
    let made = operator.json(&["tenant", "create", "--name", "Acme", "--admin-email", "ada@example.com"]);
    let tenant = made["tenant_id"].as_str().unwrap().to_owned();
    let store = operator.store().writer(tenant.parse().unwrap());
    let users: Vec<Stored<User>> = store.all().await.unwrap();
    (tenant, Keys::of(store.id()).record(Kind::User, users[0].value.id.uuid()).item())
}

/// Returns the key of the unique marker for the user's e-mail address.
fn email_marker(tenant: &str) -> Item {
    let email = Unique { field: "email", value: "ada@example.com".into(), reserved_after_deletion: false };
    Keys::of(tenant.parse().unwrap()).unique(Kind::User, &email).item()
}

/// Returns the only finding, which must be open.
fn only_finding(report: &Value) -> &Value {
    assert_eq!((&report["open"], report["findings"].as_array().unwrap().len()), (&json!(1), 1), "{report}");
    &report["findings"][0]
}

#[tokio::test]
async fn derived_items_are_reported_and_repaired() {
    let operator = Operator::start().await;
    let (tenant, _) = tenant_with_user(&operator).await;
    let clean = json!({"tenant_id": tenant, "records": 10, "events": 10, "findings": [], "open": 0, "repairable": 0});
    assert_eq!(check(&operator, &tenant, &[]), (Some(0), clean.clone()));
    let marker = email_marker(&tenant);
    let before = operator.item(&marker).await;
    assert!(before.is_some());
    operator.delete(&marker).await;
    for options in [&[][..], &["--dry-run"], &["--repair", "--dry-run"]] {
        let (code, report) = check(&operator, &tenant, options);
        let finding = only_finding(&report);
        assert_eq!((code, &report["repairable"]), (Some(1), &json!(1)), "{report}");
        assert!(finding["problem"].as_str().unwrap().contains("UNIQ#user.email#ada@example.com is missing"), "{report}");
        assert!(finding["repair"].as_str().unwrap().contains("writes it"), "{report}");
        assert_eq!((&finding["obstacle"], &finding["repaired"]), (&Value::Null, &json!(false)));
        assert_eq!(operator.item(&marker).await, None, "a dry run has written");
    }
    let (code, report) = check(&operator, &tenant, &["--repair"]);
    assert_eq!((code, &report["open"], &report["findings"][0]["repaired"]), (Some(0), &json!(0), &json!(true)), "{report}");
    assert_eq!(operator.item(&marker).await, before);
    assert_eq!(check(&operator, &tenant, &[]), (Some(0), clean));
}

#[tokio::test]
async fn a_lost_record_stays_open_until_it_is_taken_from_a_backup() {
    let operator = Operator::start().await;
    let (tenant, user) = tenant_with_user(&operator).await;
    let before = operator.item(&user).await.unwrap();
    operator.delete(&user).await;
    for options in [&[][..], &["--repair"]] {
        let (code, report) = check(&operator, &tenant, options);
        let finding = only_finding(&report);
        assert_eq!((code, &report["repairable"], &finding["repair"]), (Some(1), &json!(0), &Value::Null), "{report}");
        assert!(finding["problem"].as_str().unwrap().contains("the record is missing"), "{report}");
        let key = Key::of(&before).unwrap();
        let advice = format!("take the item {key} from a backup: see the runbook's section \"Damaged records\"");
        assert_eq!(finding["obstacle"], advice, "{report}");
        assert_eq!(operator.item(&user).await, None);
    }
    operator.put(before).await;
    assert_eq!(check(&operator, &tenant, &[]).0, Some(0));
    assert_eq!(operator.json(&["verify", "--tenant", &tenant])["valid"], true);
}

#[tokio::test]
async fn findings_without_a_repair_stay_open() {
    let operator = Operator::start().await;
    let (tenant, user) = tenant_with_user(&operator).await;
    operator.set(&user, "last_hash", &"0".repeat(64)).await;
    let (code, report) = check(&operator, &tenant, &["--repair"]);
    let finding = only_finding(&report);
    assert_eq!((code, &finding["repair"]), (Some(1), &Value::Null));
    assert!(finding["problem"].as_str().unwrap().contains("its history is broken at version 1"), "{report}");
    assert!(finding["obstacle"].as_str().unwrap().contains("take the entry or the item"), "{report}");
}

#[tokio::test]
async fn a_tenant_without_any_item_is_not_found() {
    let operator = Operator::start().await;
    let arguments = ["check", "--tenant", UNKNOWN_ID, "--repair"];
    assert!(operator.error(&arguments).contains(&format!("tenant {UNKNOWN_ID} not found")));
    assert!(operator.lines(&["tenant", "list"]).is_empty());
}

#[tokio::test]
async fn a_record_that_can_not_be_read_is_taken_from_a_backup_or_removed() {
    let operator = Operator::start().await;
    let (tenant, user) = tenant_with_user(&operator).await;
    let before = operator.item(&user).await.unwrap();
    let id = before["id"].as_s().unwrap().clone();
    let remove = ["record", "remove", "--tenant", &tenant, "--kind", "user", "--id", &id];
    assert!(operator.error(&remove).contains("can be read"));
    operator.set(&user, "created_at", "soon").await;
    for options in [&[][..], &["--repair"]] {
        let (code, report) = check(&operator, &tenant, options);
        let finding = only_finding(&report);
        assert_eq!((code, &report["repairable"]), (Some(1), &json!(0)), "{report}");
        assert!(finding["problem"].as_str().unwrap().contains("can't be read"), "{report}");
        assert!(finding["obstacle"].as_str().unwrap().contains("or remove it with `admin record remove`"), "{report}");
    }
    operator.put(before).await;
    assert_eq!(check(&operator, &tenant, &[]).0, Some(0));
    operator.set(&user, "created_at", "soon").await;
    let removed = json!({"tenant_id": tenant, "kind": "user", "id": id, "removed": true});
    assert_eq!(operator.json(&remove), removed);
    assert_eq!(operator.item(&user).await, None);
    assert_eq!(operator.json(&["verify", "--tenant", &tenant])["valid"], true);
    assert_eq!(operator.run(&["record", "remove", "--tenant", &tenant, "--kind", "drone", "--id", &id]).status.code(), Some(2));
}

#[tokio::test]
async fn a_damaged_tenant_or_key_does_not_stop_the_operator() {
    let operator = Operator::start().await;
    let (tenant, _) = tenant_with_user(&operator).await;
    let keys = Keys::of(tenant.parse().unwrap());
    let of_tenant = keys.record(Kind::Tenant, uuid::Uuid::nil()).item();
    let before = operator.item(&of_tenant).await.unwrap();
    operator.set(&of_tenant, "created_at", "soon").await;
    let list = operator.json(&["tenant", "list"]);
    assert_eq!((&list["tenant_id"], &list["name"]), (&json!(tenant), &Value::Null));
    let made = operator.json(&["key", "create", "--tenant", &tenant, "--name", "ci", "--scopes", "assets:read"]);
    let key = made["key_id"].as_str().unwrap();
    operator.set(&keys.record(Kind::ApiKey, key.parse().unwrap()).item(), "created_at", "soon").await;
    let revoke = ["key", "revoke", "--tenant", &tenant, "--key", key];
    assert_eq!(operator.json(&revoke)["revoked"], true);
    assert!(operator.error(&revoke).contains("not found in tenant"));
    let (_, report) = check(&operator, &tenant, &["--repair"]);
    assert!(only_finding(&report)["problem"].as_str().unwrap().contains("can't be read"), "{report}");
    operator.put(before).await;
    assert_eq!(check(&operator, &tenant, &["--repair"]).0, Some(0));
    assert_eq!(operator.json(&["tenant", "list"])["name"], "Acme");
}

/// Creates a webhook with three deliveries: due in an hour, 50 minutes late, and 61 minutes late. Returns the last one.
async fn overdue_delivery(operator: &Operator, tenant: &str) -> Delivery {
    let store = operator.store().writer(tenant.parse().unwrap());
    let now = store.now();
    let id: WebhookId = store.new_id(now).unwrap();
    let webhook = json!({
        "id": id, "url": "https://example.com/hook", "description": "", "events": ["*"], "is_active": true, "active_since": now,
        "slot": 0, "secret": "AAAA"
    });
    let context = ChangeContext::operator(now);
    let mut unit = UnitOfWork::new(&store, &context);
    unit.create::<Webhook>(serde_json::from_value(webhook).unwrap()).unwrap();
    unit.commit().await.unwrap();
    let mut last = None;
    for due in [3600, -3000, -3660] {
        let event_id: EventId = store.new_id(now).unwrap();
        let delivery = Delivery {
            webhook_id: id,
            event_id,
            event_type: "asset.created".to_owned(),
            status: DeliveryStatus::Pending,
            requested_at: now,
            tries: 3,
            attempt_count: 3,
            attempts: Vec::new(),
            next_attempt_at: Some(now.plus(chrono::TimeDelta::seconds(due))),
            test: None,
        };
        store.write_delivery(None, &delivery).await.unwrap();
        last = Some(delivery);
    }
    last.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_message_of_an_overdue_delivery_is_sent_again() {
    let mut operator = Operator::start().await;
    let (tenant, _) = tenant_with_user(&operator).await;
    let overdue = overdue_delivery(&operator, &tenant).await;
    let sqs = FakeSqs::start().await.unwrap();
    operator.more_variables.push(("AWS_ENDPOINT_URL_SQS", sqs.url.clone()));
    let queue = sqs.retry_queue_url();
    let with_queue = ["--repair", "--retry-queue", &queue];
    for (options, is_repairable) in [(&[][..], true), (&["--repair"], false), (&[&with_queue[..], &["--dry-run"]].concat(), true)]
    {
        let (code, report) = check(&operator, &tenant, options);
        assert_eq!(
            (code, &report["open"], &report["repairable"]),
            (Some(1), &json!(1), &json!(u8::from(is_repairable))),
            "{report}"
        );
        let subject = format!("delivery {} to webhook {}", overdue.event_id, overdue.webhook_id);
        assert_eq!((&report["findings"][0]["subject"], sqs.take_requests().len()), (&json!(subject), 0));
    }
    let (code, report) = check(&operator, &tenant, &with_queue);
    assert_eq!((code, &report["open"], &report["findings"][0]["repaired"]), (Some(0), &json!(0), &json!(true)), "{report}");
    let [(operation, request)] = &sqs.take_requests()[..] else { panic!("not one request") };
    assert_eq!((operation.as_str(), &request["QueueUrl"]), ("SendMessageBatch", &json!(queue)));
    let sent: Vec<Message> = request["Entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| serde_json::from_str(entry["MessageBody"].as_str().unwrap()).unwrap())
        .collect();
    assert_eq!(sent, [Message::Delivery(overdue.pending_request(tenant.parse().unwrap()).unwrap())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_is_down_hides_no_repair() {
    let mut operator = Operator::start().await;
    let (tenant, _) = tenant_with_user(&operator).await;
    overdue_delivery(&operator, &tenant).await;
    operator.delete(&email_marker(&tenant)).await;
    let sqs = FakeSqs::start().await.unwrap();
    sqs.fail(vec![(StatusCode::SERVICE_UNAVAILABLE, "InternalFailure"); 10]);
    operator.more_variables.push(("AWS_ENDPOINT_URL_SQS", sqs.url.clone()));
    let (code, report) = check(&operator, &tenant, &["--repair", "--retry-queue", &sqs.retry_queue_url()]);
    let findings = report["findings"].as_array().unwrap();
    let repaired: Vec<bool> = findings.iter().map(|finding| finding["repaired"].as_bool().unwrap()).collect();
    assert_eq!((code, repaired), (Some(1), vec![true, false]), "{report}");
    assert!(findings[1]["obstacle"].as_str().unwrap().contains("the queue is unavailable"), "{report}");
}
