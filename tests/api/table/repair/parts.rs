//! Requests whose changes are transactions of their own: batches, imports and upserts.

use super::test_each_item;
use super::transaction::{Items, items};
use crate::support::Api;
use crate::support::bulk::outcomes;
use serde_json::{Value, json};
use shared::store::CheckMode;

test_each_item!(batch_of_one, batch, upsert, upsert_of_a_serial_number_that_was_deleted);

/// Each function commits the transaction that it is named after.
mod transactions {
    use crate::support::{Api, Client};
    use crate::table::repair::transaction::Transaction;
    use serde_json::json;

    const PATH: &str = "/assets/by-serial/s";

    pub async fn batch_of_one() -> Transaction {
        let (api, client) = Api::with_tenant().await;
        let operations = json!([{"op": "create", "body": {"name": "a"}}]);
        Transaction::post(api, client, "/assets/batch", json!({"operations": operations})).await
    }

    pub async fn batch() -> Transaction {
        let (api, client) = Api::with_tenant().await;
        let id = client.asset(json!({"name": "a"})).await;
        let create = json!({"op": "create", "body": {"name": "b"}});
        let operations = json!([create, {"op": "update", "id": id, "body": {"name": "c"}}]);
        Transaction::post(api, client, "/assets/batch", json!({"operations": operations})).await
    }

    pub async fn upsert() -> Transaction {
        let (api, client) = Api::with_tenant().await;
        commit_upsert(api, client).await
    }

    pub async fn upsert_of_a_serial_number_that_was_deleted() -> Transaction {
        let (api, client) = Api::with_tenant().await;
        let id = client.send("PUT", PATH, Some("application/json"), r#"{"name": "a"}"#).await.id();
        client.delete(&format!("/assets/{id}")).await;
        commit_upsert(api, client).await
    }

    async fn commit_upsert(api: Api, client: Client) -> Transaction {
        Transaction::commit(api, client, async |client| {
            assert_eq!(client.send("PUT", PATH, Some("application/json"), r#"{"name": "b"}"#).await.status, 201);
        })
        .await
    }
}

/// Items that only one of two requests has written.
fn written(before: &Items, after: &Items) -> Items {
    after.iter().filter(|(key, item)| before.get(*key) != Some(*item)).map(|(key, item)| (key.clone(), item.clone())).collect()
}

#[tokio::test(start_paused = true)]
async fn a_row_whose_effect_is_lost_is_imported_again_and_no_other() {
    let (api, client) = Api::with_tenant().await;
    client.use_key_once().await;
    let before = items(&api).await;
    let rows = "name\na\nb\n";
    let first = client.import_once("/assets", rows, "k").await;
    assert_eq!(outcomes(&first), ["created", "created"]);
    let ids: Vec<Value> = first.data().as_array().unwrap().iter().map(|row| row["id"].clone()).collect();

    // The restored table has nothing of the first row but its stored response.
    let id = ids[0].as_str().unwrap();
    for ((_, sort), item) in written(&before, &items(&api).await) {
        let is_of_row = format!("{item:?}").contains(id) || format!("{item:?}").contains("AST-000001");
        if is_of_row && !sort.starts_with("IDEMPOTENCY#") && !sort.starts_with("SEQUENCE#") {
            let key = shared::store::keys::Key::of(&item).unwrap().item();
            api.dynamo.delete_item().table_name(&api.table).set_key(Some(key)).send().await.unwrap();
        }
    }
    api.advance_clock(11);
    let tenant = api.store.tenant(client.tenant);
    let report = tenant.check_items(CheckMode::Repair, |_| ()).await.unwrap();
    assert!(report.findings.iter().all(|finding| finding.is_repaired), "{:#?}", report.findings);
    let is_response = |subject: &str| subject.starts_with("stored response IDEMPOTENCY#");
    assert_eq!(report.findings.iter().filter(|finding| is_response(&finding.subject)).count(), 1, "{:#?}", report.findings);

    let again = client.import_once("/assets", rows, "k").await;
    assert_eq!(outcomes(&again), ["created", "created"]);
    assert!(again.data()[0]["id"] != ids[0] && again.data()[1]["id"] == ids[1], "{}", again.text());
    assert_eq!(client.total("/assets").await, 2);
    assert_eq!(
        again.json()["meta"],
        json!({"rows": 2, "created": 2, "updated": 0, "unchanged": 0, "refused": 0, "skipped": 0, "skipped_cells": 0})
    );
}
