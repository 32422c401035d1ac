//! Places besides the table's records: deliveries, the queue, snapshots, the log.

use crate::support::people::{MARK, erase_all, items_with, leaves, person};
use crate::support::webhooks::pipeline::{settle, with_webhook};
use crate::support::{Api, log};
use chrono::TimeDelta;
use dev_server::faulty_table::FaultyObjects;
use serde_json::{Value, json};

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
    // The receivers are told, without the names, and so are those who ask again.
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
    let own = client.with_key_of(&client.post("/keys", key).await.data());
    own.post(&format!("/webhooks/{}/test", hook.id), json!({})).await.data();
    let messages = api.queue.take_sent();
    assert!(!messages.is_empty() && messages.iter().all(|message| !has_mark(format!("{message:?}"))), "{messages:?}");
}

#[tokio::test(start_paused = true)]
async fn snapshots_are_gone_also_those_that_are_written_meanwhile() {
    for pause in [0, 3, 10, 30] {
        let (api, client) = Api::with_tenant().await;
        let ada = person(&client).await;
        leaves(&api, &client, &ada).await;
        let objects = FaultyObjects::default();
        let replica = api.replica_with(0, usize::MAX, objects.store());
        let own = replica.client(&client);
        if pause == 0 {
            replica.store.write_snapshots(api.now().plus(TimeDelta::minutes(10))).await.unwrap();
        }
        let erased = async {
            for _ in 0..pause {
                tokio::task::yield_now().await;
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
    leaves(&api, &client, &ada).await;
    erase_all(&client, &ada.id).await;
    let lines = log::text();
    assert!(!lines.is_empty() && !has_mark(&lines), "{lines}");
}
