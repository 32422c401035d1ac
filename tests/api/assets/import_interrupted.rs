//! Batches and imports that are interrupted and sent again: nothing is done twice, nothing is lost, and the answer is the
//! same.

use crate::support::bulk::{outcomes, statuses};
use crate::support::table::history::event_chain;
use crate::support::{Api, Client, Disturbance, Reply, at_each_place, over_http};
use dev_server::faulty_table::planned::CallFailure;
use serde_json::json;

/// Makes each call of a batch fail in turn, in every way, and sends the batch again.
#[tokio::test(start_paused = true)]
async fn a_batch_takes_effect_once() {
    let (api, client) = Api::with_tenant().await;
    client.use_key_once().await;
    at_each_place(&CallFailure::ALL, 4, 3, async |place, failure| {
        let name = format!("{failure:?}-{place}").to_lowercase();
        let (known, leaver) = (client.user(&format!("known {name}")).await, client.user(&format!("leaver {name}")).await);
        let operations = json!({"operations": [
            {"op": "create", "body": {"email": format!("a-{name}@example.com"), "display_name": "A"}},
            {"op": "update", "id": known, "body": {"email": format!("b-{name}@example.com")}},
            {"op": "delete", "id": leaver},
        ]});
        let send = async || client.send_json("POST", "/users/batch", &operations.to_string(), ("idempotency-key", &name)).await;
        api.faults.fail_call(place, failure);
        let first = send().await;
        if !api.faults.stop_failing() {
            assert_eq!(statuses(&first), [201, 200, 200]);
            return false;
        }
        let again = send().await;
        assert_eq!(statuses(&again), [201, 200, 200], "{name}: first {}", first.text());
        assert!(first.status == 503 || first.json() == again.json(), "{name}: {} became {}", first.text(), again.text());
        let made = again.data()[0]["data"]["id"].as_str().unwrap().to_owned();
        assert_eq!(client.total(&format!("/users?q=a-{name}")).await, 1, "{name}");
        for (id, events) in [(&made, 1), (&known, 2), (&leaver, 2)] {
            assert_eq!(event_chain(&api, &client, id).await.len(), events, "{name}");
        }
        true
    })
    .await;
}

/// Sends an import that is disturbed at each place in every way, and then again under the same key.
async fn import_goes_on(path: &str, csv: &str, expected: &[&str], total: u64) {
    let (api, client) = Api::with_tenant().await;
    let send = async |client: &Client| {
        client.send_with("POST", path, Some("text/csv"), csv.to_owned(), &[("idempotency-key", "key")]).await
    };
    let case = async |place, way: Disturbance| {
        let client = api.tenant().await;
        client.use_key_once().await;
        let (first, is_disturbed) = way.at(&api, place, async || send(&client).await).await;
        assert_eq!(outcomes(&send(&client).await), expected, "{way:?} {place}: first {}", first.text());
        assert_eq!(client.total("/assets").await, total, "{way:?} {place}");
        is_disturbed
    };
    at_each_place(&CallFailure::ALL.map(Disturbance::Fails), 10, 5, &case).await;
    at_each_place(&[Disturbance::IsDropped], 8, 3, &case).await;
    assert_eq!(outcomes(&send(&client).await), expected);
    assert_eq!(client.import_once("/assets", &format!("{csv}more,\n"), "key").await.field_errors(), ["Idempotency-Key"]);
    let elsewhere = client.send_json("POST", "/assets", "{\"name\": \"x\"}", ("idempotency-key", "key")).await;
    assert_eq!(elsewhere.field_errors(), ["Idempotency-Key"]);
}

#[tokio::test(start_paused = true)]
async fn an_import_goes_on_where_it_stopped() {
    let row = |n| format!("n{n},{}\n", if n == 3 { "lost" } else { "" });
    let csv = format!("name,status\n{}", (0..6).map(row).collect::<String>());
    let mut expected = vec!["created"; 6];
    expected[3] = "refused";
    import_goes_on("/assets/import", &csv, &expected, 5).await;
}

#[tokio::test(start_paused = true)]
async fn an_import_that_matches_goes_on_where_it_stopped() {
    let csv = format!("name,serial_number\n{}", (0..6).map(|n| format!("n{n},S-{n}\n")).collect::<String>());
    import_goes_on("/assets/import?match=serial_number", &csv, &["created"; 6], 6).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_throttled_is_left_for_the_next_attempt() {
    let (api, client) = Api::with_tenant().await;
    client.use_key_once().await;
    let csv: String = std::iter::once("name\n".to_owned()).chain((0..50).map(|n| format!("n{n}\n"))).collect();
    api.faults.throttle("TransactWriteItems", 10_000);
    let refused = client.import_once("/assets", &csv, "key").await;
    refused.problem(503, "UNAVAILABLE");
    let attempts = 10_000 - api.faults.planned();
    assert!(attempts < 10, "{attempts} attempts against a table that throttles");
    let without_key = client.import("/assets", "", &csv).await;
    let attempts = 10_000 - api.faults.planned() - attempts;
    assert_eq!(outcomes(&without_key), vec!["refused"; 50]);
    assert_eq!(without_key.data()[49]["errors"][0]["code"], "UNAVAILABLE");
    assert!(attempts < 50, "{attempts} attempts against a table that throttles");
}

#[tokio::test(start_paused = true)]
async fn a_key_with_two_bodies_at_once_executes_one_of_them() {
    let client = over_http().await;
    let csv = |name: &str| format!("name\n{}", format!("{name}\n").repeat(30));
    let replies = futures_util::future::join_all((0..4).map(|n| {
        let (client, csv) = (&client, csv(&format!("n{n}")));
        async move {
            let mut reply = client.import_once("/assets", &csv, "key").await;
            // On a busy machine, looking for the other request may take too long.
            while reply.status == 503 {
                reply = client.import_once("/assets", &csv, "key").await;
            }
            reply
        }
    }));
    let replies = replies.await;
    assert_eq!(replies.iter().filter(|reply| reply.status == 200).count(), 1);
    let refused = replies.iter().filter(|reply| reply.status != 200);
    refused.for_each(|reply| assert_eq!(reply.field_errors(), ["Idempotency-Key"]));
    assert_eq!(client.total("/assets").await, 30);
}

#[tokio::test(start_paused = true)]
async fn refused_rows_of_a_repeated_import_are_decided_anew() {
    let api = Api::start().await;
    let csv = "email,display_name\na@example.com,A\nb@example.com,B\n";
    for (query, first) in [("", ["created", "refused"]), ("?on_error=abort", ["skipped", "refused"])] {
        let client = api.tenant().await;
        let path = format!("/users/import{query}");
        let send = || client.send_with("POST", &path, Some("text/csv"), csv, &[("idempotency-key", "key")]);
        let taken = client.post("/users", json!({"email": "b@example.com", "display_name": "B"})).await;
        assert_eq!(outcomes(&send().await), first);
        client.delete(&format!("/users/{}", taken.id())).await.data();
        let again = send().await;
        assert_eq!(
            (outcomes(&again), again.header("idempotent-replayed")),
            (vec!["created".into(), "created".into()], ""),
            "{query}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_repeated_import_says_which_rows_it_wrote_before() {
    let client = over_http().await;
    let csv = "name,assigned_to_email\na,\nb,ada@example.com\n";
    let replayed = |reply: &Reply| [0, 1].map(|row| reply.data()[row]["replayed"] == true);
    let first = client.import_once("/assets", csv, "key").await;
    assert_eq!((outcomes(&first), replayed(&first)), (vec!["created".into(), "refused".into()], [false, false]));
    client.user("Ada").await;
    let second = client.import_once("/assets", csv, "key").await;
    assert_eq!((outcomes(&second), replayed(&second)), (vec!["created".into(), "created".into()], [true, false]));
    assert_eq!(second.data()[0]["id"], first.data()[0]["id"]);
    let third = client.import_once("/assets", csv, "key").await;
    assert_eq!((replayed(&third), third.header("idempotent-replayed")), ([true, true], "true"));
    assert_eq!(client.total("/assets").await, 2);
}

#[tokio::test(start_paused = true)]
async fn a_repeated_import_takes_no_numbers() {
    let client = over_http().await;
    for _ in 0..3 {
        assert_eq!(outcomes(&client.import_once("/assets", "name\na\nb\n", "key").await), ["created", "created"]);
    }
    let next = client.post("/assets", json!({"name": "c"})).await.data();
    assert_eq!(next["asset_tag"], "AST-000003");
}

/// The tag of the first row is taken by then: by that row.
#[tokio::test(start_paused = true)]
async fn a_repeated_import_has_skipped_the_same_cells() {
    let client = over_http().await;
    let path = "/assets/import?skip_bad=asset_tag";
    let csv = "name,asset_tag\na,INV-1\nb,INV-1\n";
    let send = || client.send_with("POST", path, Some("text/csv"), csv, &[("idempotency-key", "key")]);
    let first = send().await;
    let (outcomes, data) = (outcomes(&first), first.data());
    assert_eq!((outcomes, data[0].get("skipped_cells")), (vec!["created".to_owned(); 2], None), "{data}");
    let skipped = &data[1]["skipped_cells"][0];
    assert_eq!((&skipped["column"], &skipped["code"]), (&json!("asset_tag"), &json!("DUPLICATE")));
    let again = send().await;
    assert_eq!((&again.data()[1]["skipped_cells"][0], again.header("idempotent-replayed")), (skipped, "true"));
}

#[tokio::test(start_paused = true)]
async fn an_effect_whose_answer_was_lost_counts_for_the_rows_that_follow() {
    let (api, client) = Api::with_tenant().await;
    let ada = client.user("Ada").await;
    let rows = format!("id,email,display_name\n{ada},y@example.com,Ada\n,ada@example.com,Next\n");
    let (path, content_type) = ("/users/import?match=id&create_unmatched=true", Some("text/csv"));
    // The first transaction says that the request has begun.
    for place in 0..12 {
        let key = format!("key-{place}");
        let send = async || client.send_with("POST", path, content_type, rows.clone(), &[("idempotency-key", &key)]).await;
        api.faults.fail_call(place, CallFailure::TimedOutAfter);
        let first = send().await;
        api.faults.stop_failing();
        let reply = if first.status == 200 && outcomes(&first) == ["updated", "created"] { first } else { send().await };
        assert_eq!(outcomes(&reply), ["updated", "created"], "{place}");
        let next = reply.data()[1]["id"].as_str().unwrap().to_owned();
        client.delete(&format!("/users/{next}")).await.data();
        client.patch(&format!("/users/{ada}"), json!({"email": "ada@example.com"})).await.data();
    }
}
