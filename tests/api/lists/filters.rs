//! Exact filters of lists and exports.

use crate::assets::places::check;
use crate::support::prelude::*;

/// Returns the names of all entries, which must fit on the first page.
async fn names(client: &Client, path: &str) -> Vec<String> {
    let reply = client.get(path).await;
    let data = reply.data();
    let names: Vec<String> = data
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["display_name"].as_str().or(entry["name"].as_str()).unwrap().to_owned())
        .collect();
    assert_eq!(reply.json()["meta"]["total"], names.len(), "{path}");
    names
}

#[tokio::test(start_paused = true)]
async fn unique_values_and_names_of_models_find_what_has_them() {
    let client = over_http().await;
    for (email, name, role) in [("Jürgen@Example.com", "Jürgen", "viewer"), ("ada+1@example.com", "Ada", "admin")] {
        client.post("/users", json!({"email": email, "display_name": name, "role": role})).await.data();
    }
    let laptop = client.asset_type("Laptop", "LAP", "physical").await;
    client.asset_type("Tablet", "TAB", "physical").await;
    client.post("/catalog/manufacturers", json!({"name": "Groß AG"})).await.data();
    client.post("/catalog/manufacturers", json!({"name": "Other"})).await.data();
    let none: [&str; 0] = [];
    for (path, expected) in [
        ("/users?email=ju%CC%88rgen@example.COM", &["Jürgen"][..]),
        ("/users?email=ada%2B1@example.com", &["Ada"]),
        ("/users?email=ada%2B1@example.com&role=admin&is_active=true&q=ada", &["Ada"]),
        ("/users?email=ada%2B1@example.com&role=viewer", &none),
        ("/users?email=eve@example.com", &none),
        ("/catalog/asset-types?code=LAP", &["Laptop"]),
        ("/catalog/asset-types?code=tab", &["Tablet"]),
        ("/catalog/asset-types?code=tab&q=laptop", &none),
        ("/catalog/asset-types?code=%20tab%20", &["Tablet"]),
        ("/catalog/asset-types?code=NO", &none),
        ("/catalog/manufacturers?name=GROSS+ag", &["Groß AG"]),
        ("/catalog/manufacturers?name=Gro%C3%9F", &none),
        ("/processes?slug=device-return", &["Device Return"]),
        ("/processes?slug=device-return&status=inactive", &none),
        ("/processes?slug=no-such-process", &none),
    ] {
        assert_eq!(names(&client, path).await, expected, "{path}");
    }
    let second = client.get("/users?email=ada%2B1@example.com&page=2&limit=1").await.json();
    assert_eq!(second, json!({"data": [], "meta": {"total": 1, "page": 2, "limit": 1, "total_pages": 1}}));
    let found = client.get("/processes?slug=device-return").await.data()[0]["id"].as_str().unwrap().to_owned();
    client.patch(&format!("/processes/{found}"), json!({"status": "inactive"})).await.data();
    assert_eq!(names(&client, "/processes?slug=device-return").await.len(), 1, "a name is looked up whatever the status");

    client.model("Dell", "Straße 1", &laptop).await;
    client.model("Lenovo", "STRASSE 1", &laptop).await;
    client.model("Apple", "Straße 12", &laptop).await;
    assert_eq!(names(&client, "/catalog/models?name=strasse+1").await, ["STRASSE 1", "Straße 1"]);
    assert_eq!(names(&client, "/catalog/models?name=strasse").await.len(), 0);
    let dell = client.get("/catalog/manufacturers?name=dell").await.data()[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(names(&client, &format!("/catalog/models?name=strasse+1&manufacturer_id={dell}")).await, ["Straße 1"]);
}

#[tokio::test(start_paused = true)]
async fn several_values_are_separated_by_commas_or_repeated_and_impossible_ones_refused() {
    let client = over_http().await;
    for status in ["in_stock", "preparing", "in_use", "scrapped"] {
        client.asset(json!({"name": status, "status": status})).await;
    }
    for query in
        ["status=in_use,preparing", "status=in_use&status=preparing,in_use", "status=in_use&sort=-name&status=preparing&limit=9"]
    {
        let mut found = names(&client, &format!("/assets?{query}")).await;
        found.sort();
        assert_eq!(found, ["in_use", "preparing"], "{query}");
    }
    for (path, wrong) in [
        ("/assets?status=in_use&status=", vec!["status"]),
        ("/assets?q=a&q=b&kind=physical&kind=logical", vec!["kind", "q"]),
        ("/assets?colour=a&colour=b", vec!["colour"]),
    ] {
        assert_eq!(client.get(path).await.field_errors(), wrong, "{path}");
    }
    assert_eq!(client.get("/events?types=asset.created&types=user.*&limit=1").await.status, 200);

    for (path, parameter, hint) in [
        ("/assets?status=in_use,,returned", "status", "separated by commas"),
        ("/assets?status=in_use,", "status", "separated by commas"),
        ("/assets/export?status=lost", "status", "must be one of in_stock, preparing, in_use, "),
        ("/assets?assigned_to=nobody", "assigned_to", "or none"),
        ("/assets?updated_since=yesterday", "updated_since", "RFC 3339"),
        ("/assets?updated_since=2026-03-05T12:00:00+02:00", "updated_since", "send %2B"),
        ("/users?email=ada", "email", "must be an e-mail address"),
        ("/users?email=ada+1@example.com", "email", "send %2B"),
        ("/catalog/asset-types?code=L-P", "code", "2 to 8"),
        ("/catalog/manufacturers?name=", "name", "must not be empty"),
        ("/catalog/models?name=", "name", "must not be empty"),
        ("/processes?slug=Device", "slug", "a-z"),
    ] {
        let reply = client.get(path).await;
        assert_eq!(reply.field_errors(), [parameter], "{path}");
        assert!(reply.json()["errors"][0]["detail"].as_str().unwrap().contains(hint), "{path}: {}", reply.text());
    }
}

#[tokio::test(start_paused = true)]
async fn filter_by_a_unique_value_costs_two_reads_at_any_size() {
    let (api, client) = Api::with_tenant().await;
    let ada = client.user("Ada").await;
    let path = "/users?email=ada@example.com";
    assert_eq!(names(&client, path).await, ["Ada"]);
    client.patch(&format!("/users/{ada}"), json!({"email": "lovelace@example.com"})).await.data();
    assert_eq!(names(&client, path).await.len(), 0);
    client.post("/users", json!({"email": "ADA@example.com", "display_name": "Other"})).await.data();
    assert_eq!(names(&client, path).await, ["Other"]);
    assert_eq!(names(&client, "/users?email=lovelace@example.com").await, ["Ada"]);
    client.delete(&format!("/users/{ada}")).await.data();
    assert_eq!(names(&client, "/users?email=lovelace@example.com").await.len(), 0);
    let other = api.tenant().await;
    assert_eq!(names(&other, path).await.len(), 0, "another tenant's");

    for n in 0..30 {
        client.user(&format!("User {n}")).await;
        client.post("/catalog/manufacturers", json!({"name": format!("M{n}")})).await.data();
    }
    for path in ["/users?email=user.7@example.com", "/catalog/manufacturers?name=m7", "/processes?slug=device-return"] {
        client.get(path).await.data();
        let (_, cost) = api.cost(async { client.get(path).await.data() }).await;
        // Includes the key check and the request count. Steps are cached.
        assert!(cost.calls <= 4 && cost.round_trips <= 3 && cost.read_units <= 4.0, "{path}: {cost:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn assets_are_found_by_several_statuses_by_having_no_user_and_by_when_they_were_changed() {
    let (api, client) = Api::with_tenant().await;
    let without_index = api.replica(0, 0);
    let user = client.user("Ada").await;
    let assigned = client.asset(json!({"name": "a", "status": "in_use", "assigned_to": user})).await;
    client.asset(json!({"name": "b", "status": "returned"})).await;
    client.asset(json!({"name": "c"})).await;
    let of_ada = format!("assigned_to={user}");
    for (query, expected) in [
        ("status=in_use,returned", &["a", "b"][..]),
        ("status=returned%2Cin_use", &["a", "b"]),
        ("status=in_stock", &["c"]),
        ("status=in_service,scrapped", &[]),
        ("assigned_to=none", &["b", "c"]),
        (&of_ada, &["a"]),
        ("assigned_to=none&status=in_use,in_stock", &["c"]),
    ] {
        check(&client, &without_index, query, expected).await;
    }
    client.patch(&format!("/assets/{assigned}"), json!({"assigned_to": null})).await.data();
    check(&client, &without_index, "assigned_to=none", &["a", "b", "c"]).await;

    let client = api.tenant().await;
    let old = client.asset(json!({"name": "old"})).await;
    api.advance_clock(60);
    let new = client.post("/assets", json!({"name": "new"})).await.data();
    let at = new["updated_at"].as_str().unwrap().to_owned();
    let (before, after) = (at.replace('Z', "%2B00:00"), at.replace("2026", "2027"));
    for (since, expected) in [
        (at.as_str(), &["new"][..]),
        (&before, &["new"]),
        (&after, &[]),
        ("2026-03-05T09:00:00Z", &["new", "old"]),
        ("2026-03-05T12:00:00%2B02:00", &["new", "old"]),
    ] {
        check(&client, &without_index, &format!("updated_since={since}"), expected).await;
    }
    client.patch(&format!("/assets/{old}"), json!({"notes": "changed"})).await.data();
    check(&client, &without_index, &format!("updated_since={at}"), &["new", "old"]).await;
}

/// Returns `meta.hint` of a list and of statistics, which must be equal.
async fn hint(client: &Client, query: &str) -> Value {
    let list = client.get(&format!("/assets?{query}")).await.json();
    assert_eq!(list["meta"]["total"], list["data"].as_array().unwrap().len(), "{query}");
    let [stats, groups] = [format!("/stats?{query}"), format!("/stats?group_by=status&{query}")];
    assert_eq!(client.get(&stats).await.json()["meta"]["hint"], list["meta"]["hint"], "{query}");
    assert_eq!(client.get(&groups).await.json()["meta"]["hint"], list["meta"]["hint"], "{query}");
    list["meta"]["hint"].clone()
}

#[tokio::test(start_paused = true)]
async fn empty_list_names_the_unknown_values_and_similar_ones() {
    let (api, client) = Api::with_tenant().await;
    let laptop = client.asset_type("Laptop", "LAP", "physical").await;
    client.asset_type("Monitor", "MON", "physical").await;
    let model = client.model("Dell", "XPS", &laptop).await;
    for body in [
        json!({"name": "a", "location": "Berlin/3rd floor/3.14", "model_id": model, "custom_fields": {"cost_center": "0815"}}),
        json!({"name": "b", "location": "Berlin/Store", "manufacturer": "Lenovo", "custom_fields": {"cost_center": 4711}}),
        json!({"name": "c", "location": "London", "custom_fields": {"os": "Windows, 11"}}),
    ] {
        client.post("/assets", body).await.data();
    }
    let without_index = api.replica(0, 0).client(&client);
    for client in [&client, &without_index] {
        for (query, expected) in [
            ("location=Berln", "No asset has the location Berln; the nearest: Berlin, "),
            ("location=berlin/3rd%20flor", "No asset has the location berlin / 3rd flor; the nearest: Berlin / 3rd floor, "),
            ("location=3rd%20flor", "No asset has the location 3rd flor; the nearest: Berlin / 3rd floor, "),
            ("manufacturer=Del", "No asset has the manufacturer Del; the nearest: Dell, Lenovo."),
            ("asset_type_code=lpa", "No asset has the type code LPA; the nearest: LAP."),
            ("asset_type_code=MON", "No asset has the type code MON; the nearest: LAP."),
            ("custom_fields.costcenter=0815", "No asset has the custom field costcenter; the nearest: cost_center, os."),
            ("custom_fields.cost_center=0816,0817", "No asset has the cost_center 0816 or 0817; the nearest: 0815, 4711."),
            (
                "location=Berln&manufacturer=Del",
                "No asset has the location Berln; the nearest: Berlin, London, Berlin / Store, Berlin / 3rd floor, \
                 Berlin / 3rd floor / 3.14. No asset has the manufacturer Del; the nearest: Dell, Lenovo.",
            ),
        ] {
            let hint = hint(client, query).await;
            assert!(hint.as_str().unwrap_or_default().starts_with(expected), "{query}: {hint}");
        }
        // The values exist, but not together, or the condition is not about a value.
        for query in [
            "location=London&manufacturer=Dell",
            "custom_fields.os=none&location=London",
            "q=nothing",
            "status=returned",
            "location=Berlin",
        ] {
            assert_eq!(hint(client, query).await, Value::Null, "{query}");
        }
        let grouped = client.get("/stats?group_by=custom_fields.osx").await.json();
        assert_eq!(grouped["meta"]["hint"], "No asset has the custom field osx; the nearest: os, cost_center.");
        assert_eq!(grouped["data"]["groups"][0]["count"], 3);
        assert!(client.get("/stats?group_by=custom_fields.os").await.json().get("meta").is_none());
    }
    let empty = api.tenant().await;
    assert_eq!(hint(&empty, "location=Berlin").await, "No asset has a location.");
    assert_eq!(hint(&empty, "custom_fields.a=1").await, "No asset has a custom field.");
    let path = "/assets?location=Berln&custom_fields.cost_center=0816";
    client.get(path).await.json();
    let (_, cost) = api.cost(async { client.get(path).await.json() }).await;
    let (_, plain) = api.cost(async { client.get("/assets?q=nothing").await.json() }).await;
    assert_eq!((cost.calls, cost.round_trips), (plain.calls, plain.round_trips), "a hint costs no further read");
}

/// Returns the values of the groups, each with its count.
async fn groups(client: &Client, query: &str) -> Vec<(Value, u64)> {
    let data = client.get(&format!("/stats?{query}")).await.data();
    data["groups"].as_array().unwrap().iter().map(|it| (it["value"].clone(), it["count"].as_u64().unwrap())).collect()
}

#[tokio::test(start_paused = true)]
async fn a_group_is_found_by_its_value() {
    let (api, client) = Api::with_tenant().await;
    let values = [
        "1",
        "1.0",
        "10",
        "1e1",
        "1E1",
        "\"1\"",
        "\"1.0\"",
        "\"1e1\"",
        "\"10\"",
        "\"\"",
        "\"\\\"\\\"\"",
        "true",
        "\"True\"",
        "\"none\"",
        "\"\\\\none\"",
        "\"a,b\"",
        "\"a\\\\,b\"",
        "\" a \"",
        "\"Stra\u{df}e\"",
        "\"STRASSE\"",
        "-0.0",
        "1e15",
        "null",
        "\"line\\nbreak\"",
    ];
    for (n, value) in values.iter().enumerate() {
        let body = format!(
            r#"{{"name":"{n}","custom_fields":{{"x":{value}}},"manufacturer":"{}"}}"#,
            ["none", "Dell, Inc.", "DELL, inc."][n % 3]
        );
        assert_eq!(client.post_text("/assets", &body).await.status, 201, "{body}");
    }
    client.asset(json!({"name": "without"})).await;
    let without_index = api.replica(0, 0).client(&client);
    for (group_by, parameter) in [("custom_fields.x", "custom_fields.x"), ("manufacturer", "manufacturer")] {
        let groups = groups(&client, &format!("group_by={group_by}")).await;
        assert_eq!(groups.iter().map(|(_, count)| count).sum::<u64>(), values.len() as u64 + 1);
        for (value, count) in groups {
            let escaped = match value.as_str() {
                None => "none".to_owned(),
                Some(word) if word.trim_start_matches('\\') == "none" => format!("\\{word}"),
                Some(text) => text.replace(',', "\\,"),
            };
            let encoded: String = escaped.bytes().map(|byte| format!("%{byte:02X}")).collect();
            for client in [&client, &without_index] {
                let found = client.get(&format!("/assets?{parameter}={encoded}&limit=100")).await.json();
                assert_eq!(found["meta"]["total"], count, "{value}");
            }
        }
    }
    let csv = client.export("/assets/export").await.concat();
    let cell =
        |name: &str| csv.lines().find(|line| line.split(',').nth(2) == Some(name)).and_then(|line| line.split(',').next_back());
    assert_eq!(["0", "1", "3", "20"].map(cell), ["1", "1", "10", "0"].map(Some));
    assert_eq!(client.get("/assets?custom_fields.x=").await.json()["meta"]["total"], 1, "the empty text");
    assert_eq!(client.get("/assets?custom_fields.x=1.0").await.data()[0]["name"], "6");
}

#[tokio::test(start_paused = true)]
async fn a_bound_is_a_day_a_time_or_relative_to_today() {
    let (api, client) = Api::with_tenant().await;
    let without_index = api.replica(0, 0);
    client.patch("/settings", json!({"time_zone": "Asia/Tokyo"})).await.data();
    // The clock of the tests stands in the UTC day; in Tokyo, it is nine hours later.
    let now = api.now();
    let zoned =
        |days: i64| (now.plus(chrono::TimeDelta::hours(9)).date() + chrono::Days::new(u64::try_from(days).unwrap())).to_string();
    let (today, tomorrow) = (zoned(0), zoned(1));
    client.asset(json!({"name": "a", "purchase_date": today, "custom_fields": {"audit": today}})).await;
    client.asset(json!({"name": "b", "purchase_date": tomorrow, "custom_fields": {"audit": tomorrow, "x": 1}})).await;
    let (of_day, before_day) = (format!("created_from={today}"), format!("created_before={today}"));
    for (query, expected) in [
        ("purchase_date_from=today&purchase_date_before=today%2B1d", &["a"][..]),
        ("purchase_date_from=today+1d", &["b"]),
        ("purchase_date_before=today-1y", &[]),
        ("warranty_before=today+100y", &[]),
        ("created_from=today&created_before=today+1d", &["a", "b"]),
        (&of_day, &["a", "b"]),
        (&before_day, &[]),
        ("updated_since=today&updated_from=today-1w", &["a", "b"]),
        ("updated_since=today+1d&updated_from=today", &[]),
        ("last_seen_before=today", &["a", "b"]),
        ("last_seen_from=today", &[]),
        ("status_changed_from=today-1d", &["a", "b"]),
        ("custom_fields_from.audit=today&custom_fields_before.audit=today+1d", &["a"]),
        ("custom_fields_from.audit=0", &[]),
        ("custom_fields_from.x=1&custom_fields_before.x=1.5", &["b"]),
    ] {
        check(&client, &without_index, query, expected).await;
    }
    for (query, wrong) in [
        ("purchase_date_from=2026-01-01T00:00:00Z", vec!["purchase_date_from"]),
        ("created_from=yesterday&created_before=today-1x", vec!["created_before", "created_from"]),
        ("custom_fields_from.x=abc", vec!["custom_fields_from.x"]),
        ("custom_fields_from.x=1&custom_fields_from.x=2", vec!["custom_fields_from.x"]),
        (
            "custom_fields.a=1&custom_fields.b=1&custom_fields.c=1&custom_fields_from.d=1&custom_fields_from.e=1&custom_fields_before.f=1",
            vec!["custom_fields_before.f"],
        ),
    ] {
        assert_eq!(client.get(&format!("/assets?{query}")).await.field_errors(), wrong, "{query}");
    }
    let path = "/assets?created_from=today&custom_fields_from.audit=today-1m";
    client.get(path).await.data();
    let (_, cost) = api.cost(async { client.get(path).await.data() }).await;
    let (_, plain) = api.cost(async { client.get("/assets?q=a").await.data() }).await;
    assert_eq!(cost.round_trips, plain.round_trips, "the time zone is read beside the events");
}

#[tokio::test(start_paused = true)]
async fn all_parts_of_an_export_have_the_bounds_of_the_first() {
    let (api, client) = Api::with_tenant().await;
    let id = client.asset(json!({"name": "n", "notes": "x".repeat(9_000)})).await;
    copy_record(&api, &client, (Kind::Asset, &id, false), 1_000, |_, _| {}).await;
    let first = client.get("/assets/export?created_from=today-1d&q=n&created_before=today+1d&custom_fields.x_from=none").await;
    let link = first.header("link").to_owned();
    let day = |days: i64| (api.now().plus(chrono::TimeDelta::days(days)).date()).to_string();
    let expected = format!("created_from={}&q=n&created_before={}&custom_fields.x_from=none&after=", day(-1), day(1));
    assert!(link.contains(&expected), "{link}");
}

#[tokio::test(start_paused = true)]
async fn the_time_of_the_last_change_of_the_status_is_the_same_everywhere() {
    let (api, client) = Api::with_tenant().await;
    let without_index = api.replica(0, 0);
    let made = client.post("/assets", json!({"name": "a", "serial_number": "S1"})).await;
    let path = format!("/assets/{}", made.id());
    assert_eq!(made.data()["status_changed_at"], made.data()["created_at"]);
    client.get("/assets").await.data();
    api.advance_clock(60);
    let noted = client.patch(&path, json!({"notes": "x", "status": "in_stock"})).await.data();
    assert_eq!(noted["status_changed_at"], noted["created_at"]);
    api.advance_clock(60);
    let used = client.patch(&path, json!({"status": "in_use"})).await.data();
    assert_eq!(used["status_changed_at"], used["updated_at"]);
    let at = used["status_changed_at"].as_str().unwrap().to_owned();
    api.advance_clock(60);
    client.post("/assets", json!({"name": "b"})).await.data();
    client.patch(&path, json!({"notes": "y"})).await.data();
    assert_eq!(client.get(&path).await.data()["status_changed_at"], at.as_str());
    let (from, before) = (format!("status_changed_from={at}"), format!("status_changed_before={at}"));
    check(&client, &without_index, &from, &["a", "b"]).await;
    check(&client, &without_index, &before, &[]).await;
    check(&client, &without_index, "status_changed_from=today-1d", &["a", "b"]).await;
    let sorted = client.get("/assets?sort=-status_changed_at").await.data();
    assert_eq!([&sorted[0]["name"], &sorted[1]["name"]], ["b", "a"]);
    let replica = api.replica(0, usize::MAX).client(&client).get("/assets?sort=status_changed_at").await.data();
    assert_eq!([&replica[0]["name"], &replica[0]["status_changed_at"]], ["a", at.as_str()]);
    let (now, created) = (api.now(), made.data()["created_at"].as_str().unwrap().to_owned());
    assert_eq!(client.get(&format!("{path}?as_of={now}")).await.data()["status_changed_at"], at.as_str());
    assert_eq!(client.get(&format!("{path}?as_of={created}")).await.data()["status_changed_at"], created.as_str());
    let csv = client.export("/assets/export").await.concat();
    assert!(csv.lines().next().unwrap().contains(",status_changed_at,") && csv.contains(&at), "{csv}");
    assert_eq!(outcomes(&client.import("/assets", "?match=id", &csv).await), ["unchanged", "unchanged"]);
    assert_eq!(client.patch(&path, json!({"status_changed_at": at})).await.status, 200);
    assert_eq!(client.patch(&path, json!({"status_changed_at": created})).await.field_errors(), ["/status_changed_at"]);
    // Movements, processes, batches and imports change the status, too.
    api.advance_clock(60);
    let batch = client.batch("/assets/batch", &[json!({"op": "update", "id": made.id(), "body": {"status": "returned"}})]).await;
    let returned = batch.data()[0]["data"].clone();
    assert!(returned["status_changed_at"] == returned["updated_at"] && returned["updated_at"] != at.as_str());
    api.advance_clock(60);
    assert_eq!(
        outcomes(&client.import("/assets", "?match=id", &format!("id,status\n{},in_stock\n", made.id())).await),
        ["updated"]
    );
    let imported = client.get(&path).await.data();
    assert!(imported["status_changed_at"] == imported["updated_at"] && imported["updated_at"] != returned["updated_at"]);
}

#[tokio::test(start_paused = true)]
async fn assets_that_keep_a_field_out_of_lists_can_be_listed() {
    let (api, client) = Api::with_tenant().await;
    let without_index = api.replica(0, 0);
    let many: Value = (0..21)
        .map(|n| (format!("a{n:02}"), json!(n)))
        .chain([("os".to_owned(), json!("x"))])
        .collect::<serde_json::Map<_, _>>()
        .into();
    let crowded: Value = (0..60).map(|n| (format!("b{n:02}"), json!(n))).collect::<serde_json::Map<_, _>>().into();
    let fine = client.asset(json!({"name": "a", "custom_fields": {"os": "Linux", "zz": 1}})).await;
    let long = client.asset(json!({"name": "b", "custom_fields": {"os": "x".repeat(201)}})).await;
    let beyond = client.asset(json!({"name": "c", "custom_fields": many})).await;
    client.asset(json!({"name": "d", "custom_fields": crowded})).await;
    for query in ["custom_fields.os=Linux", "sort=custom_fields.os", "custom_fields_from.os=1"] {
        for client in [&client, &without_index.client(&client)] {
            let refused = client.get(&format!("/assets?{query}")).await;
            assert_eq!(refused.json()["errors"][0]["code"], "not_filterable", "{query}");
            let named = refused.json()["asset_id"].clone();
            assert!(named != fine.as_str() && [&long, &beyond].iter().any(|id| named == id.as_str()), "{named}");
        }
    }
    assert!(client.get("/stats?group_by=custom_fields.os").await.json()["asset_id"].is_string());
    assert!(client.get("/assets/export?custom_fields.os=Linux").await.json()["asset_id"].is_string());
    check(&client, &without_index, "unlisted_field=os", &["b", "c", "d"]).await;
    check(&client, &without_index, "unlisted_field=zz", &["d"]).await;
    check(&client, &without_index, "unlisted_field=a01", &[]).await;
    check(&client, &without_index, "unlisted_field=os&q=c", &["c"]).await;
    assert_eq!(client.get("/assets?unlisted_field=").await.field_errors(), ["unlisted_field"]);
    for id in [&long, &beyond] {
        client.patch(&format!("/assets/{id}"), json!({"custom_fields_patch": {"os": null}})).await.data();
    }
    let crowded = client.get("/assets?unlisted_field=os").await.data()[0]["id"].as_str().unwrap().to_owned();
    client.patch(&format!("/assets/{crowded}"), json!({"custom_fields": {}})).await.data();
    check(&client, &without_index, "custom_fields.os=linux", &["a"]).await;
}
