//! Exports of assets and users.

use crate::support::prelude::*;
use proptest::prelude::*;

#[tokio::test(start_paused = true)]
async fn an_export_has_one_row_for_each_asset_and_names_for_people() {
    let client = over_http().await;
    let laptop = client.asset_type("Laptop", "LAP", "physical").await;
    let model = client.model("Dell", "Latitude", &laptop).await;
    let ada = client.user("Ada").await;
    let first = client
        .asset(json!({"name": "=1+1", "model_id": model, "purchase_price": 1249.00, "assigned_to": ada, "custom_fields": {"ram": 16, "os": "11"}}))
        .await;
    let second = client.asset(json!({"name": "b", "notes": "line\nbreak, \"quote\"", "custom_fields": {"leased": null}})).await;
    let parts = client.export("/assets/export").await;
    let times = async |id: &str| {
        let asset = client.get(&format!("/assets/{id}")).await.data();
        ["status_changed_at", "created_at", "updated_at"].map(|name| asset[name].as_str().unwrap().to_owned()).join(",")
    };
    let expected = format!(
        "id,asset_tag,name,status,asset_type_id,asset_type_code,model_id,manufacturer,model,serial_number,location,purchase_date,\
         purchase_price,warranty_until,assigned_to,assigned_to_email,assigned_since,notes,last_seen_at,status_changed_at,created_at,updated_at,custom_fields.leased,custom_fields.os,custom_fields.ram\r\n\
         {first},AST-000001,'=1+1,in_stock,{laptop},LAP,{model},Dell,Latitude,,,,1249.0,,{ada},ada@example.com,,,,{},,11,16\r\n\
         {second},AST-000002,b,in_stock,,,,,,,,,,,,,,\"line\nbreak, \"\"quote\"\"\",,{},null,,\r\n",
        times(&first).await,
        times(&second).await
    );
    assert_eq!(parts, [expected]);
    let lines = client.export("/assets/export?format=ndjson&q=b").await.concat();
    let row: Value = serde_json::from_str(lines.trim_end()).unwrap();
    assert_eq!(
        (&row["id"], &row["custom_fields"], &row["assigned_to_email"]),
        (&json!(second), &json!({"leased": null}), &json!(null))
    );
    let reply = client.get("/assets/export?status=in_use").await;
    assert_eq!((reply.text().lines().count(), reply.header("content-type")), (1, "text/csv; charset=utf-8"));
    assert_eq!(reply.header("content-disposition"), "attachment; filename=\"assets.csv\"");
    assert_eq!(client.get("/assets/export?format=xml&sort=name&page=1").await.field_errors(), ["format", "page", "sort"]);
}

#[tokio::test(start_paused = true)]
async fn a_large_export_comes_in_parts_that_miss_nothing_and_repeat_nothing() {
    let client = over_http().await;
    let notes = "\"".repeat(9_000);
    let body = |n: usize| match n.is_multiple_of(2) {
        true => json!({"name": format!("n{n}"), "notes": notes, "status": "in_use"}),
        false => json!({"name": format!("n{n}")}),
    };
    client.create_all(&(0..240).map(body).collect::<Vec<_>>()).await;
    for format in ["csv", "ndjson"] {
        let parts = client.export(&format!("/assets/export?format={format}&status=in_use")).await;
        assert!(parts.len() > 120 * 36_000 / (4 << 20), "{} parts", parts.len());
        assert!(parts.iter().all(|part| part.len() <= 4 << 20));
        let names = |part: &String| -> Vec<usize> {
            let name = |text: &str| text.strip_prefix('n')?.parse::<usize>().ok();
            part.lines().filter_map(|row| row.split([',', '"']).find_map(name)).collect()
        };
        let all: Vec<usize> = parts.iter().flat_map(names).collect();
        assert_eq!(all, (0..240).step_by(2).collect::<Vec<_>>());
    }
}

#[tokio::test(start_paused = true)]
async fn only_the_first_part_begins_with_a_byte_order_mark_which_imports_ignore() {
    let client = over_http().await;
    client.create_all(&vec![json!({"name": "Zoë", "notes": "\"".repeat(9_000)}); 130]).await;
    client.user("Zoë").await;
    for kind in ["assets", "users"] {
        let path = format!("/{kind}/export");
        let (plain, marked) = (client.export(&path).await, client.export(&format!("{path}?bom=true")).await);
        assert_eq!(plain.len(), if kind == "assets" { 2 } else { 1 });
        assert_eq!(marked[0], format!("\u{feff}{}", plain[0]));
        assert_eq!(marked[1..], plain[1..]);
        assert_eq!(client.export(&format!("{path}?format=csv&bom=false")).await, plain);
        assert_eq!(client.get(&format!("{path}?format=ndjson&bom=true")).await.field_errors(), ["bom"]);
        assert_eq!(client.get(&format!("{path}?format=ndjson&bom=false")).await.status, 200);
        assert_eq!(client.get(&format!("{path}?bom=1")).await.field_errors(), ["bom"]);
    }
    let few = ["/assets/export?bom=true&q=AST-000001", "/users/export?bom=true"];
    for (path, kind) in few.into_iter().zip(["/assets", "/users"]) {
        let text = client.export(path).await.concat();
        let outcomes = outcomes(&client.import(kind, "?match=id", &text).await);
        assert!(text.starts_with("\u{feff}id,") && !outcomes.is_empty(), "{text}");
        assert!(outcomes.iter().all(|outcome| outcome == "unchanged"), "{outcomes:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn users_are_exported_too_and_addresses_are_for_keys_that_may_list_users() {
    let client = over_http().await;
    let ada = client.user("Ada").await;
    client.user("Bob").await;
    let text = client.export("/users/export?q=ada").await.concat();
    assert!(text.starts_with("id,email,display_name,role,is_active,created_at,updated_at\r\n"), "{text}");
    assert!(text.contains(&format!("{ada},ada@example.com,Ada,viewer,true,")) && !text.contains("bob"));
    for (query, lines) in [("", 2), (&format!("&after={ada}"), 1), ("&role=admin", 1)] {
        let by_address = client.export(&format!("/users/export?email=ADA@example.com{query}")).await;
        assert_eq!((by_address.len(), by_address[0].lines().count()), (1, lines), "{by_address:?}");
        assert_eq!(by_address[0].contains(&ada), lines == 2, "{by_address:?}");
    }
    let all = client.export("/users/export").await.concat();
    assert_eq!(outcomes(&client.import("/users", "?match=id", &all).await), ["unchanged", "unchanged"]);

    // A key without access to users must not learn which addresses belong to users.
    let asset = client.assigned_asset("Laptop", &ada).await;
    let key = client.scoped(&["assets:read", "assets:write"]).await;
    for query in ["", "?dry_run=true", "?on_error=abort"] {
        for address in ["ada@example.com", "nobody@example.com"] {
            let reply = key.import("/assets", query, &format!("name,assigned_to_email\na,\nb,{address}\n")).await;
            assert_eq!(reply.problem(403, "FORBIDDEN")["scope"], "users:read");
        }
    }
    let csv = key.export("/assets/export").await.concat();
    let ndjson = key.export("/assets/export?format=ndjson").await.concat();
    assert!(!csv.contains("ada@") && !ndjson.contains("ada@"), "{csv}{ndjson}");
    for (text, content_type) in [(csv, "text/csv"), (ndjson, "application/x-ndjson")] {
        let reply = key.send("POST", "/assets/import?match=id", Some(content_type), text).await;
        assert_eq!(outcomes(&reply), ["unchanged"]);
    }
    assert_eq!(key.get(&format!("/assets/{asset}")).await.data()["assigned_to"], ada);
    let cleared = key.import("/assets", "?match=id", &format!("id,assigned_to_email\n{asset},\\N\n")).await;
    assert_eq!(outcomes(&cleared), ["updated"]);
}

#[tokio::test(start_paused = true)]
async fn an_import_of_an_export_changes_nothing_under_a_schema_that_is_newer() {
    let client = over_http().await;
    let phone = client.asset_type("Phone", "PHO", "physical").await;
    client.asset(json!({"name": "a", "asset_type_id": phone, "custom_fields": {"imei": 356938035643809_u64}})).await;
    let schema = json!({"type": "object", "properties": {"imei": {"type": "string"}}});
    client.patch(&format!("/catalog/asset-types/{phone}"), json!({"custom_fields_schema": schema})).await.data();
    let text = client.export("/assets/export").await.concat();
    assert_eq!(outcomes(&client.import("/assets", "?match=id", &text).await), ["unchanged"]);
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        (-1000i32..1000).prop_map(|n| json!(f64::from(n) / 8.0)),
        "[\\PC--\\x{FFFD}]{0,20}".prop_map(Value::from),
        "['\"=+@;＝\\\\N0-9\r\n\t -]{0,4}".prop_map(Value::from),
        Just(json!("\\N")),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::hash_map("[\\PC--\\x{FFFD}]{1,5}", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[\\PC--\\x{FFFD}]{1,30}", "['\"=+@,;0-9-]{1,5}", Just("\\N".to_owned()), Just("null".to_owned())]
}

fn asset() -> impl Strategy<Value = Value> {
    let fields = prop::collection::hash_map(
        prop_oneof!["[a-z]{1,3}", "[\\PC--\\x{FFFD}]{1,8}", "[ a]{0,2}", "[a;='\"\t\n＋-]{0,5}"],
        json_value(),
        0..4,
    );
    let notes = prop_oneof!["([\\PC--\\x{FFFD}]|[\r\n\t\"';=+@-]){0,40}".prop_map(Some), Just(None)];
    let price =
        prop_oneof![Just(None), (0u32..1_000_000, 0u32..10_000).prop_map(|(whole, part)| Some(format!("{whole}.{part:04}")))];
    (text(), prop::option::of(text()), prop::option::of(text()), notes, fields, price).prop_map(
        |(name, serial, manufacturer, notes, fields, price)| {
            let fields: Map<String, Value> = fields.into_iter().collect();
            let mut body = json!({"name": name, "serial_number": serial, "manufacturer": manufacturer, "notes": notes, "custom_fields": fields});
            if let Some(price) = price {
                body["purchase_price"] = serde_json::from_str(&price).unwrap();
            }
            body
        },
    )
}

/// For any asset, importing its export with `match=id` finds no difference.
#[test]
fn an_import_of_an_export_changes_nothing() {
    let runtime = runtime();
    let (_api, client): (Api, Client) = runtime.block_on(Api::with_tenant());
    property::check(&runtime, 40, &prop::collection::vec(asset(), 1..8), async |assets| {
        let mut ids = Vec::new();
        for body in &assets {
            let made = client.post("/assets", json!(body)).await;
            ids.extend((made.status == 201).then(|| made.id()));
        }
        prop_assume!(!ids.is_empty());
        for (format, content_type) in [("csv", "text/csv"), ("ndjson", "application/x-ndjson")] {
            let text = client.export(&format!("/assets/export?format={format}")).await.concat();
            let reply = client.send("POST", "/assets/import?match=id", Some(content_type), text.clone()).await;
            prop_assert_eq!(outcomes(&reply), vec!["unchanged"; ids.len()], "{}\n{}", text, reply.text());
            prop_assert_eq!(client.export(&format!("/assets/export?format={format}")).await.concat(), text);
        }
        for id in ids {
            client.delete(&format!("/assets/{id}")).await;
        }
        Ok(())
    });
}
