//! `ETag`, `If-Match` and `If-None-Match`.

use crate::support::operations::{WRITE_METHODS, by_method, operations};
use crate::support::samples::{Samples, content_type};
use crate::support::{Api, over_http};
use serde_json::json;

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

/// For every write, an ETag that does not match is a 412 and changes nothing; a matching one lets the request pass.
#[tokio::test(start_paused = true)]
async fn every_write_checks_if_match() {
    let (api, client) = Api::with_tenant().await;
    let samples = Samples::create(&client).await;
    let (_, operations) = operations(&client).await;
    let mut matched = 0;
    let mut before = api.dump().await;
    for operation in by_method(&operations, &WRITE_METHODS) {
        let (path, body) = samples.request(&operation.method, &operation.path);
        let send = async |tag: &str| {
            let content_type = Some(content_type(&operation.path));
            client.send_with(&operation.method, &path, content_type, body.clone(), &[("if-match", tag)]).await
        };
        let has_parts = ["/batch", "/import", "/offboard", "/seen"].iter().any(|end| path.ends_with(end));
        for tag in ["\"999-0\"", "W/\"1-0\"", "\"nonsense\""] {
            match has_parts {
                // The header can't say which of several records it speaks of.
                true => assert_eq!(send(tag).await.field_errors(), ["If-Match"], "{operation}"),
                false => drop(send(tag).await.problem(412, "PRECONDITION_FAILED")),
            }
        }
        send("1-0").await.problem(400, "MALFORMED_REQUEST");
        // Numbers for tags and movements are taken before the precondition is checked.
        let after = api.dump().await;
        assert_eq!(after.without("last_number"), before.without("last_number"), "{operation} changed the table");
        // A resource that the path names by its id has a version, and so have the settings. Movements have none.
        let is_action = ["/advance", "/cancel", "/rotate"].iter().any(|end| path.ends_with(end));
        if operation.method != "POST" || is_action && !path.starts_with("/movements") {
            if operation.method == "PUT" {
                // Before it has created the asset, there is no version.
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
