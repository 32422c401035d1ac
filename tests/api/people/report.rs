//! The report on a person contains everything that an erasure would remove.

use crate::support::prelude::*;

async fn part(client: &Client, user: &str, from: &Value) -> Value {
    let from = from.as_str().map(|from| format!("?from={from}")).unwrap_or_default();
    client.get(&format!("/users/{user}/report{from}")).await.data()
}

async fn all_parts(client: &Client, user: &str) -> Vec<Value> {
    let mut parts = vec![part(client, user, &Value::Null).await];
    while let Some(from) = parts.last().map(|part| part["next"].clone()).filter(Value::is_string) {
        parts.push(part(client, user, &from).await);
    }
    parts
}

async fn page(client: &Client, user: &str) -> String {
    client.get(&format!("/users/{user}/report?format=html")).await.text().to_owned()
}

fn ids(parts: &[Value], list: &str, id: &str) -> Vec<String> {
    let items = parts.iter().flat_map(|part| part[list].as_array().unwrap());
    items.map(|item| item[id].as_str().unwrap().to_owned()).collect()
}

/// Returns all texts with the mark, such as `Zyx9Mark more notes`.
fn marks(text: &str) -> BTreeSet<String> {
    let ends = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, ' ' | '@' | '.'));
    text.match_indices(MARK).map(|(at, _)| text[at..].split(ends).next().unwrap().to_owned()).collect()
}

async fn all_marks(api: &Api) -> BTreeSet<String> {
    items_with(api, MARK).await.iter().flat_map(|item| marks(item)).collect()
}

async fn person_who_left(api: &Api, client: &Client) -> Person {
    let ada = person(client).await;
    leaves(api, client, &ada).await;
    ada
}

#[tokio::test(start_paused = true)]
async fn the_report_has_every_text_about_the_person_and_after_the_erasure_none() {
    let (api, client) = Api::with_tenant().await;
    let ada = person_who_left(&api, &client).await;
    client.user("Grace Hopper").await;
    let expected = all_marks(&api).await;
    assert!(expected.len() > 8, "{expected:?}");
    let before = all_parts(&client, &ada.id).await;
    let reported = marks(&json!(before).to_string());
    assert_eq!(expected.difference(&reported).collect::<Vec<_>>(), Vec::<&String>::new());
    assert!(!json!(before).to_string().contains("Grace"), "{before:?}");

    erase_all(&client, &ada.id).await;
    let after = all_parts(&client, &ada.id).await;
    assert!(!json!(after).to_string().to_lowercase().contains(&MARK.to_lowercase()), "{after:?}");
    assert!(json!(before).to_string().contains(SIGNATURE) && !json!(after).to_string().contains(SIGNATURE), "{after:?}");
    for (list, id) in [("keys", "id"), ("assets", "id"), ("instances", "id"), ("links", "id")] {
        assert_eq!(ids(&after, list, id), ids(&before, list, id), "{list}");
        assert!(!ids(&before, list, id).is_empty(), "{list}");
    }
    let entries = ids(&after, "entries", "event_id");
    assert!(ids(&before, "entries", "event_id").iter().all(|id| entries.contains(id)));
    assert!(after[0]["erased_at"].is_string(), "{}", after[0]);
    assert_eq!(after[0]["erased_at"], after[0]["user"]["erased_at"]);
    let page = page(&client, &ada.id).await;
    assert!(page.contains("Your data was erased on") && !page.contains(MARK), "{page}");
}

#[tokio::test(start_paused = true)]
async fn the_report_says_what_the_person_was_and_the_page_the_same_with_every_text_escaped() {
    let (api, client) = Api::with_tenant().await;
    let ada = person_who_left(&api, &client).await;
    let report = part(&client, &ada.id, &Value::Null).await;
    let pick = |list: &str, id: &str| {
        let items = report[list].as_array().unwrap();
        items.iter().find(|item| id.ends_with(item["id"].as_str().unwrap())).unwrap_or_else(|| panic!("{report}")).clone()
    };
    let asset = pick("assets", &ada.asset);
    assert_eq!((&asset["name"], &asset["notes"]), (&json!("Laptop"), &json!(format!("{MARK} more notes"))), "{asset}");
    let periods = asset["periods"].as_array().unwrap();
    assert!(periods.len() == 1 && periods[0]["until"].is_string(), "{asset}");
    let instance = pick("instances", &ada.instance);
    assert_eq!(instance["parts"], json!(["started", "picked", "holder", "submitted", "signed"]), "{instance}");
    assert_eq!(instance["step_data"]["note"], format!("{MARK} typed"));
    assert_eq!(instance["signatures"][0]["image"], SIGNATURE);
    let other = report["instances"].as_array().unwrap().iter().find(|it| it["id"] != instance["id"]).unwrap();
    assert_eq!((&other["parts"], &other["cancel_reason"]), (&json!(["picked"]), &json!(format!("{MARK} reason"))));
    assert_eq!(report["links"][0]["instance_id"], instance["id"]);
    let entries = report["entries"].as_array().unwrap();
    assert!(entries.iter().any(|entry| entry["type"] == "asset.created" && entry["is_actor"] == true), "{report}");
    assert!(entries.iter().any(|entry| entry["type"] == "user.created" && entry["is_actor"] == false), "{report}");
    assert_eq!((&report["next"], report["kept"].as_array().unwrap().len()), (&Value::Null, 8));

    client.patch(&format!("/users/{}", ada.id), json!({"display_name": format!("<img src=x> {MARK}")})).await.data();
    let reply = client.get(&format!("/users/{}/report?format=html", ada.id)).await;
    assert_eq!((reply.status.as_u16(), reply.header("content-type")), (200, "text/html; charset=utf-8"));
    assert!(reply.header("content-security-policy").starts_with("default-src 'none'"));
    let page = reply.text();
    assert!(page.contains("&#60;img src=x&#62;"), "{page}");
    let images: Vec<&str> = page.split("<img").skip(1).collect();
    assert!(images.len() == 1 && images[0].contains(&format!("src=\"{SIGNATURE}\"")), "{images:?}");
    let report = json!(all_parts(&client, &ada.id).await).to_string();
    for mark in marks(&report) {
        assert!(page.contains(&mark), "{mark}: {page}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_admins_read_a_report() {
    let (_, client, ada) = with_person().await;
    let path = format!("/users/{}/report", ada.id);
    client.scoped(&["assets:read"]).await.get(&path).await.problem(403, "FORBIDDEN");
    let refusal = client.scoped(&["users:read", "users:write"]).await.get(&path).await.problem(403, "FORBIDDEN");
    assert!(refusal["detail"].as_str().unwrap().contains("admin"), "{refusal}");
    client.get(&format!("/users/{UNKNOWN_ID}/report")).await.problem(404, "NOT_FOUND");
    client.get(&format!("{path}?from=x")).await.problem(422, "VALIDATION_ERROR");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_user_is_reported_too() {
    let (api, client) = Api::with_tenant().await;
    let body = json!({"email": format!("{MARK}@example.com"), "display_name": format!("{MARK} name")});
    let id = client.post("/users", body).await.id();
    client.delete(&format!("/users/{id}")).await.data();
    let report = all_parts(&client, &id).await;
    assert_eq!((report.len(), &report[0]["user"]), (1, &Value::Null));
    assert_eq!(ids(&report, "entries", "entity_id"), [id.clone(), id]);
    let missing: Vec<_> =
        all_marks(&api).await.into_iter().filter(|mark| !marks(&json!(report).to_string()).contains(mark)).collect();
    assert_eq!(missing, Vec::<String>::new());
    assert!(page(&client, report[0]["user_id"].as_str().unwrap()).await.contains("Your user was deleted."));
}

#[tokio::test(start_paused = true)]
async fn of_a_history_that_is_too_long_for_a_response_the_newest_values_are_reported() {
    let (_, client) = Api::with_tenant().await;
    let ada = client.user("Ada").await;
    let asset = client.asset(json!({"name": "Laptop", "assigned_to": ada, "notes": "n"})).await;
    for n in 0..40 {
        let notes = format!("{n}{}", "\u{1f600}".repeat(9_990));
        client.patch(&format!("/assets/{asset}"), json!({"notes": notes})).await.data();
    }
    let parts = all_parts(&client, &ada).await;
    assert!(parts.iter().all(|part| part.to_string().len() < 4_000_000));
    let entries: Vec<&Value> = parts.iter().flat_map(|part| part["entries"].as_array().unwrap()).collect();
    let has_values: Vec<bool> =
        entries.iter().filter(|entry| entry["entity_id"] == *asset).map(|it| it["values"].is_array()).collect();
    assert_eq!((has_values.len(), has_values[0], has_values[40]), (41, false, true));
    assert!(has_values.is_sorted() && has_values.iter().filter(|has| **has).count() > 20, "{has_values:?}");
    let page = page(&client, &ada).await;
    assert!(page.contains("read the history") && page.len() < 4_000_000);
}

#[tokio::test(start_paused = true)]
async fn a_long_report_has_several_parts_and_each_resource_once() {
    let (_, client, ada) = with_person().await;
    let own = client.with_new_key(json!({"name": "Second", "user_id": ada.id, "scopes": ["assets:write"]})).await;
    own.create_all(&vec![json!({"name": "Dock"}); 300]).await;
    client.patch(&format!("/assets/{}", ada.asset), json!({"assigned_to": null})).await.data();
    let parts = all_parts(&client, &ada.id).await;
    assert!(parts.len() > 1);
    for (list, id) in [("keys", "id"), ("assets", "id"), ("instances", "id"), ("links", "id"), ("entries", "event_id")] {
        let all = ids(&parts, list, id);
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "{list}");
    }
    let by_person = parts.iter().flat_map(|part| part["entries"].as_array().unwrap()).filter(|entry| entry["is_actor"] == true);
    assert!(by_person.count() >= 300);
    let next = parts[0]["next"].as_str().unwrap();
    let next_part = format!("The next part starts with <code>from={next}</code>.");
    let first = page(&client, &ada.id).await;
    assert!(first.contains(&format!("covers only the data in this part. {next_part}")), "{first}");
    let second = client.get(&format!("/users/{}/report?format=html&from={next}", ada.id)).await.text().to_owned();
    assert!(second.contains("This is part") && !second.contains("No device is assigned"), "{second}");
}

#[tokio::test(start_paused = true)]
async fn the_page_begins_with_sentences_and_has_each_signature_once() {
    let (api, client) = Api::with_tenant().await;
    let ada = client.user("Ada").await;
    let process = create_process(&client, json!([step("user_picker", "who"), signature_step()])).await;
    let laptop = client.asset(json!({"name": "<b>Laptop", "location": "Berlin"})).await;
    let dock = client.asset(json!({"name": "Dock"})).await;
    let movement = start_movement(&client, &process, &[laptop.clone(), dock.clone()]).await;
    for data in [json!({"who": ada}), json!({"sign": SIGNATURE})] {
        advance_movement(&client, movement["id"].as_str().unwrap(), data).await.data();
    }
    api.advance_clock(60);
    client.patch(&format!("/assets/{dock}"), json!({"assigned_to": null})).await.data();
    let returning = start(&client, &system_process(&client, "device-return").await, &laptop).await;
    let named = async |asset: &str, name: &str| {
        let tag = client.get(&format!("/assets/{asset}")).await.data()["asset_tag"].as_str().unwrap().to_owned();
        format!("<bdi>{tag}</bdi> <bdi>{name}</bdi>")
    };
    let (laptop, dock) = (named(&laptop, "&#60;b&#62;Laptop").await, named(&dock, "Dock").await);

    let before = page(&client, &ada).await;
    let (present, changes) = before.split_once("<h2>What you received and gave back</h2>").unwrap();
    assert!(present.contains("<h1>Report for <bdi>Ada</bdi></h1>"), "{present}");
    assert!(present.contains(&format!("<li>{laptop}, since ")) && present.contains("location: <bdi>Berlin</bdi>"), "{present}");
    assert!(!present.contains("Dock") && present.contains("your current and former devices, with dates (2)"));
    assert!(changes.contains(&format!("Not completed yet: {laptop} (<bdi>Device Return</bdi>).")), "{changes}");
    assert!(changes.contains(&format!("The assignment of {dock} to you ended, by <bdi>first key</bdi>.")), "{changes}");

    api.advance_clock(60);
    let data = json!({"step_data": {"signature": SIGNATURE, "received": true}, "through": "complete"});
    client.post(&format!("/processes/instances/{returning}/advance"), data).await.data();
    let after = page(&client, &ada).await;
    let (letter, annex) = after.split_once("<section class=\"annex\">").unwrap();
    assert!(letter.contains("No device is assigned to you."), "{letter}");
    let sentences: Vec<&str> = letter.split("<li>").filter(|line| line.contains("first key")).collect();
    let [received, ended, given_back] = sentences[..] else { panic!("{sentences:?}") };
    assert!(received.contains("You received ") && received.contains(&laptop) && received.contains(&dock), "{received}");
    assert!(received.contains(" (<bdi>Own</bdi>), handed over by <bdi>first key</bdi>. Signature 1:<img "), "{received}");
    assert!(ended.contains("The assignment of"), "{ended}");
    let expected =
        format!("You gave back {laptop} (<bdi>Device Return</bdi>), taken back by <bdi>first key</bdi>. Signature 1, see above");
    assert!(given_back.contains(&expected), "{given_back}");
    assert_eq!((after.matches("<img").count(), annex.matches("Signature 1, see above").count()), (1, 3), "{annex}");
    assert_eq!(part(&client, &ada, &Value::Null).await.to_string().matches(SIGNATURE).count(), 3);
}

/// The returns of assets are in the assets' histories, which earlier parts contain.
#[tokio::test(start_paused = true)]
async fn only_the_last_part_of_a_report_can_be_empty() {
    let (api, client) = Api::with_tenant().await;
    let ada = client.user("Ada").await;
    for docks in client.create_all(&vec![json!({"name": "Dock", "assigned_to": ada}); 90]).await.chunks(20) {
        let returned = docks.iter().map(|dock| json!({"op": "update", "id": dock["id"], "body": {"assigned_to": null}}));
        client.batch("/assets/batch", &returned.collect::<Vec<_>>()).await.data();
    }
    let parts = all_parts(&client, &ada).await;
    assert_eq!(ids(&parts, "assets", "id").len(), 90);
    let (_, full) = parts.split_last().unwrap();
    assert!(!full.is_empty() && full.iter().all(|part| !part["assets"].as_array().unwrap().is_empty()));

    client.patch(&format!("/users/{ada}"), json!({"is_active": false})).await.data();
    api.advance_clock(60);
    let requests = async || {
        let mut count = 1;
        while erase(&client, &ada).await.data()["done"] == false {
            count += 1;
        }
        count
    };
    // Only an asset's notes and events with Ada's ID refer to her, so only her record and its history are erased.
    assert!(requests().await <= 2);
    assert_eq!(requests().await, 1);
}

#[tokio::test(start_paused = true)]
async fn the_page_is_in_the_readers_language_and_the_data_in_english() {
    let (_, client) = Api::with_tenant().await;
    let ada = client.user("Ada").await;
    client.patch("/settings", json!({"locale": "de"})).await.data();
    let path = format!("/users/{ada}/report");
    let page = client.get(&format!("{path}?format=html")).await;
    assert!(page.text().contains("<html lang=\"de\">") && page.text().contains("<th scope=\"row\">Sicherungen</th>"));
    assert!(page.text().contains("<h2>Was wir über Sie gespeichert haben</h2>"));
    let french = [("accept-language", "fr")];
    let page = client.send_with("GET", &format!("{path}?format=html"), None, "", &french).await;
    assert!(page.text().contains("<html lang=\"fr\">") && page.text().contains("<th scope=\"row\">Sauvegardes</th>"));
    let data = client.send_with("GET", &path, None, "", &french).await.data();
    assert!(data["kept"].as_array().unwrap().iter().any(|kept| kept["what"] == "Backups"), "{data}");
}
