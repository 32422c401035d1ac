//! `admin events`, and `admin verify` with unbroken hash chains and every kind of damage to a chain.

use crate::{Operator, UNKNOWN_ID};
use dev_server::server;
use serde_json::json;
use shared::domain::keys::api_key::DEFAULT_RATE_LIMIT;
use shared::domain::processes::process::Process;
use shared::domain::record::{Kind, Stored};
use shared::domain::user::User;
use shared::domain::values::id::Id;
use shared::domain::values::time::Timestamp;
use shared::store::keys::{Item, Keys};
use shared::store::{ChangeContext, Store, UnitOfWork, Writer};
use std::sync::Arc;

/// Creates a tenant with a user who was changed twice, some time ago. Returns the tenant, its store, and the keys of the user's
/// events, oldest first.
async fn tenant_with_changed_user(operator: &Operator) -> (String, Writer, Vec<Item>) {
    // Writes made in the last few seconds are not verified, because they may not be visible yet.
    let past = operator.store_with_clock(-60);
    let created = past.create_tenant("Acme".parse().unwrap(), Some("ada@example.com".parse().unwrap()), 600).await.unwrap();
    let (store, id) = (past.writer(created.tenant_id), created.user_id.unwrap());
    let mut user = store.get::<User>(id).await.unwrap().unwrap();
    for name in ["Ada", "Grace"] {
        let next = User { display_name: name.parse().unwrap(), ..user.value.clone() };
        let context = ChangeContext::operator(store.now());
        let mut unit = UnitOfWork::new(&store, &context);
        user = unit.update(&user, next).unwrap();
        unit.commit().await.unwrap();
    }
    let entries = store.whole_history::<User>(id).await.unwrap().unwrap();
    let keys = Keys::of(store.id());
    (created.tenant_id.to_string(), store, entries.iter().map(|entry| keys.event(entry.id).item()).collect())
}

#[tokio::test]
async fn a_tenant_with_unbroken_chains_is_valid() {
    let operator = Operator::start().await;
    let (tenant, store, _) = tenant_with_changed_user(&operator).await;
    let verify = ["verify", "--tenant", &tenant];
    let valid = json!({"tenant_id": tenant, "valid": true, "records": 10, "events": 12});
    assert_eq!(operator.json(&verify), valid);
    // A deleted resource keeps its hash chain.
    let processes: Vec<Stored<Process>> = store.all().await.unwrap();
    let context = ChangeContext::operator(store.now());
    store.delete(&processes[0], &context).await.unwrap();
    assert_eq!(operator.json(&verify)["events"], 13);
    assert!(operator.error(&["verify", "--tenant", UNKNOWN_ID]).contains(&format!("tenant {UNKNOWN_ID} not found")));
}

#[tokio::test]
async fn a_changed_byte_and_a_missing_event_are_found() {
    for (place, damage, expected) in [
        (0, "byte", "version 1, event"),
        (1, "byte", "version 2, event"),
        (2, "byte", "version 3, event"),
        (0, "missing", "version 1, no event: the entry is missing"),
        (1, "missing", "version 2, no event: the entry is missing"),
        (2, "missing", "version 3, no event: the entry is missing"),
    ] {
        let operator = Operator::start().await;
        let (tenant, _, events) = tenant_with_changed_user(&operator).await;
        let key = &events[place];
        if damage == "missing" {
            operator.delete(key).await;
        } else {
            let item = operator.item(key).await.unwrap();
            let mut entry = item["entry"].as_s().unwrap().clone().into_bytes();
            let middle = entry.iter().position(|byte| *byte == b'o').unwrap();
            entry[middle] ^= 1;
            operator.set(key, "entry", &String::from_utf8(entry).unwrap()).await;
        }
        let error = operator.error(&["verify", "--tenant", &tenant]);
        assert!(
            error.contains("1 of 10 histories") && error.contains("user ") && error.contains(expected),
            "{damage} {place}: {error}"
        );
        if damage == "byte" {
            assert!(error.contains("is not the hash of the entry"), "{error}");
        }
    }
}

#[tokio::test]
async fn a_record_that_does_not_match_its_history_is_found() {
    let operator = Operator::start().await;
    let (tenant, store, _) = tenant_with_changed_user(&operator).await;
    let users: Vec<Stored<User>> = store.all().await.unwrap();
    let id = Id::uuid(users[0].value.id);
    let key = Keys::of(store.id()).record(Kind::User, id).item();
    operator.set(&key, "last_hash", &"0".repeat(64)).await;
    let verify = ["verify", "--tenant", &tenant];
    assert!(operator.error(&verify).contains("differs from the hash of its latest entry"));
    operator.delete(&key).await;
    assert!(operator.error(&verify).contains("the record is missing, and there is no entry for its deletion"));
}

#[tokio::test]
async fn events_lists_every_change_since_a_time() {
    let operator = Operator::start().await;
    // Old enough that no earlier event can still appear.
    let at = |text: &str| -> Timestamp { text.parse().unwrap() };
    let created = at("2026-03-05T10:00:00Z");
    let store = Store::new(operator.client(), server::TABLE, Arc::new(move || created));
    let tenant = store.create_tenant("Acme".parse().unwrap(), None, DEFAULT_RATE_LIMIT).await.unwrap().tenant_id.to_string();
    let all = operator.lines(&["events", "--tenant", &tenant]);
    let types: Vec<&str> = all.iter().map(|entry| entry["type"].as_str().unwrap()).collect();
    assert!(types.contains(&"tenant.created") && types.contains(&"key.created"), "{types:?}");
    let since = |time: &str| operator.lines(&["events", "--tenant", &tenant, "--since", time]);
    assert_eq!(since("2026-03-05T09:59:59Z"), all);
    assert!(since("2026-03-05T10:00:01Z").is_empty());
    assert!(operator.error(&["events", "--tenant", UNKNOWN_ID]).contains(&format!("tenant {UNKNOWN_ID} not found")));
}
