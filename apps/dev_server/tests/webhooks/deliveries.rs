//! The arrivals at receivers.

use super::receiver::Receiver;
use super::server::{Server, log_of};
use super::until;
use serde_json::json;
use tempfile::TempDir;

#[test]
fn changes_in_memory_arrive_signed_and_as_the_change_feed_has_them() {
    let folder = tempfile::tempdir().unwrap();
    changes_arrive(&folder, Server::start_with(&folder, &["--memory", "--allow-local-webhooks"]));
}

#[test]
fn changes_in_files_arrive_signed_and_as_the_change_feed_has_them() {
    let folder = tempfile::tempdir().unwrap();
    changes_arrive(&folder, Server::start(&folder));
}

fn changes_arrive(folder: &TempDir, server: Server) {
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
    let log = log_of(folder);
    assert!(!log.contains("ERROR") && !log.contains(&receiver.url) && !log.contains("whsec_"), "{log}");
}

#[test]
fn addresses_of_this_machine_need_the_option() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(204);
    let server = Server::start(&folder);
    let webhook = server.client.create_webhook(&receiver.url);
    server.terminate();
    // The webhook is still there, but nothing is sent to it any more.
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
