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
async fn a_unique_value_finds_whoever_has_it_now_for_two_reads_however_many_there_are() {
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
async fn an_empty_answer_names_what_no_asset_has_and_the_nearest() {
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
                "No asset has the location Berln; the nearest: Berlin, London, Berlin / Store, Berlin / 3rd floor / 3.14, \
                 Berlin / 3rd floor. No asset has the manufacturer Del; the nearest: Dell, Lenovo.",
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
