//! Deliveries to receivers on this machine, even if the process stops, hangs or is killed.

use super::server::{Client, Receiver, Server, log_of, until};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const SENDERS: usize = 4;

#[test]
fn changes_arrive_signed_and_as_the_change_feed_has_them() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(&folder, &["--memory", "--allow-local-webhooks"]);
    let receiver = Receiver::start(204);
    let webhook = server.client.create_webhook(&receiver.url);
    let asset = server.client.create_asset("Laptop");
    server.client.send("PATCH", &format!("/assets/{asset}"), &json!({"notes": "New"}));
    until("two changes arrive", || (receiver.arrivals().len() >= 2).then_some(()));
    let arrived = receiver.verified(&webhook.secret);
    let expected = server.client.asset_events(|events| events.len() == 2);
    let arrived: Vec<_> = arrived.values().map(|body| &body["data"]).collect();
    assert_eq!(arrived, expected.iter().collect::<Vec<_>>());
    until("both are recorded", || {
        let deliveries = server.client.deliveries(&webhook);
        (deliveries.len() == 2 && deliveries.iter().all(|delivery| delivery["status"] == "delivered")).then_some(())
    });
    assert_eq!(receiver.arrivals().len(), 2, "each arrives once if all goes well");
    server.terminate();
    let log = log_of(&folder);
    assert!(!log.contains("ERROR") && !log.contains(&receiver.url) && !log.contains("whsec_"), "{log}");
}

#[test]
fn addresses_of_this_machine_need_the_option() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(204);
    let server = Server::start(&folder);
    let webhook = server.client.create_webhook(&receiver.url);
    server.terminate();
    // The webhook from the first start still exists, but attempts to deliver to it fail.
    let data = folder.path().join("data");
    let server = Server::start_with(&folder, &["--data", data.to_str().unwrap()]);
    let body = json!({"url": receiver.url, "events": ["*"]});
    let (status, response) = server.client.try_send("POST", "/webhooks", &body).unwrap();
    assert_eq!(status, 422, "{response}");
    server.client.create_asset("Laptop");
    let delivery = until("an attempt is recorded", || server.client.deliveries(&webhook).pop());
    assert_eq!(delivery["attempts"][0]["error"], "address_not_allowed", "{delivery}");
    assert!(receiver.arrivals().is_empty());
}

#[test]
fn pending_deliveries_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(503);
    let server = Server::start(&folder);
    let webhook = server.client.create_webhook(&receiver.url);
    for number in 0..20 {
        server.client.create_asset(&format!("Laptop {number}"));
    }
    until("a delivery has failed", || (!receiver.arrivals().is_empty()).then_some(()));
    server.terminate();
    receiver.respond(204, Duration::ZERO);
    let failed = receiver.arrivals().len();
    let server = Server::start(&folder);
    until("all have arrived", || (receiver.verified(&webhook.secret).len() == 20).then_some(()));
    until("all are recorded", || {
        server.client.deliveries(&webhook).iter().all(|delivery| delivery["status"] == "delivered").then_some(())
    });
    // Failed deliveries were sent again, with the same ID.
    assert!(receiver.arrivals().len() >= 20.max(failed), "{failed}");
}

#[test]
fn a_delivery_under_way_may_finish_before_the_process_ends() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(204);
    receiver.respond(204, Duration::from_secs(2));
    let server = Server::start(&folder);
    let webhook = server.client.create_webhook(&receiver.url);
    server.client.create_asset("Laptop");
    until("the delivery is under way", || (!receiver.arrivals().is_empty()).then_some(()));
    assert!(server.terminate() > Duration::from_secs(1));
    let server = Server::start(&folder);
    let delivery = until("it is recorded", || server.client.deliveries(&webhook).pop());
    assert_eq!((&delivery["status"], &delivery["attempt_count"]), (&"delivered".into(), &1.into()), "{delivery}");
    server.client.create_asset("Monitor");
    until("the next one arrives", || (receiver.verified(&webhook.secret).len() == 2).then_some(()));
    assert_eq!(receiver.arrivals().len(), 2, "the first one is not repeated");
}

#[test]
fn a_receiver_that_hangs_does_not_keep_the_process_alive() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(204);
    receiver.respond(204, Duration::from_secs(3600));
    let server = Server::start(&folder);
    let webhook = server.client.create_webhook(&receiver.url);
    server.client.create_asset("Laptop");
    until("the delivery is under way", || (!receiver.arrivals().is_empty()).then_some(()));
    let took = server.terminate();
    assert!((Duration::from_secs(4)..Duration::from_secs(12)).contains(&took), "{took:?}");
    // The next start retries the delivery at once.
    receiver.respond(204, Duration::ZERO);
    let _server = Server::start(&folder);
    until("it arrives again", || (receiver.arrivals().len() >= 2).then_some(()));
    assert_eq!(receiver.verified(&webhook.secret).len(), 1);
}

/// Creates and changes assets until the server is gone. Counts the acknowledged changes.
fn change(client: &Client, changes: &AtomicUsize) {
    loop {
        let Ok((status, asset)) = client.try_send("POST", "/assets", &json!({"name": "Laptop"})) else { return };
        assert_eq!(status, 201, "{asset}");
        changes.fetch_add(1, Ordering::Relaxed);
        let path = format!("/assets/{}", asset["data"]["id"].as_str().unwrap());
        let Ok((status, asset)) = client.try_send("PATCH", &path, &json!({"notes": "New"})) else { return };
        assert_eq!(status, 200, "{asset}");
        changes.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn no_change_is_lost_when_the_process_is_killed() {
    let rounds = if dev_server::test_data::full_tests() { 30 } else { 2 };
    let mut random = dev_server::test_data::random();
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(204);
    let (changes, mut webhook) = (AtomicUsize::new(0), None);
    for round in 0..rounds {
        let server = Server::start(&folder);
        webhook.get_or_insert_with(|| server.client.create_webhook(&receiver.url));
        // Slow receivers leave more deliveries in flight.
        let delay = Duration::from_millis(random.u64(0..50));
        receiver.respond(204, delay);
        let pause = Duration::from_millis(random.u64(100..1500));
        let client = server.client.clone();
        std::thread::scope(|scope| {
            for _ in 0..SENDERS {
                scope.spawn(|| change(&client, &changes));
            }
            std::thread::sleep(pause);
            server.kill();
            let (changes, arrivals) = (changes.load(Ordering::Relaxed), receiver.arrivals().len());
            eprintln!(
                "round {round}: killed after {pause:?}, with responses after {delay:?}: {changes} changes, {arrivals} arrivals"
            );
        });
    }
    let (server, webhook) = (Server::start(&folder), webhook.unwrap());
    let last = server.client.create_asset("Last");
    let events = server.client.asset_events(|events| events.iter().any(|event| event["entity_id"] == last.as_str()));
    let expected: BTreeSet<String> = events.iter().map(|event| event["id"].as_str().unwrap().to_owned()).collect();
    // A change can be committed without its response, but not the other way round.
    assert!(expected.len() > changes.load(Ordering::Relaxed) && expected.len() > rounds, "{}", expected.len());
    let arrived = until("all changes have arrived", || {
        let arrived: BTreeSet<String> = receiver.verified(&webhook.secret).into_keys().collect();
        (arrived.len() >= expected.len()).then_some(arrived)
    });
    assert_eq!(arrived, expected);
}
