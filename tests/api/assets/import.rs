//! Imports of assets and users.

use crate::support::bulk::{outcomes, row_errors};
use crate::support::table::history::set_attribute;
use crate::support::{Api, Client, UNKNOWN_ID, over_http};
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};
use shared::domain::record::Kind;
use shared::http::requests::receive::NOT_UTF8;
use shared::store::keys::Keys;

pub async fn asset(client: &Client, name: &str) -> Value {
    let list = client.get(&format!("/assets?q={}", name.replace(' ', "+"))).await.data();
    let found: Vec<&Value> = list.as_array().unwrap().iter().filter(|asset| asset["name"] == name).collect();
    assert_eq!(found.len(), 1, "{name}: {list}");
    found[0].clone()
}

#[tokio::test(start_paused = true)]
async fn rows_name_other_records_by_what_people_know() {
    let client = over_http().await;
    let laptop = client.asset_type("Laptop", "LAP", "physical").await;
    let model = client.model("Dell", "Latitude 7450", &laptop).await;
    let ada = client.user("Ada").await;
    let csv = "\u{feff}name,asset_type_code,manufacturer_name,model_name,serial_number,purchase_date,purchase_price,assigned_to_email,notes\r\n\
               Laptop 1,LAP,DELL,latitude 7450,S-1,2026-03-04,1249.00,ADA@Example.com,\"two\nlines, \"\"quoted\"\"\"\r\n\
               Laptop 2,,,,S-2,,,,'=1+1\r\n";
    let reply = client.import("/assets", "", csv).await;
    assert_eq!(outcomes(&reply), ["created", "created"]);
    assert_eq!(
        reply.json()["meta"],
        json!({"rows": 2, "created": 2, "updated": 0, "unchanged": 0, "refused": 0, "skipped": 0, "skipped_cells": 0})
    );
    let first = asset(&client, "Laptop 1").await;
    assert_eq!(first["id"], reply.data()[0]["id"]);
    assert_eq!(
        (&first["asset_type_id"], &first["model_id"], &first["assigned_to"]),
        (&json!(laptop), &json!(model), &json!(ada))
    );
    assert_eq!((&first["manufacturer"], &first["notes"]), (&json!("Dell"), &json!("two\nlines, \"quoted\"")));
    assert_eq!(asset(&client, "Laptop 2").await["notes"], "=1+1");
    assert_eq!((reply.data()[0]["row"].clone(), first["asset_tag"].clone()), (json!(1), json!("AST-000001")));
}

#[tokio::test(start_paused = true)]
async fn whatever_is_wrong_with_a_row_is_said_and_the_others_are_written() {
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
    assert_eq!(row_errors(&reply, 2), [(String::new(), "The row has 2 cells, and the header row has 10.".to_owned())]);
    assert_eq!(row_errors(&reply, 3), [("assigned_to_email".to_owned(), "belongs to a user who is not active".to_owned())]);
    assert_eq!((columns(4), columns(5)), (vec!["id".to_owned()], vec!["model_name".to_owned()]));
    assert_eq!(columns(6), [""]);
    assert_eq!(reply.data()[1]["errors"][0]["code"], "VALIDATION_ERROR");
    assert_eq!(client.total("/assets").await, 1);
    assert_eq!(asset(&client, "good").await["custom_fields"], json!({"ram": "16"}), "a text without a schema");
}

#[tokio::test(start_paused = true)]
async fn a_schema_says_what_the_cells_of_custom_fields_are() {
    let client = over_http().await;
    let schema =
        json!({"type": "object", "properties": {"imei": {"type": "string"}, "ram": {"type": "integer"}}, "required": ["imei"]});
    let body = json!({"name": "Phone", "code": "PHO", "kind": "physical", "custom_fields_schema": schema});
    client.post("/catalog/asset-types", body).await.data();
    let csv = "name,asset_type_code,custom_fields.imei,custom_fields.ram\n\
               a,PHO,356938035643809,8\nb,PHO,,8\nc,PHO,1,many\nd,,356938035643809,8\n";
    let reply = client.import("/assets", "", csv).await;
    assert_eq!(outcomes(&reply), ["created", "refused", "refused", "created"]);
    assert_eq!(asset(&client, "a").await["custom_fields"], json!({"imei": "356938035643809", "ram": 8}));
    assert_eq!(asset(&client, "d").await["custom_fields"], json!({"imei": "356938035643809", "ram": "8"}));
    assert_eq!(row_errors(&reply, 2)[0].0, "custom_fields.ram");
}

#[tokio::test(start_paused = true)]
async fn unknown_columns_and_too_many_rows_are_refused_before_anything_is_written() {
    let client = over_http().await;
    let reply = client.import("/assets", "", "name,serial,name\na,b,c\n").await;
    assert_eq!(reply.field_errors(), ["name", "serial"]);
    assert!(reply.text().contains("unknown column; known: serial_number,"), "{}", reply.text());
    let many = format!("name\n{}", "x\n".repeat(201));
    let problem = client.import("/assets", "", &many).await.problem(422, "VALIDATION_ERROR");
    assert!(problem["errors"][0]["detail"].as_str().unwrap().starts_with("There are 201 rows"), "{problem}");
    client.import("/assets", "", "").await.problem(400, "MALFORMED_REQUEST");
    client.send("POST", "/assets/import", Some("application/json"), "{}").await.problem(415, "UNSUPPORTED_MEDIA_TYPE");
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
}

#[tokio::test(start_paused = true)]
async fn ndjson_has_the_types_of_json() {
    let client = over_http().await;
    let ndjson = "{\"name\": \"a\", \"purchase_price\": 12.50, \"custom_fields\": {\"x\": [1]}}\n\n\
                  {\"name\": \"b\", \"custom_fields.x\": null, \"notes\": null}\r\n\
                  {\"name\": \"c\"\n\
                  [1]\n\
                  {\"name\": 5, \"name\": \"d\"}";
    let reply = client.send("POST", "/assets/import", Some("application/x-ndjson"), ndjson).await;
    assert_eq!(outcomes(&reply), ["created", "created", "refused", "refused", "refused"]);
    assert!(client.get(&format!("/assets/{}", reply.data()[0]["id"].as_str().unwrap())).await.text().contains("12.50"));
    assert_eq!(asset(&client, "b").await["custom_fields"], json!({"x": null}));
}

#[tokio::test(start_paused = true)]
async fn with_abort_nothing_is_written_unless_everything_can_be() {
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
async fn each_error_of_a_row_is_told_once_and_none_hides_another() {
    let client = over_http().await;
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
async fn a_body_with_far_too_much_is_refused_without_much_work() {
    let client = over_http().await;
    let columns = (0..120_000).map(|n| format!("c{n}")).collect::<Vec<_>>().join(",");
    assert_eq!(client.import("/assets", "", &columns).await.field_errors().len(), 100);
    let members = (0..80_000).map(|n| format!("\"c{n}\":1")).collect::<Vec<_>>().join(",");
    let line = client.send("POST", "/assets/import", Some("application/x-ndjson"), format!("{{{members}}}")).await;
    assert_eq!(line.field_errors().len(), 100);
    let many = format!("name\n{}", "x\n".repeat(500_000));
    let problem = client.import("/assets", "", &many).await.problem(422, "VALIDATION_ERROR");
    assert!(problem["errors"][0]["detail"].as_str().unwrap().starts_with("There are 500000 rows"), "{problem}");
}

#[tokio::test(start_paused = true)]
async fn a_row_like_what_ends_the_body_is_a_row() {
    let client = over_http().await;
    for (rows, count) in [("\u{1}after the body\nx\nlast\n", 3), ("a\n\n\nx", 2), ("\"x\n\"\r\n\r\n", 1), ("\"a\"", 1)] {
        let reply = client.import("/assets", "?dry_run=true", &format!("name\n{rows}")).await;
        assert_eq!(outcomes(&reply).len(), count, "{rows:?}");
    }
    let cut_off = client.import("/assets", "", "name\ngood\n\"x\nx").await;
    assert_eq!(outcomes(&cut_off), ["created", "refused"]);
    assert_eq!(
        client.import("/assets", "", "\"name\nx").await.problem(422, "VALIDATION_ERROR")["errors"][0]["detail"],
        "A quoted cell of the header row is not closed."
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
async fn what_is_no_csv_in_utf8_is_said_to_be_so() {
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
    // Besides the rows' transactions: the key, its counter, two reads of the key's stored response, the marker of the
    // request, two of names, one of records, and the numbers of the tags.
    assert!(first.calls <= 20 + 10 && first.read_units <= 12.0, "{first:?}");
    assert!(first.write_units <= 20.0 * 18.0 + 6.0, "{first:?}");
    assert_eq!(outcomes(&client.import_once("/assets", &csv, "key").await), ["created"; 20]);
    let again = api.meter.take();
    assert!(again.calls <= 7 && again.write_units <= 1.0, "{again:?}");
}
