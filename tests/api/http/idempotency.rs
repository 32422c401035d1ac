//! Idempotency keys, which make a retried POST take effect once, and `ETag`, `If-Match` and `If-None-Match`.

use crate::support::prelude::*;

const COPIES: usize = 8;
/// Requests that are executed in several transactions.
const PARTS: [&str; 3] = ["/import", "/offboard", "/seen"];
/// Requests whose concurrent copies are never refused.
const WAITING: [&str; 4] = ["/import", "/test", "/replay", "/retry"];

/// Returns the member that a creation shows only once: an API key, a signing link's URL, a webhook's secret.
fn shown_once(path: &str) -> Option<&'static str> {
    let names = [("/keys", "api_key"), ("/links", "url"), ("/webhooks", "secret")];
    names.iter().find(|(part, _)| path.contains(part)).map(|(_, name)| *name)
}

/// Removes the `replayed` flag from an import's rows.
pub fn unmarked(mut body: Value) -> Value {
    for row in body["data"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        row.remove("replayed");
    }
    body
}

/// Returns the body without the member that is shown once.
pub fn stored(path: &str, reply: &Reply) -> Value {
    let mut body = reply.json();
    if let (Some(data), Some(name)) = (body["data"].as_object_mut(), shown_once(path)) {
        data.remove(name);
    }
    unmarked(body)
}

/// Sends concurrent copies of a POST to function instances with different clocks, and checks that only one was executed. Returns
/// the response of the executed copy.
async fn execute_once(api: &Api, client: &Client, path: &str, content_type: &str, body: &str, key: &str) -> Reply {
    let clients = [0, 700, -1_500].map(|skew| api.replica(skew, usize::MAX).client(client));
    let headers = [("idempotency-key", key)];
    let copy = |n: usize| clients[n % clients.len()].send_with("POST", path, Some(content_type), body.to_owned(), &headers);
    let (done, refused): (Vec<Reply>, Vec<Reply>) =
        join_all((0..COPIES).map(copy)).await.into_iter().partition(|reply| reply.status.is_success());
    assert!(refused.is_empty() || !WAITING.iter().any(|end| path.contains(end)), "{path}: {}", refused[0].text());
    for reply in refused {
        reply.problem(409, "REQUEST_IN_PROGRESS");
    }
    let (mut executed, replayed): (Vec<Reply>, Vec<Reply>) =
        done.into_iter().partition(|reply| reply.header("idempotent-replayed").is_empty());
    // The copies of a request with several parts can each execute some of the parts.
    assert!(executed.len() == 1 || PARTS.iter().any(|end| path.contains(end)), "{path}: {} were executed", executed.len());
    let first = executed.remove(0);
    let is_first = |reply: &Reply| unmarked(reply.json()) == stored(path, &first);
    // The response to an offboarding includes what other copies have started.
    assert!(path.ends_with("/offboard") || executed.iter().chain(&replayed).all(is_first), "{path}: {}", first.text());
    first
}

#[tokio::test(start_paused = true)]
async fn copies_and_repetitions_of_every_post_get_the_first_response() {
    let (api, client, samples) = Api::with_samples().await;
    let (_, operations) = operations();
    let posts: Vec<_> = by_method(operations, &["POST"]).filter(|post| !only_reads(&post.path)).collect();
    assert!(posts.len() >= 12, "only {} endpoints", posts.len());
    let mut start = Snapshot::of(&api, client.tenant).await;
    api.queue.take();
    for operation in sample(posts, 4) {
        let (path, body) = samples.request("POST", &operation.path);
        let (key, content_type) = (format!("key of {path}"), content_type(&operation.path));
        let first = execute_once(&api, &client, &path, content_type, &body, &key).await;
        let after = Snapshot::of(&api, client.tenant).await;
        let events = event_count("POST", &operation.path);
        assert_eq!(after.events() - start.events(), events, "{path}");
        start = after;
        let before = api.dump().await;
        let headers = [("idempotency-key", key.as_str())];
        let send = async |body: &str| client.send_with("POST", &path, Some(content_type), body.to_owned(), &headers).await;
        let again = send(&body).await;
        assert_eq!((again.status, again.header("idempotent-replayed")), (first.status, "true"), "{path}: {}", again.text());
        assert_eq!(unmarked(again.json()), stored(&path, &first), "{path}");
        assert_eq!(again.header("location"), first.header("location"));
        if !path.starts_with("/keys") {
            assert_eq!(again.header("etag"), first.header("etag"), "{path}");
        }
        assert_eq!(send(&format!("{body} ")).await.field_errors(), ["Idempotency-Key"], "{path}");
        assert_eq!(api.dump().await, before, "{path} was executed again");
        assert_eq!(api.queue.take().len(), usize::from(events == 0), "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn copies_of_requests_with_many_parts_do_everything_once() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Leaver").await;
    for n in 0..25 {
        client.asset(json!({"name": format!("n{n}"), "status": "in_use", "assigned_to": user})).await;
    }
    let rows: String = (0..20).map(|n| format!("import{n}@example.com,U\n")).collect();
    let offboard = format!("/users/{user}/offboard");
    for (path, content_type, body) in [
        ("/users/import?on_error=abort", "text/csv", format!("email,display_name\n{rows}")),
        (&offboard, "application/json", "{}".to_owned()),
    ] {
        let reply = execute_once(&api, &client, path, content_type, &body, path).await;
        assert!(!reply.text().contains("\"code\":"), "{path}: {}", reply.text());
        let again = client.send_with("POST", path, Some(content_type), body, &[("idempotency-key", path)]).await;
        assert_eq!((again.status.as_u16(), again.header("idempotent-replayed")), (200, "true"), "{path}");
    }
    assert_eq!((client.total("/users").await, client.total("/processes/instances").await), (21, 25));
}

#[tokio::test(start_paused = true)]
async fn copies_of_a_signers_submissions_are_executed_once() {
    let (api, client) = Api::with_tenant().await;
    let path = started(&client, json!([step("text", "note"), signature_step()])).await;
    let signer = Link::for_guest(&client, &path).await.signer(&client);
    for body in [json!({"step_data": {"note": "n"}}), json!({"step_data": {"sign": SIGNATURE}})] {
        let (body, key) = (body.to_string(), body.to_string());
        execute_once(&api, &signer, "/sign/advance", "application/json", &body, &key).await;
        let other = signer.sign_once(&json!({"step_data": {}}), &key).await;
        assert_eq!(other.field_errors(), ["Idempotency-Key"]);
    }
    assert_eq!(event_chain(&api, &client, id_of(&path)).await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_response_is_stored_for_a_day_and_for_one_api_key_but_a_refused_request_may_be_corrected() {
    let (api, client) = Api::with_tenant().await;
    let other = client.scoped(&["assets:read", "assets:write"]).await;
    let body = json!({"name": "n"});
    let first = client.post_once("/assets", &body, "k").await.id();
    assert_ne!(other.post_once("/assets", &body, "k").await.id(), first, "it is stored for one API key");
    assert_eq!(
        client.post_once("/users", &json!({"email": "a@b.c", "display_name": "A"}), "k").await.field_errors(),
        ["Idempotency-Key"]
    );
    api.advance_clock(24 * 3600 - 60);
    assert_eq!(client.post_once("/assets", &body, "k").await.id(), first);
    api.advance_clock(120);
    assert_ne!(client.post_once("/assets", &body, "k").await.id(), first, "a day has passed");

    let client = api.tenant().await;
    assert_eq!(client.post_once("/assets", &json!({"name": ""}), "k").await.field_errors(), ["/name"]);
    assert_eq!(client.post_once("/assets", &json!({"name": "n"}), "k").await.status, 201);
    for invalid in ["", "ä", &"x".repeat(256)] {
        assert_eq!(
            client.post_once("/assets", &json!({"name": "n"}), invalid).await.field_errors(),
            ["Idempotency-Key"],
            "{invalid}"
        );
    }
    let twice = [("idempotency-key", "a"), ("idempotency-key", "b")];
    let reply = client.send_with("POST", "/assets", Some("application/json"), r#"{"name":"n"}"#, &twice).await;
    assert_eq!(reply.field_errors(), ["Idempotency-Key"]);
}

#[tokio::test(start_paused = true)]
async fn a_replayed_response_contains_the_signature() {
    let client = over_http().await;
    let steps = json!([{"type": "signature", "key": "s", "label": "S"}, {"type": "text", "key": "t", "label": "T"}]);
    let process = create_process(&client, json!(steps)).await;
    let mut assets = Vec::new();
    for name in ["a", "b", "c"] {
        assets.push(client.asset(json!({"name": name})).await);
    }
    let start = format!("/processes/{process}/start");
    let instance = client.post(&start, json!({"asset_id": assets[0]})).await.id();
    let movement = client.post(&start, json!({"asset_ids": assets[1..]})).await.id();
    for path in [format!("/processes/instances/{instance}/advance"), format!("/movements/{movement}/advance")] {
        let body = json!({"step_data": {"s": SIGNATURE}});
        let first = client.post_once(&path, &body, &path).await;
        client.post(&path, json!({"step_data": {"t": "a later step changes nothing"}})).await.data();
        let again = client.post_once(&path, &body, &path).await;
        assert!(first.text().contains(SIGNATURE), "{}", first.text());
        assert_eq!((again.text(), again.header("idempotent-replayed")), (first.text(), "true"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_whose_response_is_too_long_to_store_is_refused_before_it_is_executed() {
    let (api, client) = Api::with_tenant().await;
    let step = |key: &str| json!({"type": "textarea", "key": key, "label": "L"});
    let process = create_process(&client, json!([step("a"), step("b"), step("c")])).await;
    let ids = client.assets(20).await;
    let movement = start_movement(&client, &process, &ids).await;
    let advance = format!("/movements/{}/advance", movement["id"].as_str().unwrap());
    let body = json!({"step_data": {"a": "x".repeat(9_500), "b": "x".repeat(9_500)}});
    let before = api.dump().await;
    assert_eq!(client.post_once(&advance, &body, "k").await.field_errors(), ["Idempotency-Key"]);
    assert_eq!(api.dump().await, before);
    client.post(&advance, body).await.data();
}

#[tokio::test(start_paused = true)]
async fn the_same_text_as_csv_and_as_ndjson_are_two_requests() {
    let client = over_http().await;
    let text = "{\"name\":\"a\"}\n{\"name\":\"b\"}\n";
    let send = async |content_type| {
        let headers = [("idempotency-key", "k")];
        client.send_with("POST", "/assets/import", Some(content_type), text, &headers).await
    };
    assert_eq!(outcomes(&send("application/x-ndjson").await), ["created"; 2]);
    assert_eq!(outcomes(&send("Application/X-NDJSON; charset=utf-8").await), ["created"; 2]);
    assert_eq!(send("text/csv").await.field_errors(), ["Idempotency-Key"]);
    assert_eq!(client.total("/assets").await, 2);
}

#[tokio::test(start_paused = true)]
async fn an_etag_is_the_same_in_every_response_until_the_resource_changes() {
    let client = over_http().await;
    let asset_type = client.asset_type("Laptop", "LAP", "physical").await;
    let model = client.model("Dell", "XPS", &asset_type).await;
    let made = client.post("/assets", json!({"name": "a", "model_id": model})).await;
    let path = format!("/assets/{}", made.id());
    let shown = client.get(&path).await;
    let tag = shown.header("etag").to_owned();
    assert!(tag.starts_with("\"1-"), "a strong tag: {tag}");
    assert_eq!(made.header("etag"), tag);
    assert_eq!(client.send("HEAD", &path, None, "").await.header("etag"), tag);
    let unchanged = client.send_json("GET", &path, "", ("if-none-match", &tag)).await;
    assert_eq!((unchanged.status.as_u16(), unchanged.text(), unchanged.header("etag")), (304, "", tag.as_str()));
    assert_eq!(client.send_json("HEAD", &path, "", ("if-none-match", "*")).await.status, 304);
    assert_eq!(client.send_json("GET", &path, "", ("if-none-match", "\"1-0\"")).await.status, 200);
    assert_eq!(client.send_json("GET", &path, "", ("if-none-match", "nonsense")).await.status, 200);
    let lines = [("if-none-match", "\"x\""), ("if-none-match", tag.as_str())];
    assert_eq!(
        client.send_with("GET", &path, None, "", &lines).await.status,
        304,
        "a list may be spread over several header lines"
    );
    // Names from the catalog are part of the asset, so they change its ETag, but not its version.
    client.patch(&format!("/catalog/models/{model}"), json!({"name": "XPS 14"})).await.data();
    assert_eq!(client.send_json("GET", &path, "", ("if-none-match", &tag)).await.status, 200);
    let changed = client.send_json("PATCH", &path, r#"{"name":"b"}"#, ("if-match", &tag)).await;
    assert_eq!(changed.status, 200);
    assert!(changed.header("etag").starts_with("\"2-"));
    assert_eq!(client.get(&path).await.header("etag"), changed.header("etag"));
    client.send_json("PATCH", &path, r#"{"name":"c"}"#, ("if-match", &tag)).await.problem(412, "PRECONDITION_FAILED");
    client.send_json("DELETE", &path, "", ("if-match", &tag)).await.problem(412, "PRECONDITION_FAILED");
    assert_eq!(client.get(&path).await.data()["name"], "b");
    let list = format!("\"x\", {}", changed.header("etag"));
    assert_eq!(client.send_json("DELETE", &path, "", ("if-match", &list)).await.status, 200);
}

/// For every write, an ETag that does not match gets a 412 and changes nothing; a matching one lets the request pass.
#[tokio::test(start_paused = true)]
async fn every_write_checks_if_match() {
    let (api, client, samples) = Api::with_samples().await;
    let (_, operations) = operations();
    let mut matched = 0;
    let mut before = api.dump().await;
    for operation in by_method(operations, &WRITE_METHODS) {
        let (path, body) = samples.request(&operation.method, &operation.path);
        let send = async |tag: &str| {
            let content_type = Some(content_type(&operation.path));
            client.send_with(&operation.method, &path, content_type, body.clone(), &[("if-match", tag)]).await
        };
        let has_parts = ["/batch", "/import", "/suggest", "/offboard", "/seen"].iter().any(|end| path.ends_with(end));
        for tag in ["\"999-0\"", "W/\"1-0\"", "\"nonsense\""] {
            match has_parts {
                // `If-Match` can't be used for requests that change several records.
                true => assert_eq!(send(tag).await.field_errors(), ["If-Match"], "{operation}"),
                false => drop(send(tag).await.problem(412, "PRECONDITION_FAILED")),
            }
        }
        send("1-0").await.problem(400, "MALFORMED_REQUEST");
        // Tag and movement numbers are taken before the precondition is checked.
        let after = api.dump().await;
        assert_eq!(after.without("last_number"), before.without("last_number"), "{operation} changed the table");
        // Resources with an ID in the path have a version, and so do the settings, but not movements.
        let is_action = ["/advance", "/cancel", "/rotate"].iter().any(|end| path.ends_with(end));
        if operation.method != "POST" || is_action && !path.starts_with("/movements") {
            if operation.method == "PUT" {
                // Before the PUT creates the asset, there is no version to match.
                send("*").await.problem(412, "PRECONDITION_FAILED");
                operation.send(&client, &samples).await.data();
            }
            let reply = send("*").await;
            assert!(reply.status.is_success(), "{operation}: {}", reply.text());
            matched += 1;
        }
        before = api.dump().await;
    }
    assert!(matched >= 16, "only {matched} writes");
}

#[tokio::test(start_paused = true)]
async fn of_two_changes_with_the_same_etag_one_is_refused() {
    let (api, client) = Api::with_tenant().await;
    let path = format!("/assets/{}", client.asset(json!({"name": "a"})).await);
    let tag = client.get(&path).await.header("etag").to_owned();
    let first = client.send_json("PATCH", &path, r#"{"name":"first"}"#, ("if-match", &tag));
    let second = client.send_json("PATCH", &path, r#"{"name":"second"}"#, ("if-match", &tag));
    let (first, second) = api.faults.overtake("TransactWriteItems", first, second).await;
    assert_eq!(second.status, 200);
    first.problem(412, "PRECONDITION_FAILED");
    assert_eq!(client.get(&path).await.data()["name"], "second");
}
