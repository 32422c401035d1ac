//! The resources that rows of an import update.

use super::import::asset;
use crate::support::bulk::{outcomes, row_errors};
use crate::support::{UNKNOWN_ID, over_http};
use serde_json::json;

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
    assert_eq!((&third["notes"], &third["custom_fields"]), (&json!(null), &json!({"b": 2, "c": "4711"})), "b is as it was");
    assert_eq!(asset(&client, "created").await["custom_fields"], json!({"c": "0815"}));

    client.asset(json!({"name": "double", "serial_number": "S-3"})).await;
    let reply = client.import("/assets", "?match=serial_number", csv).await;
    assert_eq!(outcomes(&reply), ["refused", "unchanged"]);
    assert_eq!(reply.data()[0]["errors"][0]["code"], "DUPLICATE");
    assert_eq!(reply.data()[0]["errors"][0]["asset_ids"].as_array().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn rows_that_could_become_the_wrong_asset_are_refused() {
    let client = over_http().await;
    let csv = "name,serial_number\na,S-1\nb,\nc,n/a\nd, s-1 \ne,S-2\nf,To be filled by O.E.M.\ng,Ｓ- 1\n";
    let reply = client.import("/assets", "?match=serial_number", csv).await;
    assert_eq!(outcomes(&reply), ["refused", "refused", "refused", "refused", "created", "refused", "refused"]);
    let detail = |row| row_errors(&reply, row).remove(0).1;
    assert_eq!((detail(0), detail(3)), ("has the same value in rows 4, 7".into(), "has the same value in rows 1, 7".into()));
    let unmatched = "is empty, so the row names nothing to update; with create_unmatched=true, it creates a record";
    assert_eq!(row_errors(&reply, 1), [("serial_number".to_owned(), unmatched.to_owned())]);
    assert!(detail(2).starts_with("is a placeholder") && detail(5).starts_with("is a placeholder"), "{reply:?}");
    let again = client.import("/assets", "?match=serial_number&create_unmatched=true", csv).await;
    assert_eq!(outcomes(&again), ["refused", "created", "refused", "refused", "unchanged", "refused", "refused"]);
    let users = "email,display_name\nada@example.com,Ada\nADA@example.com,Again\n,Nobody\n";
    assert_eq!(outcomes(&client.import("/users", "?match=email", users).await), ["refused"; 3]);
    let ids = client.assets(1).await;
    let csv = format!("id,name\n{},a\n{},b\n", ids[0], ids[0].to_uppercase());
    assert_eq!(outcomes(&client.import("/assets", "?match=id", &csv).await), ["refused"; 2]);
}

#[tokio::test(start_paused = true)]
async fn serial_numbers_are_the_same_in_another_spelling() {
    let client = over_http().await;
    let id = client.asset(json!({"name": "a", "serial_number": "PF3 XK011"})).await;
    let get = async || client.get(&format!("/assets/{id}")).await.data();
    for (index, serial) in ["pf3xk011", "PF3XK011", " ＰＦ３　ｘｋ０１１", "PF3\u{a0}XK011"].into_iter().enumerate() {
        let found = client.get(&format!("/assets?serial_number={}", percent(serial))).await.data();
        assert_eq!(found[0]["id"], id, "{serial}");
        let csv = format!("name,serial_number\nby import {index},{serial}\n");
        assert_eq!(outcomes(&client.import("/assets", "?match=serial_number", &csv).await), ["updated"], "{serial}");
        assert_eq!(
            (get().await["name"].clone(), get().await["serial_number"].clone()),
            (json!(format!("by import {index}")), json!("PF3 XK011"))
        );
        let path = format!("/assets/by-serial/{}", percent(serial));
        let put = client.send("PUT", &path, Some("application/json"), format!("{{\"name\":\"by PUT {index}\"}}")).await;
        assert_eq!((put.status.as_u16(), put.data()["serial_number"].clone()), (200, json!("PF3 XK011")), "{serial}");
    }
    let reply = client.import("/assets", "?match=id", &format!("id,serial_number\n{id},pf3xk011\n")).await;
    assert_eq!((outcomes(&reply), get().await["serial_number"].clone()), (vec!["updated".to_owned()], json!("pf3xk011")));
    client.asset(json!({"name": "double", "serial_number": "PF3XK 011"})).await;
    let put = client.send("PUT", "/assets/by-serial/PF3XK011", Some("application/json"), "{\"name\":\"x\"}").await;
    put.problem(409, "DUPLICATE");
}

fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[tokio::test(start_paused = true)]
async fn serial_numbers_that_name_nothing_match_nothing() {
    let client = over_http().await;
    for serial in ["unknown", "1111111", "123456789", "No Asset Tag", "#REF!", "Ｎ／Ａ", "0x0", "8.93901E+18", "1,23E+12"] {
        let csv = format!("name,serial_number\na,\"{serial}\"\n");
        let reply = client.import("/assets", "?match=serial_number&create_unmatched=true", &csv).await;
        let columns: Vec<String> = row_errors(&reply, 0).into_iter().map(|(column, _)| column).collect();
        assert_eq!((outcomes(&reply), columns), (vec!["refused".to_owned()], vec!["serial_number".to_owned()]));
        let path = format!("/assets/by-serial/{}", percent(serial));
        let put = client.send("PUT", &path, Some("application/json"), "{\"name\":\"x\"}").await;
        assert_eq!(put.field_errors(), ["serial"], "{serial}");
    }
    for serial in ["100E10", "1E5", "00012345"] {
        let csv = format!("name,serial_number\na,{serial}\n");
        assert_eq!(outcomes(&client.import("/assets", "?match=serial_number", &csv).await), ["created"], "{serial}");
        assert_eq!(client.get(&format!("/assets?serial_number={serial}")).await.data()[0]["serial_number"], serial);
    }
}

#[tokio::test(start_paused = true)]
async fn numbers_that_a_spreadsheet_has_shortened_are_refused_unless_they_are_what_is_stored() {
    let client = over_http().await;
    let schema = json!({"type": "object", "properties": {"imei": {"type": ["integer", "null"]}}});
    let body = json!({"name": "Phone", "code": "PHO", "kind": "physical", "custom_fields_schema": schema});
    client.post("/catalog/asset-types", body).await.data();
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
async fn catalog_names_are_the_same_in_another_spelling_and_unknown_ones_show_the_nearest() {
    let client = over_http().await;
    let laptop = client.asset_type("Laptop", "LAP", "physical").await;
    let model = client.model("Lenovo", "ThinkPad T14", &laptop).await;
    client.model("Dell", "Latitude 7450", &laptop).await;
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
async fn the_tag_of_a_deleted_asset_is_refused_where_the_file_has_it() {
    let client = over_http().await;
    let id = client.asset(json!({"name": "a", "asset_tag": "INV-1"})).await;
    client.delete(&format!("/assets/{id}")).await;
    let problem = client.post("/assets", json!({"name": "b", "asset_tag": "inv-1"})).await.problem(409, "DUPLICATE");
    let (day, _) = problem["deleted_at"].as_str().unwrap().split_once('T').unwrap();
    assert!(problem["detail"].as_str().unwrap().contains(&format!("was deleted on {day},")), "{problem}");
    for query in ["", "?match=asset_tag", "?match=asset_tag&create_unmatched=true"] {
        let reply = client.import("/assets", query, "name,asset_tag\nb,INV-1\n").await;
        let errors = row_errors(&reply, 0);
        assert_eq!(errors[0].0, "asset_tag", "{query} {errors:?}");
        assert!(errors[0].1.contains(&format!("is the tag of an asset that was deleted on {day}")), "{query} {errors:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_value_to_match_that_is_no_text_is_not_called_empty() {
    let client = over_http().await;
    for (path, name, row) in [
        ("/assets", "serial_number", json!({"name": "x", "serial_number": 5})),
        ("/assets", "asset_tag", json!({"name": "x", "asset_tag": ["T1"]})),
        ("/assets", "id", json!({"name": "x", "id": 5})),
        ("/users", "email", json!({"display_name": "x", "email": true})),
    ] {
        for more in ["", "&create_unmatched=true"] {
            // A user's e-mail address is needed, so that no row without one creates a user.
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
async fn a_dry_run_says_what_each_row_changes() {
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
}

#[tokio::test(start_paused = true)]
async fn the_changes_of_large_records_are_cut() {
    let client = over_http().await;
    let fields =
        |value: &str| (0..1000).map(|n| (format!("f{n}"), json!(format!("{value}{n}")))).collect::<serde_json::Map<_, _>>();
    let id = client.asset(json!({"name": "a", "custom_fields": fields("old")})).await;
    let row = json!({"id": id, "custom_fields": fields("new")}).to_string();
    let reply = client.send("POST", "/assets/import?match=id&dry_run=true", Some("application/x-ndjson"), row).await;
    assert_eq!(outcomes(&reply), ["updated"]);
    let (listed, more) =
        (reply.data()[0]["changes"].as_array().unwrap().len() as u64, reply.data()[0]["more_changes"].as_u64().unwrap());
    assert!(listed > 50 && reply.text().len() < 20_000 && listed + more == 1000, "{listed} {more}");
}

#[tokio::test(start_paused = true)]
async fn a_row_is_written_without_its_bad_cell_if_that_is_wanted() {
    let client = over_http().await;
    let gone = client.user("Gone").await;
    client.patch(&format!("/users/{gone}"), json!({"is_active": false})).await.data();
    let csv = "name,serial_number,assigned_to_email,purchase_date,status\n\
               a,S-1,nobody@example.com,,\nb,S-2,not an address,soon,\nc,S-3,gone@example.com,,in_use\nd,S-4,nobody@example.com,,lost\ne,S-5,,2026-01-01,\n";
    let skip = "skip_bad=assigned_to_email,purchase_date";
    for (query, on_error) in [("&dry_run=true", ""), ("&on_error=abort", ""), ("", "&skip_bad=status&on_error=abort")] {
        let reply = client.import("/assets", &format!("?match=serial_number&{skip}{query}{on_error}"), csv).await;
        let expected: &[&str] = match query {
            "&on_error=abort" => &["skipped", "skipped", "skipped", "refused", "skipped"],
            "&dry_run=true" => &["created", "created", "created", "refused", "created"],
            _ => &["created"; 5],
        };
        assert_eq!(outcomes(&reply), expected, "{query}");
        let cells = |row: usize| reply.data()[row]["skipped_cells"].as_array().cloned().unwrap_or_default();
        let columns = |row| cells(row).iter().map(|cell| cell["column"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
        assert_eq!((columns(0), columns(2)), (vec!["assigned_to_email".to_owned()], vec!["assigned_to_email".to_owned()]));
        assert_eq!((columns(1).len(), columns(4).len()), (2, 0));
        assert_eq!(cells(2)[0]["detail"], "belongs to a user who is not active");
        let total = if on_error.is_empty() { 4 } else { 6 };
        assert_eq!(reply.json()["meta"]["skipped_cells"], total, "{reply:?}");
    }
    assert_eq!((client.total("/assets").await, asset(&client, "c").await["status"].clone()), (5, json!("in_use")));
    assert_eq!(asset(&client, "b").await["purchase_date"], json!(null));
    let refused = client.import("/assets", "?match=serial_number&skip_bad=serial_number,colour", csv).await;
    assert_eq!(refused.field_errors(), ["skip_bad", "skip_bad"]);
}

/// The row before has only the ID of a dry run while the cells are checked.
#[tokio::test(start_paused = true)]
async fn a_skipped_cell_names_no_asset_that_does_not_exist() {
    let client = over_http().await;
    let csv = "name,asset_tag\na,INV-1\nb,INV-1\n";
    for query in ["&dry_run=true", "&on_error=abort"] {
        let reply = client.import("/assets", &format!("?skip_bad=asset_tag{query}"), csv).await;
        assert_eq!(outcomes(&reply), ["created", "created"], "{query}");
        let cell = &reply.data()[1]["skipped_cells"][0];
        assert_eq!((&cell["code"], cell["asset_id"].as_str()), (&json!("DUPLICATE"), None), "{query}");
    }
    let taken = client.asset(json!({"name": "c", "asset_tag": "INV-2"})).await;
    let reply = client.import("/assets", "?skip_bad=asset_tag", "name,asset_tag\nd,INV-2\n").await;
    assert_eq!(reply.data()[0]["skipped_cells"][0]["asset_id"], taken);
}

#[tokio::test(start_paused = true)]
async fn a_skipped_cell_with_two_errors_counts_once() {
    let client = over_http().await;
    let schema = json!({"type": "object", "properties": {"räm": {"type": "integer", "minimum": 8, "multipleOf": 4}}});
    let body = json!({"name": "Laptop", "code": "LAP", "kind": "physical", "custom_fields_schema": schema});
    client.post("/catalog/asset-types", body).await.data();
    let csv = "name,asset_type_code,custom_fields.räm\na,LAP,3\n";
    let reply = client.import("/assets", "?skip_bad=custom_fields.ra%CC%88m", csv).await;
    let errors = reply.data()[0]["skipped_cells"].as_array().map(Vec::len);
    assert_eq!((errors, &reply.json()["meta"]["skipped_cells"]), (Some(2), &json!(1)), "{reply:?}");
}
