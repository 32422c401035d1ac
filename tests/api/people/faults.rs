//! Erasures whose calls fail, or that are killed at any point.

use crate::support::dropping::dropped_after;
use crate::support::people::{MARK, Person, erase, erase_all, items_with, leaves, person};
use crate::support::processes::create_process;
use crate::support::samples::SIGNATURE;
use crate::support::signing::{signature_step, step};
use crate::support::{Api, Client, Disturbance, at_each_place};
use dev_server::faulty_table::Weaknesses;
use dev_server::faulty_table::planned::CallFailure;
use serde_json::json;

/// Somebody of whom an erasure takes few calls: each of them fails once in the full run.
async fn somebody(client: &Client) -> Person {
    let body = json!({"email": format!("{MARK}@example.com"), "display_name": MARK, "role": "technician"});
    let id = client.post_once("/users", &body, "user").await.id();
    let key = json!({"name": format!("{MARK} key"), "user_id": id, "scopes": ["assets:read", "assets:write"]});
    let own = client.with_key_of(&client.post("/keys", key).await.data());
    let asset = own.asset(json!({"name": "Laptop", "assigned_to": id, "notes": MARK})).await;
    let process = create_process(client, json!([step("user_picker", "who"), signature_step()])).await;
    let body = json!({"asset_id": asset, "through": "sign", "step_data": {"who": id, "sign": SIGNATURE}});
    let instance = client.post(&format!("/processes/{process}/start"), body).await.id();
    Person { id, histories: Vec::new(), instance, asset }
}

#[tokio::test(start_paused = true)]
async fn an_erasure_can_end_anywhere_and_goes_on() {
    let case = async |place, way: Disturbance| {
        let (api, client) = Api::with_tenant().await;
        let ada = somebody(&client).await;
        leaves(&api, &client, &ada).await;
        let (_, is_disturbed) = way.at(&api, place, async || erase(&client, &ada.id).await).await;
        erase_all(&client, &ada.id).await;
        assert_eq!(items_with(&api, MARK).await, Vec::<String>::new(), "{way:?} at {place}");
        let verified = api.store.tenant(client.tenant).verify_chains(|_, _| {}).await.unwrap();
        assert_eq!(verified.broken_links, [], "{way:?} at {place}");
        is_disturbed
    };
    let failures = [CallFailure::TimedOutBefore, CallFailure::TimedOutAfter].map(Disturbance::Fails);
    at_each_place(&failures, 25, 3, case).await;
    at_each_place(&[Disturbance::IsDropped], 15, 2, case).await;
}

/// Somebody may have signed after the records were read: another pass looks at what came meanwhile.
#[tokio::test(start_paused = true)]
async fn another_pass_follows_an_erasure_that_ended_before_its_part() {
    let (mut is_removed, mut polls) = (false, 1);
    while !is_removed {
        let (api, client) = Api::with_tenant().await;
        let ada = somebody(&client).await;
        leaves(&api, &client, &ada).await;
        let user = ada.id.parse().unwrap();
        let interrupted = dropped_after(polls, erase(&client, &ada.id)).await;
        assert!(interrupted.is_none(), "the values and the end of the part went at once");
        let state = api.store.tenant(client.tenant).erasure(user).await.unwrap();
        is_removed = items_with(&api, MARK).await.is_empty();
        polls += 1;
        if let Some(state) = state.filter(|_| is_removed) {
            assert!(!state.has_removed, "the part has ended");
            api.advance_clock(1);
            erase_all(&client, &ada.id).await;
            let done = api.store.tenant(client.tenant).erasure(user).await.unwrap().unwrap();
            assert!(done.is_done && done.began_at > state.began_at, "{done:?} after {state:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_weak_table_only_delays_an_erasure() {
    let api = Api::on_faulty_table(7, Weaknesses::ordinary()).await;
    let client = api.tenant().await;
    let ada = person(&client).await;
    leaves(&api, &client, &ada).await;
    erase_all(&client, &ada.id).await;
    assert_eq!(items_with(&api, MARK).await, Vec::<String>::new());
}
