//! Histories while the index `history` lags behind the table.

use crate::support::Api;
use crate::support::history::{changed_asset, versions};
use serde_json::json;
use shared::domain::id::{AssetId, Id};

/// The index as it was before the asset was created, after each of its changes, and with gaps.
#[tokio::test]
async fn a_lagging_index_hides_nothing() {
    let (api, client) = Api::with_tenant().await;
    let mut frozen = vec![api.history_rows(client.tenant).await];
    let id = client.asset(json!({"name": "a"})).await;
    for name in ["b", "c"] {
        client.patch(&format!("/assets/{id}"), json!({"name": name})).await.data();
        frozen.push(api.history_rows(client.tenant).await);
    }
    let short = AssetId::short(id.parse().unwrap());
    let rows = api.history_rows(client.tenant).await;
    let without = |version: &str| {
        let row = format!("{short}#{version:0>10}");
        rows.iter().filter(|item| item["HS"]["S"] != row.as_str()).cloned().collect::<Vec<_>>()
    };
    frozen.extend([without("1"), without("2"), without("3")]);
    for (deleted, total) in [(false, 3), (true, 4)] {
        if deleted {
            client.delete(&format!("/assets/{id}")).await;
        }
        for (n, index) in frozen.iter().enumerate() {
            api.faults.freeze_history(Some(index.clone()));
            for (query, expected) in [("", vec![3, 2, 1]), ("?limit=1", vec![3]), ("?limit=1&page=3", vec![1])] {
                let history = client.get(&format!("/assets/{id}/history{query}")).await.json();
                assert_eq!(history["meta"]["total"], total, "{n} {query}");
                let expected: Vec<u64> = match (deleted, query) {
                    (false, _) => expected,
                    (true, "") => vec![4, 3, 2, 1],
                    (true, _) => expected.iter().map(|version| version + 1).collect(),
                };
                assert_eq!(versions(&history), expected, "{n} {query}");
            }
            let history = client.get(&format!("/assets/{id}/history?verify=true")).await.json();
            assert_eq!(history["verification"], json!({"valid": true, "checked": total, "broken": null}), "{n}");
        }
        api.faults.freeze_history(None);
    }
}

#[tokio::test]
async fn an_index_that_is_too_far_behind_is_503_and_not_a_broken_chain() {
    let (api, client) = Api::with_tenant().await;
    let index = api.history_rows(client.tenant).await;
    let (_, path) = changed_asset(&client).await;
    api.advance_clock(300);
    api.faults.freeze_history(Some(index));
    for query in ["", "?verify=true", "?page=2&limit=1"] {
        client.get(&format!("{path}{query}")).await.problem(503, "UNAVAILABLE");
    }
    api.faults.freeze_history(None);
    assert_eq!(versions(&client.get(&path).await.json()), [3, 2, 1]);
}
