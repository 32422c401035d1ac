//! What protects a client from changing something else than it read or meant: tags of other resources, `updated_at`, and bodies of
//! methods without one.

use crate::support::prelude::*;

const WRITES: [&str; 4] = ["assets:write", "users:write", "catalog:write", "webhooks:write"];
const OLD: &str = "2020-01-01T00:00:00.000Z";

/// Creates two resources of each kind with tags, and returns their paths, with a body to change them.
async fn twins(client: &Client) -> Vec<[String; 2]> {
    let kind = client.asset_type("Laptop", "LAP", "physical").await;
    let model = client.model("Dell", "XPS", &kind).await;
    let maker = client.get("/catalog/manufacturers").await.data()[0]["id"].as_str().unwrap().to_owned();
    let mut twins = Vec::new();
    for (path, first, body) in [
        ("/assets", None, json!({"name": "a"})),
        ("/users", None, json!({"email": "a@example.com", "display_name": "a"})),
        ("/catalog/asset-types", Some(kind.clone()), json!({"name": "a", "code": "AA", "kind": "physical"})),
        ("/catalog/manufacturers", Some(maker.clone()), json!({"name": "a"})),
        ("/catalog/models", Some(model), json!({"name": "a", "manufacturer_id": maker, "asset_type_id": kind})),
        ("/webhooks", None, json!({"url": "https://example.com/hook", "events": ["*"]})),
    ] {
        let first = match first {
            Some(id) => id,
            None => {
                let mut other = body.clone();
                if path == "/users" {
                    other["email"] = json!("b@example.com");
                }
                client.post(path, other).await.id()
            }
        };
        let second = client.post(path, body).await.id();
        twins.push([format!("{path}/{first}"), format!("{path}/{second}")]);
    }
    twins
}

fn change_of(path: &str) -> Value {
    match path.split('/').nth(1) {
        Some("users") => json!({"display_name": "changed"}),
        Some("webhooks") => json!({"description": "changed"}),
        _ => json!({"name": "changed"}),
    }
}

#[tokio::test(start_paused = true)]
async fn a_tag_of_another_resource_with_the_same_version_is_refused() {
    let (api, client) = Api::with_tenant().await;
    for [one, other] in twins(&client).await {
        let (read, foreign) = (client.get(&one).await, client.get(&other).await);
        let (own, tag) = (read.header("etag"), foreign.header("etag"));
        assert_eq!(own.split('-').next(), tag.split('-').next(), "{one}: both have the same version");
        let before = api.dump().await;
        for (method, body) in [("PATCH", change_of(&one).to_string()), ("DELETE", String::new())] {
            let refused = client.send_json(method, &one, &body, ("if-match", tag)).await.problem(412, "PRECONDITION_FAILED");
            assert!(refused["detail"].as_str().unwrap().contains("another resource"), "{method} {one}: {refused}");
        }
        let weak = format!("W/{own}");
        let refused = client.send_json("PATCH", &one, &change_of(&one).to_string(), ("if-match", &weak)).await;
        let refused = refused.problem(412, "PRECONDITION_FAILED");
        assert!(refused["detail"].as_str().unwrap().contains("a proxy changed it"), "{one}: {refused}");
        assert_eq!(client.send_json("GET", &one, "", ("if-none-match", tag)).await.status, 200, "{one}");
        assert_eq!(client.send_json("GET", &one, "", ("if-none-match", own)).await.status, 304, "{one}");
        let batch = one.split_once("s/").map(|(collection, _)| format!("{collection}s/batch")).unwrap();
        if ["/assets/batch", "/users/batch"].contains(&batch.as_str()) {
            let id = one.rsplit('/').next().unwrap();
            for operation in [
                json!({"op": "update", "id": id, "if_match": tag, "body": change_of(&one)}),
                json!({"op": "delete", "id": id, "if_match": tag}),
            ] {
                client.batch(&batch, &[operation]).await.problem(412, "PRECONDITION_FAILED");
            }
        }
        assert!(api.dump().await == before, "{one} was changed");
        let list = format!("{tag}, {own}");
        assert_eq!(client.send_json("PATCH", &one, &change_of(&one).to_string(), ("if-match", &list)).await.status, 200, "{one}");
    }
}

#[tokio::test(start_paused = true)]
async fn change_with_an_outdated_updated_at_is_refused() {
    let (api, client) = Api::with_tenant().await;
    let ada = client.with_new_key(json!({"name": "Ada's key", "scopes": WRITES})).await;
    for [path, _] in twins(&client).await {
        let read = client.get(&path).await.data();
        let field = change_of(&path).as_object().unwrap().keys().next().unwrap().clone();
        api.advance_clock(60);
        let changed = ada.patch(&path, change_of(&path)).await.data();
        let before = api.dump().await;
        for body in [read.clone(), json!({"updated_at": read["updated_at"]}), json!({"updated_at": OLD, &field: "newer"})] {
            let refused = client.patch(&path, body).await.problem(412, "PRECONDITION_FAILED");
            assert_eq!(refused["updated_at"], changed["updated_at"], "{path}");
            assert_eq!(refused["updated_by"], "Ada's key", "{path}");
            let detail = refused["detail"].as_str().unwrap();
            assert!(detail.contains("by Ada's key at ") && detail.contains(changed["updated_at"].as_str().unwrap()), "{detail}");
        }
        for wrong in [json!("soon"), json!(null), json!(1)] {
            let refused = client.patch(&path, json!({"updated_at": wrong})).await;
            assert_eq!(refused.field_errors(), ["/updated_at"], "{path}");
        }
        assert!(api.dump().await == before, "{path} was changed");
        let mut newer = changed.clone();
        newer[&field] = json!("newer");
        assert_eq!(client.patch(&path, newer).await.data()[&field], "newer", "{path}: what is current can be changed");
    }
    let process = client.get("/processes").await.data()[0].clone();
    let path = format!("/processes/{}", process["id"].as_str().unwrap());
    api.advance_clock(60);
    client.patch(&path, json!({"status": "inactive"})).await.data();
    client.patch(&path, process).await.problem(412, "PRECONDITION_FAILED");
}

/// A change that comes between the read and the commit of a guarded change is noticed when the commit is tried again.
#[tokio::test(start_paused = true)]
async fn a_change_between_read_and_commit_is_noticed() {
    let (api, client) = Api::with_tenant().await;
    let twins = twins(&client).await;
    for [path, _] in &twins {
        let read = client.get(path).await.data();
        api.advance_clock(60);
        let mut guarded = change_of(path);
        guarded["updated_at"] = read["updated_at"].clone();
        let other = match path.split('/').nth(1) {
            Some("users") => json!({"role": "helpdesk"}),
            Some("webhooks") => json!({"is_active": false}),
            Some("catalog") if path.contains("types") => json!({"kind": "logical"}),
            _ => json!({"notes": "first"}),
        };
        let (refused, first) =
            api.faults.overtake("TransactWriteItems", client.patch(path, guarded), client.patch(path, other.clone())).await;
        assert_eq!(first.status, 200, "{path}: {}", first.text());
        refused.problem(412, "PRECONDITION_FAILED");
        let now = client.get(path).await.data();
        assert_eq!(now, first.data(), "{path}");
    }
    for (path, batch) in [(&twins[0][0], "/assets"), (&twins[1][0], "/users")] {
        let read = client.get(path).await.data();
        api.advance_clock(60);
        let mut body = change_of(path);
        body["updated_at"] = read["updated_at"].clone();
        let operation = [json!({"op": "update", "id": read["id"], "body": body})];
        let field = change_of(path).as_object().unwrap().keys().next().unwrap().clone();
        let first = client.patch(path, json!({&field: "first"}));
        let batch_path = format!("{batch}/batch");
        let (refused, _) = api.faults.overtake("TransactWriteItems", client.batch(&batch_path, &operation), first).await;
        let refused = refused.problem(412, "PRECONDITION_FAILED");
        assert_eq!(refused["errors"][0]["pointer"], "/operations/0");
        assert!(refused["errors"][0]["detail"].as_str().unwrap().contains(" by "), "{refused}");
        assert_eq!(client.get(path).await.data()[&field], "first");
        let row = json!({"id": read["id"], &field: "row", "updated_at": client.get(path).await.data()["updated_at"]});
        api.advance_clock(60);
        let import_path = format!("{batch}/import?match=id");
        let import = client.send("POST", &import_path, Some("application/x-ndjson"), row.to_string());
        let second = client.patch(path, json!({&field: "second"}));
        let (refused, _) = api.faults.overtake("TransactWriteItems", import, second).await;
        assert_eq!(outcomes(&refused), ["refused"]);
        assert_eq!(client.get(path).await.data()[&field], "second");
    }
}

#[tokio::test(start_paused = true)]
async fn row_with_an_outdated_updated_at_is_refused() {
    let (api, client) = Api::with_tenant().await;
    let (asset, user) = (client.asset(json!({"name": "a", "serial_number": "S-1"})).await, client.user("Ada").await);
    for (path, id, heading, new) in [
        ("/assets", &asset, "name,serial_number,updated_at", "b,S-2"),
        ("/users", &user, "display_name,email,updated_at", "Eve,eve@example.com"),
    ] {
        for format in ["csv", "ndjson"] {
            let kind = if format == "csv" { "text/csv" } else { "application/x-ndjson" };
            let import =
                async |rows: &str| client.send("POST", &format!("{path}/import?match=id"), Some(kind), rows.to_owned()).await;
            let exported = client.export(&format!("{path}/export?format={format}")).await.concat();
            assert!(exported.contains("updated_at"), "{exported}");
            assert_eq!(outcomes(&import(&exported).await), ["unchanged"], "{exported}");
            api.advance_clock(60);
            let now = client.patch(&format!("{path}/{id}"), change_of(path)).await.data();
            let refused = import(&exported).await;
            assert_eq!(outcomes(&refused), ["refused"]);
            let error = &refused.data()[0]["errors"][0];
            assert_eq!((&error["column"], &error["code"]), (&json!("updated_at"), &json!("PRECONDITION_FAILED")), "{error}");
            assert_eq!(error["updated_at"], now["updated_at"]);
            assert!(error["updated_by"].is_string() && error["detail"].as_str().unwrap().contains("was changed by "), "{error}");
            api.advance_clock(60);
            let back = if path == "/assets" { json!({"name": "a"}) } else { json!({"display_name": "Ada"}) };
            client.patch(&format!("{path}/{id}"), back).await.data();
        }
        let created = client.import(path, "", &format!("{heading}\n{new},{OLD}\n")).await;
        assert_eq!(outcomes(&created), ["created"], "a creation ignores updated_at: {}", created.text());
        let wrong = client.import(path, "?match=id", &format!("id,updated_at\n{id},soon\n")).await;
        assert_eq!(row_errors(&wrong, 0)[0].0, "updated_at", "{}", wrong.text());
    }
    for (matching, heading, row) in [("serial_number", "serial_number", "s-1"), ("asset_tag", "asset_tag", "AST-000001")] {
        let rows = format!("name,{heading},updated_at\nnew,{row},{OLD}\n");
        assert_eq!(outcomes(&client.import("/assets", &format!("?match={matching}"), &rows).await), ["refused"], "{matching}");
    }
    let rows = format!("name,serial_number,updated_at\nnew,S-9,{OLD}\n");
    assert_eq!(outcomes(&client.import("/assets", "?match=serial_number", &rows).await), ["created"]);
    let rows = format!("display_name,email,updated_at\nNew,ada@example.com,{OLD}\n");
    assert_eq!(outcomes(&client.import("/users", "?match=email", &rows).await), ["refused"]);
}

/// Whatever the content type, the body of a GET, HEAD or DELETE is refused before anything happens.
#[tokio::test(start_paused = true)]
async fn body_of_get_head_and_delete_is_refused() {
    let (api, client, samples) = Api::with_samples().await;
    let (_, operations) = operations();
    let before = api.dump().await;
    let mut checked = 0;
    for operation in by_method(operations, &["GET", "DELETE"]) {
        let (path, _) = samples.request(&operation.method, &operation.path);
        let methods = if operation.method == "GET" { vec!["GET", "HEAD"] } else { vec!["DELETE"] };
        for method in methods {
            for (kind, body) in [
                (Some("application/json"), "{\"dry_run\": true}"),
                (Some("text/plain"), "dry_run=true"),
                (None, "x"),
                (None, "[]"),
            ] {
                let reply = client.send(method, &path, kind, body).await;
                assert_eq!(reply.status, 422, "{method} {path} with {body}: {}", reply.text());
                if method != "HEAD" {
                    assert_eq!(reply.field_errors(), [""], "{method} {path}");
                    let detail = reply.json()["errors"][0]["detail"].as_str().unwrap().to_owned();
                    assert!(detail.starts_with(&format!("must be empty: a {method} has no body")), "{detail}");
                    assert!(method != "DELETE" || detail.ends_with("; parameters go in the query: dry_run"), "{path}: {detail}");
                }
            }
            if operation.needs_key {
                let stranger = client.stranger().send(method, &path, None, "x").await;
                assert_eq!(stranger.status, 401, "{method} {path}: who has no key learns nothing else");
            }
        }
        checked += 1;
    }
    assert!(checked > 40, "{checked}");
    assert!(api.dump().await == before, "a refused request changed the table");
    for operation in by_method(operations, &["GET"]) {
        let (path, _) = samples.request(&operation.method, &operation.path);
        for body in ["", " \r\n", "{}"] {
            let reply = client.send("GET", &path, Some("application/json"), body).await;
            assert!(!reply.status.is_client_error(), "{path} with {body:?}: {}", reply.text());
        }
    }
    let asset = format!("/assets/{}", client.asset(json!({"name": "a"})).await);
    let detail = client.send("GET", "/assets", None, "x").await.json()["errors"][0]["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains(": status, ") || detail.contains("q, ") && detail.contains("limit"), "{detail}");
    assert_eq!(client.send("DELETE", &asset, Some("application/json"), " {} ").await.status, 200);
}
