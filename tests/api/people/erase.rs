//! Erases a person: no personal data is left in the table or elsewhere, all histories verify, and the operator's check finds
//! nothing.

use crate::support::prelude::*;
use crate::support::webhooks::*;
use shared::domain::people::Removed;
use shared::domain::record::StoredResponse;
use shared::store::Finding;
use shared::store::keys::SK;

async fn assert_histories_hold(api: &Api, client: &Client, paths: &[String]) {
    let verified = api.store.writer(client.tenant).verify_chains(|_, _| {}).await.unwrap();
    assert_eq!(verified.broken_links, []);
    for path in paths {
        let history = client.get(&format!("{path}/history?verify=true&limit=100")).await.json();
        assert_eq!(history["verification"]["valid"], true, "{path}: {history}");
        for entry in history["data"].as_array().unwrap() {
            assert_eq!(entry["hash"], readers_hash(entry), "{entry}");
        }
        assert!(!history.to_string().contains(MARK), "{path}: {history}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_of_the_person_is_left_and_every_history_holds() {
    let (api, client, ada) = with_person().await;
    let other = client.user("Grace Hopper").await;
    leaves(&api, &client, &ada).await;
    assert!(items_with(&api, MARK).await.len() > 20);
    let erased = erase(&client, &ada.id).await.data();
    assert_eq!(erased["done"], true, "{erased}");
    assert_eq!(items_with(&api, MARK).await, Vec::<String>::new());
    assert_histories_hold(&api, &client, &ada.histories).await;

    let user = client.get(&format!("/users/{}", ada.id)).await.data();
    let pseudonym = erased["pseudonym"].as_str().unwrap();
    assert!(pseudonym.starts_with("Erased user "), "{pseudonym}");
    assert_eq!((&user["display_name"], &user["is_active"]), (&json!(pseudonym), &json!(false)), "{user}");
    assert!(user["erased_at"].is_string(), "{user}");
    let link = json!({"signer": {"user_id": ada.id}});
    let asset = client.asset(json!({"name": "Another laptop"})).await;
    let process = create_process(&client, json!([step("text", "note")])).await;
    let path = format!("/processes/instances/{}/links", start(&client, &process, &asset).await);
    assert_eq!(client.post(&path, link).await.field_errors(), ["/signer/user_id"]);
    let instance = client.get(&ada.instance).await.data();
    for field in ["note", "story", "sign", "last"] {
        assert_eq!(instance["step_data"][field], pseudonym, "{instance}");
    }
    assert_eq!((&instance["started_by_name"], &instance["step_data"]["who"]), (&json!(pseudonym), &json!(ada.id)));
    let others = client.get(&format!("/users/{other}")).await.data();
    assert_eq!(others["display_name"], "Grace Hopper");
    let kept = client.get("/assets?q=Phone").await.data();
    assert_eq!(kept[0]["notes"], "of others");
    client.post("/users", json!({"email": format!("{MARK}@example.com"), "display_name": "Somebody new"})).await.data();
    let again = erase(&client, &ada.id).await.data();
    assert_eq!((&again["done"], &again["removed"]["entries"]), (&json!(true), &json!(0)), "{again}");
}

#[tokio::test(start_paused = true)]
async fn obstacles_to_an_erasure_are_named() {
    let (api, client, ada) = with_person().await;
    let refusal = erase(&client, &ada.id).await.problem(409, "CONFLICT");
    assert_eq!(refusal["is_active"], true, "{refusal}");
    let process = create_process(&client, json!([step("user_picker", "who"), step("complete", "done")])).await;
    let instance = start(&client, &process, &client.asset(json!({"name": "Dock"})).await).await;
    advance(&client, &instance, json!({"who": ada.id})).await.data();
    client.patch(&format!("/users/{}", ada.id), json!({"is_active": false})).await.data();
    let refusal = erase(&client, &ada.id).await.problem(409, "CONFLICT");
    assert!(refusal["retry_at"].is_string(), "{refusal}");
    api.advance_clock(60);
    let refusal = erase(&client, &ada.id).await.problem(409, "IN_USE");
    assert_eq!((&refusal["asset_ids"], &refusal["instance_ids"]), (&json!([ada.asset]), &json!([instance])), "{refusal}");
    assert_eq!((&refusal["asset_count"], &refusal["process_count"]), (&json!(1), &json!(1)), "{refusal}");
    client.post(&format!("/processes/instances/{instance}/cancel"), json!({})).await.data();
    client.patch(&format!("/assets/{}", ada.asset), json!({"assigned_to": null})).await.data();
    erase_all(&client, &ada.id).await;
    for body in [json!({"display_name": "Ada"}), json!({"is_active": true})] {
        client.patch(&format!("/users/{}", ada.id), body).await.problem(409, "CONFLICT");
    }
    let unknown = erase(&client, UNKNOWN_ID).await;
    unknown.problem(404, "NOT_FOUND");
}

#[tokio::test(start_paused = true)]
async fn only_admins_erase_and_a_dry_run_only_counts() {
    let (api, client, ada) = with_person().await;
    // Two instances with the same image.
    let process = create_process(&client, json!([step("user_picker", "who"), signature_step(), step("complete", "done")])).await;
    let movement = start_movement(&client, &process, &client.assets(2).await).await["id"].as_str().unwrap().to_owned();
    for data in [json!({"who": ada.id}), json!({"sign": SIGNATURE})] {
        advance_movement(&client, &movement, data).await.data();
    }
    client.post(&format!("/movements/{movement}/cancel"), json!({})).await.data();
    leaves(&api, &client, &ada).await;
    let technician = client.scoped(&["users:write", "users:read"]).await;
    let refusal = erase(&technician, &ada.id).await.problem(403, "FORBIDDEN");
    assert!(refusal["detail"].as_str().unwrap().contains("admin"), "{refusal}");
    let before = api.dump().await;
    let path = format!("/users/{}/erase", ada.id);
    // If `dry_run` in the body were ignored, the data would be erased by mistake.
    assert_eq!(client.post(&path, json!({"dry_run": true})).await.field_errors(), ["/dry_run"]);
    let counted = client.post(&format!("{path}?dry_run=true"), json!({})).await.data();
    assert_eq!(api.dump().await, before);
    let done = erase(&client, &ada.id).await.data();
    let removed = |reply: &Value| (reply["removed"]["entries"].clone(), reply["removed"]["signatures"].clone());
    assert_eq!((removed(&counted), counted["done"].clone()), (removed(&done), json!(true)));
    assert_eq!(counted["removed"]["signatures"], 2, "of the link and of the movement");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_users_history_is_erased_too() {
    let (api, client) = Api::with_tenant().await;
    let body = json!({"email": format!("{MARK}@example.com"), "display_name": MARK});
    let id = client.post("/users", body).await.id();
    client.delete(&format!("/users/{id}")).await.data();
    assert!(!items_with(&api, MARK).await.is_empty());
    // One of the user's requests may still be running.
    let refusal = erase(&client, &id).await.problem(409, "CONFLICT");
    assert!(refusal["retry_at"].is_string(), "{refusal}");
    api.advance_clock(60);
    erase_all(&client, &id).await;
    assert_eq!(items_with(&api, MARK).await, Vec::<String>::new());
    assert_histories_hold(&api, &client, &[]).await;
}

#[tokio::test(start_paused = true)]
async fn repeated_request_whose_stored_response_was_erased_is_refused_with_the_reason() {
    let (api, client, ada) = with_person().await;
    erase_person(&api, &client, &ada).await;
    let body = json!({"email": format!("{MARK}@example.com"), "display_name": format!("{MARK} name"), "role": "technician"});
    let again = client.post_once("/users", &body, "user").await;
    let problem = again.problem(409, "CONFLICT");
    assert!(problem["detail"].as_str().unwrap().contains("erased"), "{problem}");
    assert_eq!(again.header("content-type"), "application/problem+json");
}

#[tokio::test(start_paused = true)]
async fn many_long_responses_are_erased_in_several_requests() {
    let (api, client) = Api::with_tenant().await;
    let id = client.user("Ada").await;
    client.patch(&format!("/users/{id}"), json!({"is_active": false})).await.data();
    api.advance_clock(60);
    client.post_once("/assets", &json!({"name": "Laptop"}), "first").await.data();
    let is_response = |item: &Item| item.get("type") == Some(&AttributeValue::S("stored_response".into()));
    let responses = async || all_items(&api).await.into_iter().filter(is_response).collect::<Vec<_>>();
    let sample = responses().await.remove(0);
    let sort = sample[SK].as_s().unwrap().clone();
    let body = format!("{id}{}", "x".repeat(340_000));
    let text = serde_json::to_string(&StoredResponse::new(200, body)).unwrap();
    for number in 0..30 {
        let mut item = sample.clone();
        item.insert(SK.into(), AttributeValue::S(format!("{sort}{number}")));
        // One of the responses is damaged.
        let text = if number == 3 { text[1..].to_owned() } else { text.clone() };
        item.insert("response".into(), AttributeValue::S(text));
        api.dynamo.put_item().table_name(&api.table).set_item(Some(item)).send().await.unwrap();
    }
    let first = erase(&client, &id).await.data();
    let removed = first["removed"]["responses"].as_u64().unwrap();
    assert!(first["done"] == false && (1..30).contains(&removed), "{first}");
    erase_all(&client, &id).await;
    assert!(responses().await.iter().all(|item| !item["response"].as_s().unwrap().contains(&id)));
}

#[tokio::test(start_paused = true)]
async fn two_people_of_one_process_are_erased_one_after_the_other() {
    let (api, client) = Api::with_tenant().await;
    let [ada, grace] = [client.user("Ada").await, client.user("Grace").await];
    let steps = json!([step("user_picker", "from"), step("user_picker", "to"), step("text", "note"), step("complete", "done")]);
    let process = create_process(&client, steps).await;
    let asset = client.asset(json!({"name": "Phone"})).await;
    let path = format!("/processes/instances/{}", start(&client, &process, &asset).await);
    let data = json!({"step_data": {"from": ada, "to": grace, "note": MARK}, "through": "done"});
    client.post(&format!("{path}/advance"), data).await.data();
    for user in [&ada, &grace] {
        client.patch(&format!("/assets/{asset}"), json!({"assigned_to": null})).await.data();
        erase_leaver(&api, &client, user).await;
    }
    let tenant = api.store.writer(client.tenant);
    for user in [&ada, &grace] {
        let remains = tenant.remains(user.parse::<UserId>().unwrap().into(), usize::MAX).await.unwrap();
        assert_eq!(remains, (true, Removed::default()), "of {user}");
    }
    let shown = client.get(&path).await.data();
    assert!(shown["step_data"]["note"].as_str().unwrap().starts_with("Erased user "), "{shown}");
    assert_histories_hold(&api, &client, &[path]).await;
}

#[tokio::test(start_paused = true)]
async fn a_text_that_looks_like_a_pseudonym_is_erased_too() {
    let (api, client) = Api::with_tenant().await;
    let looks = [
        format!("erased-{MARK} lives in Berlin @erased.invalid"),
        "Erased user Zyx9Mark".to_owned(),
        format!("erased-{MARK}@erased.invalid"),
    ];
    let user = client.post("/users", json!({"email": format!("{MARK}@example.com"), "display_name": looks[1]})).await.id();
    let process = create_process(&client, json!([step("user_picker", "who"), step("text", "note"), step("text", "last")])).await;
    for text in &looks {
        let asset = client.asset(json!({"name": "Laptop", "assigned_to": user, "notes": text})).await;
        let instance = start(&client, &process, &asset).await;
        advance(&client, &instance, json!({"who": user})).await.data();
        advance(&client, &instance, json!({"note": text})).await.data();
        client.post(&format!("/processes/instances/{instance}/cancel"), json!({"reason": text})).await.data();
        client.patch(&format!("/assets/{asset}"), json!({"assigned_to": null})).await.data();
    }
    erase_leaver(&api, &client, &user).await;
    assert_eq!(items_with(&api, MARK).await, Vec::<String>::new());
    let again = erase(&client, &user).await.data();
    assert_eq!((&again["done"], &again["removed"]["entries"]), (&json!(true), &json!(0)), "{again}");
    let verified = api.store.writer(client.tenant).verify_chains(|_, _| {}).await.unwrap();
    assert_eq!(verified.broken_links, []);
}

#[tokio::test(start_paused = true)]
async fn addresses_at_erased_invalid_are_refused() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let links = format!("{}/links", started(&client, json!([signature_step()])).await);
    for email in [
        "x@erased.invalid",
        "ERASED-1@Erased.Invalid",
        "x@sub.erased.invalid",
        "x@ｅrased.invalid",
        "x@erased。invalid",
        "x@erased．ＩＮＶＡＬＩＤ｡",
    ] {
        let guest = json!({"signer": {"name": "Erased user WXl90gB9", "email": email}});
        assert_eq!(client.post(&links, guest).await.field_errors(), ["/signer/email"]);
        let body = json!({"email": email, "display_name": "X"});
        assert_eq!(client.post("/users", body.clone()).await.field_errors(), ["/email"]);
        assert_eq!(client.patch(&format!("/users/{user}"), json!({"email": email})).await.field_errors(), ["/email"]);
        let batch = client.batch("/users/batch", &[json!({"op": "create", "body": body})]).await;
        assert_eq!(batch.field_errors(), ["/operations/0/body/email"]);
        let rows = client.import("/users", "", &format!("email,display_name\n{email},X\n")).await.data();
        assert_eq!((&rows[0]["outcome"], &rows[0]["errors"][0]["column"]), (&json!("refused"), &json!("email")), "{rows}");
    }
    let others = json!({"email": "x@not-erased.invalid", "display_name": "X"});
    client.post("/users", others).await.data();
    erase_leaver(&api, &client, &user).await;
    // Records that were read or exported can be sent back.
    let erased = client.get(&format!("/users/{user}")).await.data();
    client.patch(&format!("/users/{user}"), json!({"email": erased["email"]})).await.data();
    let csv = client.export("/users/export?format=csv").await.concat();
    let rows = client.import("/users", "?match=id", &csv).await.data();
    assert!(rows.as_array().unwrap().iter().all(|row| row["outcome"] == "unchanged"), "{rows}");
}

#[tokio::test(start_paused = true)]
async fn a_key_of_an_erased_user_gets_no_new_secret() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let key = client.post("/keys", json!({"name": "Tablet", "user_id": user, "scopes": ["assets:read"]})).await.id();
    let path = format!("/keys/{key}");
    client.patch(&format!("/users/{user}"), json!({"is_active": false})).await.data();
    client.post(&format!("{path}/rotate"), json!({})).await.data();
    api.advance_clock(60);
    erase_all(&client, &user).await;
    client.post(&format!("{path}/rotate"), json!({})).await.problem(409, "CONFLICT");
    client.delete(&path).await.data();
}

async fn findings(api: &Api, client: &Client, mode: CheckMode) -> Vec<Finding> {
    api.advance_clock(11);
    api.store.writer(client.tenant).check_items(mode, |_| ()).await.unwrap().findings
}

fn id_of(path: &str) -> Uuid {
    path.rsplit_once('/').map_or(path, |(_, id)| id).parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn restored_personal_data_is_one_finding_per_person() {
    let (api, client, ada) = with_person().await;
    leaves(&api, &client, &ada).await;
    let is = |item: &Item, kind: &str| item.get("type").is_some_and(|value| value.as_s().is_ok_and(|text| text == kind));
    let about = |item: &Item| format!("{item:?}").contains(MARK) && !item.contains_key("version");
    let old: Vec<Item> = all_items(&api).await.into_iter().filter(|item| about(item) || is(item, "signature")).collect();
    erase_all(&client, &ada.id).await;
    let (tenant, person): (_, UserId) = (api.store.writer(client.tenant), ada.id.parse().unwrap());
    // One item of each type, and some events.
    let is_taken = |(index, item): &(usize, &Item)| !is(item, "event") || index % 8 == 0;
    for (_, item) in old.iter().enumerate().filter(is_taken) {
        api.dynamo.put_item().table_name(&api.table).set_item(Some(item.clone())).send().await.unwrap();
        let remains = tenant.remains(person.into(), usize::MAX).await.unwrap().1;
        let found = findings(&api, &client, CheckMode::ReadOnly).await;
        let found: Vec<_> = found.iter().map(|it| (it.subject.as_str(), it.repair.as_ref().unwrap_err().as_str())).collect();
        let advice = format!("erase the person again: `admin erase --tenant {} --user {person}`", client.tenant);
        assert_eq!(found, [(format!("user {person}").as_str(), advice.as_str())], "{item:?}");
        assert_eq!(tenant.erase_whole(person.into()).await.unwrap(), remains, "{item:?}");
        assert_eq!(findings(&api, &client, CheckMode::ReadOnly).await, []);
    }
    assert!(old.len() > 10, "{} items", old.len());
    assert_eq!(items_with(&api, MARK).await, Vec::<String>::new());
    // Repairs must not bring erased data back.
    let lost = [(Kind::User, &ada.id), (Kind::Instance, &ada.instance), (Kind::Asset, &ada.asset)];
    for (kind, path) in lost.into_iter().chain(ada.histories[2..].iter().map(|path| (Kind::Instance, path))) {
        let key = Keys::of(client.tenant).record(kind, id_of(path)).item();
        let before = item(&api, &key).await.unwrap();
        delete_item(&api, &key).await;
        let damaged = api.dump().await;
        let found = findings(&api, &client, CheckMode::Repair).await;
        assert_eq!(found[0].subject, format!("{} {}", kind.as_str(), id_of(path)), "{found:#?}");
        assert!(found.iter().all(|finding| !finding.is_repaired), "{found:#?}");
        assert_eq!(api.dump().await, damaged, "{found:#?}");
        api.dynamo.put_item().table_name(&api.table).set_item(Some(before)).send().await.unwrap();
        assert_eq!(findings(&api, &client, CheckMode::ReadOnly).await, []);
    }
    assert_eq!(items_with(&api, MARK).await, Vec::<String>::new());
}

/// Later entries repeat the pseudonym, which isn't personal data.
#[tokio::test(start_paused = true)]
async fn changes_after_an_erasure_are_no_finding() {
    let (api, client) = Api::with_tenant().await;
    let ada = client.user("Ada").await;
    let held = client.asset(json!({"name": "Phone", "assigned_to": ada, "notes": format!("{MARK} notes")})).await;
    client.patch(&format!("/assets/{held}"), json!({"assigned_to": null})).await.data();
    let instance = signed_return(&client, &ada).await;
    erase_leaver(&api, &client, &ada).await;
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

fn has_mark(text: impl AsRef<str>) -> bool {
    text.as_ref().to_lowercase().contains(&MARK.to_lowercase())
}

#[tokio::test(start_paused = true)]
async fn deliveries_and_the_queue_keep_no_names() {
    let (api, client, mut pipeline, hook) = with_webhook(&["*"]).await;
    let ada = person(&client).await;
    pipeline.fan_out(&api).await;
    pipeline.receivers.respond(|_| 500);
    for _ in 0..3 {
        pipeline.run().await;
        api.advance_clock(20);
    }
    assert!(pipeline.queue.len() > 0, "some wait for another attempt");
    assert!(pipeline.queue.take().iter().all(|message| !has_mark(format!("{message:?}"))));
    let deliveries = items_with(&api, &hook.id.to_string()).await;
    assert!(deliveries.len() > 5 && deliveries.iter().all(|item| !has_mark(item)), "{deliveries:?}");
    pipeline.receivers.take();
    pipeline.receivers.respond(|_| 204);
    leaves(&api, &client, &ada).await;
    pipeline.fan_out(&api).await;
    pipeline.run_to_end(&api).await;
    pipeline.receivers.take();
    erase_all(&client, &ada.id).await;
    // Deliveries after the erasure contain no names.
    pipeline.finish(&api).await;
    settle(&api);
    let received = pipeline.receivers.take();
    assert!(received.iter().any(|sent| sent.json()["type"] == "user.updated" && sent.body.contains("Erased user")));
    assert!(received.iter().all(|sent| !has_mark(&sent.body)));
    let feed = client.get("/events?limit=100").await;
    assert!(feed.data().as_array().unwrap().len() > 20 && !has_mark(feed.text()));
    assert_eq!(items_with(&api, MARK).await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_test_of_a_webhook_names_nobody() {
    let (api, client, _, hook) = with_webhook(&["*"]).await;
    let user = client.post("/users", json!({"email": "m@example.com", "display_name": MARK, "role": "admin"})).await.id();
    let key = json!({"name": format!("{MARK} key"), "user_id": user, "scopes": ["webhooks:write", "webhooks:read"]});
    let own = client.with_new_key(key).await;
    own.post(&format!("/webhooks/{}/test", hook.id), json!({})).await.data();
    let messages = api.queue.take_sent();
    assert!(!messages.is_empty() && messages.iter().all(|message| !has_mark(format!("{message:?}"))), "{messages:?}");
}

#[tokio::test(start_paused = true)]
async fn snapshots_are_gone_also_those_that_are_written_meanwhile() {
    for pause in sample([0, 3, 10, 30], 2) {
        let (api, client, ada) = with_person().await;
        leaves(&api, &client, &ada).await;
        let objects = FaultyObjects::default();
        let replica = api.replica_with(0, usize::MAX, objects.store());
        let own = replica.client(&client);
        if pause == 0 {
            replica.store.write_snapshots(api.now().plus(TimeDelta::minutes(10))).await.unwrap();
        }
        let erased = async {
            for _ in 0..pause {
                yield_now().await;
            }
            erase_all(&own, &ada.id).await;
        };
        let written = replica.store.write_snapshots(api.now().plus(TimeDelta::minutes(10)));
        let (written, ()) = tokio::join!(written, erased);
        written.unwrap();
        for kind in ["asset", "user", "instance", "movement"] {
            let key = format!("list-index/{}/{}/{kind}", api.table, client.tenant);
            let object = objects.object(&key).unwrap_or_default();
            let text = String::from_utf8_lossy(&object).to_lowercase();
            assert!(!has_mark(text), "{kind} after {pause}");
        }
        replica.store.forget_list_indexes();
        let names: Vec<Value> = own.get("/users").await.data().as_array().unwrap().clone();
        assert!(names.iter().all(|user| !has_mark(user.to_string())));
        assert_eq!(own.total(&format!("/users?q={MARK}")).await, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn the_log_names_nobody() {
    log::begin();
    let (api, client) = Api::with_tenant().await;
    let ada = person(&client).await;
    erase_person(&api, &client, &ada).await;
    let lines = log::text();
    assert!(!lines.is_empty() && !has_mark(&lines), "{lines}");
}

fn size(value: &AttributeValue) -> usize {
    match value {
        AttributeValue::S(text) | AttributeValue::N(text) => text.len(),
        AttributeValue::B(bytes) => bytes.as_ref().len(),
        AttributeValue::M(values) => 3 + values.iter().map(|(name, value)| 1 + name.len() + size(value)).sum::<usize>(),
        other => panic!("an event has {other:?}"),
    }
}

fn size_of(item: &Item) -> usize {
    item.iter().map(|(name, value)| name.len() + size(value)).sum()
}

/// Size as DynamoDB counts it (AWS: Item sizes and formats).
#[tokio::test(start_paused = true)]
async fn pseudonyms_and_salts_enlarge_an_entry_by_at_most_30_percent() {
    let (api, client) = Api::with_tenant().await;
    person(&client).await;
    let (mut all, mut grown) = (0, 0);
    for item in all_items(&api).await {
        let Some(entry) = item.get("entry") else { continue };
        let mut without = item.clone();
        without.remove("commitments");
        let (before, after) = (size_of(&without), size_of(&item));
        assert!(after * 10 <= before * 13, "from {before} to {after} bytes: {entry:?}");
        (all, grown) = (all + before, grown + after);
    }
    eprintln!("{all} bytes without commitments, {grown} with them: {} %", grown * 100 / all - 100);
}
