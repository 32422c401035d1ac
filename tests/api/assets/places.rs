//! Locations of assets; filters and sort orders by location, ranges and custom fields; and scans.

use crate::support::prelude::*;

const BERLIN: &str = "Berlin / 3rd floor / 3.14";

#[tokio::test(start_paused = true)]
async fn a_place_has_one_form_wherever_it_is_sent() {
    let (api, client) = Api::with_tenant().await;
    let sent = "Berlin/3rd floor/ 3.14";
    let created = client.post("/assets", json!({"name": "a", "location": sent, "serial_number": "s1"})).await;
    assert_eq!(created.data()["location"], BERLIN);
    let path = format!("/assets/{}", created.id());
    let before = api.now();
    let same = client.patch(&path, json!({"location": BERLIN})).await;
    assert_eq!(same.header("etag"), created.header("etag"), "a different spelling changes nothing");
    api.advance_clock(60);
    let put = client.put("/assets/by-serial/S1", &json!({"name": "a", "location": "Bonn"})).await;
    assert_eq!(put.data()["location"], "Bonn");
    let batch =
        client.batch("/assets/batch", &[json!({"op": "update", "id": created.id(), "body": {"location": "Bonn/ 2"}})]).await;
    assert_eq!(batch.data()[0]["data"]["location"], "Bonn / 2");
    let csv = format!("id,location\n{},Köln/1\n", created.id());
    assert_eq!(outcomes(&client.import("/assets", "?match=id", &csv).await), ["updated"]);
    let exported = client.export("/assets/export").await.concat();
    assert!(exported.contains(",Köln / 1,"), "{exported}");
    assert_eq!(outcomes(&client.import("/assets", "?match=id", &exported).await), ["unchanged"]);
    let history = client.get(&format!("{path}/history")).await.data();
    assert_eq!(history[0]["changes"]["location"], json!({"old": "Bonn / 2", "new": "Köln / 1"}));
    assert_eq!(client.get(&format!("{path}?as_of={before}")).await.data()["location"], BERLIN);
    assert_eq!(client.patch(&path, json!({"location": null})).await.data()["location"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn white_space_within_names_and_places_is_one_space() {
    let (_, client) = Api::with_tenant().await;
    let sent = "Berlin\u{a0}Mitte /  3rd\u{2009} floor";
    let body = json!({"name": "Dell\u{a0} XPS", "location": sent, "manufacturer": "Dell\u{202f}Inc", "model": "XPS\u{3000}13",
        "serial_number": "PF3  X\u{a0}K", "notes": "a  b", "custom_fields": {"cost\u{a0}center": "a  b"}});
    let asset = client.post("/assets", body.clone()).await.data();
    assert_eq!(asset["name"], "Dell XPS");
    assert_eq!(asset["location"], "Berlin Mitte / 3rd floor");
    assert_eq!([&asset["manufacturer"], &asset["model"]], ["Dell Inc", "XPS 13"]);
    assert_eq!([&asset["serial_number"], &asset["notes"]], ["PF3  X\u{a0}K", "a  b"], "these keep their white space");
    assert_eq!(asset["custom_fields"], json!({"cost center": "a  b"}));
    let path = format!("/assets/{}", asset["id"].as_str().unwrap());
    assert_eq!(client.patch(&path, body).await.data()["updated_at"], asset["updated_at"], "the same again changes nothing");
    for query in ["location=Berlin%20%20Mitte/3rd%C2%A0floor", "location=berlin%20mitte", "manufacturer=dell%20%20inc"] {
        assert_eq!(client.total(&format!("/assets?{query}")).await, 1, "{query}");
    }
    let kind = client.post("/catalog/asset-types", json!({"name": "Lap\u{a0}top", "code": "LAP", "kind": "physical"})).await;
    assert_eq!(kind.data()["name"], "Lap top");
    client.post("/catalog/manufacturers", json!({"name": "Dell\u{a0}Inc"})).await.data();
    client.post("/catalog/manufacturers", json!({"name": "dell  inc"})).await.problem(409, "DUPLICATE");
    assert_eq!(client.total("/catalog/manufacturers?name=Dell%C2%A0%20Inc").await, 1);
    let user = client.post("/users", json!({"email": "ada@example.com", "display_name": "Ada \u{a0}Lovelace"})).await;
    assert_eq!(user.data()["display_name"], "Ada Lovelace");
}

#[tokio::test(start_paused = true)]
async fn white_space_from_before_it_became_one_space_changes_nothing() {
    let (api, client) = Api::with_tenant().await;
    let body = json!({"name": "Dell XPS", "location": "Berlin / 3rd floor", "manufacturer": "Dell Inc", "model": "XPS 13"});
    let id = client.post("/assets", body).await.id();
    let key = Keys::of(client.tenant).record(Kind::Asset, id.parse().unwrap()).item();
    for name in ["name", "location", "manufacturer", "model", "listed"] {
        let mut text = text_attribute(&api, &key, name).await;
        for (now, then) in
            [("Dell XPS", "Dell  XPS"), ("3rd floor", "3rd\u{a0}floor"), ("Dell Inc", "Dell  Inc"), ("XPS 13", "XPS  13")]
        {
            text = text.replace(now, then);
        }
        set_text(&api, &key, name, text).await;
    }
    let client = api.replica(0, usize::MAX).client(&client);
    let without_index = api.replica(0, 0);
    for query in ["location=Berlin", "location=Berlin/3rd%20floor", "manufacturer=Dell%20Inc", "q=dell%20xps"] {
        check(&client, &without_index, query, &["Dell  XPS"]).await;
    }
    for (field, value) in [("location&depth=2", "Berlin / 3rd floor"), ("manufacturer", "Dell Inc")] {
        assert_eq!(client.get(&format!("/stats?group_by={field}")).await.data()["groups"][0]["value"], value);
    }
    for format in ["csv", "ndjson"] {
        let exported = client.export(&format!("/assets/export?format={format}")).await.concat();
        let kind = if format == "csv" { "text/csv" } else { "application/x-ndjson" };
        let imported = client.send("POST", "/assets/import?match=id", Some(kind), exported.clone()).await;
        assert_eq!(outcomes(&imported), ["unchanged"], "{exported}");
    }
}

/// Checks that lists from the index, lists from the table, statistics and an export have exactly the expected assets.
pub async fn check(client: &Client, without_index: &Replica, query: &str, expected: &[&str]) {
    let names = async |client: &Client, path: &str| -> Vec<String> {
        let data = client.get(path).await.data();
        data.as_array().unwrap().iter().map(|asset| asset["name"].as_str().unwrap().to_owned()).collect()
    };
    for client in [client, &without_index.client(client)] {
        assert_eq!(names(client, &format!("/assets?sort=name&{query}")).await, expected, "{query}");
        let counted = client.get(&format!("/stats?{query}")).await.data()["assets"]["total"].clone();
        assert_eq!(counted, expected.len(), "statistics with {query}");
    }
    let lines = client.export(&format!("/assets/export?format=ndjson&{query}")).await.concat();
    let name = |line: &str| serde_json::from_str::<Value>(line).unwrap()["name"].as_str().unwrap().to_owned();
    let mut exported: Vec<String> = lines.lines().map(name).collect();
    exported.sort();
    assert_eq!(exported, expected, "an export with {query}");
}

#[tokio::test(start_paused = true)]
async fn assets_are_found_by_place_custom_fields_catalog_and_ranges() {
    let (api, client) = Api::with_tenant().await;
    let without_index = api.replica(0, 0);
    let laptop = client.asset_type("Laptop", "LAP", "physical").await;
    let model = client.model("Dell", "XPS", &laptop).await;
    let a = json!({"name": "a", "location": BERLIN, "model_id": model, "purchase_date": "2026-01-01", "purchase_price": 10,
        "custom_fields": {"ram": 16, "os": "Windows, 11", "room": "none"}});
    let b = json!({"name": "b", "location": "berlin", "manufacturer": "DELL", "purchase_date": "2026-02-01",
        "purchase_price": 20.5, "warranty_until": "2028-01-01", "custom_fields": {"ram": "16", "os": "Linux", "room": null}});
    let c = json!({"name": "c", "location": "Berlin-Mitte", "custom_fields": {"ram": 32.0}});
    for body in [a, b, c, json!({"name": "d"})] {
        client.post("/assets", body).await.data();
        api.advance_clock(60);
    }
    let created = client.get("/assets?q=b").await.data()[0]["created_at"].as_str().unwrap().to_owned();
    let (from, before) = (format!("created_from={created}"), format!("updated_before={created}"));
    for (query, expected) in [
        ("location=BERLIN", &["a", "b"][..]),
        ("location=Berlin/3rd%20floor", &["a"]),
        ("location=none", &["d"]),
        ("location=Hamburg", &[]),
        ("custom_fields.ram=16", &["a", "b"]),
        ("custom_fields.ram=32,none", &["c", "d"]),
        ("custom_fields.ram=32.0", &[]),
        ("custom_fields.os=", &[]),
        ("custom_fields.ram=16&custom_fields.ram=32", &["a", "b", "c"]),
        ("custom_fields.os=windows\\,%2011", &["a"]),
        ("custom_fields.os=Windows,%2011", &[]),
        ("custom_fields.room=none", &["b", "c", "d"]),
        ("custom_fields.room=\\none", &["a"]),
        ("custom_fields.nobody=x", &[]),
        ("asset_type_code=LAP", &["a"]),
        ("asset_type_code=%20lap%20", &["a"]),
        ("asset_type_code=NO", &[]),
        ("manufacturer=dell", &["a", "b"]),
        ("manufacturer=none", &["c", "d"]),
        ("manufacturer=\\none", &[]),
        ("custom_fields_from.ram=16", &["a", "b", "c"]),
        ("custom_fields_from.ram=16&custom_fields_before.ram=32", &["a", "b"]),
        ("custom_fields_before.os=2026-01-01", &[]),
        ("purchase_date_from=2026-01-01&purchase_date_before=2026-02-01", &["a"]),
        ("purchase_price_min=10&purchase_price_max=20.50", &["a", "b"]),
        ("purchase_price_min=10.01", &["b"]),
        ("warranty_from=2028-01-01", &["b"]),
        ("warranty_before=2028-01-01", &[]),
        (&from, &["b", "c", "d"]),
        (&before, &["a"]),
        ("last_seen_before=2027-01-01T00:00:00Z", &["a", "b", "c", "d"]),
        ("last_seen_from=2020-01-01T00:00:00Z", &[]),
        ("location=berlin&custom_fields.ram=16&q=b&manufacturer=dell", &["b"]),
    ] {
        check(&client, &without_index, query, expected).await;
    }
}

#[tokio::test(start_paused = true)]
async fn lists_sort_by_value_with_missing_ones_last() {
    let (api, client) = Api::with_tenant().await;
    let without_index = api.replica(0, 0).client(&client);
    for (name, body) in [
        ("x9", json!({"location": "Room 9", "purchase_price": 9, "custom_fields": {"n": 10}})),
        ("x10", json!({"location": "room 10", "purchase_price": 10, "custom_fields": {"n": 9.5}})),
        ("x009", json!({"purchase_date": "2026-01-01", "custom_fields": {"n": "9"}})),
        ("none", json!({})),
    ] {
        let mut body = body;
        body["name"] = json!(name);
        client.post("/assets", body).await.data();
        api.advance_clock(1);
    }
    for (sort, expected) in [
        ("name", ["none", "x009", "x9", "x10"]),
        ("location", ["x9", "x10", "x009", "none"]),
        ("-location", ["x10", "x9", "x009", "none"]),
        ("-purchase_price", ["x10", "x9", "x009", "none"]),
        ("purchase_date", ["x009", "x9", "x10", "none"]),
        ("custom_fields.n", ["x10", "x9", "x009", "none"]),
        ("-custom_fields.n", ["x009", "x9", "x10", "none"]),
        ("custom_fields.nobody", ["x9", "x10", "x009", "none"]),
    ] {
        for client in [&client, &without_index] {
            let data = client.get(&format!("/assets?sort={sort}")).await.data();
            let names: Vec<&str> = data.as_array().unwrap().iter().map(|asset| asset["name"].as_str().unwrap()).collect();
            assert_eq!(names, expected, "{sort}");
        }
    }
    assert_eq!(client.get("/assets?sort=custom_fields.").await.field_errors(), ["sort"]);
}

#[tokio::test(start_paused = true)]
async fn custom_fields_are_asked_about_in_any_spelling_and_unlisted_values_are_refused() {
    let (api, client) = Api::with_tenant().await;
    let without_index = api.replica(0, 0).client(&client);
    let long = "x".repeat(255);
    client.post("/assets", json!({"name": "a", "custom_fields": {"Färg": "Blå", long.as_str(): 1}})).await.data();
    client.post("/assets", json!({"name": "b"})).await.data();
    // Names and values are in decomposed form (NFD).
    let (name, value) = ("custom_fields.Fa%CC%88rg", "Bla%CC%8A");
    for client in [&client, &without_index] {
        let queries = [
            format!("{name}={value}"),
            format!("{name}=red&custom_fields.F%C3%A4rg={value}"),
            format!("custom_fields.%20{long}=1"),
        ];
        for query in &queries {
            assert_eq!(client.total(&format!("/assets?{query}")).await, 1, "{query}");
            assert_eq!(client.get(&format!("/stats?{query}")).await.data()["assets"]["total"], 1, "{query}");
            assert_eq!(
                client.export(&format!("/assets/export?format=ndjson&{query}")).await.concat().lines().count(),
                1,
                "{query}"
            );
        }
        for name in [name, &format!("custom_fields.{long}")] {
            assert_eq!(client.get(&format!("/assets?sort={name}")).await.data()[0]["name"], "a", "{name}");
            let groups = client.get(&format!("/stats?group_by={name}")).await.data()["groups"].clone();
            assert_eq!(groups.as_array().unwrap().len(), 2, "{groups}");
        }
        assert_eq!(client.get(&format!("/assets?custom_fields.x{long}=1")).await.status, 422);
    }

    client.post("/assets", json!({"name": "a", "custom_fields": {"long": "x", "list": "x", "short": "x"}})).await.data();
    let long = client.post("/assets", json!({"name": "b", "custom_fields": {"long": "x".repeat(201)}})).await.id();
    let list = client.post("/assets", json!({"name": "c", "custom_fields": {"list": [1]}})).await.id();
    for client in [&client, &without_index] {
        for field in ["long", "list"] {
            let parameter = format!("custom_fields.{field}");
            for path in ["/assets?", "/assets/export?", "/stats?", "/stats?group_by=status&"] {
                let reply = client.get(&format!("{path}{parameter}=x")).await;
                assert_eq!(reply.field_errors(), [parameter.as_str()], "{path}");
            }
            assert_eq!(client.get(&format!("/assets?sort=-{parameter}")).await.field_errors(), ["sort"]);
            assert_eq!(client.get(&format!("/stats?group_by={parameter}")).await.field_errors(), ["group_by"]);
        }
        assert_eq!(client.total("/assets?custom_fields.short=x").await, 1);
    }
    client.patch(&format!("/assets/{long}"), json!({"custom_fields_patch": {"long": null}})).await.data();
    client.delete(&format!("/assets/{list}")).await;
    for field in ["long", "list"] {
        assert_eq!(client.total(&format!("/assets?custom_fields.{field}=x")).await, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn custom_fields_that_exceed_the_memory_are_left_out_alone() {
    let (api, client) = Api::with_tenant().await;
    let body = |n: usize| json!({"name": format!("n{n}"), "location": "Bonn", "custom_fields": {"a": format!("{n:0200}"), "b": format!("b{n:0199}")}});
    client.create_all(&(0..200).map(body).collect::<Vec<_>>()).await;
    let small = api.replica(0, 80_000).client(&client);
    assert_eq!((client.total("/assets?custom_fields.b=x").await, small.total("/assets?location=bonn").await), (0, 200));
    for path in ["/assets?custom_fields.b=x", "/assets?sort=custom_fields.a", "/stats?group_by=custom_fields.a"] {
        let problem = small.get(path).await.problem(503, "UNAVAILABLE");
        assert!(problem["detail"].as_str().unwrap().contains("custom fields"), "{problem}");
    }
    let id = client.get("/assets?q=n7").await.data()[0]["id"].as_str().unwrap().to_owned();
    client.patch(&format!("/assets/{id}"), json!({"location": "Ulm"})).await;
    assert_eq!((small.total("/assets?location=bonn").await, small.total("/assets").await), (199, 200));
}

/// An asset imported in November can have been assigned since March.
#[tokio::test(start_paused = true)]
async fn import_can_set_the_start_of_an_assignment() {
    let (api, client) = Api::with_tenant().await;
    let (ada, eve) = (client.user("Ada").await, client.user("Eve").await);
    let csv = "name,assigned_to_email,assigned_since\na,ada@example.com,2025-03-01\nb,ada@example.com,\nc,,2025-03-01\n\
        d,ada@example.com,2099-01-01\n";
    let imported = client.import("/assets", "", csv).await;
    assert_eq!(outcomes(&imported), ["created", "created", "refused", "refused"]);
    assert_eq!(row_errors(&imported, 2)[0].0, "assigned_since");
    assert_eq!(row_errors(&imported, 3)[0].0, "assigned_since");
    let asset = imported.data()[0]["id"].as_str().unwrap().to_owned();
    let had = async |user: &str, at: &str| -> Vec<Value> {
        let data = client.get(&format!("/users/{user}/assets?as_of={at}")).await.data();
        data.as_array().unwrap().iter().map(|it| json!([it["name"], it["assigned_since"]])).collect()
    };
    assert_eq!(had(&ada, "2025-03-01T00:00:00Z").await, [json!(["a", "2025-03-01"])]);
    assert_eq!(had(&ada, "2025-02-28T23:59:59Z").await, Vec::<Value>::new());
    client.get(&format!("/assets/{asset}?as_of=2025-06-01T00:00:00Z")).await.problem(404, "NOT_FOUND");
    let entry = client.get(&format!("/assets/{asset}/history?verify=true")).await;
    assert_eq!(entry.data()[0]["changes"]["assigned_since"]["new"], "2025-03-01");

    // The imported claim ends with the assignment. Recorded assignments take precedence over the claim.
    api.advance_clock(60);
    let path = format!("/assets/{asset}");
    assert_eq!(client.patch(&path, json!({"assigned_to": eve})).await.data()["assigned_since"], Value::Null);
    api.advance_clock(3_600);
    let now = api.now().to_string();
    api.advance_clock(60);
    let csv = format!("id,assigned_to,assigned_since\n{asset},{ada},2025-01-01\n");
    assert_eq!(outcomes(&client.import("/assets", "?match=id", &csv).await), ["updated"]);
    let before = had(&eve, &now).await;
    assert_eq!(before, [json!(["a", null])]);
    assert_eq!(had(&ada, "2025-02-01T00:00:00Z").await, [json!(["a", "2025-01-01"])]);
    let exported = client.export("/assets/export").await.concat();
    assert_eq!(outcomes(&client.import("/assets", "?match=id", &exported).await), ["unchanged", "unchanged"]);
    assert_eq!(client.patch(&path, json!({"assigned_since": "2020-01-01"})).await.field_errors(), ["/assigned_since"]);
}

async fn types(client: &Client, path: &str) -> Vec<String> {
    let data = client.get(path).await.data();
    data.as_array().unwrap().iter().map(|entry| entry["type"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn each_scanned_item_has_an_outcome_in_order() {
    let (api, client) = Api::with_tenant().await;
    let ada = client.user("Ada").await;
    for body in [
        json!({"name": "here", "asset_tag": "T-1", "location": "Berlin/3/14"}),
        json!({"name": "there", "asset_tag": "T-2", "serial_number": "S 2", "location": "Bonn", "assigned_to": ada}),
        json!({"name": "double", "serial_number": "D"}),
        json!({"name": "double", "serial_number": "d"}),
    ] {
        client.post("/assets", body).await.data();
    }
    api.advance_clock(60);
    let here = client.get("/assets?asset_tag=T-1").await.data()[0].clone();
    let items = json!([{"tag": "t-1"}, {"serial_number": "s2"}, {"serial_number": "D"}, {"tag": "T-9"}, {"id": here["id"]},
        {"id": UNKNOWN_ID}, {"tag": " t-9 "}, {"serial_number": " d"}, {"id": UNKNOWN_ID}, {"id": here["id"]}]);
    let body = |moves: bool| json!({"location": "berlin / 3", "items": items, "move": moves});
    let reply = client.post("/assets/seen", body(false)).await;
    let different = ["seen", "elsewhere", "ambiguous", "unknown", "seen", "unknown"];
    assert_eq!(outcomes(&reply), [&different[..], &["unknown", "ambiguous", "unknown", "seen"]].concat());
    let data = reply.data();
    assert_eq!(
        (&data[1]["location"], &data[1]["status"], &data[3]["status"]),
        (&json!("Bonn"), &json!("in_stock"), &Value::Null)
    );
    assert_eq!((&data[1]["assigned_to"], &data[4]["index"], &data[4]["id"]), (&json!(ada), &json!(4), &here["id"]));
    assert_eq!((data[2]["candidates"].as_array().unwrap().len(), &data[7]["candidates"]), (2, &data[2]["candidates"]));
    assert_eq!((&data[9]["index"], &data[9]["id"]), (&json!(9), &here["id"]));
    let counts = json!({"items": 10, "seen": 1, "moved": 0, "elsewhere": 1, "unknown": 2, "ambiguous": 1});
    assert_eq!(reply.json()["meta"], counts);
    assert_eq!(
        types(&client, &format!("/assets/{}/history", here["id"].as_str().unwrap())).await,
        ["asset.seen", "asset.created"]
    );

    api.advance_clock(60);
    let moved = client.post("/assets/seen", body(true)).await;
    assert_eq!(outcomes(&moved)[..2], ["seen", "moved"]);
    assert_eq!(moved.data()[1]["location"], "berlin / 3");
    let there = client.get("/assets?asset_tag=T-2").await.data()[0].clone();
    assert_eq!((&there["location"], &there["last_seen_at"]), (&json!("berlin / 3"), &there["updated_at"]));
    let since = there["last_seen_at"].as_str().unwrap();
    assert_eq!(client.total(&format!("/assets?location=berlin&last_seen_before={since}")).await, 0);
    assert_eq!(client.total(&format!("/assets?last_seen_before={since}")).await, 2);
}

#[tokio::test(start_paused = true)]
async fn scan_keeps_updated_at_and_earlier_etags_valid() {
    let (api, client) = Api::with_tenant().await;
    let created = client.post("/assets", json!({"name": "a", "location": "Bonn"})).await;
    let (path, id) = (format!("/assets/{}", created.id()), created.id());
    api.advance_clock(60);
    let scan = async |at: Option<String>| {
        let mut body = json!({"items": [{"id": id}]});
        body.as_object_mut().unwrap().extend(at.map(|at| ("at".to_owned(), json!(at))));
        outcomes(&client.post("/assets/seen", body).await)
    };
    assert_eq!(scan(None).await, ["seen"]);
    let seen = client.get(&path).await;
    assert_eq!(seen.data()["updated_at"], created.data()["updated_at"]);
    assert_ne!(seen.header("etag"), created.header("etag"), "the body has changed");
    let unmodified = client.send_with("GET", &path, None, "", &[("if-none-match", created.header("etag"))]).await;
    assert_eq!(unmodified.status, 200);
    let before = api.now();
    api.advance_clock(60);
    assert_eq!(scan(None).await, ["seen"]);
    // The asset can be sent back as read, even after a later scan. A `last_seen_at` later than the stored one is refused.
    let patch = |asset: &Value, etag: &str| {
        let (client, path, body, etag) = (client.clone(), path.clone(), asset.to_string(), etag.to_owned());
        async move { client.send_json("PATCH", &path, &body, ("if-match", &etag)).await }
    };
    assert_eq!(patch(&seen.data(), seen.header("etag")).await.status, 200);
    assert_eq!(patch(&created.data(), created.header("etag")).await.status, 200);
    let mut later = seen.data();
    later["last_seen_at"] = json!("2099-01-01T00:00:00.000Z");
    assert_eq!(patch(&later, seen.header("etag")).await.field_errors(), ["/last_seen_at"]);
    let csv = client.export("/assets/export").await.concat();
    api.advance_clock(60);
    assert_eq!(scan(None).await, ["seen"]);
    assert_eq!(outcomes(&client.import("/assets", "?match=id", &csv).await), ["unchanged"]);

    // Older scans change nothing, and `as_of` shows the last scan before that time.
    let last = client.get(&path).await.data();
    assert_eq!(scan(Some(before.to_string())).await, ["seen"]);
    assert_eq!(client.get(&path).await.data(), last);
    let past = client.get(&format!("{path}?as_of={before}")).await;
    assert_eq!(past.data()["last_seen_at"], seen.data()["last_seen_at"]);
    assert_eq!(past.header("etag"), seen.header("etag"));
    let verified = client.get(&format!("{path}/history?verify=true")).await;
    assert_eq!(verified.json()["meta"]["total"], 4, "{}", verified.text());
    let changed = patch(&json!({"name": "b"}), seen.header("etag")).await;
    assert_eq!(changed.status, 200);
    patch(&json!({"name": "c"}), seen.header("etag")).await.problem(412, "PRECONDITION_FAILED");
}

#[tokio::test(start_paused = true)]
async fn change_based_on_a_read_before_a_move_by_scan_is_refused() {
    let (api, client) = Api::with_tenant().await;
    let created = client.post("/assets", json!({"name": "a", "location": "Bonn"})).await;
    let path = format!("/assets/{}", created.id());
    api.advance_clock(60);
    let scan = json!({"items": [{"id": created.id()}], "location": "Ulm", "move": true});
    client.post("/assets/seen", scan).await.data();
    let moved = client.get(&path).await.data();
    api.advance_clock(60);
    client.post("/assets/seen", json!({"items": [{"id": created.id()}]})).await.data();
    let mut read = created.data();
    read["name"] = json!("b");
    let operation = json!({"op": "update", "id": created.id(), "body": read});
    client.batch("/assets/batch", &[operation]).await.problem(412, "PRECONDITION_FAILED");
    let refused = client.patch(&path, read).await.problem(412, "PRECONDITION_FAILED");
    assert_eq!(refused["updated_at"], moved["updated_at"]);
    assert_eq!(refused["updated_by"], "first key", "the scan that moved the asset, not the later one");
    let mut read = moved.clone();
    read["name"] = json!("c");
    assert_eq!(client.patch(&path, read).await.data()["name"], "c", "the later scan spoils nothing");
}

#[tokio::test(start_paused = true)]
async fn feed_contains_scans_only_on_request() {
    let (api, client) = Api::with_tenant().await;
    let id = client.asset(json!({"name": "a"})).await;
    client.post("/assets/seen", json!({"items": [{"id": id}], "location": "Bonn", "move": true})).await.data();
    client.patch(&format!("/assets/{id}"), json!({"name": "b"})).await.data();
    api.advance_clock(60);
    for (query, expected) in [
        ("", &["asset.created", "asset.updated"][..]),
        ("&types=asset.*", &["asset.created", "asset.updated"]),
        ("&types=*", &["asset.created", "asset.updated"]),
        ("&types=*,asset.seen", &["asset.created", "asset.seen", "asset.updated"]),
        ("&types=asset.seen", &["asset.seen"]),
        ("&types=asset.*,asset.seen", &["asset.created", "asset.seen", "asset.updated"]),
    ] {
        let found = types(&client, &format!("/events?entity_id={id}{query}")).await;
        assert_eq!(found, expected, "{query}");
        let all = types(&client, &format!("/events?limit=100{query}")).await;
        assert_eq!(all.contains(&"asset.seen".to_owned()), expected.contains(&"asset.seen"), "{query}");
    }
    assert_eq!(client.total("/assets?location=bonn").await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_repeated_request_does_nothing_twice_and_two_people_scan_twice() {
    let (api, client) = Api::with_tenant().await;
    let ids = client.assets(3).await;
    let items: Vec<Value> = ids.iter().map(|id| json!({"id": id})).collect();
    let body = json!({"location": "Bonn", "items": items});
    let history = |id: &str| format!("/assets/{id}/history");
    let first = client.post_once("/assets/seen", &body, "scan").await;
    api.advance_clock(60);
    let again = client.post_once("/assets/seen", &body, "scan").await;
    assert_eq!((first.json(), again.status.as_u16()), (again.json(), 200));
    for id in &ids {
        assert_eq!(types(&client, &history(id)).await, ["asset.seen", "asset.created"]);
    }
    let other = client.scoped(&["assets:read", "assets:write"]).await;
    let (one, two) = tokio::join!(client.post("/assets/seen", body.clone()), other.post("/assets/seen", body.clone()));
    assert_eq!((outcomes(&one), outcomes(&two)), (outcomes(&first), outcomes(&first)));
    for id in &ids {
        assert_eq!(types(&client, &history(id)).await[..3], ["asset.seen"; 3]);
    }
    let before = api.dump().await;
    let dry = client.post("/assets/seen?dry_run=true", body).await;
    assert_eq!((outcomes(&dry).len(), api.dump().await), (3, before));
}

/// The scan that is committed last happened first, so its outcome is decided again.
#[tokio::test(start_paused = true)]
async fn of_two_scans_at_once_both_count_and_the_later_one_moves() {
    let (api, client) = Api::with_tenant().await;
    let id = client.asset(json!({"name": "a"})).await;
    let other = client.scoped(&["assets:write"]).await;
    let scan = |place: &str| json!({"items": [{"id": id}], "location": place, "move": true});
    let (late, early) = (client.post("/assets/seen", scan("Ulm")), other.post("/assets/seen", scan("Bonn")));
    let (late, early) = api.faults.overtake("TransactWriteItems", late, early).await;
    assert_eq!((outcomes(&late), outcomes(&early)), (vec!["moved".to_owned()], vec!["moved".to_owned()]));
    let asset = client.get(&format!("/assets/{id}")).await.data();
    assert_eq!(asset["location"], "Ulm");
    let history = client.get(&format!("/assets/{id}/history?verify=true")).await.data();
    let seen = |entry: &Value| (entry["type"].clone(), entry["changes"]["last_seen_at"]["new"].clone());
    let ((newest, last), (earlier, before)) = (seen(&history[0]), seen(&history[1]));
    assert_eq!((newest, earlier), (json!("asset.seen"), json!("asset.seen")));
    assert!(last == asset["last_seen_at"] && last.as_str() > before.as_str(), "{history}");
}

#[tokio::test(start_paused = true)]
async fn a_scan_of_an_asset_that_changes_too_often_is_a_conflict_and_no_request_in_progress() {
    let (api, client) = Api::with_tenant().await;
    let asset = client.asset(json!({"name": "a"})).await;
    let mut held = api.faults.hold("TransactWriteItems");
    let others = async {
        for round in 0..5 {
            held.arrived().await;
            client.patch(&format!("/assets/{asset}"), json!({"name": format!("b{round}")})).await.data();
            let next = api.faults.hold("TransactWriteItems");
            held.release();
            held = next;
        }
        api.faults.clear_holds();
    };
    let (refused, ()) = futures_util::join!(client.post("/assets/seen", json!({"items": [{"id": asset}]})), others);
    refused.problem(409, "CONFLICT");
}

#[tokio::test(start_paused = true)]
async fn a_scan_costs_at_most_seven_write_units() {
    let (api, client) = Api::with_tenant().await;
    let ids = client.assets(100).await;
    client.use_key_once().await;
    let items: Vec<Value> = ids.iter().map(|id| json!({"id": id})).collect();
    client.post("/assets/seen", json!({"items": items})).await.data();
    api.advance_clock(60);
    let (_, cost) = api.cost(async { client.post("/assets/seen", json!({"items": items})).await.data() }).await;
    assert!(cost.write_units <= 700.0, "100 scans: {cost:?}");
}

#[tokio::test(start_paused = true)]
async fn invalid_scans_are_refused_by_location() {
    let client = over_http().await;
    let item = || json!([{"tag": "T"}]);
    for (body, wrong) in [
        (json!({}), "/items"),
        (json!({"items": []}), "/items"),
        (json!({"items": vec![json!({"tag": "T"}); 101]}), "/items"),
        (json!({"items": [{"tag": "T"}, {}]}), "/items/1"),
        (json!({"items": [{"tag": "T", "id": UNKNOWN_ID}]}), "/items/0"),
        (json!({"items": [{"tog": "T"}]}), "/items/0/tog"),
        (json!({"items": item(), "move": true}), "/location"),
        (json!({"items": item(), "location": "a//b"}), "/location"),
        (json!({"items": item(), "at": "2099-01-01T00:00:00Z"}), "/at"),
        (json!({"items": item(), "at": "2020-01-01T00:00:00Z"}), "/at"),
    ] {
        assert_eq!(client.post("/assets/seen", body.clone()).await.field_errors(), [wrong], "{body}");
    }
    let nothing = json!({"items": item(), "location": null, "at": null, "move": null});
    assert_eq!(outcomes(&client.post("/assets/seen", nothing).await), ["unknown"]);
    let reader = client.scoped(&["assets:read"]).await;
    assert_eq!(reader.post("/assets/seen", json!({"items": item()})).await.problem(403, "FORBIDDEN")["scope"], "assets:write");
}
