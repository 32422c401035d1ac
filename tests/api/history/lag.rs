//! Histories while the index `history` lags behind the table, or while a transaction's items become visible one by one.

use crate::support::prelude::*;
use shared::domain::assets::asset::Asset;

/// States of the index: before the asset was created, after each change, and with gaps.
#[tokio::test(start_paused = true)]
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

/// Checks a history that is partly missing from the index: the response must be complete and valid, or a 503.
async fn check_late(client: &Client, path: &str, total: u64, what: &str) {
    for query in ["?verify=true&limit=100", "?limit=100", "?limit=1&page=2"] {
        let reply = client.get(&format!("{path}{query}")).await;
        if reply.status == 503 {
            let retry_after: u64 = reply.header("retry-after").parse().unwrap();
            assert!((30..=60).contains(&retry_after), "an event that is a minute late isn't expected within a second");
            assert!(reply.json()["detail"].as_str().unwrap().starts_with("The latest history entries"), "{}", reply.text());
            continue;
        }
        let history = reply.json();
        assert_eq!(history["meta"]["total"], total, "{what}: {history}");
        let newest = if query.contains("page=2") { total - 1 } else { total };
        assert_eq!(versions(&history).first().copied().unwrap_or(0), newest, "{what}");
        if query.contains("verify") {
            assert_eq!(history["verification"], json!({"valid": true, "checked": total, "broken": null}), "{what}");
        }
    }
}

const LAGS: [i64; 3] = [75, 30 * 60, 59 * 60];

/// Hides each kind of event of an asset and its instances from the index.
#[tokio::test(start_paused = true)]
async fn late_event_is_never_reported_as_a_broken_chain() {
    for lag in sample(LAGS, 1) {
        let (api, client) = Api::with_tenant().await;
        let process = create_process(&client, json!([{"type": "text", "key": "a", "label": "A"}])).await;
        let asset = client.asset(json!({"name": "a"})).await;
        let of_asset = format!("/assets/{asset}/history");
        let mut instance = String::new();
        for (total, change) in (2..).zip(["update", "start", "cancel", "start", "complete", "delete"]) {
            let index = api.history_rows(client.tenant).await;
            match change {
                "update" => drop(client.patch(&format!("/assets/{asset}"), json!({"name": "b"})).await.data()),
                "start" => instance = start(&client, &process, &asset).await,
                "cancel" => drop(cancel(&client, &instance).await.data()),
                "complete" => drop(advance(&client, &instance, json!({"a": "x"})).await.data()),
                _ => drop(client.delete(&format!("/assets/{asset}")).await.data()),
            }
            api.advance_clock(lag);
            api.faults.freeze_history(Some(index));
            // Only the latest event is missing, and the record or its tombstone names it.
            let verified = client.get(&format!("{of_asset}?verify=true&limit=100")).await.json();
            assert_eq!(verified["verification"], json!({"valid": true, "checked": total, "broken": null}), "{change} {lag}");
            assert_eq!(versions(&verified), (1..=total).rev().collect::<Vec<_>>(), "{change} {lag}");
            check_late(&client, &of_asset, total, change).await;
            if change != "update" && change != "delete" {
                let total = if change == "start" { 1 } else { 2 };
                check_late(&client, &format!("/processes/instances/{instance}/history"), total, change).await;
            }
            api.faults.freeze_history(None);
            check_late(&client, &of_asset, total, change).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_receipt_is_right_or_unavailable_while_the_index_is_late() {
    for lag in sample(LAGS, 1) {
        let (api, client) = Api::with_tenant().await;
        let user = client.user("Ada").await;
        let empty = api.history_rows(client.tenant).await;
        let instance = complete_onboarding(&client, &user).await;
        let path = format!("/processes/instances/{instance}/receipt");
        let expected = client.get(&path).await.json()["receipt"].clone();
        let asset = client.get(&format!("/processes/instances/{instance}")).await.data()["asset_id"].clone();
        for change in ["none", "rename", "delete"] {
            let index = api.history_rows(client.tenant).await;
            match change {
                "rename" => drop(client.patch(&format!("/users/{user}"), json!({"display_name": "Grace"})).await.data()),
                "delete" => {
                    client.patch(&format!("/assets/{}", asset.as_str().unwrap()), json!({"assigned_to": null})).await.data();
                    client.delete(&format!("/users/{user}")).await.data();
                    client.delete(&format!("/assets/{}", asset.as_str().unwrap())).await.data();
                }
                _ => {}
            }
            api.advance_clock(lag);
            // Only for the first change: an event that the index lacks for over an hour counts as removed.
            let indexes = if change == "none" { vec![empty.clone(), index] } else { vec![index] };
            for index in indexes {
                api.faults.freeze_history(Some(index));
                let reply = client.get(&path).await;
                match reply.status.as_u16() {
                    503 => {}
                    _ => assert_eq!(reply.json()["receipt"], expected, "{change} {lag}"),
                }
            }
            api.faults.freeze_history(None);
            assert_eq!(client.get(&path).await.json()["receipt"], expected, "{change} {lag}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_entry_is_reported_after_an_hour_also_of_a_deleted_record() {
    for (events, version) in sample([(3, 1), (3, 2), (3, 3), (4, 1), (4, 2), (4, 3), (4, 4)], 3) {
        let (api, client) = Api::with_tenant().await;
        let (id, path) = changed_asset(&client).await;
        if events == 4 {
            client.delete(&format!("/assets/{id}")).await.data();
        }
        let history: Value = client.get(&path).await.json();
        delete_item(&api, &event_key(&client, &history, version)).await;
        if events == 3 {
            client.get(&path).await.problem(503, "UNAVAILABLE");
        }
        for wait in [0, 75, 30 * 60] {
            api.advance_clock(wait);
            client.get(&format!("{path}?verify=true")).await.problem(503, "UNAVAILABLE");
        }
        api.advance_clock(3_600);
        let found = client.get(&format!("{path}?verify=true")).await.json();
        let broken = json!({"event_id": null, "version": version, "reason": "missing"});
        assert_eq!(found["verification"], json!({"valid": false, "checked": version - 1, "broken": broken}));
        assert_eq!(versions(&found), (1..=events).rev().filter(|known| *known != version).collect::<Vec<_>>());
        assert_eq!(found["meta"]["total"], events);
    }
}

#[tokio::test(start_paused = true)]
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

/// How long an item keeps its state from before the transaction.
const LATE_BY: Duration = Duration::from_millis(250);

async fn items(api: &Api) -> HashMap<String, Item> {
    all_items(api).await.into_iter().filter_map(|item| Some((Key::of(&item)?.sort().to_owned(), item))).collect()
}

/// Sets an item to an earlier state, or back to the current one.
async fn set_item(api: &Api, present: &Item, wanted: Option<&Item>) {
    match wanted {
        Some(item) => {
            api.dynamo.put_item().table_name(&api.table).set_item(Some(item.clone())).send().await.unwrap();
        }
        None => delete_item(api, &Key::of(present).unwrap().item()).await,
    }
}

/// Creates, updates or deletes an asset. Returns its ID.
async fn change(client: &Client, kind: &str, asset: &str) -> String {
    let path = format!("/assets/{asset}");
    match kind {
        "create" => return client.asset(json!({"name": "new"})).await,
        "update" => client.patch(&path, json!({"name": "d"})).await.data(),
        _ => client.delete(&path).await.data(),
    };
    asset.to_owned()
}

#[tokio::test(start_paused = true)]
async fn partly_visible_transaction_is_never_reported_as_a_broken_chain() {
    for kind in ["create", "update", "delete"] {
        let (api, client) = Api::with_tenant().await;
        let (asset, _) = changed_asset(&client).await;
        let before = items(&api).await;
        let asset = change(&client, kind, &asset).await;
        let after = items(&api).await;
        let changed = before.keys().chain(after.keys()).collect::<BTreeSet<_>>().into_iter();
        let changed = changed.filter(|sort| ["ASSET#", "EVENT#", "DELETED#"].iter().any(|prefix| sort.starts_with(prefix)));
        let changed: Vec<_> = changed.filter(|sort| before.get(*sort) != after.get(*sort)).collect();
        assert_eq!(changed.len(), if kind == "delete" { 3 } else { 2 });
        for sort in changed {
            let (old, new) = (before.get(sort), after.get(sort));
            let present = new.or(old).unwrap();
            set_item(&api, present, old).await;
            let store = api.store.writer(client.tenant);
            let late = async {
                tokio::time::sleep(LATE_BY).await;
                set_item(&api, present, new).await;
            };
            let chain = store.verify_history::<Asset>(asset.parse().unwrap());
            let (chains, chain, ()) = tokio::join!(store.verify_chains(|_, _| {}), chain, late);
            assert_eq!(chains.unwrap().broken_links, [], "{kind} without {sort}");
            match chain {
                Ok(verification) => assert!(verification.is_none_or(|it| it.valid), "{kind} without {sort}"),
                Err(error) => assert!(matches!(error, StoreError::Unsettled(_)), "{kind} without {sort}: {error:?}"),
            }
            let whole = client.get(&format!("/assets/{asset}/history?verify=true")).await.json();
            assert_eq!(whole["verification"]["valid"], true, "{kind} after {sort}");
        }
    }
}

/// The record already refers to its latest event, but reads by key and reads of recent events don't see the event yet.
#[tokio::test(start_paused = true)]
async fn an_event_that_is_visible_after_its_record_is_waited_for() {
    let (api, client) = Api::with_tenant().await;
    let (asset, path) = changed_asset(&client).await;
    api.faults.hide_entry(3, &asset, 3);
    api.faults.hide_event(1, &asset, 3);
    let history = client.get(&format!("{path}?verify=true")).await.json();
    assert_eq!((&history["meta"]["total"], &history["verification"]["checked"]), (&json!(3), &json!(3)), "{history}");
    assert_eq!(api.faults.stop_tearing(), 0);
}

/// The rest of the transaction never becomes visible. While it may be in flight, the response is a 503. Later, the history and
/// the operator's check report the missing record, or the event after the record's last one.
#[tokio::test(start_paused = true)]
async fn incomplete_transaction_is_503_at_first_and_then_reported() {
    for (kind, version, reason) in [("create", 2, "gone"), ("update", 4, "wrong_head")] {
        let (api, client) = Api::with_tenant().await;
        let (asset, _) = changed_asset(&client).await;
        let before = items(&api).await;
        let asset = change(&client, kind, &asset).await;
        let after = items(&api).await;
        let (sort, record) =
            after.iter().find(|(sort, item)| sort.starts_with("ASSET#") && before.get(*sort) != Some(item)).unwrap();
        set_item(&api, record, before.get(sort)).await;
        let store = api.store.writer(client.tenant);
        let path = format!("/assets/{asset}/history?verify=true");
        client.get(&path).await.problem(503, "UNAVAILABLE");
        assert!(matches!(store.verify_chains(|_, _| {}).await, Err(StoreError::Unsettled(_))), "{kind}");
        api.advance_clock(11);
        let found = client.get(&path).await.json()["verification"].clone();
        assert_eq!((&found["valid"], &found["broken"]["reason"]), (&json!(false), &json!(reason)), "{kind}");
        assert_eq!(found["broken"]["version"], version, "{kind}");
        assert!(found["broken"]["event_id"].is_null(), "{found}");
        assert_eq!(store.verify_chains(|_, _| {}).await.unwrap().broken_links.len(), 1, "{kind}");
    }
}
