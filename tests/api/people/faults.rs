//! Erasures with failing calls, erasures killed at any point, and concurrent requests: no personal data comes back.

use crate::support::prelude::*;

/// Creates a person whose erasure takes few calls, each of which fails once in the full run.
async fn somebody(client: &Client) -> Person {
    let body = json!({"email": format!("{MARK}@example.com"), "display_name": MARK, "role": "technician"});
    let id = client.post_once("/users", &body, "user").await.id();
    let key = json!({"name": format!("{MARK} key"), "user_id": id, "scopes": ["assets:read", "assets:write"]});
    let own = client.with_new_key(key).await;
    let asset = own.asset(json!({"name": "Laptop", "assigned_to": id, "notes": MARK})).await;
    let process = create_process(client, json!([step("user_picker", "who"), signature_step()])).await;
    let body = json!({"asset_id": asset, "through": "sign", "step_data": {"who": id, "sign": SIGNATURE}});
    let instance = client.post(&format!("/processes/{process}/start"), body).await.id();
    Person { id, histories: Vec::new(), instance, asset }
}

#[tokio::test(start_paused = true)]
async fn erasure_interrupted_anywhere_can_be_continued() {
    let case = async |place, way: Disturbance| {
        let (api, client) = Api::with_tenant().await;
        let ada = somebody(&client).await;
        leaves(&api, &client, &ada).await;
        let (_, is_disturbed) = way.at(&api, place, async || erase(&client, &ada.id).await).await;
        erase_all(&client, &ada.id).await;
        assert_eq!(items_with(&api, MARK).await, Vec::<String>::new(), "{way:?} at {place}");
        let verified = api.store.writer(client.tenant).verify_chains(|_, _| {}).await.unwrap();
        assert_eq!(verified.broken_links, [], "{way:?} at {place}");
        is_disturbed
    };
    let failures = [CallFailure::TimedOutBefore, CallFailure::TimedOutAfter].map(Disturbance::Fails);
    at_each_place(&failures, 25, 3, case).await;
    at_each_place(&[Disturbance::IsDropped], 15, 2, case).await;
}

/// A signature can be added after the records were read, so another pass examines later events.
#[tokio::test(start_paused = true)]
async fn another_pass_follows_an_erasure_that_ended_before_its_part() {
    let interrupted = async |polls| {
        let (api, client) = Api::with_tenant().await;
        let ada = somebody(&client).await;
        leaves(&api, &client, &ada).await;
        let reply = dropped_after(polls, erase(&client, &ada.id)).await;
        (api, client, ada, reply)
    };
    // Bisects the number of polls after which the erasure has removed everything.
    let (mut before, mut after) = (0, 512);
    while after - before > 4 {
        let polls = (before + after) / 2;
        let (api, ..) = interrupted(polls).await;
        let is_removed = items_with(&api, MARK).await.is_empty();
        (before, after) = if is_removed { (before, polls) } else { (polls, after) };
    }
    for polls in before.. {
        let (api, client, ada, reply) = interrupted(polls).await;
        assert!(reply.is_none(), "no number of polls ended between removing the values and ending the part");
        if !items_with(&api, MARK).await.is_empty() {
            continue;
        }
        let user: UserId = ada.id.parse().unwrap();
        if let Some(state) = api.store.writer(client.tenant).erasure(user.into()).await.unwrap() {
            assert!(!state.has_removed, "the part has ended");
            api.advance_clock(1);
            erase_all(&client, &ada.id).await;
            let done = api.store.writer(client.tenant).erasure(user.into()).await.unwrap().unwrap();
            assert!(done.is_done && done.began_at > state.began_at, "{done:?} after {state:?}");
        }
        return;
    }
}

#[tokio::test(start_paused = true)]
async fn a_weak_table_only_delays_an_erasure() {
    let api = Api::on_faulty_table(7, Weaknesses::ordinary()).await;
    let client = api.tenant().await;
    let ada = person(&client).await;
    erase_person(&api, &client, &ada).await;
    assert_eq!(items_with(&api, MARK).await, Vec::<String>::new());
}

async fn yields(count: usize) {
    for _ in 0..count {
        yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_link_that_the_person_never_used_is_revoked() {
    for pause in sample([0, 2, 6, 12, 100], 2) {
        let (api, client, ada) = with_person().await;
        let asset = client.asset(json!({"name": "Phone"})).await;
        let process = create_process(&client, json!([step("text", "story"), signature_step()])).await;
        let path = format!("/processes/instances/{}", start(&client, &process, &asset).await);
        let link = Link::create(&client, &path, json!({"signer": {"user_id": ada.id}})).await;
        leaves(&api, &client, &ada).await;
        let signer = link.signer(&client);
        let signed = async {
            yields(pause).await;
            signer.sign(json!({"step_data": {"story": format!("{MARK} told late")}})).await
        };
        let (_, signed) = tokio::join!(erase_all(&client, &ada.id), signed);
        assert_eq!(items_with(&api, MARK).await, Vec::<String>::new(), "after {pause}: {}", signed.text());
        assert_eq!(signer.get("/sign/session").await.status, 401);
    }
}

#[tokio::test(start_paused = true)]
async fn import_during_an_erasure_brings_no_personal_data_back() {
    for pause in sample([0, 2, 5, 9, 14, 20, 60], 2) {
        let (api, client, ada) = with_person().await;
        leaves(&api, &client, &ada).await;
        let csv = format!("email,display_name\n{MARK}@example.com,{MARK} imported\n");
        let imported = async {
            yields(pause).await;
            client.import("/users", "", &csv).await
        };
        let (_, imported) = tokio::join!(erase_all_patiently(&api, &client, &ada.id), imported);
        let record = client.get(&format!("/users/{}", ada.id)).await.text().to_owned();
        assert!(!record.contains(MARK), "after {pause}: {record} {}", imported.text());
        for path in &ada.histories {
            assert!(!client.get(&format!("{path}/history?limit=100")).await.text().contains(MARK), "{path} after {pause}");
        }
        // The mark may remain only if the import created a new user after the erasure.
        let new = client.get(&format!("/users?email={MARK}@example.com")).await.data();
        for item in items_with(&api, MARK).await {
            assert!(new[0]["id"].is_string(), "after {pause}: {item}");
        }
    }
}

/// Erases until done, waiting if a concurrent change of the user delays it.
async fn erase_all_patiently(api: &Api, client: &Client, user: &str) {
    for _ in 0..20 {
        let reply = erase(client, user).await;
        if reply.status == 200 && reply.data()["done"] == true {
            return;
        }
        api.advance_clock(60);
        yield_now().await;
    }
    panic!("the erasure never ends");
}

#[tokio::test(start_paused = true)]
async fn change_based_on_a_read_before_the_erasure_is_refused() {
    let (api, client, ada) = with_person().await;
    leaves(&api, &client, &ada).await;
    let path = format!("/users/{}", ada.id);
    let tag = client.get(&path).await.header("etag").to_owned();
    let asset = client.get(&format!("/assets/{}", ada.asset)).await;
    erase_all(&client, &ada.id).await;
    let body = json!({"display_name": MARK}).to_string();
    let refused = client.send_json("PATCH", &path, &body, ("if-match", &tag)).await;
    assert!([409, 412].contains(&refused.status.as_u16()), "{}", refused.text());
    // The notes from the person's time are erased, so the asset's ETag has changed.
    let notes = json!({"notes": asset.data()["notes"]}).to_string();
    let path = format!("/assets/{}", ada.asset);
    let refused = client.send_json("PATCH", &path, &notes, ("if-match", asset.header("etag"))).await;
    assert_eq!(refused.status, 412, "{}", refused.text());
    let new = client.patch(&path, json!({"assigned_to": ada.id})).await;
    assert_eq!(new.status, 422, "nothing is assigned to an erased user: {}", new.text());
    assert_eq!(items_with(&api, MARK).await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn two_erasures_at_once_end_as_one() {
    let (api, client, ada) = with_person().await;
    leaves(&api, &client, &ada).await;
    let replica = api.replica(1_500, 1 << 20);
    let other = replica.client(&client);
    let (one, two) = tokio::join!(erase(&client, &ada.id), erase(&other, &ada.id));
    for reply in [&one, &two] {
        assert!([200, 409].contains(&reply.status.as_u16()), "{}", reply.text());
    }
    erase_all(&client, &ada.id).await;
    assert_eq!(items_with(&api, MARK).await, Vec::<String>::new());
}
