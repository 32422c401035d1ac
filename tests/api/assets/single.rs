//! Creating, reading, changing, upserting and deleting assets, and showing the users that they are assigned to.

use crate::support::prelude::*;

#[tokio::test(start_paused = true)]
async fn a_new_asset_has_every_field() {
    let client = over_http().await;
    let reply = client.post("/assets", json!({"name": "  Laptop  "})).await;
    assert_eq!(reply.status, 201);
    assert_eq!(reply.header("location"), format!("/v1/assets/{}", reply.id()));
    assert_json_snapshot!(reply.json(), {".data.id" => "[id]", ".data.status_changed_at" => "[time]", ".data.created_at" => "[time]", ".data.updated_at" => "[time]"}, @r#"
    {
      "data": {
        "id": "[id]",
        "asset_tag": "AST-000001",
        "name": "Laptop",
        "status": "in_stock",
        "asset_type_id": null,
        "asset_type_name": null,
        "asset_kind": "physical",
        "manufacturer": null,
        "model": null,
        "model_id": null,
        "serial_number": null,
        "location": null,
        "purchase_date": null,
        "purchase_price": null,
        "warranty_until": null,
        "assigned_to": null,
        "assigned_since": null,
        "notes": null,
        "custom_fields": {},
        "last_seen_at": null,
        "status_changed_at": "[time]",
        "created_at": "[time]",
        "updated_at": "[time]"
      }
    }
    "#);
    assert_eq!(client.get(&format!("/assets/{}", reply.id())).await.json(), reply.json());
}

#[tokio::test(start_paused = true)]
async fn a_model_fills_manufacturer_model_and_type() {
    let client = over_http().await;
    let licence = client.asset_type("Licence", "LIC", "logical").await;
    let model = client.model("JetBrains", "All Products", &licence).await;
    let asset = client.post("/assets", json!({"name": "IDE", "model_id": model})).await.data();
    for (field, value) in [
        ("manufacturer", "JetBrains"),
        ("model", "All Products"),
        ("catalog_manufacturer_name", "JetBrains"),
        ("catalog_model_name", "All Products"),
        ("asset_type_name", "Licence"),
        ("asset_kind", "logical"),
        ("asset_type_id", &licence),
        ("model_id", &model),
    ] {
        assert_eq!(asset[field], value, "{field}");
    }
    // The catalog_* fields follow the catalog, but manufacturer and model keep their values.
    let manufacturer = client.get("/catalog/manufacturers").await.data()[0]["id"].as_str().unwrap().to_owned();
    client.patch(&format!("/catalog/manufacturers/{manufacturer}"), json!({"name": "JB"})).await.data();
    client.patch(&format!("/catalog/models/{model}"), json!({"name": "Ultimate"})).await.data();
    let path = format!("/assets/{}", asset["id"].as_str().unwrap());
    let after = client.get(&path).await.data();
    assert_eq!((after["catalog_manufacturer_name"].as_str(), after["manufacturer"].as_str()), (Some("JB"), Some("JetBrains")));
    assert_eq!((after["catalog_model_name"].as_str(), after["model"].as_str()), (Some("Ultimate"), Some("All Products")));
    assert_eq!(client.get("/assets").await.data()[0], after, "a list item has the same fields");

    let unlinked = client.patch(&path, json!({"model_id": null, "manufacturer": "me"})).await.data();
    assert_eq!((unlinked["manufacturer"].as_str(), unlinked["model"].as_str()), (Some("me"), Some("All Products")));
    assert!(unlinked.get("catalog_model_name").is_none() && unlinked["model_id"].is_null());
    assert_eq!(unlinked["asset_type_id"], licence.as_str());
}

#[tokio::test(start_paused = true)]
async fn fields_that_contradict_the_model_are_refused() {
    let (api, client) = Api::with_tenant().await;
    let laptop = client.asset_type("Laptop", "LAP", "physical").await;
    let phone = client.asset_type("Phone", "PHN", "physical").await;
    let model = client.model("Dell", "XPS", &laptop).await;
    let linked = format!("/assets/{}", client.asset(json!({"name": "x", "model_id": model})).await);
    let before = api.dump().await;
    let both = json!({"name": "x", "model_id": model, "manufacturer": "a", "model": "b"});
    assert_eq!(client.post("/assets", both).await.field_errors(), ["/manufacturer", "/model"]);
    let wrong_type = json!({"name": "x", "model_id": model, "asset_type_id": phone});
    assert_eq!(client.post("/assets", wrong_type).await.field_errors(), ["/asset_type_id"]);
    assert_eq!(client.patch(&linked, json!({"asset_type_id": phone})).await.field_errors(), ["/asset_type_id"]);
    assert_eq!(client.patch(&linked, json!({"asset_type_id": null})).await.field_errors(), ["/asset_type_id"]);
    assert_eq!(client.patch(&linked, json!({"manufacturer": "me"})).await.field_errors(), ["/manufacturer"]);
    assert_eq!(api.dump().await, before, "a refused request changed the table");
    client.patch(&linked, json!({"asset_type_id": laptop})).await.data();
}

#[tokio::test(start_paused = true)]
async fn every_error_in_a_body_and_every_reference_to_a_missing_resource_is_reported_at_once() {
    let (api, client) = Api::with_tenant().await;
    let id = client.asset(json!({"name": "x"})).await;
    let inactive = client.user("Inactive").await;
    client.patch(&format!("/users/{inactive}"), json!({"is_active": false})).await.data();
    let foreign = api.tenant().await.user("Foreign").await;
    let before = api.dump().await;
    let refused = client.post("/assets", json!({"name": "x", "asset_type_id": UNKNOWN_ID, "model_id": UNKNOWN_ID})).await;
    assert_eq!(refused.field_errors(), ["/asset_type_id", "/model_id"]);
    let mixed = json!({"name": "x", "model_id": UNKNOWN_ID, "manufacturer": "m", "purchase_date": "x", "colour": "red"});
    assert_eq!(client.post("/assets", mixed).await.field_errors(), ["/colour", "/manufacturer", "/model_id", "/purchase_date"]);
    let only = client.post("/assets", json!({"name": "x", "asset_type_id": UNKNOWN_ID})).await;
    assert_eq!(only.field_errors(), ["/asset_type_id"]);
    let path = format!("/assets/{id}");
    for user in [UNKNOWN_ID, &inactive, &foreign] {
        let both = json!({"name": "x", "assigned_to": user, "asset_type_id": UNKNOWN_ID});
        assert_eq!(client.patch(&path, both.clone()).await.field_errors(), ["/asset_type_id", "/assigned_to"]);
        assert_eq!(client.post("/assets", both).await.field_errors(), ["/asset_type_id", "/assigned_to"]);
    }
    assert_eq!(api.dump().await, before);
    let user = client.user("Active").await;
    let made = client.post("/assets", json!({"name": "x", "assigned_to": user})).await.data();
    assert_eq!((&made["assigned_to"], client.total(&format!("/assets?assigned_to={user}")).await), (&json!(user), 1));

    let before = api.dump().await;
    let body = json!({
        "name": " ", "status": "lost", "asset_type_id": "x", "serial_number": "s".repeat(256), "purchase_date": "2024-02-30",
        "purchase_price": "12,50", "warranty_until": "2326-01-01", "notes": "n".repeat(10_001), "custom_fields": [], "id": UNKNOWN_ID,
        "asset_tag": "X 1", "assigned_to": "x", "colour": "red", "a/b~c": 1, "location": "a//b"
    });
    let expected = "/asset_tag /asset_type_id /assigned_to /a~1b~0c /colour /custom_fields /id /location /name /notes \
        /purchase_date /purchase_price /serial_number /status /warranty_until";
    assert_eq!(client.post("/assets", body).await.field_errors().join(" "), expected);
    assert_eq!(client.post("/assets", json!({})).await.field_errors(), ["/name"]);
    assert_eq!(client.post_text("/assets", r#"{"name":"a","name":"b"}"#).await.field_errors(), ["/name"]);
    assert_eq!(client.post_text("/assets", "[]").await.field_errors(), [""]);
    assert_eq!(client.post_text("/assets", r#"{"name":"\ud800"}"#).await.field_errors(), ["/name"]);
    assert_eq!(api.dump().await, before);
}

#[tokio::test(start_paused = true)]
async fn a_price_keeps_every_digit_and_can_be_sent_as_text_everywhere() {
    let client = over_http().await;
    for digits in ["2499.00", "0", "0.1", "999999999999.9999", "123456789012.3456", "9007199254.7409", "0.0001"] {
        let reply = client.post_text("/assets", &format!(r#"{{"name":"x","purchase_price":{digits}}}"#)).await;
        let expected = format!(r#""purchase_price":{digits},"#);
        assert!(reply.text().contains(&expected), "{digits}: {}", reply.text());
        let read = client.get(&format!("/assets/{}", reply.id())).await;
        assert!(read.text().contains(&expected), "{digits}: {}", read.text());
    }
    for invalid in ["-1", "1000000000000", "0.00001", "1e12", "\"1e3\"", "\"-1\"", "\"1000000000000\"", "true"] {
        let reply = client.post_text("/assets", &format!(r#"{{"name":"x","purchase_price":{invalid}}}"#)).await;
        assert_eq!(reply.field_errors(), ["/purchase_price"], "{invalid}");
    }

    let expected = r#""purchase_price":1249.00,"#;
    let created = client.post("/assets", json!({"name": "x", "purchase_price": "1249.00", "serial_number": "s"})).await;
    assert!(created.text().contains(expected), "{}", created.text());
    let path = format!("/assets/{}", created.id());
    let tag = created.header("etag").to_owned();
    let patched = client.patch(&path, json!({"purchase_price": "1249.00"})).await;
    assert_eq!(patched.header("etag"), tag, "the same price changes nothing");
    client.patch(&path, json!({"purchase_price": "1"})).await.data();
    let operations = [json!({"op": "update", "id": created.id(), "body": {"purchase_price": "1249.00"}})];
    let batch = client.batch("/assets/batch", &operations).await;
    assert!(batch.text().contains(expected), "{}", batch.text());
    let put = client.put("/assets/by-serial/t", &json!({"name": "y", "purchase_price": "1249.00"})).await;
    assert!(put.text().contains(expected), "{}", put.text());
    let line = r#"{"name":"z","purchase_price":"1249.00"}"#;
    let imported = client.send("POST", "/assets/import", Some("application/x-ndjson"), line).await;
    assert_eq!(imported.json()["meta"]["created"], 1, "{}", imported.text());
    assert_eq!(client.get("/assets").await.text().matches(expected).count(), 3);
    let reply = client.patch(&path, json!({"purchase_price": "1,249.00"})).await;
    assert!(reply.text().contains("from 0 to below 1000000000000, or its decimal text"), "{}", reply.text());
    for (id, bad) in [("1", "\"1e3\""), ("2", "\" 5\"")] {
        let line = format!(r#"{{"name":"{id}","purchase_price":{bad}}}"#);
        let refused = client.send("POST", "/assets/import", Some("application/x-ndjson"), line).await;
        assert_eq!(refused.json()["meta"]["refused"], 1, "{}", refused.text());
    }
}

#[tokio::test(start_paused = true)]
async fn a_patch_distinguishes_absent_fields_null_and_values() {
    let client = over_http().await;
    let user = client.user("Ada").await;
    let full = json!({"name": "x", "serial_number": "S1", "notes": "n", "purchase_price": 5, "custom_fields": {"a": 1}});
    let path = format!("/assets/{}", client.asset(full).await);
    let changed = client.patch(&path, json!({"assigned_to": user, "status": "in_use"})).await.data();
    assert_eq!((changed["assigned_to"].as_str(), changed["serial_number"].as_str()), (Some(user.as_str()), Some("S1")));
    assert!(changed["updated_at"].as_str() > changed["created_at"].as_str());
    let clear = json!({"assigned_to": null, "serial_number": null, "notes": null, "purchase_price": null, "custom_fields": null});
    let cleared = client.patch(&path, clear).await.data();
    for field in ["assigned_to", "serial_number", "notes", "purchase_price"] {
        assert!(cleared[field].is_null(), "{field}");
    }
    assert_eq!((&cleared["custom_fields"], &cleared["status"]), (&json!({}), &json!("in_use")));
    assert_eq!(client.patch(&path, json!({"name": null, "status": null})).await.field_errors(), ["/name", "/status"]);
    let same = client.patch(&path, json!({})).await.data();
    assert_eq!(same["updated_at"], cleared["updated_at"], "nothing changed");
    client.patch(&format!("/assets/{UNKNOWN_ID}"), json!({"name": "x"})).await.problem(404, "NOT_FOUND");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_asset_is_not_found_and_its_tag_is_not_reused() {
    let client = over_http().await;
    let id = client.asset(json!({"name": "x"})).await;
    let reply = client.delete(&format!("/assets/{id}")).await;
    assert_eq!((reply.status.as_u16(), reply.json()), (200, json!({"message": "Asset deleted."})));
    client.get(&format!("/assets/{id}")).await.problem(404, "NOT_FOUND");
    client.delete(&format!("/assets/{id}")).await.problem(404, "NOT_FOUND");
    assert_eq!(client.post("/assets", json!({"name": "y"})).await.data()["asset_tag"], "AST-000002");
}

const PATH: &str = "/assets/by-serial/S%2F1";

#[tokio::test(start_paused = true)]
async fn an_upsert_creates_and_then_changes_the_fields_that_are_sent() {
    let client = over_http().await;
    let put = async |body: Value| client.put(PATH, &body).await;
    let made = put(json!({"name": "Laptop", "notes": "new"})).await;
    assert_eq!((made.status.as_u16(), made.data()["serial_number"].clone()), (201, json!("S/1")));
    assert_eq!(made.header("location"), format!("/v1/assets/{}", made.id()));
    let changed = put(json!({"name": "Notebook", "status": "in_use"})).await;
    assert_eq!((changed.status.as_u16(), changed.id(), changed.data()["notes"].clone()), (200, made.id(), json!("new")));
    let same = put(json!({"name": "Notebook", "serial_number": "S/1"})).await;
    assert_eq!((same.header("etag"), same.data()), (changed.header("etag"), changed.data()));
    assert_eq!(put(json!({"name": "x", "serial_number": "S/2"})).await.field_errors(), ["/serial_number"]);
    assert_eq!(put(json!({"notes": "no name"})).await.field_errors(), ["/name"]);
    let stale = client.send_json("PUT", PATH, "{\"name\": \"x\"}", ("if-match", "\"7-0123456789abcdef\"")).await;
    stale.problem(412, "PRECONDITION_FAILED");
    let current = client.send_json("PUT", PATH, "{\"name\": \"x\"}", ("if-match", changed.header("etag"))).await;
    assert_eq!(current.data()["name"], "x");
    let long = format!("/assets/by-serial/{}", "x".repeat(256));
    assert_eq!(client.put(&long, &json!({"name": "x"})).await.field_errors(), ["serial"]);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_of_an_upsert_has_nulls_and_an_upsert_creates_again_after_its_asset_is_gone() {
    let client = over_http().await;
    let put = async || client.send("PUT", &format!("{PATH}?dry_run=true"), Some("application/json"), "{\"name\": \"x\"}").await;
    let dry = put().await;
    let shown = dry.data();
    assert_eq!((dry.status.as_u16(), dry.header("dry-run"), &shown["serial_number"]), (200, "true", &json!("S/1")));
    assert_eq!((&shown["id"], &shown["asset_tag"]), (&Value::Null, &Value::Null));
    let document = served_document();
    let described = document["paths"]["/assets/by-serial/{serial}"]["put"]["responses"]["200"]["description"].as_str().unwrap();
    assert!(described.contains("dry run") && described.contains("null"), "{described}");
    let made = client.send("PUT", PATH, Some("application/json"), "{\"name\": \"x\"}").await.data();
    assert_eq!((&put().await.data()["id"], &put().await.data()["asset_tag"]), (&made["id"], &made["asset_tag"]));

    let put = async || client.send("PUT", PATH, Some("application/json"), "{\"name\": \"x\"}").await;
    let first = put().await.id();
    client.patch(&format!("/assets/{first}"), json!({"serial_number": "other"})).await.data();
    let second = put().await;
    assert_eq!((second.status.as_u16(), second.id() == first), (201, false));
    client.delete(&format!("/assets/{}", second.id())).await;
    assert_eq!(put().await.status, 201);
    client.asset(json!({"name": "double", "serial_number": "S/1"})).await;
    let problem = put().await.problem(409, "DUPLICATE");
    assert_eq!(problem["asset_ids"].as_array().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn upserts_beside_creations_of_the_same_serial_number_make_at_most_one_more() {
    let (api, client) = Api::with_tenant().await;
    let other = api.replica(0, 1 << 24).client(&client);
    let puts = (0..32).map(|_| other.send("PUT", PATH, Some("application/json"), "{\"name\": \"put\"}"));
    let posts = (0..32).map(|_| client.post("/assets", json!({"name": "post", "serial_number": "S/1"})));
    let (puts, posts) = futures_util::join!(join_all(puts), join_all(posts));
    assert!(posts.iter().all(|reply| reply.status == 201));
    let made = puts.iter().filter(|reply| reply.status == 201).count() as u64;
    assert!(made <= 1 && client.total("/assets").await == 32 + made, "{made} were made");
    other.send("PUT", PATH, Some("application/json"), "{\"name\": \"put\"}").await.problem(409, "DUPLICATE");
}

#[tokio::test(start_paused = true)]
async fn an_upsert_that_sees_the_claim_of_another_before_its_asset_makes_no_second_one() {
    let (api, client) = Api::with_tenant().await;
    let put = async || client.send("PUT", PATH, Some("application/json"), "{\"name\": \"x\"}").await;
    let id = put().await.id();
    // A read in the middle of the transaction sees neither the asset nor its event.
    api.faults.tear_record(1, &id, None);
    let again = put().await;
    assert_eq!(client.total("/assets").await, 1, "{}", again.text());
    assert_eq!((again.status.as_u16(), again.id()), (200, id));
}

#[tokio::test(start_paused = true)]
async fn the_assigned_user_is_shown_on_request_only_to_those_who_may_read_users() {
    let client = over_http().await;
    let ada = client.user("Ada").await;
    let assigned = client.assigned_asset("a", &ada).await;
    let free = client.asset(json!({"name": "b"})).await;
    let shown = json!({"id": ada, "display_name": "Ada", "email": "ada@example.com"});
    for (id, user) in [(&assigned, &shown), (&free, &Value::Null)] {
        let plain = client.get(&format!("/assets/{id}")).await.data();
        assert!(plain.get("assigned_user").is_none(), "{plain}");
        let mut expanded = client.get(&format!("/assets/{id}?expand=assigned_to")).await.data();
        assert_eq!(expanded["assigned_user"], *user);
        expanded.as_object_mut().unwrap().remove("assigned_user");
        assert_eq!(expanded, plain);
    }
    let list = client.get("/assets?expand=assigned_to&sort=name").await.data();
    assert_eq!((&list[0]["assigned_user"], &list[1]["assigned_user"]), (&shown, &Value::Null));
    assert!(client.get("/assets").await.data()[0].get("assigned_user").is_none());
    let wrong = client.get("/assets?expand=model").await;
    assert_eq!(wrong.field_errors(), ["expand"]);
    assert!(wrong.text().contains("must be assigned_to"), "{}", wrong.text());

    let lacking = client.scoped(&["assets:read", "assets:write"]).await;
    for path in ["/assets?expand=assigned_to".to_owned(), format!("/assets/{assigned}?expand=assigned_to")] {
        let reply = lacking.get(&path).await;
        assert_eq!(reply.problem(403, "FORBIDDEN")["scope"], "users:read");
        assert!(!reply.text().contains("ada@"));
        assert_eq!(client.scoped(&["assets:read", "users:read"]).await.get(&path).await.status, 200);
    }
    assert_eq!(lacking.get("/assets").await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn the_etags_of_both_representations_differ_and_an_expanded_asset_can_be_sent_back() {
    let client = over_http().await;
    let ada = client.user("Ada").await;
    let assigned = client.assigned_asset("a", &ada).await;
    for asset in [assigned.clone(), client.asset(json!({"name": "b"})).await] {
        let (plain, expanded) = (format!("/assets/{asset}"), format!("/assets/{asset}?expand=assigned_to"));
        let tag = async |path: &str| client.get(path).await.header("etag").to_owned();
        let (plain_tag, expanded_tag) = (tag(&plain).await, tag(&expanded).await);
        assert_ne!(plain_tag, expanded_tag);
        for (path, tag, status) in [
            (&plain, &plain_tag, 304),
            (&expanded, &expanded_tag, 304),
            (&plain, &expanded_tag, 200),
            (&expanded, &plain_tag, 200),
        ] {
            let reply = client.send_with("GET", path, None, "", &[("if-none-match", tag)]).await;
            assert_eq!(reply.status.as_u16(), status, "{path} {tag}");
        }
    }
    let expanded = format!("/assets/{assigned}?expand=assigned_to");
    let before = client.get(&expanded).await.header("etag").to_owned();
    client.patch(&format!("/users/{ada}"), json!({"display_name": "Countess"})).await.data();
    let reply = client.send_with("GET", &expanded, None, "", &[("if-none-match", &before)]).await;
    assert_eq!((reply.status.as_u16(), &reply.data()["assigned_user"]["display_name"]), (200, &json!("Countess")));

    let eve = client.user("Eve").await;
    let path = format!("/assets/{assigned}");
    let read = client.get(&format!("{path}?expand=assigned_to")).await.data();
    assert_eq!(client.patch(&path, read.clone()).await.data(), client.get(&path).await.data());
    let batch = client.batch("/assets/batch", &[json!({"op": "update", "id": assigned, "body": read})]).await;
    assert_eq!(batch.data()[0]["status"], 200, "{}", batch.text());
    for other in [json!({"id": eve, "display_name": "Eve", "email": "eve@example.com"}), Value::Null, json!({}), json!("x")] {
        let mut changed = read.clone();
        changed["assigned_user"] = other;
        assert_eq!(client.patch(&path, changed).await.field_errors(), ["/assigned_user"]);
    }
    let created = client.post("/assets", json!({"name": "x", "assigned_user": null})).await;
    assert!(created.json()["errors"][0]["detail"].as_str().unwrap().contains("read-only"), "{}", created.text());
    client.patch(&path, json!({"assigned_to": null})).await.data();
    let read = client.get(&format!("{path}?expand=assigned_to")).await.data();
    assert_eq!(client.patch(&path, read).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn the_users_of_a_page_take_one_more_read_and_one_who_cannot_be_read_is_null() {
    let (api, client) = Api::with_tenant().await;
    for n in 0..20 {
        let user = client.user(&format!("User {n}")).await;
        client.assigned_asset(&format!("a{n}"), &user).await;
    }
    api.advance_clock(120);
    client.get("/assets").await.data();
    let cost = async |path: &str| api.cost(async { client.get(path).await.data() }).await.1;
    let (plain, expanded) = (cost("/assets").await, cost("/assets?expand=assigned_to").await);
    assert_eq!((expanded.calls, expanded.round_trips), (plain.calls + 1, plain.round_trips + 1));
    assert!(expanded.read_units <= plain.read_units + 20.0, "{plain:?} {expanded:?}");
    let id = client.get("/assets?limit=1").await.data()[0]["id"].as_str().unwrap().to_owned();
    let (plain, expanded) = (cost(&format!("/assets/{id}")).await, cost(&format!("/assets/{id}?expand=assigned_to")).await);
    assert_eq!((expanded.calls, expanded.round_trips), (plain.calls + 1, plain.round_trips + 1));

    let ada = client.user("Ada").await;
    let asset = client.assigned_asset("a", &ada).await;
    let eve = client.user("Eve").await;
    let other = client.assigned_asset("b", &eve).await;
    let key = Keys::of(client.tenant).record(Kind::User, ada.parse::<UserId>().unwrap().uuid()).item();
    set_text(&api, &key, "role", "king".to_owned()).await;
    for path in [format!("/assets/{asset}?expand=assigned_to"), "/assets?expand=assigned_to&sort=name".to_owned()] {
        let data = client.get(&path).await.data();
        let shown = if data.is_array() { &data[0] } else { &data };
        assert_eq!((&shown["assigned_to"], &shown["assigned_user"]), (&json!(ada), &Value::Null), "{path}");
    }
    assert_eq!(client.get(&format!("/assets/{other}?expand=assigned_to")).await.data()["assigned_user"]["display_name"], "Eve");
}
