//! The snapshots that the writer writes, and their order.

use crate::lists::snapshots::Snapshots;
use chrono::TimeDelta;
use dev_server::faulty_table::FaultyObjects;
use serde_json::json;
use shared::domain::values::id::{EventId, Id};
use shared::store::SnapshotReport;

#[tokio::test(start_paused = true)]
async fn snapshots_are_written_when_they_are_behind_or_old() {
    let snapshots = Snapshots::start().await;
    let current = SnapshotReport { current: 4, ..SnapshotReport::default() };
    let written = SnapshotReport { written: 4, ..SnapshotReport::default() };
    assert_eq!(snapshots.write().await, current);
    let id = snapshots.client.asset(json!({"name": "c"})).await;
    assert_eq!(snapshots.write().await, current, "one event is cheaper to read than a snapshot to write");
    for n in 0..250 {
        snapshots.client.patch(&format!("/assets/{id}"), json!({"notes": n.to_string()})).await.data();
    }
    snapshots.api.faults.take_requests();
    let before = snapshots.objects.object(&snapshots.key("asset"));
    assert!(before.is_some());
    assert_eq!(snapshots.write().await, written);
    assert_ne!(snapshots.objects.object(&snapshots.key("asset")), before);
    let loads = |requests: Vec<(String, serde_json::Value)>| {
        requests.iter().filter(|(_, request)| request["IndexName"] == "list_index").count()
    };
    assert_eq!(loads(snapshots.api.faults.take_requests()), 0, "the snapshots followed the events");
    snapshots.api.advance_clock(25 * 3600);
    assert_eq!(snapshots.write().await, written);
    assert_eq!(loads(snapshots.api.faults.take_requests()), 4, "after a day, each is loaded again");
    assert_eq!(snapshots.cold_list().await.0.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_run_continues_where_the_last_one_ended() {
    let snapshots = Snapshots::start().await;
    for _ in 0..11 {
        snapshots.api.tenant().await;
    }
    let begin = snapshots.api.now();
    // Each reading of the clock takes a millisecond, so the first run ends before it is through.
    let first = snapshots.replica.store.write_snapshots(begin.plus(TimeDelta::milliseconds(60))).await.unwrap();
    assert!(first.postponed > 0 && first.written > 0, "{first:?}");
    let second = snapshots.write().await;
    assert_eq!((second.postponed, first.written + second.written), (0, 11 * 4), "{first:?} {second:?}");
    assert!(second.current >= first.written, "{first:?} {second:?}");
    let none = snapshots.replica.store.write_snapshots(begin).await.unwrap();
    assert_eq!(none, SnapshotReport { postponed: 12, ..SnapshotReport::default() });
}

/// A small list loads as quickly without one, and a snapshot names people.
#[tokio::test(start_paused = true)]
async fn a_small_list_has_no_snapshot() {
    let snapshots = Snapshots::start().await;
    snapshots.client.assets(400).await;
    snapshots.api.advance_clock(120);
    let objects = FaultyObjects::default();
    let write = async |smallest: usize| {
        let store = snapshots.api.replica_with(0, usize::MAX, objects.store()).store.with_smallest_snapshot(smallest);
        store.write_snapshots(snapshots.api.now().plus(TimeDelta::minutes(10))).await.unwrap()
    };
    let asset = || objects.object(&snapshots.key("asset"));
    // The part that is counted would have to have more rows than there are in all.
    assert_eq!(write(10_000).await, SnapshotReport { current: 4, ..SnapshotReport::default() });
    assert!(asset().is_none());
    // One row in the part is enough.
    assert!(write(16).await.written > 0);
    assert!(asset().is_some());
}

/// If a tenant's snapshots end the function, the next run begins with other tenants.
#[tokio::test(start_paused = true)]
async fn a_tenant_that_ends_the_writer_does_not_keep_others_waiting() {
    let snapshots = Snapshots::start().await;
    for _ in 0..11 {
        snapshots.api.tenant().await;
    }
    let store = &snapshots.replica.store;
    let begun = snapshots.objects.keys_put().len();
    let until = snapshots.api.now().plus(TimeDelta::minutes(10));
    tokio::select! {
        biased;
        () = snapshots.objects.wait_for_puts(begun + 2) => {}
        _ = store.write_snapshots(until) => panic!("the run was not ended"),
    }
    let report = snapshots.write().await;
    assert_eq!(report.postponed, 0);
    let order = snapshots.objects.keys_put();
    // The ended run had begun with eight tenants. The three new ones that are left come before them.
    let first = order[begun + 1].clone();
    let again = order[begun + 2..].iter().position(|key| key.rsplit_once('/').unwrap().0 == first.rsplit_once('/').unwrap().0);
    let before = order[begun + 2..][..again.unwrap()].iter().filter(|key| !key.ends_with("last-tenant")).count();
    assert_eq!(before, 3 * 4, "{order:?}");
}

/// An object store that is down must not cost the table anything.
#[tokio::test(start_paused = true)]
async fn nothing_is_loaded_for_snapshots_that_cannot_be_read() {
    let snapshots = Snapshots::start().await;
    snapshots.objects.set_down(true);
    snapshots.api.faults.take_requests();
    assert_eq!(snapshots.write().await, SnapshotReport { failed: 4, ..SnapshotReport::default() });
    let requests = snapshots.api.faults.take_requests();
    assert!(requests.iter().all(|(_, request)| request["IndexName"] != "list_index"), "{requests:?}");
}

/// Of the events since a snapshot, or of the last hour after a load, only those of the last minute are read consistently.
#[tokio::test(start_paused = true)]
async fn old_events_are_read_at_half_the_price() {
    let snapshots = Snapshots::start().await;
    let id = snapshots.client.asset(json!({"name": "c"})).await;
    for n in 0..300 {
        snapshots.client.patch(&format!("/assets/{id}"), json!({"notes": format!("{n}").repeat(500)})).await.data();
    }
    let deleted = snapshots.client.asset(json!({"name": "d"})).await;
    snapshots.client.delete(&format!("/assets/{deleted}")).await;
    snapshots.api.advance_clock(600);
    // Of 1,050 KB of events: whether there are many takes 110 units of each kind of record.
    for (is_followed, most) in [(true, 900.0), (false, 520.0)] {
        if !is_followed {
            snapshots.objects.clear();
        }
        snapshots.api.faults.take_requests();
        snapshots.api.meter.take();
        assert_eq!(snapshots.write().await.written, 4);
        let units = snapshots.api.meter.take().read_units;
        assert!(units < most, "{units} units, followed: {is_followed}");
        let seen = snapshots.api.faults.take_requests();
        assert_eq!(seen.iter().all(|(_, request)| request["IndexName"] != "list_index"), is_followed);
        let recent = EventId::new(snapshots.api.now().plus(TimeDelta::seconds(-75)), [0; 10]).short();
        for (_, request) in seen.iter().filter(|(_, request)| request["ConsistentRead"] == true && request["Limit"] != 1) {
            let from = request["ExpressionAttributeValues"][":from"]["S"].as_str().unwrap_or("~");
            assert!(!from.starts_with("EVENT#") || *from > *format!("EVENT#{recent}"), "{request}");
        }
    }
    assert_eq!(snapshots.cold_list().await.0.len(), 3);
}
