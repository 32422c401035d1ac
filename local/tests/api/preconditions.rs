//! `ETag`, `If-Match` and `If-None-Match` (contract 6).

use crate::coverage::operations;
use crate::support::samples::Samples;
use crate::support::{Api, Client, Reply};
use serde_json::json;

async fn with(client: &Client, method: &str, path: &str, body: &str, header: (&str, &str)) -> Reply {
    client.send_with(method, path, Some("application/json"), body.to_owned(), &[header]).await
}

#[tokio::test]
async fn a_thing_has_one_tag_however_it_is_shown_and_another_once_it_differs() {
    let (_api, client) = Api::with_tenant().await;
    let asset_type = client.asset_type("Laptop", "LAP", "physical").await;
    let model = client.model("Dell", "XPS", &asset_type).await;
    let made = client.post("/assets", json!({"name": "a", "model_id": model})).await;
    let path = format!("/assets/{}", made.id());
    let shown = client.get(&path).await;
    let tag = shown.header("etag").to_owned();
    assert!(tag.starts_with("\"1-"), "a strong tag: {tag}");
    assert_eq!(made.header("etag"), tag);
    assert_eq!(client.send("HEAD", &path, None, "").await.header("etag"), tag);
    let unchanged = with(&client, "GET", &path, "", ("if-none-match", &tag)).await;
    assert_eq!((unchanged.status.as_u16(), unchanged.text(), unchanged.header("etag")), (304, "", tag.as_str()));
    assert_eq!(with(&client, "HEAD", &path, "", ("if-none-match", "*")).await.status, 304);
    assert_eq!(with(&client, "GET", &path, "", ("if-none-match", "\"1-0\"")).await.status, 200);
    assert_eq!(with(&client, "GET", &path, "", ("if-none-match", "nonsense")).await.status, 200);
    let lines = [("if-none-match", "\"x\""), ("if-none-match", tag.as_str())];
    assert_eq!(client.send_with("GET", &path, None, "", &lines).await.status, 304, "a list may stand in several lines");
    // Its catalog's names are part of what is shown, so they are part of the tag; its version is not touched by them.
    client.patch(&format!("/catalog/models/{model}"), json!({"name": "XPS 14"})).await.data();
    assert_eq!(with(&client, "GET", &path, "", ("if-none-match", &tag)).await.status, 200);
    let changed = with(&client, "PATCH", &path, r#"{"name":"b"}"#, ("if-match", &tag)).await;
    assert_eq!(changed.status, 200);
    assert!(changed.header("etag").starts_with("\"2-"));
    assert_eq!(client.get(&path).await.header("etag"), changed.header("etag"));
    with(&client, "PATCH", &path, r#"{"name":"c"}"#, ("if-match", &tag)).await.problem(412, "PRECONDITION_FAILED");
    with(&client, "DELETE", &path, "", ("if-match", &tag)).await.problem(412, "PRECONDITION_FAILED");
    assert_eq!(client.get(&path).await.data()["name"], "b");
    let list = format!("\"x\", {}", changed.header("etag"));
    assert_eq!(with(&client, "DELETE", &path, "", ("if-match", &list)).await.status, 200);
}

/// Every change of something: a wrong tag is a 412 and changes nothing, the right one goes through.
#[tokio::test]
async fn every_change_heeds_if_match() {
    let (api, client) = Api::with_tenant().await;
    let samples = Samples::of(&client).await;
    let (_, operations) = operations(&client).await;
    let mut heeded = 0;
    for method in ["PATCH", "POST", "DELETE"] {
        for operation in operations.iter().filter(|operation| operation.method == method) {
            let path = samples.fill(&operation.path);
            let path = path.strip_prefix("/v1").unwrap();
            let body = samples.body(method, &operation.path);
            let body = if body.is_null() { String::new() } else { body.to_string() };
            let before = api.dump().await;
            let stale = with(&client, method, path, &body, ("if-match", "\"999-0\"")).await;
            stale.problem(412, "PRECONDITION_FAILED");
            for weak in ["W/\"1-0\"", "\"nonsense\""] {
                with(&client, method, path, &body, ("if-match", weak)).await.problem(412, "PRECONDITION_FAILED");
            }
            with(&client, method, path, &body, ("if-match", "1-0")).await.problem(400, "MALFORMED_REQUEST");
            // Numbers of tags and of movements are taken before it is known whether they are needed.
            let rest = |dump: crate::support::Dump| dump.0.into_iter().filter(|i| !i.contains("last_number")).collect::<Vec<_>>();
            assert_eq!(rest(api.dump().await), rest(before), "{method} {path} changed something");
            // Of what a path names by its id, and of the settings, there is a version to match.
            let of_a_run =
                ["/advance", "/cancel", "/rotate"].iter().any(|end| path.ends_with(end)) && !path.starts_with("/movements");
            if method != "POST" || of_a_run {
                let reply = with(&client, method, path, &body, ("if-match", "*")).await;
                assert!(reply.status.is_success(), "{method} {path}: {}", reply.text());
                heeded += 1;
            }
        }
    }
    assert!(heeded >= 16, "only {heeded}");
}

#[tokio::test]
async fn of_two_changes_of_one_state_one_is_refused() {
    let (api, client) = Api::with_tenant().await;
    let path = format!("/assets/{}", client.asset(json!({"name": "a"})).await);
    let tag = client.get(&path).await.header("etag").to_owned();
    let mut held = api.faults.hold("TransactWriteItems");
    let first = with(&client, "PATCH", &path, r#"{"name":"first"}"#, ("if-match", &tag));
    let second = async {
        held.arrived().await;
        let reply = with(&client, "PATCH", &path, r#"{"name":"second"}"#, ("if-match", &tag)).await;
        held.release();
        reply
    };
    let (first, second) = tokio::join!(first, second);
    assert_eq!(second.status, 200);
    first.problem(412, "PRECONDITION_FAILED");
    assert_eq!(client.get(&path).await.data()["name"], "second");
}
