//! The operator's check after an erasure: it complains of nothing, brings nothing of the person back, and finds what is left.

use crate::support::people::{MARK, erase_all, items_with, leaves, person, signed_return};
use crate::support::table::dump::all_items;
use crate::support::table::history::delete_item;
use crate::support::{Api, Client};
use serde_json::json;
use shared::domain::record::Kind;
use shared::domain::values::id::UserId;
use shared::store::keys::{Item, Keys};
use shared::store::{CheckMode, Finding};
use uuid::Uuid;

async fn findings(api: &Api, client: &Client, mode: CheckMode) -> Vec<Finding> {
    api.advance_clock(11);
    api.store.tenant(client.tenant).check_items(mode, |_| ()).await.unwrap().findings
}

fn id_of(path: &str) -> Uuid {
    path.rsplit_once('/').map_or(path, |(_, id)| id).parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_is_erased_is_no_finding_and_stays_erased_in_repairs() {
    let (api, client) = Api::with_tenant().await;
    let ada = person(&client).await;
    leaves(&api, &client, &ada).await;
    erase_all(&client, &ada.id).await;
    assert_eq!(findings(&api, &client, CheckMode::ReadOnly).await, []);
    let keys = Keys::of(client.tenant);
    let lost = [(Kind::User, &ada.id), (Kind::Instance, &ada.instance), (Kind::Asset, &ada.asset)];
    for (kind, path) in lost.into_iter().chain(ada.histories[2..].iter().map(|path| (Kind::Instance, path))) {
        let key = keys.record(kind, id_of(path)).item();
        let get = api.dynamo.get_item().table_name(&api.table).set_key(Some(key.clone())).send();
        let before: Item = get.await.unwrap().item.unwrap();
        delete_item(&api, &key).await;
        let damaged = api.dump().await;
        let found = findings(&api, &client, CheckMode::Repair).await;
        assert_eq!(found[0].subject, format!("{} {}", kind.noun(), id_of(path)), "{found:#?}");
        assert!(found.iter().all(|finding| !finding.is_repaired), "{found:#?}");
        assert_eq!(api.dump().await, damaged, "{found:#?}");
        api.dynamo.put_item().table_name(&api.table).set_item(Some(before)).send().await.unwrap();
        assert_eq!(findings(&api, &client, CheckMode::ReadOnly).await, []);
    }
    assert_eq!(items_with(&api, MARK).await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn what_came_back_is_one_finding_for_each_person() {
    let (api, client) = Api::with_tenant().await;
    let ada = person(&client).await;
    leaves(&api, &client, &ada).await;
    let is = |item: &Item, kind: &str| item.get("type").is_some_and(|value| value.as_s().is_ok_and(|text| text == kind));
    let about = |item: &Item| format!("{item:?}").contains(MARK) && !item.contains_key("version");
    let old: Vec<Item> = all_items(&api).await.into_iter().filter(|item| about(item) || is(item, "signature")).collect();
    erase_all(&client, &ada.id).await;
    let (tenant, person): (_, UserId) = (api.store.tenant(client.tenant), ada.id.parse().unwrap());
    // One of each type, and a few entries.
    let is_taken = |(index, item): &(usize, &Item)| !is(item, "event") || index % 8 == 0;
    for (_, item) in old.iter().enumerate().filter(is_taken) {
        api.dynamo.put_item().table_name(&api.table).set_item(Some(item.clone())).send().await.unwrap();
        let remains = tenant.remains(person, usize::MAX).await.unwrap().1;
        let found = findings(&api, &client, CheckMode::ReadOnly).await;
        let found: Vec<_> = found.iter().map(|it| (it.subject.as_str(), it.repair.as_ref().unwrap_err().as_str())).collect();
        let advice = format!("erase the person again: `admin erase --tenant {} --user {person}`", client.tenant);
        assert_eq!(found, [(format!("user {person}").as_str(), advice.as_str())], "{item:?}");
        assert_eq!(tenant.erase_whole(person).await.unwrap(), remains, "{item:?}");
        assert_eq!(findings(&api, &client, CheckMode::ReadOnly).await, []);
    }
    assert!(old.len() > 10, "{} items", old.len());
    assert_eq!(items_with(&api, MARK).await, Vec::<String>::new());
}

/// Later entries repeat the pseudonym, which is nothing about the person.
#[tokio::test(start_paused = true)]
async fn what_goes_on_after_an_erasure_is_no_finding() {
    let (api, client) = Api::with_tenant().await;
    let ada = client.user("Ada").await;
    let held = client.asset(json!({"name": "Phone", "assigned_to": ada, "notes": format!("{MARK} notes")})).await;
    client.patch(&format!("/assets/{held}"), json!({"assigned_to": null})).await.data();
    let instance = signed_return(&client, &ada).await;
    client.patch(&format!("/users/{ada}"), json!({"is_active": false})).await.data();
    api.advance_clock(60);
    erase_all(&client, &ada).await;
    assert_eq!(findings(&api, &client, CheckMode::ReadOnly).await, []);

    let advance = format!("{instance}/advance");
    client.post(&advance, json!({"step_data": {"received": true}, "through": "complete"})).await.data();
    assert_eq!(findings(&api, &client, CheckMode::ReadOnly).await, []);
    client.patch(&format!("/assets/{held}"), json!({"notes": "of others"})).await.data();
    assert_eq!(findings(&api, &client, CheckMode::ReadOnly).await, []);
    client.delete(&format!("/users/{ada}")).await.data();
    assert_eq!(findings(&api, &client, CheckMode::ReadOnly).await, []);
    assert_eq!(items_with(&api, MARK).await, Vec::<String>::new());
}
