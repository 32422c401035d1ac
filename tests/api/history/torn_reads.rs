//! Histories while reads see a transaction's items one by one: some as they were before it, others as they are after it.

use crate::support::table::history::{changed_asset, delete_item};
use crate::support::{Api, Client, all_items};
use serde_json::json;
use shared::domain::assets::asset::Asset;
use shared::store::StoreError;
use shared::store::keys::{Item, Key};
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

/// The time that an item stays as it was before the transaction.
const LATE_BY: Duration = Duration::from_millis(250);

async fn items(api: &Api) -> HashMap<String, Item> {
    all_items(api).await.into_iter().filter_map(|item| Some((Key::of(&item)?.sort().to_owned(), item))).collect()
}

/// Sets an item to an earlier or the present state.
async fn set_item(api: &Api, present: &Item, wanted: Option<&Item>) {
    match wanted {
        Some(item) => {
            api.dynamo.put_item().table_name(&api.table).set_item(Some(item.clone())).send().await.unwrap();
        }
        None => delete_item(api, &Key::of(present).unwrap().item()).await,
    }
}

/// Creates, updates or deletes an asset; returns its id.
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
async fn a_transaction_that_is_visible_in_part_is_never_a_verdict() {
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
            let store = api.store.tenant(client.tenant);
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

/// The record names its latest event, which is not visible yet: neither by its key nor among the recent events.
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

/// The same for a transaction whose rest never becomes visible: for as long as it may be in flight, there is no verdict.
#[tokio::test(start_paused = true)]
async fn what_may_be_in_flight_is_unavailable() {
    for kind in ["create", "update"] {
        let (api, client) = Api::with_tenant().await;
        let (asset, _) = changed_asset(&client).await;
        let before = items(&api).await;
        let asset = change(&client, kind, &asset).await;
        let after = items(&api).await;
        let (sort, record) =
            after.iter().find(|(sort, item)| sort.starts_with("ASSET#") && before.get(*sort) != Some(item)).unwrap();
        set_item(&api, record, before.get(sort)).await;
        let store = api.store.tenant(client.tenant);
        let path = format!("/assets/{asset}/history?verify=true");
        client.get(&path).await.problem(503, "UNAVAILABLE");
        assert!(matches!(store.verify_chains(|_, _| {}).await, Err(StoreError::Unsettled(_))), "{kind}");
        api.advance_clock(11);
        assert_eq!(client.get(&path).await.json()["verification"]["valid"], false, "{kind}");
        assert_eq!(store.verify_chains(|_, _| {}).await.unwrap().broken_links.len(), 1, "{kind}");
    }
}
