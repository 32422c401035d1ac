//! Rules for every route. The routes are taken from the OpenAPI document, so a new one is covered at once.

use crate::support::document::BASE;
use crate::support::operations::{METHODS, by_method, operations};
use crate::support::samples::{INVENTORY_PAGE, SIGNING_PAGE, Samples, content_type};
use crate::support::{Api, UNKNOWN_ID, over_http, sample};
use shared::domain::keys::scope::Scope;
use shared::domain::keys::token::Token;
use std::collections::BTreeSet;

#[tokio::test(start_paused = true)]
async fn without_a_valid_key_every_route_responds_with_the_same_401() {
    let (api, client) = Api::with_tenant().await;
    let (_, operations) = operations(&client).await;
    let samples = Samples::create(&client).await;
    let other = api.tenant().await;
    let revoked = client.scoped(&["assets:read"]).await;
    let id = client.get("/keys?limit=1").await.data()[0]["id"].as_str().unwrap().to_owned();
    client.delete(&format!("/keys/{id}")).await.data();
    let mut mistyped = client.key.clone();
    mistyped.replace_range(40..41, if &mistyped[40..41] == "0" { "1" } else { "0" });
    let token = Token::parse(&client.key).unwrap();
    let of_another_tenant = Token::new(other.tenant, token.id, token.secret).expose();
    let before = api.dump().await;
    for operation in operations.iter().filter(|operation| operation.needs_key) {
        for key in ["", "x", "apl_", &mistyped, &revoked.key, &of_another_tenant] {
            let reply = operation.send(&client.with_key(key), &samples).await;
            let problem = reply.problem(401, "UNAUTHORIZED");
            assert_eq!(reply.header("www-authenticate"), "Bearer");
            assert_eq!(problem["detail"], "Send a valid API key as 'Authorization: Bearer <API_KEY>'.");
        }
    }
    assert_eq!(api.dump().await, before, "a refused request changed the table");
}

#[tokio::test(start_paused = true)]
async fn every_route_needs_the_scopes_in_its_description_and_no_others() {
    let (api, client) = Api::with_tenant().await;
    let (_, operations) = operations(&client).await;
    let samples = Samples::create(&client).await;
    for operation in sample(&operations, 12) {
        for scope in &operation.scopes {
            let others: Vec<&str> = Scope::ALL.iter().map(|s| s.as_str()).filter(|s| s != scope).collect();
            let lacking = client.scoped(&others).await;
            let before = api.dump().await;
            let problem = operation.send(&lacking, &samples).await.problem(403, "FORBIDDEN");
            assert_eq!(problem["scope"], *scope, "{operation}");
            assert_eq!(api.dump().await, before, "{operation} changed the table");
        }
    }
    for operation in sample(by_method(&operations, &METHODS), 20) {
        let scopes: Vec<&str> = operation.scopes.iter().map(String::as_str).collect();
        if scopes.is_empty() {
            continue;
        }
        let reply = operation.send(&client.scoped(&scopes).await, &samples).await;
        let grants_scopes = operation.path.starts_with("/v1/keys") && operation.method == "POST";
        let is_for_admins = ["/report", "/erase"].iter().any(|end| operation.path.ends_with(end));
        let changes_instance = ["/advance", "/cancel", "/offboard", "/webhooks/{id}/rotate", "/test", "/retry", "/replay"]
            .iter()
            .any(|end| operation.path.ends_with(end));
        let answers_for_each_part = ["/batch", "/import", "/seen"].iter().any(|end| operation.path.ends_with(end));
        let expected = if changes_instance {
            200
        } else if grants_scopes || is_for_admins {
            403
        } else if ["POST", "PUT"].contains(&operation.method.as_str()) && !answers_for_each_part {
            201
        } else {
            200
        };
        assert_eq!(reply.status.as_u16(), expected, "{operation}: {}", reply.text());
    }
}

#[tokio::test(start_paused = true)]
async fn another_tenants_resources_look_as_if_they_did_not_exist() {
    let (api, owner) = Api::with_tenant().await;
    let other = api.tenant().await;
    let (_, operations) = operations(&owner).await;
    let samples = Samples::create(&owner).await;
    let before = api.dump().await;
    for operation in operations.iter().filter(|operation| operation.path.contains("{id}")) {
        let of_owner = operation.send(&other, &samples).await.problem(404, "NOT_FOUND");
        let path = operation.path.strip_prefix("/v1").unwrap().replace("{id}", UNKNOWN_ID).replace("{link_id}", UNKNOWN_ID);
        let path = path.replace("{delivery_id}", UNKNOWN_ID);
        let (_, body) = samples.request(&operation.method, &operation.path);
        let unknown = other.send(&operation.method, &path, Some("application/json"), body).await.problem(404, "NOT_FOUND");
        assert_eq!(of_owner["detail"], unknown["detail"], "{operation}: the two responses differ");
    }
    assert_eq!(api.dump().await, before);
    for operation in operations.iter().filter(|operation| operation.method == "GET" && !operation.path.contains("{id}")) {
        let reply = operation.send(&other, &samples).await;
        let has_samples = ["Sample", "Unused", "sample"].iter().any(|text| reply.text().contains(&format!("\"{text}")));
        assert!(!has_samples || operation.path == "/v1/openapi.json", "{}", reply.text());
        if operation.path.ends_with("/export") {
            assert_eq!(reply.text().lines().count(), 1, "{operation}: more than the header row");
        } else if ["/v1/docs", INVENTORY_PAGE, SIGNING_PAGE].contains(&operation.path.as_str()) {
            assert_eq!(reply.header("content-type"), "text/html; charset=utf-8");
        } else if let Some(total) = reply.json()["meta"]["total"].as_u64() {
            // Every tenant has its first key and the system processes.
            let own = match operation.path.as_str() {
                "/v1/keys" => 1,
                "/v1/processes" => 7,
                _ => 0,
            };
            assert_eq!(total, own, "{operation}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_response_has_a_new_id_and_must_not_be_stored() {
    let client = over_http().await;
    let (_, operations) = operations(&client).await;
    let samples = Samples::create(&client).await;
    let mut ids = BTreeSet::new();
    for operation in &operations {
        for key in ["", client.key.as_str()] {
            let reply = operation.send(&client.with_key(key), &samples).await;
            let expected = match operation.path.as_str() {
                INVENTORY_PAGE => "no-cache",
                SIGNING_PAGE => "public, max-age=300",
                _ => "no-store",
            };
            assert_eq!(reply.header("cache-control"), expected, "{operation}");
            assert!(ids.insert(reply.header("x-request-id").to_owned()), "{operation}: the id was used before");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn head_works_like_get_and_other_methods_are_405_with_allow() {
    let client = over_http().await;
    let (document, operations) = operations(&client).await;
    let samples = Samples::create(&client).await;
    for operation in operations.iter().filter(|operation| operation.method == "GET") {
        let path = samples.path(&operation.path);
        for key in [client.key.as_str(), ""] {
            let client = client.with_key(key);
            let (head, get) = (client.send("HEAD", &path, None, "").await, client.get(&path).await);
            assert_eq!((head.status, head.bytes.len()), (get.status, 0), "{path}");
            assert_eq!(head.header("content-length"), get.bytes.len().to_string(), "{path}");
        }
    }
    for (path, item) in document["paths"].as_object().unwrap() {
        let path = &format!("{BASE}{path}");
        let reply = client.with_key("").send("TRACE", &samples.path(path), None, "").await;
        reply.problem(405, "METHOD_NOT_ALLOWED");
        let allowed: Vec<&str> = reply.header("allow").split(',').collect();
        for method in ["get", "post", "patch", "put", "delete"] {
            assert_eq!(allowed.contains(&method.to_uppercase().as_str()), item.get(method).is_some(), "{path} {method}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_route_refuses_unknown_query_parameters_by_name() {
    let client = over_http().await;
    let (_, operations) = operations(&client).await;
    let samples = Samples::create(&client).await;
    for operation in operations.iter().filter(|operation| operation.needs_key) {
        let (path, body) = samples.request(&operation.method, &operation.path);
        let content_type = Some(content_type(&operation.path));
        let separator = if path.contains('?') { '&' } else { '?' };
        let reply = client.send(&operation.method, &format!("{path}{separator}colour=red"), content_type, body).await;
        assert_eq!(reply.field_errors(), ["colour"], "{operation}");
    }
}
