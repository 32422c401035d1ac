//! Orderly ends of the process.

use super::receiver::Receiver;
use super::server::Server;
use super::until;
use std::time::Duration;

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
    // Those that had failed were sent a second time, under the same ID.
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
    // The next start repeats it at once.
    receiver.respond(204, Duration::ZERO);
    let _server = Server::start(&folder);
    until("it arrives again", || (receiver.arrivals().len() >= 2).then_some(()));
    assert_eq!(receiver.verified(&webhook.secret).len(), 1);
}
