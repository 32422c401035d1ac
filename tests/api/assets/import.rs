//! Imports of assets and users: rows, matching, and repeated requests after an interruption.

use crate::support::prelude::*;
use shared::http::requests::body::NOT_UTF8;

pub async fn asset(client: &Client, name: &str) -> Value {
    let list = client.get(&format!("/assets?q={}", name.replace(' ', "+"))).await.data();
    let found: Vec<&Value> = list.as_array().unwrap().iter().filter(|asset| asset["name"] == name).collect();
    assert_eq!(found.len(), 1, "{name}: {list}");
    found[0].clone()
}

#[tokio::test(start_paused = true)]
async fn rows_refer_to_records_by_name_and_unknown_names_get_suggestions() {
    let client = over_http().await;
    let laptop = client.asset_type("Laptop", "LAP", "physical").await;
    let model = client.model("Dell", "Latitude 7450", &laptop).await;
    let ada = client.user("Ada").await;
    let csv = "\u{feff}name,asset_type_code,manufacturer_name,model_name,serial_number,purchase_date,purchase_price,assigned_to_email,notes\r\n\
               Laptop 1,LAP,DELL,latitude 7450,S-1,2026-03-04,1249.00,ADA@Example.com,\"two\nlines, \"\"quoted\"\"\"\r\n\
               Laptop 2,,,,S-2,,,,'=1+1\r\n";
    let reply = client.import("/assets", "", csv).await;
    assert_eq!(outcomes(&reply), ["created", "created"]);
    assert_eq!(reply.json()["meta"], json!({"rows": 2, "created": 2, "updated": 0, "unchanged": 0, "refused": 0, "skipped": 0}));
    let first = asset(&client, "Laptop 1").await;
    assert_eq!(first["id"], reply.data()[0]["id"]);
    assert_eq!(
        (&first["asset_type_id"], &first["model_id"], &first["assigned_to"]),
        (&json!(laptop), &json!(model), &json!(ada))
    );
    assert_eq!((&first["manufacturer"], &first["notes"]), (&json!("Dell"), &json!("two\nlines, \"quoted\"")));
    assert_eq!(asset(&client, "Laptop 2").await["notes"], "=1+1");
    assert_eq!((reply.data()[0]["row"].clone(), first["asset_tag"].clone()), (json!(1), json!("AST-000001")));

    let model = client.model("Lenovo", "ThinkPad T14", &laptop).await;
    let csv = "name,manufacturer_name,model_name\na,Ｌenovo,ThinkPad\u{a0}T14\nb,LENOVO,thinkpad  t14\nc,Lenowo,ThinkPad T14\nd,Lenovo,Thinkpad T41\n";
    let reply = client.import("/assets", "", csv).await;
    assert_eq!(outcomes(&reply), ["created", "created", "refused", "refused"]);
    assert_eq!(asset(&client, "a").await["model_id"], json!(model));
    let unknown = "is not the name of a manufacturer in the catalog; similar: Lenovo, Dell";
    assert_eq!(row_errors(&reply, 2), [("manufacturer_name".to_owned(), unknown.to_owned())]);
    let unknown = "is not the name of a model of Lenovo in the catalog; similar: ThinkPad T14";
    assert_eq!(row_errors(&reply, 3), [("model_name".to_owned(), unknown.to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn all_errors_of_a_row_are_reported_and_the_other_rows_are_written() {
    let client = over_http().await;
    client.asset_type("Laptop", "LAP", "physical").await;
    let gone = client.user("Gone").await;
    client.patch(&format!("/users/{gone}"), json!({"is_active": false})).await.data();
    let csv = "name,status,asset_type_code,manufacturer_name,model_name,purchase_date,purchase_price,assigned_to_email,id,custom_fields.ram\n\
               good,,,,,,,,,16\n\
               ,lost,XYZ,Dell,Nothing,04.03.2026,\"1.249,00 €\",nobody@example.com,,\n\
               short,in_use\n\
               inactive,,,,,,,gone@example.com,,\n\
               own id,,,,,,,,01890a5d-ac96-774b-bcce-b302099a8057,\n\
               lonely,,,Dell,,,,,,\n\
               \"unclosed,,,,,,,,,";
    let reply = client.import("/assets", "", csv).await;
    assert_eq!(outcomes(&reply), ["created", "refused", "refused", "refused", "refused", "refused", "refused"]);
    let columns = |row| row_errors(&reply, row).into_iter().map(|(column, _)| column).collect::<Vec<_>>();
    let mut second = columns(1);
    second.sort();
    let expected =
        ["asset_type_code", "assigned_to_email", "manufacturer_name", "name", "purchase_date", "purchase_price", "status"];
    assert_eq!(second, expected);
    assert_eq!(row_errors(&reply, 2), [(String::new(), "The row has 2 cells, but the header row has 10.".to_owned())]);
    assert_eq!(row_errors(&reply, 3), [("assigned_to_email".to_owned(), "belongs to an inactive user".to_owned())]);
    assert_eq!((columns(4), columns(5)), (vec!["id".to_owned()], vec!["model_name".to_owned()]));
    assert_eq!(columns(6), [""]);
    assert_eq!(reply.data()[1]["errors"][0]["code"], "VALIDATION_ERROR");
    assert_eq!(client.total("/assets").await, 1);
    assert_eq!(asset(&client, "good").await["custom_fields"], json!({"ram": "16"}), "a text without a schema");

    let csv = format!("name,id,assigned_to_email\n{},,\n,x,nobody@example.com\n", "n".repeat(256));
    let reply = client.import("/assets", "?match=id&create_unmatched=true", &csv).await;
    let columns = |row| row_errors(&reply, row).into_iter().map(|(column, _)| column).collect::<Vec<_>>();
    let mut second = columns(1);
    second.sort();
    assert_eq!((columns(0), second), (vec!["name".to_owned()], vec!["assigned_to_email".into(), "id".into(), "name".into()]));
    let unknown = client.import("/assets", "?match=id", &format!("id,name\n{UNKNOWN_ID},x\n")).await;
    assert_eq!(row_errors(&unknown, 0), [("id".to_owned(), "is not the ID of an asset of this tenant".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn a_schema_says_what_the_cells_of_custom_fields_are() {
    let client = over_http().await;
    let schema =
        json!({"type": "object", "properties": {"imei": {"type": "string"}, "ram": {"type": "integer"}}, "required": ["imei"]});
    client.type_with_schema("Phone", "PHO", schema).await;
    let csv = "name,asset_type_code,custom_fields.imei,custom_fields.ram\n\
               a,PHO,356938035643809,8\nb,PHO,,8\nc,PHO,1,many\nd,,356938035643809,8\n";
    let reply = client.import("/assets", "", csv).await;
    assert_eq!(outcomes(&reply), ["created", "refused", "refused", "created"]);
    assert_eq!(asset(&client, "a").await["custom_fields"], json!({"imei": "356938035643809", "ram": 8}));
    assert_eq!(asset(&client, "d").await["custom_fields"], json!({"imei": "356938035643809", "ram": "8"}));
    assert_eq!(row_errors(&reply, 2)[0].0, "custom_fields.ram");
}

#[tokio::test(start_paused = true)]
async fn unknown_columns_and_too_many_rows_are_refused_before_much_is_done() {
    let client = over_http().await;
    let reply = client.import("/assets", "", "name,serial,name\na,b,c\n").await;
    assert_eq!(reply.field_errors(), ["name", "serial"]);
    assert!(reply.text().contains("unknown column; could be serial_number: `map=serial=serial_number`"), "{}", reply.text());
    let many = format!("name\n{}", "x\n".repeat(201));
    let problem = client.import("/assets", "", &many).await.problem(422, "VALIDATION_ERROR");
    assert!(problem["errors"][0]["detail"].as_str().unwrap().starts_with("The file has 201 rows"), "{problem}");
    client.import("/assets", "", "").await.problem(400, "MALFORMED_REQUEST");
    client.send("POST", "/assets/import", Some("text/plain"), "name").await.problem(415, "UNSUPPORTED_MEDIA_TYPE");
    client.send("POST", "/assets/import", Some("application/json"), "{}").await.problem(422, "VALIDATION_ERROR");
    assert_eq!(
        client.import("/assets", "?match=email&on_error=stop&x=1", "name\na\n").await.field_errors(),
        ["match", "on_error", "x"]
    );
    let without_rows = client.import("/assets", "", "name\n").await;
    assert_eq!((outcomes(&without_rows), without_rows.header("idempotent-replayed")), (Vec::<String>::new(), ""));
    let ndjson = "{\"name\": \"a\", \"colour\": 1}\n";
    let reply = client.send("POST", "/assets/import", Some("application/x-ndjson"), ndjson).await;
    assert_eq!(reply.field_errors(), ["colour"]);
    assert_eq!(client.total("/assets").await, 0);

    for (columns, errors) in [(9_000, 100), (120_000, 1)] {
        let header = (0..columns).map(|n| format!("c{n}")).collect::<Vec<_>>().join(",");
        assert_eq!(client.import("/assets", "", &header).await.field_errors().len(), errors, "{columns} columns");
    }
    let members = (0..80_000).map(|n| format!("\"c{n}\":1")).collect::<Vec<_>>().join(",");
    let line = client.send("POST", "/assets/import", Some("application/x-ndjson"), format!("{{{members}}}")).await;
    assert_eq!(line.field_errors().len(), 100);
    let many = format!("name\n{}", "x\n".repeat(500_000));
    let problem = client.import("/assets", "", &many).await.problem(422, "VALIDATION_ERROR");
    assert!(problem["errors"][0]["detail"].as_str().unwrap().starts_with("The file has 500000 rows"), "{problem}");
}

#[tokio::test(start_paused = true)]
async fn ndjson_has_the_types_of_json_and_a_value_to_match_must_be_a_text() {
    let client = over_http().await;
    let ndjson = "{\"name\": \"a\", \"purchase_price\": 12.50, \"custom_fields\": {\"x\": [1]}}\n\n\
                  {\"name\": \"b\", \"custom_fields.x\": null, \"notes\": null}\r\n\
                  {\"name\": \"c\"\n\
                  [1]\n\
                  {\"name\": 5, \"name\": \"d\"}";
    let reply = client.send("POST", "/assets/import", Some("application/x-ndjson"), ndjson).await;
    assert_eq!(outcomes(&reply), ["created", "created", "refused", "refused", "refused"]);
    assert!(client.get(&format!("/assets/{}", reply.data()[0]["id"].as_str().unwrap())).await.text().contains("12.50"));
    assert_eq!(asset(&client, "b").await["custom_fields"], json!({}));

    for (path, name, row) in [
        ("/assets", "serial_number", json!({"name": "x", "serial_number": 5})),
        ("/assets", "asset_tag", json!({"name": "x", "asset_tag": ["T1"]})),
        ("/assets", "id", json!({"name": "x", "id": 5})),
        ("/users", "email", json!({"display_name": "x", "email": true})),
    ] {
        for more in ["", "&create_unmatched=true"] {
            // A row of users needs an e-mail address, so a row without an address can't create a user.
            if path == "/users" && !more.is_empty() {
                continue;
            }
            let import = format!("{path}/import?match={name}{more}");
            let reply = client.send("POST", &import, Some("application/x-ndjson"), row.to_string()).await;
            assert_eq!(row_errors(&reply, 0), [(name.to_owned(), "must be a string".to_owned())], "{import}");
        }
    }
    let null = client.send("POST", "/assets/import?match=id", Some("application/x-ndjson"), r#"{"name":"x","id":null}"#).await;
    assert!(row_errors(&null, 0)[0].1.starts_with("is empty"), "{}", null.text());
}

#[tokio::test(start_paused = true)]
async fn on_error_abort_writes_all_rows_or_none() {
    let (api, client) = Api::with_tenant().await;
    client.use_key_once().await;
    let before = api.dump().await;
    let csv = "name,serial_number,status\na,S1,\nb,S2,lost\nc,S3,\n";
    let reply = client.import("/assets", "?on_error=abort&match=serial_number", csv).await;
    assert_eq!(outcomes(&reply), ["skipped", "refused", "skipped"]);
    assert_eq!(api.dump().await, before);
    let reply = client.import("/assets", "?on_error=abort&match=serial_number", &csv.replace("lost", "")).await;
    assert_eq!(outcomes(&reply), ["created"; 3]);
    assert_eq!((client.total("/assets").await, asset(&client, "c").await["asset_tag"].clone()), (3, json!("AST-000003")));
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_says_what_would_become_of_each_row() {
    let (api, client) = Api::with_tenant().await;
    let id = client.asset(json!({"name": "known", "serial_number": "S-1"})).await;
    client.asset(json!({"name": "old", "serial_number": "S-2"})).await;
    let before = api.dump().await;
    let csv = "name,serial_number,status\nknown,S-1,\nrenamed,S-2,\nnew,S-3,\nbad,S-4,lost\n";
    let dry = client.import("/assets", "?match=serial_number&dry_run=true", csv).await;
    assert_eq!(outcomes(&dry), ["unchanged", "updated", "created", "refused"]);
    assert_eq!((&dry.data()[0]["id"], &dry.data()[2]["id"]), (&json!(id), &json!(null)));
    assert_eq!((dry.header("dry-run"), api.dump().await), ("true", before));
    let real = client.import("/assets", "?match=serial_number", csv).await;
    assert_eq!(outcomes(&real), outcomes(&dry));
    let users = "email,display_name\nada@example.com,Ada\nADA@example.com,Again\n";
    let dry = client.import("/users", "?dry_run=true", users).await;
    assert_eq!(outcomes(&dry), ["created", "refused"]);
    assert_eq!(client.total("/users").await, 0);
}

#[tokio::test(start_paused = true)]
async fn users_are_imported_by_email_with_the_rules_of_single_requests() {
    let client = over_http().await;
    let ada = client.user("Ada").await;
    let csv = "email,display_name,role,is_active\nADA@example.com,Countess,,FALSE\nbob@example.com,Bob,viewer,\n,Nobody,,\n";
    let reply = client.import("/users", "?match=email&create_unmatched=true", csv).await;
    assert_eq!(outcomes(&reply), ["updated", "created", "refused"]);
    let user = client.get(&format!("/users/{ada}")).await.data();
    assert_eq!(
        (&user["email"], &user["display_name"], &user["is_active"]),
        (&json!("ADA@example.com"), &json!("Countess"), &json!(false))
    );
    assert_eq!(outcomes(&client.import("/users", "?match=email", csv).await), ["unchanged", "unchanged", "refused"]);
    assert_eq!(outcomes(&client.import("/users", "", csv).await), ["refused"; 3]);
    let limited = client.scoped(&["users:write"]).await;
    let reply = limited.import("/users", "", "email,display_name,role\nx@example.com,X,admin\n").await;
    assert_eq!(
        (outcomes(&reply), reply.data()[0]["errors"][0]["code"].clone()),
        (vec!["refused".to_owned()], json!("FORBIDDEN"))
    );
}

#[tokio::test(start_paused = true)]
async fn row_that_looks_like_the_end_of_a_body_is_imported() {
    let client = over_http().await;
    for (rows, count) in [("\u{1}after the body\nx\nlast\n", 3), ("a\n\n\nx", 2), ("\"x\n\"\r\n\r\n", 1), ("\"a\"", 1)] {
        let reply = client.import("/assets", "?dry_run=true", &format!("name\n{rows}")).await;
        assert_eq!(outcomes(&reply).len(), count, "{rows:?}");
    }
    let cut_off = client.import("/assets", "", "name\ngood\n\"x\nx").await;
    assert_eq!(outcomes(&cut_off), ["created", "refused"]);
    assert_eq!(
        client.import("/assets", "", "\"name\nx").await.problem(422, "VALIDATION_ERROR")["errors"][0]["detail"],
        "The header row is cut off: the file ends in the middle of a quoted cell."
    );
}

#[tokio::test(start_paused = true)]
async fn a_damaged_asset_costs_only_its_own_row() {
    let (api, client) = Api::with_tenant().await;
    let damaged = client.asset(json!({"name": "damaged", "serial_number": "S-1"})).await;
    let sound = client.asset(json!({"name": "sound", "serial_number": "S-2"})).await;
    client.total("/assets").await;
    let key = Keys::of(client.tenant).record(Kind::Asset, damaged.parse().unwrap()).item();
    set_attribute(&api, &key, "status", AttributeValue::N("1".into())).await;
    let csv = "serial_number,name\nS-1,a\nS-2,b\nS-3,c\n";
    let reply = client.import("/assets", "?match=serial_number", csv).await;
    assert_eq!(outcomes(&reply), ["refused", "updated", "created"]);
    assert_eq!(reply.data()[0]["errors"][0]["code"], "INTERNAL_ERROR");
    let operations = [json!({"op": "update", "id": damaged, "body": {"name": "x"}}), json!({"op": "delete", "id": sound})];
    client.batch("/assets/batch", &operations).await.problem(500, "INTERNAL_ERROR");
}

#[tokio::test(start_paused = true)]
async fn body_that_is_not_csv_in_utf8_is_refused_with_the_reason() {
    let client = over_http().await;
    let utf16: Vec<u8> = "name\na\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for body in [utf16, b"PK\x03\x04\x14\0\x06".to_vec()] {
        let problem = client.send("POST", "/assets/import", Some("text/csv"), body).await.problem(400, "MALFORMED_REQUEST");
        assert!(problem["detail"].as_str().unwrap().contains("UTF-8"), "{problem}");
    }
    let windows = client.send("POST", "/assets/import", Some("text/csv; charset=windows-1252"), "name\na\n").await;
    windows.problem(415, "UNSUPPORTED_MEDIA_TYPE");
    for csv in ["name,custom_fields.Gr\u{fffd}\u{fffd}e\na,b\n".as_bytes(), b"name,custom_fields.Gr\xf6\xdfe\na,b\n"] {
        client.send("POST", "/assets/import", Some("text/csv"), csv.to_vec()).await.problem(400, "MALFORMED_REQUEST");
    }
    for csv in ["name\nGr\u{fffd}\u{fffd}e\n".as_bytes(), b"name\nGr\xf6\xdfe\n"] {
        let reply = client.send("POST", "/assets/import", Some("text/csv"), csv.to_vec()).await;
        assert_eq!(row_errors(&reply, 0), [("name".to_owned(), NOT_UTF8.to_owned())]);
    }
    let escaped = client.import("/assets", "", "name,custom_fields.x\na,\"[\"\"\\ufffd\"\"]\"\n").await;
    assert_eq!(row_errors(&escaped, 0), [("custom_fields.x".to_owned(), NOT_UTF8.to_owned())]);
    let escaped = client.import("/assets", "", "name,custom_fields\na,\"{\"\"x\"\":\"\"\\ufffd\"\"}\"\n").await;
    assert_eq!(row_errors(&escaped, 0), [("custom_fields".to_owned(), NOT_UTF8.to_owned())]);
    let ndjson = "{\"name\": \"Gr\u{fffd}e\"}\n{\"name\": \"Gr\\ufffde\"}\n";
    let reply = client.send("POST", "/assets/import", Some("application/x-ndjson"), ndjson).await;
    assert_eq!(outcomes(&reply), ["refused"; 2]);
    let semicolons = client.import("/assets", "", "name;status\na;in_use\n").await;
    assert!(semicolons.text().contains("separated by commas"), "{}", semicolons.text());
    for (path, matching) in [("/assets", "serial_number"), ("/assets", "id"), ("/users", "email")] {
        assert!(client.import(path, &format!("?match={matching}"), "id\n\n").await.status == 200);
        let column = if path == "/users" { "display_name" } else { "name" };
        let reply = client.import(path, &format!("?match={matching}"), &format!("{column}\na\n")).await;
        assert_eq!(reply.field_errors(), ["match"]);
    }
    let headers = [("if-match", "\"1-0123456789abcdef\"")];
    let reply = client.send_with("POST", "/assets/import", Some("text/csv"), "name\na\n", &headers).await;
    assert_eq!(reply.field_errors(), ["If-Match"]);
    let spaces = client.import("/assets", "", "name,status,purchase_date\n a , in_use , 2024-01-01 \n\\N,,\n").await;
    assert_eq!(outcomes(&spaces), ["created", "refused"]);
    assert_eq!(row_errors(&spaces, 1), [("name".to_owned(), "can't be cleared".to_owned())]);
    assert_eq!(client.total("/assets").await, 1);
}

#[tokio::test(start_paused = true)]
async fn an_import_reads_once_what_its_rows_share_and_a_repetition_writes_nothing() {
    let (api, client) = Api::with_tenant().await;
    client.asset_type("Laptop", "LAP", "physical").await;
    client.user("Ada").await;
    let rows: String = (0..20).map(|n| format!("n{n},LAP,ada@example.com\n")).collect();
    let csv = format!("name,asset_type_code,assigned_to_email\n{rows}");
    client.use_key_once().await;
    api.meter.take();
    assert_eq!(outcomes(&client.import_once("/assets", &csv, "key").await), ["created"; 20]);
    let first = api.meter.take();
    // Calls besides the rows' transactions: the key and its counter, two reads of the key's stored response, the request's
    // marker, two lookups of names, one of records, and the tag numbers.
    assert!(first.calls <= 20 + 10 && first.read_units <= 12.0, "{first:?}");
    assert!(first.write_units <= 20.0 * 18.0 + 6.0, "{first:?}");
    assert_eq!(outcomes(&client.import_once("/assets", &csv, "key").await), ["created"; 20]);
    let again = api.meter.take();
    assert!(again.calls <= 7 && again.write_units <= 1.0, "{again:?}");
}

#[tokio::test(start_paused = true)]
async fn a_row_updates_what_it_matches() {
    let client = over_http().await;
    let ids = client.assets(3).await;
    let get = async |id: &str| client.get(&format!("/assets/{id}")).await.data();
    let (first, tag) = (get(&ids[0]).await, get(&ids[1]).await["asset_tag"].as_str().unwrap().to_owned());
    client
        .patch(&format!("/assets/{}", ids[2]), json!({"serial_number": "S-3", "notes": "old", "custom_fields": {"a": 1, "b": 2}}))
        .await
        .data();

    let csv = format!("id,name,notes\n{},by id,\n{UNKNOWN_ID},unknown,\nx,bad,\n,new,\n{},{},\n", ids[0], ids[1], "a1");
    let reply = client.import("/assets", "?match=id&create_unmatched=true", &csv).await;
    assert_eq!(outcomes(&reply), ["updated", "refused", "refused", "created", "unchanged"]);
    assert_eq!(
        (get(&ids[0]).await["name"].clone(), first["created_at"].clone()),
        (json!("by id"), get(&ids[0]).await["created_at"].clone())
    );

    let csv = format!("asset_tag,status\n{},in_use\nAST-999999,in_use\n", tag.to_lowercase());
    assert_eq!(outcomes(&client.import("/assets", "?match=asset_tag", &csv).await), ["updated", "refused"]);
    assert_eq!(get(&ids[1]).await["status"], "in_use");

    let csv = "serial_number,name,notes,custom_fields.a,custom_fields.b,custom_fields.c\n\
               S-3,by serial,\\N,\\N,2,4711\n\
               S-4,created,,,,0815\n";
    let reply = client.import("/assets", "?match=serial_number", csv).await;
    assert_eq!(outcomes(&reply), ["updated", "created"]);
    let third = get(&ids[2]).await;
    assert_eq!((&third["notes"], &third["custom_fields"]), (&json!(null), &json!({"b": 2, "c": "4711"})), "`b` is unchanged");
    assert_eq!(asset(&client, "created").await["custom_fields"], json!({"c": "0815"}));

    client.asset(json!({"name": "double", "serial_number": "S-3"})).await;
    let reply = client.import("/assets", "?match=serial_number", csv).await;
    assert_eq!(outcomes(&reply), ["refused", "unchanged"]);
    assert_eq!(reply.data()[0]["errors"][0]["code"], "DUPLICATE");
    assert_eq!(reply.data()[0]["errors"][0]["asset_ids"].as_array().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_row_without_updated_at_can_be_imported_after_somebody_else_changed_the_status() {
    let (api, client) = Api::with_tenant().await;
    let id = client.asset(json!({"name": "a", "notes": "old"})).await;
    let rows: Vec<Value> = client
        .export("/assets/export?format=ndjson")
        .await
        .concat()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let (mut row, path) = (rows[0].clone(), format!("/assets/{id}"));
    row["notes"] = json!("new");
    for left_out in ["updated_at", "status"] {
        row.as_object_mut().unwrap().remove(left_out);
    }
    api.advance_clock(60);
    client.patch(&path, json!({"status": "in_use"})).await.data();
    let import =
        async |row: &Value| client.send("POST", "/assets/import?match=id", Some("application/x-ndjson"), row.to_string()).await;
    let reply = import(&row).await;
    assert_eq!(outcomes(&reply), ["updated"], "{}", reply.text());
    let asset = client.get(&path).await.data();
    assert_eq!((&asset["notes"], &asset["status"]), (&json!("new"), &json!("in_use")));
    for (field, wrong) in [
        ("status_changed_at", "2099-01-01T00:00:00.000Z"),
        ("status_changed_at", "soon"),
        ("created_at", "2020-01-01T00:00:00.000Z"),
    ] {
        let mut row = row.clone();
        row[field] = json!(wrong);
        assert_eq!(row_errors(&import(&row).await, 0)[0].0, field, "{wrong}");
    }
}

#[tokio::test(start_paused = true)]
async fn rows_that_could_become_the_wrong_asset_are_refused() {
    let client = over_http().await;
    let csv = "name,serial_number\na,S-1\nb,\nc,n/a\nd, s-1 \ne,S-2\nf,To be filled by O.E.M.\ng,Ｓ- 1\n";
    let reply = client.import("/assets", "?match=serial_number", csv).await;
    assert_eq!(outcomes(&reply), ["refused", "refused", "refused", "refused", "created", "refused", "refused"]);
    let detail = |row| row_errors(&reply, row).remove(0).1;
    assert_eq!((detail(0), detail(3)), ("has the same value in rows 4, 7".into(), "has the same value in rows 1, 7".into()));
    let unmatched = "is empty, so the row updates nothing; with create_unmatched=true, it creates a record";
    assert_eq!(row_errors(&reply, 1), [("serial_number".to_owned(), unmatched.to_owned())]);
    assert!(detail(2).starts_with("is a placeholder") && detail(5).starts_with("is a placeholder"), "{reply:?}");
    let again = client.import("/assets", "?match=serial_number&create_unmatched=true", csv).await;
    assert_eq!(outcomes(&again), ["refused", "created", "refused", "refused", "unchanged", "refused", "refused"]);
    let users = "email,display_name\nada@example.com,Ada\nADA@example.com,Again\n,Nobody\n";
    assert_eq!(outcomes(&client.import("/users", "?match=email", users).await), ["refused"; 3]);
    let ids = client.assets(1).await;
    let csv = format!("id,name\n{},a\n{},b\n", ids[0], ids[0].to_uppercase());
    assert_eq!(outcomes(&client.import("/assets", "?match=id", &csv).await), ["refused"; 2]);
    let tags = "name,asset_tag\na,inv-1\nb,INV-1\nc,inv-2\n";
    for dry_run in ["&dry_run=true", ""] {
        let query = format!("?match=asset_tag&create_unmatched=true{dry_run}");
        assert_eq!(outcomes(&client.import("/assets", &query, tags).await), ["refused", "refused", "created"]);
    }
}

#[tokio::test(start_paused = true)]
async fn serial_numbers_are_the_same_in_another_spelling_and_placeholders_match_nothing() {
    let client = over_http().await;
    let id = client.asset(json!({"name": "a", "serial_number": "PF3 XK011"})).await;
    let get = async || client.get(&format!("/assets/{id}")).await.data();
    let serial = " ＰＦ３　ｘｋ０１１";
    let found = client.get(&format!("/assets?serial_number={}", percent(serial))).await.data();
    assert_eq!(found[0]["id"], id);
    let csv = format!("name,serial_number\nby import,{serial}\n");
    assert_eq!(outcomes(&client.import("/assets", "?match=serial_number", &csv).await), ["updated"]);
    let imported = get().await;
    assert_eq!((&imported["name"], &imported["serial_number"]), (&json!("by import"), &json!("PF3 XK011")));
    let put = client.put(&format!("/assets/by-serial/{}", percent(serial)), &json!({"name": "by PUT"})).await;
    assert_eq!((put.status.as_u16(), put.data()["serial_number"].clone()), (200, json!("PF3 XK011")));
    let reply = client.import("/assets", "?match=id", &format!("id,serial_number\n{id},pf3xk011\n")).await;
    assert_eq!((outcomes(&reply), get().await["serial_number"].clone()), (vec!["updated".to_owned()], json!("pf3xk011")));
    client.asset(json!({"name": "double", "serial_number": "PF3XK 011"})).await;
    client.put("/assets/by-serial/PF3XK011", &json!({"name": "x"})).await.problem(409, "DUPLICATE");

    for serial in ["Ｎ／Ａ", "8.93901E+18", "1,23E+12"] {
        let csv = format!("name,serial_number\na,\"{serial}\"\n");
        let reply = client.import("/assets", "?match=serial_number&create_unmatched=true", &csv).await;
        let columns: Vec<String> = row_errors(&reply, 0).into_iter().map(|(column, _)| column).collect();
        assert_eq!((outcomes(&reply), columns), (vec!["refused".to_owned()], vec!["serial_number".to_owned()]));
        let put = client.put(&format!("/assets/by-serial/{}", percent(serial)), &json!({"name": "x"})).await;
        assert_eq!(put.field_errors(), ["serial"], "{serial}");
    }
    let csv = "name,serial_number\na,00012345\n";
    assert_eq!(outcomes(&client.import("/assets", "?match=serial_number", csv).await), ["created"]);
    assert_eq!(client.get("/assets?serial_number=00012345").await.data()[0]["serial_number"], "00012345");
}

fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[tokio::test(start_paused = true)]
async fn numbers_that_a_spreadsheet_has_shortened_are_refused_unless_they_are_what_is_stored() {
    let client = over_http().await;
    let schema = json!({"type": "object", "properties": {"imei": {"type": ["integer", "null"]}}});
    client.type_with_schema("Phone", "PHO", schema).await;
    let csv = "name,asset_type_code,serial_number,asset_tag,custom_fields.imei,custom_fields.note\n\
               a,PHO,8.93901E+18,,,\nb,PHO,,\"1,23E+12\",,\nc,PHO,,,3.56938E+14,\nd,PHO,S-1,T-1,356938035643809,3.56938E+14\n";
    let reply = client.import("/assets", "", csv).await;
    assert_eq!(outcomes(&reply), ["refused", "refused", "refused", "created"]);
    let errors: Vec<_> = (0..3).map(|row| row_errors(&reply, row).remove(0)).collect();
    assert_eq!(
        errors.iter().map(|(column, _)| column.as_str()).collect::<Vec<_>>(),
        ["serial_number", "asset_tag", "custom_fields.imei"]
    );
    assert!(errors.iter().all(|(_, detail)| detail.contains("spreadsheet") && detail.contains("as text")), "{errors:?}");
    let id = client.asset(json!({"name": "e", "serial_number": "8.93901E+18"})).await;
    let csv = format!("id,serial_number\n{id},8.93901E+18\n");
    assert_eq!(outcomes(&client.import("/assets", "?match=id", &csv).await), ["unchanged"]);
    let csv = csv.replace("8.93901", "8.93902");
    assert_eq!(outcomes(&client.import("/assets", "?match=id", &csv).await), ["refused"]);
}

#[tokio::test(start_paused = true)]
async fn the_tag_of_a_deleted_asset_is_refused_where_the_file_has_it() {
    let client = over_http().await;
    let id = client.asset(json!({"name": "a", "asset_tag": "INV-1"})).await;
    client.delete(&format!("/assets/{id}")).await;
    let problem = client.post("/assets", json!({"name": "b", "asset_tag": "inv-1"})).await.problem(409, "DUPLICATE");
    let (day, _) = problem["deleted_at"].as_str().unwrap().split_once('T').unwrap();
    assert!(problem["detail"].as_str().unwrap().contains(&format!("was deleted on {day};")), "{problem}");
    for query in ["", "?match=asset_tag", "?match=asset_tag&create_unmatched=true"] {
        let reply = client.import("/assets", query, "name,asset_tag\nb,INV-1\n").await;
        let errors = row_errors(&reply, 0);
        assert_eq!(errors[0].0, "asset_tag", "{query} {errors:?}");
        assert!(errors[0].1.contains(&format!("is the tag of an asset that was deleted on {day}")), "{query} {errors:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn names_of_custom_fields_that_look_the_same_are_the_same() {
    let client = over_http().await;
    let id = client.asset(json!({"name": "a", "custom_fields": {"Fa\u{308}rg ": "röd"}})).await;
    assert_eq!(client.get(&format!("/assets/{id}")).await.data()["custom_fields"], json!({"F\u{e4}rg": "röd"}));
    let csv = format!("id,custom_fields.Fa\u{308}rg ,\n{id},blå,\n");
    assert_eq!(outcomes(&client.import("/assets", "?match=id", &csv).await), ["updated"]);
    assert_eq!(client.get(&format!("/assets/{id}")).await.data()["custom_fields"], json!({"F\u{e4}rg": "blå"}));
    let refused = client.patch(&format!("/assets/{id}"), json!({"custom_fields": {"\u{200b}x": 1, "a": 1, " a": 2}})).await;
    assert_eq!(refused.field_errors(), ["/custom_fields/ a", "/custom_fields/\u{200b}x"]);
    let refused = client.import("/assets", "", "name,custom_fields.\u{200b}x\na,1\n").await;
    assert_eq!(refused.field_errors(), ["custom_fields.\u{200b}x"]);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_says_what_each_row_changes_but_not_all_of_many_changes() {
    let client = over_http().await;
    let ada = client.user("Ada").await;
    let id = client
        .asset(json!({"name": "a", "notes": "n".repeat(5000), "custom_fields": {"cost_center": "0815", "os": "Debian"}}))
        .await;
    let csv = format!(
        "id,name,notes,assigned_to_email,custom_fields.cost_center,custom_fields.os,custom_fields.ram\n\
                       {id},b,short,ada@example.com,815,Debian,16\n,new,,,,,\n"
    );
    let reply = client.import("/assets", "?match=id&create_unmatched=true&dry_run=true", &csv).await;
    assert_eq!(outcomes(&reply), ["updated", "created"]);
    let changes = &reply.data()[0]["changes"];
    let expected = json!([
        {"field": "assigned_to", "old": null, "new": ada},
        {"field": "custom_fields.cost_center", "old": "0815", "new": "815"},
        {"field": "custom_fields.ram", "old": null, "new": "16"},
        {"field": "name", "old": "a", "new": "b"},
        {"field": "notes", "old": format!("{}…", "n".repeat(100)), "new": "short"},
    ]);
    assert_eq!((changes, reply.data()[1].get("changes")), (&expected, None), "{reply:?}");
    let written = client.import("/assets", "?match=id&create_unmatched=true", &csv).await;
    assert_eq!((outcomes(&written), written.data()[0].get("changes").cloned()), (outcomes(&reply), None));
    let csv = "email,role\nada@example.com,admin\n";
    let reply = client.import("/users", "?match=email&dry_run=true", csv).await;
    assert_eq!(reply.data()[0]["changes"], json!([{"field": "role", "old": "viewer", "new": "admin"}]));

    let fields = |value: &str| (0..1000).map(|n| (format!("f{n}"), json!(format!("{value}{n}")))).collect::<Map<_, _>>();
    let id = client.asset(json!({"name": "a", "custom_fields": fields("old")})).await;
    let row = json!({"id": id, "custom_fields": fields("new")}).to_string();
    let reply = client.send("POST", "/assets/import?match=id&dry_run=true", Some("application/x-ndjson"), row).await;
    assert_eq!(outcomes(&reply), ["updated"]);
    let (listed, more) =
        (reply.data()[0]["changes"].as_array().unwrap().len() as u64, reply.data()[0]["more_changes"].as_u64().unwrap());
    assert!(listed > 50 && reply.text().len() < 20_000 && listed + more == 1000, "{listed} {more}");
}

#[tokio::test(start_paused = true)]
async fn a_row_that_a_running_process_holds_names_the_columns() {
    let client = over_http().await;
    let asset = client.asset(json!({"name": "a", "serial_number": "S-1", "status": "preparing"})).await;
    client.user("Ada").await;
    let process = system_process(&client, "employee-onboarding").await;
    let instance = start(&client, &process, &asset).await;
    let csv = "serial_number,name,status,assigned_to_email\nS-1,b,in_service,ada@example.com\n";
    let reply = client.import("/assets", "?match=serial_number", csv).await;
    let held: Vec<_> = reply.data()[0]["errors"].as_array().unwrap().iter().map(|error| error["column"].clone()).collect();
    assert_eq!((outcomes(&reply), held), (vec!["refused".to_owned()], vec![json!("status"), json!("assigned_to_email")]));
    let error = &reply.data()[0]["errors"][0];
    assert_eq!((&error["code"], &error["instance_id"]), (&json!("PROCESS_RUNNING"), &json!(instance)));

    let rest = client.import("/assets", "?match=serial_number", "serial_number,name\nS-1,b\n").await;
    assert_eq!(outcomes(&rest), ["updated"]);
}

/// The first row's asset exists only in the dry run, so its ID must not be shown.
#[tokio::test(start_paused = true)]
async fn errors_of_an_import_name_only_existing_assets() {
    let client = over_http().await;
    let csv = "name,asset_tag\na,INV-1\nb,INV-1\n";
    for (query, first) in [("?dry_run=true", "created"), ("?on_error=abort", "skipped")] {
        let reply = client.import("/assets", query, csv).await;
        assert_eq!(outcomes(&reply), [first, "refused"], "{query}");
        let error = &reply.data()[1]["errors"][0];
        assert_eq!((&error["code"], error["asset_id"].as_str()), (&json!("DUPLICATE"), None), "{query}");
    }
    let taken = client.asset(json!({"name": "c", "asset_tag": "INV-2"})).await;
    let reply = client.import("/assets", "", "name,asset_tag\nd,INV-2\n").await;
    assert_eq!(reply.data()[0]["errors"][0]["asset_id"], taken);
}

/// Injects each fault into an import at each place, and then repeats the import with the same idempotency key.
async fn import_goes_on(path: &str, csv: &str, expected: &[&str], total: u64) {
    let (api, client) = Api::with_tenant().await;
    let send = async |client: &Client| {
        client.send_with("POST", path, Some("text/csv"), csv.to_owned(), &[("idempotency-key", "key")]).await
    };
    let case = async |place, way: Disturbance| {
        let client = api.tenant().await;
        client.use_key_once().await;
        let (first, is_disturbed) = way.at(&api, place, async || send(&client).await).await;
        assert_eq!(outcomes(&send(&client).await), expected, "{way:?} {place}: first {}", first.text());
        assert_eq!(client.total("/assets").await, total, "{way:?} {place}");
        is_disturbed
    };
    at_each_place(&CallFailure::ALL.map(Disturbance::Fails), 10, 3, &case).await;
    at_each_place(&[Disturbance::IsDropped], 8, 1, &case).await;
    assert_eq!(outcomes(&send(&client).await), expected);
    assert_eq!(client.import_once("/assets", &format!("{csv}more,\n"), "key").await.field_errors(), ["Idempotency-Key"]);
    let elsewhere = client.send_json("POST", "/assets", "{\"name\": \"x\"}", ("idempotency-key", "key")).await;
    assert_eq!(elsewhere.field_errors(), ["Idempotency-Key"]);
}

#[tokio::test(start_paused = true)]
async fn an_import_goes_on_where_it_stopped() {
    let row = |n| format!("n{n},{}\n", if n == 3 { "lost" } else { "" });
    let csv = format!("name,status\n{}", (0..6).map(row).collect::<String>());
    let mut expected = vec!["created"; 6];
    expected[3] = "refused";
    import_goes_on("/assets/import", &csv, &expected, 5).await;
    let csv = format!("name,serial_number\n{}", (0..6).map(|n| format!("n{n},S-{n}\n")).collect::<String>());
    import_goes_on("/assets/import?match=serial_number", &csv, &["created"; 6], 6).await;
}

#[tokio::test(start_paused = true)]
async fn throttled_rows_are_left_for_the_next_attempt() {
    let (api, client) = Api::with_tenant().await;
    client.use_key_once().await;
    let csv: String = std::iter::once("name\n".to_owned()).chain((0..50).map(|n| format!("n{n}\n"))).collect();
    api.faults.throttle("TransactWriteItems", 10_000);
    let refused = client.import_once("/assets", &csv, "key").await;
    refused.problem(503, "UNAVAILABLE");
    let attempts = 10_000 - api.faults.planned();
    assert!(attempts < 10, "{attempts} attempts against a table that throttles");
    let without_key = client.import("/assets", "", &csv).await;
    let attempts = 10_000 - api.faults.planned() - attempts;
    assert_eq!(outcomes(&without_key), vec!["refused"; 50]);
    assert_eq!(without_key.data()[49]["errors"][0]["code"], "UNAVAILABLE");
    assert!(attempts < 50, "{attempts} attempts against a table that throttles");
}

#[tokio::test(start_paused = true)]
async fn a_key_with_two_bodies_at_once_executes_one_of_them() {
    let client = over_http().await;
    let csv = |name: &str| format!("name\n{}", format!("{name}\n").repeat(30));
    let replies = join_all((0..4).map(|n| {
        let (client, csv) = (&client, csv(&format!("n{n}")));
        async move {
            let mut reply = client.import_once("/assets", &csv, "key").await;
            // On a busy machine, waiting for the concurrent request can time out.
            while reply.status == 503 {
                reply = client.import_once("/assets", &csv, "key").await;
            }
            reply
        }
    }));
    let replies = replies.await;
    assert_eq!(replies.iter().filter(|reply| reply.status == 200).count(), 1);
    let refused = replies.iter().filter(|reply| reply.status != 200);
    refused.for_each(|reply| assert_eq!(reply.field_errors(), ["Idempotency-Key"]));
    assert_eq!(client.total("/assets").await, 30);
}

#[tokio::test(start_paused = true)]
async fn refused_rows_of_a_repeated_import_are_decided_anew() {
    let api = Api::start().await;
    let csv = "email,display_name\na@example.com,A\nb@example.com,B\n";
    for (query, first) in [("", ["created", "refused"]), ("?on_error=abort", ["skipped", "refused"])] {
        let client = api.tenant().await;
        let path = format!("/users/import{query}");
        let send = || client.send_with("POST", &path, Some("text/csv"), csv, &[("idempotency-key", "key")]);
        let taken = client.post("/users", json!({"email": "b@example.com", "display_name": "B"})).await;
        assert_eq!(outcomes(&send().await), first);
        client.delete(&format!("/users/{}", taken.id())).await.data();
        let again = send().await;
        assert_eq!(
            (outcomes(&again), again.header("idempotent-replayed")),
            (vec!["created".into(), "created".into()], ""),
            "{query}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_repeated_import_takes_no_numbers_says_which_rows_it_wrote_before_and_skips_the_same_cells() {
    let client = over_http().await;
    for _ in 0..3 {
        assert_eq!(outcomes(&client.import_once("/assets", "name\na\nb\n", "key").await), ["created", "created"]);
    }
    let next = client.post("/assets", json!({"name": "c"})).await.data();
    assert_eq!(next["asset_tag"], "AST-000003");

    let csv = "name,assigned_to_email\na,\nb,ada@example.com\n";
    let replayed = |reply: &Reply| [0, 1].map(|row| reply.data()[row]["replayed"] == true);
    let first = client.import_once("/assets", csv, "again").await;
    assert_eq!((outcomes(&first), replayed(&first)), (vec!["created".into(), "refused".into()], [false, false]));
    client.user("Ada").await;
    let second = client.import_once("/assets", csv, "again").await;
    assert_eq!((outcomes(&second), replayed(&second)), (vec!["created".into(), "created".into()], [true, false]));
    assert_eq!(second.data()[0]["id"], first.data()[0]["id"]);
    let third = client.import_once("/assets", csv, "again").await;
    assert_eq!((replayed(&third), third.header("idempotent-replayed")), ([true, true], "true"));
    assert_eq!(client.total("/assets").await, 5);
}

#[tokio::test(start_paused = true)]
async fn row_with_lost_response_counts_in_later_rows() {
    let (api, client) = Api::with_tenant().await;
    let ada = client.user("Ada").await;
    let rows = format!("id,email,display_name\n{ada},y@example.com,Ada\n,ada@example.com,Next\n");
    let (path, content_type) = ("/users/import?match=id&create_unmatched=true", Some("text/csv"));
    // Each call fails in turn, starting with the transaction that records the start of the request.
    for place in 0..12 {
        let key = format!("key-{place}");
        let send = async || client.send_with("POST", path, content_type, rows.clone(), &[("idempotency-key", &key)]).await;
        api.faults.fail_call(place, CallFailure::TimedOutAfter);
        let first = send().await;
        api.faults.stop_failing();
        let reply = if first.status == 200 && outcomes(&first) == ["updated", "created"] { first } else { send().await };
        assert_eq!(outcomes(&reply), ["updated", "created"], "{place}");
        let next = reply.data()[1]["id"].as_str().unwrap().to_owned();
        client.delete(&format!("/users/{next}")).await.data();
        client.patch(&format!("/users/{ada}"), json!({"email": "ada@example.com"})).await.data();
    }
}

/// Sends a file with a query of parameters.
async fn read(client: &Client, parameters: &[(&str, &str)], text: &str) -> Reply {
    let encoded = |value: &str| value.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    let query: Vec<String> = parameters.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    client.import("/assets", &format!("?{}", query.join("&")), text).await
}

const MESSY: &str = "Inventur 2026;;;;;;;\n;;;;;;;\nGerät;Serial No;Kauf;Preis (EUR);Zustand;Haus;Raum;Spalte\n\
    Laptop;PF3;05.03.2025;1.249,00 €;Lager;Berlin;2.14/2.15;x\nDock;n/a;14/02/2025;99,- €;kaputt;Berlin;n/a;\n;;;;;;;\n\
    Maus;S-3;2025-3-5;5;Lager;;;\nTablet;S-4;heute;5;Lager;;;\n";

const MESSY_READ: [(&str, &str); 14] = [
    ("header_line", "3"),
    ("delimiter", "semicolon"),
    ("map", "Gerät=name"),
    ("map", "Serial No=serial_number"),
    ("map", "Kauf=purchase_date"),
    ("map", "Preis (EUR)=purchase_price"),
    ("map", "Zustand=status"),
    ("map", "Haus / Raum=location"),
    ("map", "#8=custom_fields.column"),
    ("value", "status:lager=in_stock"),
    ("value", "status:kaputt=in_service"),
    ("value", "serial_number:n/a="),
    ("date_format", "DD.MM.YYYY"),
    ("date_format", "DD/MM/YYYY"),
];

#[tokio::test(start_paused = true)]
async fn parameters_say_how_a_file_is_to_be_read() {
    let client = over_http().await;
    let parameters = [&MESSY_READ[..], &[("decimal", "comma"), ("set", "notes=from a list")]].concat();
    let reply = read(&client, &parameters, MESSY).await;
    assert_eq!(outcomes(&reply), ["created", "created", "created", "refused"], "{}", reply.text());
    let error = &reply.data()[3]["errors"][0];
    assert_eq!((&error["column"], &error["heading"]), (&json!("purchase_date"), &json!("Kauf")), "{error}");
    assert_eq!(error["detail"], "\"heute\" is not a date of the form DD.MM.YYYY or DD/MM/YYYY");
    for (name, expected) in [
        ("Laptop", json!(["PF3", "2025-03-05", 1249.0, "in_stock", "Berlin / 2.14-2.15", {"column": "x"}, "from a list"])),
        ("Dock", json!([null, "2025-02-14", 99.0, "in_service", "Berlin", {}, "from a list"])),
        ("Maus", json!(["S-3", "2025-03-05", 5.0, "in_stock", null, {}, "from a list"])),
    ] {
        let found = asset(&client, name).await;
        let fields = ["serial_number", "purchase_date", "purchase_price", "status", "location", "custom_fields", "notes"];
        assert_eq!(json!(fields.map(|field| found[field].clone())), expected, "{name}");
    }
}

/// The same parameters in the query and in a JSON body give the same rows.
#[tokio::test(start_paused = true)]
async fn what_is_read_does_not_depend_on_where_the_parameters_are() {
    let client = over_http().await;
    let parameters =
        [&MESSY_READ[..], &[("decimal", "comma"), ("match", "serial_number"), ("create_unmatched", "true")]].concat();
    let dry = [&parameters[..], &[("dry_run", "true")]].concat();
    let by_query = read(&client, &dry, MESSY).await;
    let listed: Vec<Value> = parameters.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
    let body = json!({"parameters": listed, "text": MESSY});
    let by_body = client.post("/assets/import?dry_run=true", body.clone()).await;
    assert_eq!(by_query.json(), by_body.json());
    let keys: Vec<Value> = by_body.data().as_array().unwrap().iter().map(|row| row["match_key"].clone()).collect();
    assert_eq!(keys, [json!("pf3"), json!(null), json!("s-3"), json!("s-4")]);
    assert_eq!(client.total("/assets").await, 0);
    let objects = "[{\"Gerät\": \"Laptop\", \"Kauf\": \"05.03.2025\"},\n {\"Gerät\": \"Dock\", \"Preis (EUR)\": 99.50}]";
    let is_named = |parameter: &&Value| !parameter["value"].as_str().unwrap().starts_with("#8");
    let listed: Vec<&Value> = listed.iter().filter(is_named).collect();
    let body = json!({"parameters": listed, "text": objects});
    assert_eq!(outcomes(&client.post("/assets/import", body).await), ["created", "created"]);
    assert_eq!(asset(&client, "Laptop").await["purchase_date"], "2025-03-05");

    let both = json!({"parameters": [{"name": "set", "value": "notes=x"}], "text": "name\na\n"});
    assert_eq!(client.post("/assets/import?match=id", both).await.field_errors(), ["match"]);
    let wrong = json!({"parameters": [{"name": "set"}], "text": "name\na\n"});
    assert_eq!(client.post("/assets/import", wrong).await.field_errors(), ["/parameters"]);
    let unknown = json!({"parameters": [{"name": "colour", "value": "red"}], "text": "name\na\n"});
    assert_eq!(client.post("/assets/import", unknown).await.field_errors(), ["colour"]);
    let values: Vec<String> = (0..1_000).map(|n| format!("value=name:{n}=x")).collect();
    assert_eq!(client.import("/assets", &format!("?{}", values.join("&")), "name\na\n").await.field_errors(), ["map"]);
}

#[tokio::test(start_paused = true)]
async fn parameters_that_do_not_fit_are_refused_together_before_anything_is_written() {
    let client = over_http().await;
    for (parameters, names) in [
        (
            &[("map", "Sreial=serial_number"), ("map", "name=colour"), ("decimal", "x"), ("header_line", "0")][..],
            &["decimal", "header_line"][..],
        ),
        (&[("map", "Sreial=serial_number"), ("map", "name=colour"), ("set", "name2=x")], &["map", "map", "set"]),
        (&[("map", "name")], &["map"]),
        (&[("map", "#3=notes"), ("value", "notes:x=y")], &["map", "value"]),
        (&[("date_format", "MM.YYYY")], &["date_format"]),
        (&[("match", "serial_number")], &["match"]),
    ] {
        let reply = read(&client, parameters, "name\na\n").await;
        assert_eq!(reply.field_errors(), names, "{parameters:?}");
    }
    assert_eq!(client.total("/assets").await, 0);
}

#[tokio::test(start_paused = true)]
async fn users_are_found_by_their_names_in_either_order() {
    let client = over_http().await;
    for (email, name) in [
        ("ada@example.com", "Ada Lovelace"),
        ("jm@example.com", "Müller, Jürgen"),
        ("a@example.com", "Kim Lee"),
        ("b@example.com", "Lee, Kim"),
    ] {
        client.post("/users", json!({"email": email, "display_name": name})).await.data();
    }
    let csv =
        "name,assigned_to_name\n1,\"Lovelace, Ada\"\n2,JÜRGEN  müller\n3,ada@example.com\n4,Kim Lee\n5,Lovelace\n6,Bob\n7,\n";
    let reply = client.import("/assets", "", csv).await;
    assert_eq!(
        outcomes(&reply),
        ["created", "created", "created", "refused", "refused", "refused", "created"],
        "{}",
        reply.text()
    );
    let details: Vec<String> = (3..6).map(|row| row_errors(&reply, row)[0].1.clone()).collect();
    assert_eq!(
        details,
        [
            "\"Kim Lee\" is the name of 2 active users: Kim Lee <a@example.com>, Lee, Kim <b@example.com>",
            "\"Lovelace\" is not the name of a user; similar: Ada Lovelace <ada@example.com>",
            "\"Bob\" is not the name of a user",
        ]
    );
    let assigned = asset(&client, "2").await["assigned_to"].clone();
    assert_eq!(client.get(&format!("/users/{}", assigned.as_str().unwrap())).await.data()["email"], "jm@example.com");
    let writer = client.scoped(&["assets:read", "assets:write"]).await;
    writer.import("/assets", "", csv).await.problem(403, "FORBIDDEN");
}
