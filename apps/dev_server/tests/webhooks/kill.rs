//! Sudden ends of the process.

use super::receiver::Receiver;
use super::server::{Client, Server};
use super::until;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Senders that change assets at the same time.
const SENDERS: usize = 4;

/// Creates and changes assets until the server is gone. Counts the changes whose response arrived.
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
        // Slow receivers leave more under way.
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
