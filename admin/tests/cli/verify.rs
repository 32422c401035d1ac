//! `admin verify` against chains that hold, and against every kind of damage to one.

use crate::operator::Operator;
use aws_sdk_dynamodb::types::AttributeValue;
use local::server;
use shared::domain::user::User;
use shared::store::{ChangeContext, TenantStore, UnitOfWork};

/// A tenant with a user who was changed twice, and the events of that user, oldest first.
async fn tenant(operator: &Operator) -> (String, TenantStore, Vec<shared::store::keys::Item>) {
    let made = operator.json(&["tenant", "create", "--name", "Acme", "--admin-email", "ada@example.com"]);
    let tenant = made["tenant_id"].as_str().unwrap().to_owned();
    let store = shared::store::Store::new(operator.client(), server::TABLE, shared::app::system_clock());
    let store = store.tenant(tenant.parse().unwrap());
    let id = made["user_id"].as_str().unwrap().parse().unwrap();
    let mut user = store.get::<User>(id).await.unwrap().unwrap();
    for name in ["Ada", "Grace"] {
        let next = User { display_name: name.parse().unwrap(), ..user.value.clone() };
        let context = ChangeContext::operator(store.store().now());
        let mut work = UnitOfWork::new(&store, &context);
        user = work.update(&user, next).unwrap();
        work.commit().await.unwrap();
    }
    let entries = store.whole_history::<User>(id).await.unwrap().unwrap();
    let keys = shared::store::keys::Keys::of(store.id());
    (tenant, store, entries.iter().map(|entry| keys.event(entry.id).item()).collect())
}

#[tokio::test]
async fn a_tenant_whose_chains_hold_is_said_to_be_whole() {
    let operator = Operator::start().await;
    let (tenant, store, _) = tenant(&operator).await;
    let verify = ["verify", "--tenant", &tenant];
    let whole = serde_json::json!({"tenant_id": tenant, "valid": true, "things": 10, "changes": 12});
    assert_eq!(operator.json(&verify), whole);
    // What was deleted keeps its chain.
    let processes: Vec<shared::domain::record::Stored<shared::domain::process::Process>> = store.all().await.unwrap();
    let context = ChangeContext::operator(store.store().now());
    store.delete(&processes[0], &context).await.unwrap();
    assert_eq!(operator.json(&verify)["changes"], 13);
    assert!(
        operator
            .refusal(&["verify", "--tenant", "01890a5d-ac96-774b-bcce-b302099a8057"])
            .contains("tenant 01890a5d-ac96-774b-bcce-b302099a8057 not found")
    );
}

#[tokio::test]
async fn one_changed_byte_or_a_lost_event_is_caught() {
    for (place, damage, expected) in [
        (0, "byte", "version 1, event"),
        (1, "byte", "version 2, event"),
        (2, "byte", "version 3, event"),
        (0, "gone", "version 1, no event: the entry is missing"),
        (1, "gone", "version 2, no event: the entry is missing"),
        (2, "gone", "version 3, no event: the entry is missing"),
    ] {
        let operator = Operator::start().await;
        let (tenant, _, events) = tenant(&operator).await;
        let dynamo = operator.client();
        let key = Some(events[place].clone());
        if damage == "gone" {
            dynamo.delete_item().table_name(server::TABLE).set_key(key).send().await.unwrap();
        } else {
            let item = dynamo.get_item().table_name(server::TABLE).set_key(key.clone()).send().await.unwrap().item.unwrap();
            let mut entry = item["entry"].as_s().unwrap().clone().into_bytes();
            let middle = entry.iter().position(|byte| *byte == b'o').unwrap();
            entry[middle] ^= 1;
            let entry = AttributeValue::S(String::from_utf8(entry).unwrap());
            let update = dynamo.update_item().table_name(server::TABLE).set_key(key).update_expression("SET entry = :entry");
            update.expression_attribute_values(":entry", entry).send().await.unwrap();
        }
        let said = operator.refusal(&["verify", "--tenant", &tenant]);
        assert!(
            said.contains("1 of 10 histories") && said.contains("user ") && said.contains(expected),
            "{damage} {place}: {said}"
        );
        if damage == "byte" {
            assert!(said.contains("does not have the hash"), "{said}");
        }
    }
}

#[tokio::test]
async fn a_record_that_does_not_fit_its_history_is_caught() {
    let operator = Operator::start().await;
    let (tenant, store, _) = tenant(&operator).await;
    let dynamo = operator.client();
    let users: Vec<shared::domain::record::Stored<User>> = store.all().await.unwrap();
    let id = shared::domain::id::Id::uuid(users[0].value.id);
    let key = shared::store::keys::Keys::of(store.id()).record(shared::domain::record::Kind::User, id).item();
    let update = dynamo.update_item().table_name(server::TABLE).set_key(Some(key.clone()));
    let hash = AttributeValue::S("0".repeat(64));
    update.update_expression("SET last_hash = :hash").expression_attribute_values(":hash", hash).send().await.unwrap();
    let verify = ["verify", "--tenant", &tenant];
    assert!(operator.refusal(&verify).contains("another hash than its latest entry"));
    dynamo.delete_item().table_name(server::TABLE).set_key(Some(key)).send().await.unwrap();
    assert!(operator.refusal(&verify).contains("the record is missing, and there is no entry for its deletion"));
}
