//! Batches and imports that are interrupted and sent again: nothing is done twice, nothing is lost, and the answer is the
//! same.

use crate::support::bulk::{outcomes, statuses};
use crate::support::table::history::event_chain;
use crate::support::{Api, Client, Disturbance, Reply, at_each_place, over_http};
use dev_server::faulty_table::planned::CallFailure;
use serde_json::{Value, json};

/// Without ids of requests.
fn answer(reply: &Reply) -> Value {
    let mut body = reply.json();
    for entry in body["data"].as_array_mut().unwrap() {
        if let Some(error) = entry["error"].as_object_mut() {
            error.remove("request_id");
        }
    }
    body
}

async fn send(client: &Client, operations: &[Value], key: &str) -> Reply {
    client.send_json("POST", "/users/batch", &json!({"operations": operations}).to_string(), ("idempotency-key", key)).await
}

/// Makes each call of a batch fail in turn, in every way, and sends the batch again until it succeeds.
#[tokio::test(start_paused = true)]
async fn a_batch_goes_on_where_it_stopped() {
    let (api, client) = Api::with_tenant().await;
    client.use_key_once().await;
    at_each_place(&CallFailure::ALL, 10, 5, async |place, failure| {
        let name = format!("{failure:?}-{place}").to_lowercase();
        let known = client.user(&format!("known {name}")).await;
        let operations = [
            json!({"op": "create", "body": {"email": format!("a-{name}@example.com"), "display_name": "A"}}),
            json!({"op": "create", "body": {"email": format!("A-{name}@example.com"), "display_name": "Refused"}}),
            json!({"op": "update", "id": known, "body": {"display_name": "Changed"}}),
            json!({"op": "update", "id": known, "body": {"email": "no address"}}),
            json!({"op": "update", "id": known, "body": {"email": format!("b-{name}@example.com")}}),
            json!({"op": "delete", "id": known}),
        ];
        api.faults.fail_call(place, failure);
        let first = send(&client, &operations, &name).await;
        if !api.faults.stop_failing() {
            assert_eq!(statuses(&first), [201, 409, 200, 422, 200, 200]);
            return false;
        }
        let done = send(&client, &operations, &name).await;
        assert_eq!(statuses(&done), [201, 409, 200, 422, 200, 200], "{name}: first {}", first.text());
        let again = send(&client, &operations, &name).await;
        assert_eq!((answer(&again), again.header("idempotent-replayed")), (answer(&done), "true"), "{name}");
        if first.status == 200 {
            for (before, after) in
                answer(&first)["data"].as_array().unwrap().iter().zip(answer(&done)["data"].as_array().unwrap())
            {
                assert!(before["status"] == 503 || before == after, "{name}: {before} became {after}");
            }
        }
        let made = done.data()[0]["data"]["id"].as_str().unwrap().to_owned();
        assert_eq!(client.total(&format!("/users?q=a-{name}")).await, 1, "{name}");
        assert_eq!(event_chain(&api, &client, &made).await.len(), 1, "{name}");
        assert_eq!(event_chain(&api, &client, &known).await.len(), 4, "{name}");
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
async fn an_import_that_was_refused_as_a_whole_is_refused_again() {
    let client = over_http().await;
    let csv = "email,display_name\na@example.com,A\nb@example.com,B\n";
    let send = || client.send_with("POST", "/users/import?on_error=abort", Some("text/csv"), csv, &[("idempotency-key", "key")]);
    let taken = client.post("/users", json!({"email": "b@example.com", "display_name": "B"})).await.id();
    assert_eq!(outcomes(&send().await), ["skipped", "refused"]);
    client.delete(&format!("/users/{taken}")).await.data();
    let again = send().await;
    assert_eq!((outcomes(&again), again.header("idempotent-replayed")), (vec!["skipped".into(), "refused".into()], "true"));
    let other = client.send_with("POST", "/users/import?on_error=abort", Some("text/csv"), csv, &[("idempotency-key", "next")]);
    assert_eq!(outcomes(&other.await), ["created", "created"]);
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

#[tokio::test(start_paused = true)]
async fn an_effect_whose_answer_was_lost_counts_for_the_operations_that_follow() {
    let (api, client) = Api::with_tenant().await;
    let ada = client.user("Ada").await;
    let operations = [
        json!({"op": "update", "id": ada, "body": {"email": "y@example.com"}}),
        json!({"op": "create", "body": {"email": "ada@example.com", "display_name": "Next"}}),
    ];
    // The first transaction says that the request has begun.
    for place in 0..12 {
        api.faults.fail_call(place, CallFailure::TimedOutAfter);
        let reply = send(&client, &operations, &format!("key-{place}")).await;
        api.faults.stop_failing();
        let reply = if reply.status == 200 && !statuses(&reply).contains(&503) {
            reply
        } else {
            send(&client, &operations, &format!("key-{place}")).await
        };
        assert_eq!(statuses(&reply), [200, 201], "{place}");
        let next = reply.data()[1]["data"]["id"].as_str().unwrap().to_owned();
        client.delete(&format!("/users/{next}")).await.data();
        client.patch(&format!("/users/{ada}"), json!({"email": "ada@example.com"})).await.data();
    }
}
