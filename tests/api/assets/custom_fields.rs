//! Custom fields, the schemas of asset types, and names that the JSON library would interpret.

use crate::support::prelude::*;
use shared::domain::catalog::custom_fields::schema_hash;

#[tokio::test(start_paused = true)]
async fn custom_fields_must_match_the_schema_of_the_asset_type() {
    let client = over_http().await;
    let properties = json!({"ram": {"type": "integer"}});
    let schema = json!({"type": "object", "required": ["ram"], "properties": properties, "additionalProperties": false});
    let asset_type = client.type_with_schema("Laptop", "LAP", schema).await;
    let body = |fields| json!({"name": "x", "asset_type_id": asset_type, "custom_fields": fields});
    assert_eq!(
        client.post("/assets", body(json!({"ram": "16", "cpu": 1}))).await.field_errors(),
        ["/custom_fields/cpu", "/custom_fields/ram"]
    );
    let unknown = client.post("/assets", body(json!({"ram": 16, "rma": 1}))).await;
    assert_eq!(unknown.field_errors(), ["/custom_fields/rma"]);
    assert_eq!(unknown.json()["errors"][0]["detail"], "unknown field of the asset type; known: ram");
    assert_eq!(
        client.post("/assets", json!({"name": "x", "asset_type_id": asset_type})).await.field_errors(),
        ["/custom_fields"]
    );
    let path = format!("/assets/{}", client.asset(body(json!({"ram": 16}))).await);
    assert_eq!(client.patch(&path, json!({"custom_fields": {}})).await.field_errors(), ["/custom_fields"]);
    // A new schema takes effect with the next change to custom fields or type.
    let other_schema = json!({"custom_fields_schema": {"required": ["cpu"]}});
    client.patch(&format!("/catalog/asset-types/{asset_type}"), other_schema).await.data();
    client.patch(&path, json!({"name": "renamed"})).await.data();
    client.patch(&path, json!({"custom_fields": {"ram": 16}})).await.data();
    assert_eq!(client.patch(&path, json!({"custom_fields": {"ram": 17}})).await.field_errors(), ["/custom_fields"]);
    client.patch(&path, json!({"custom_fields": {"cpu": 1}})).await.data();
    let untyped = format!("/assets/{}", client.asset(json!({"name": "untyped"})).await);
    assert_eq!(client.patch(&untyped, json!({"asset_type_id": asset_type})).await.field_errors(), ["/custom_fields"]);
    client.patch(&untyped, json!({"asset_type_id": asset_type, "custom_fields": {"cpu": 2}})).await.data();
}

#[tokio::test(start_paused = true)]
async fn custom_fields_come_back_as_sent() {
    let client = over_http().await;
    let fields = json!({"z": 1, "a": {"deep": [1.5, null, true, "ü"]}, "e": "", "9007199254740992": -9_007_199_254_740_992_i64});
    let id = client.asset(json!({"name": "x", "custom_fields": fields})).await;
    let read = client.get(&format!("/assets/{id}")).await;
    assert_eq!(read.data()["custom_fields"], fields);
    assert!(read.text().contains(r#""custom_fields":{"z":1,"a":"#), "the fields keep the order in which they were sent");
    let reordered = r#"{"custom_fields":{"9007199254740992":-9007199254740992,"e":"","a":{"deep":[1.5,null,true,"ü"]},"z":1}}"#;
    let sent = client.send("PATCH", &format!("/assets/{id}"), Some("application/json"), reordered).await;
    assert_eq!((sent.header("etag"), sent.data()), (read.header("etag"), read.data()), "an object's members have no order");
    for invalid in [r#"{"n":9007199254740993}"#, r#"{"a":1,"a":2}"#, "[]", r#""x""#, r#"{"a":[[[[[[[[1]]]]]]]]}"#] {
        let body = format!(r#"{{"name":"x","custom_fields":{invalid}}}"#);
        assert_eq!(client.post_text("/assets", &body).await.field_errors(), ["/custom_fields"], "{invalid}");
    }
}

#[tokio::test(start_paused = true)]
async fn texts_in_custom_fields_are_composed_however_they_come() {
    let client = over_http().await;
    let schema = json!({"properties": {"room": {"enum": ["B\u{fc}ro"]}, "more": {"type": "array"}}, "required": ["room"]});
    let asset_type = client.type_with_schema("T", "TT", schema).await;
    let sent = json!({"room": "Bu\u{308}ro", "more": ["o\u{308}"]});
    let stored = json!({"room": "B\u{fc}ro", "more": ["\u{f6}"]});
    let new = |serial: &str, field: &str| json!({"name": "x", "serial_number": serial, "asset_type_id": asset_type, field: sent});
    let made = client.post("/assets", new("S1", "custom_fields")).await;
    assert_eq!(made.data()["custom_fields"], stored);
    let path = format!("/assets/{}", made.id());
    for field in ["custom_fields", "custom_fields_patch"] {
        let same = client.patch(&path, json!({field: sent})).await;
        assert_eq!((same.data(), same.header("etag")), (made.data(), made.header("etag")), "{field}");
        let put = client.put("/assets/by-serial/S1", &new("S1", field)).await;
        assert_eq!(put.data()["custom_fields"], stored, "{field}");
        let batch = client.batch("/assets/batch", &[json!({"op": "create", "body": new("S2", field)})]).await;
        assert_eq!(batch.data()[0]["data"]["custom_fields"], stored, "{field}");
    }
    let more = r#""[""o\u0308""]""#;
    let csv = format!("name,asset_type_code,custom_fields.room,custom_fields.more\nx,TT,Bu\u{308}ro,{more}\n");
    let lines = [
        json!({"name": "x", "asset_type_code": "TT", "custom_fields": sent}),
        json!({"name": "x", "asset_type_code": "TT", "custom_fields.room": sent["room"], "custom_fields.more": sent["more"]}),
    ];
    for (kind, body) in [("text/csv", csv), ("application/x-ndjson", format!("{}\n{}\n", lines[0], lines[1]))] {
        let reply = client.send("POST", "/assets/import", Some(kind), body).await;
        for row in reply.data().as_array().unwrap() {
            assert_eq!(row["outcome"], "created", "{row}");
            let asset = client.get(&format!("/assets/{}", row["id"].as_str().unwrap())).await.data();
            assert_eq!(asset["custom_fields"], stored, "{kind}");
        }
    }
}

/// Checks that creating this asset (alone and in a batch) and changing it (by ID and by its serial number `S1`) are refused
/// with an error at this pointer.
async fn refused_everywhere(client: &Client, asset: &str, body: &Value, pointer: &str) {
    assert_eq!(client.post("/assets", body.clone()).await.field_errors(), [pointer], "{body}");
    assert_eq!(client.patch(&format!("/assets/{asset}"), body.clone()).await.field_errors(), [pointer], "{body}");
    assert_eq!(client.put("/assets/by-serial/S1", body).await.field_errors(), [pointer], "{body}");
    let batch = client.batch("/assets/batch", &[json!({"op": "create", "body": body})]).await;
    assert_eq!(batch.field_errors(), [format!("/operations/0/body{pointer}")], "{body}");
}

#[tokio::test(start_paused = true)]
async fn single_custom_fields_are_set_and_the_others_stay() {
    let client = over_http().await;
    let body = json!({"name": "x", "custom_fields": {"a": 1, "b": 2}, "custom_fields_patch": {"b": null, "c": {"d": [3]}}});
    let made = client.post("/assets", body).await;
    assert_eq!(made.data()["custom_fields"], json!({"a": 1, "c": {"d": [3]}}), "`custom_fields` is applied first");
    let path = format!("/assets/{}", made.id());
    let patch = async |fields: Value| client.patch(&path, json!({"custom_fields_patch": fields})).await;
    assert_eq!(
        patch(json!({"a": null, "e": "f", "none": null})).await.data()["custom_fields"],
        json!({"c": {"d": [3]}, "e": "f"})
    );
    let read = client.get(&path).await;
    for nothing in [json!({}), json!({"e": "f"}), json!({"a": null}), json!({"c": {"d": [3.0]}})] {
        let same = patch(nothing).await;
        assert_eq!((same.data(), same.header("etag")), (read.data(), read.header("etag")));
    }
    let both = client.patch(&path, json!({"custom_fields": null, "custom_fields_patch": {"a": 1}})).await;
    assert_eq!(both.data()["custom_fields"], json!({"a": 1}));
    let planned = client.patch(&format!("{path}?dry_run=true"), json!({"custom_fields_patch": {"b": 2}})).await;
    assert_eq!(planned.data()["custom_fields"], json!({"a": 1, "b": 2}));
    assert_eq!(client.get(&path).await.data(), both.data());
    let made = client.put("/assets/by-serial/S1", &json!({"name": "x", "custom_fields_patch": {"a": 1, "b": 2}})).await;
    assert_eq!((made.status.as_u16(), made.data()["custom_fields"].clone()), (201, json!({"a": 1, "b": 2})));
    let changed = client.put("/assets/by-serial/S1", &json!({"name": "x", "custom_fields_patch": {"a": null}})).await;
    assert_eq!((changed.status.as_u16(), changed.data()["custom_fields"].clone()), (200, json!({"b": 2})));
}

#[tokio::test(start_paused = true)]
async fn the_errors_of_single_custom_fields_point_at_them_and_a_batch_sets_all_or_none() {
    let client = over_http().await;
    let properties = json!({"ram_gb": {"type": "integer"}, "color": {"type": "string"}, "ports": {"type": "array", "items": {"type": "string"}}});
    let schema = json!({"required": ["ram_gb"], "additionalProperties": false, "properties": properties});
    let asset_type = client.type_with_schema("Laptop", "LAP", schema).await;
    let create = async |fields: Value| {
        let body = json!({"name": "x", "asset_type_id": asset_type, "custom_fields_patch": fields});
        client.post("/assets", body).await.field_errors()
    };
    assert_eq!(create(json!({"ram_gb": "16", "color": 1})).await, ["/custom_fields_patch/color", "/custom_fields_patch/ram_gb"]);
    assert_eq!(create(json!({"ram_gb": 16, "cpu": 1})).await, ["/custom_fields_patch/cpu"]);
    assert_eq!(create(json!({"ram_gb": 16, "ports": ["usb", 3]})).await, ["/custom_fields_patch/ports/1"]);
    assert_eq!(create(json!({"color": "red"})).await, ["/custom_fields_patch"], "a required field is missing");
    assert_eq!(create(json!(null)).await, ["/custom_fields_patch"]);
    assert_eq!(create(json!([1])).await, ["/custom_fields_patch"]);
    let laptop = client.asset(json!({"name": "x", "asset_type_id": asset_type, "custom_fields": {"ram_gb": 16}})).await;
    let patch = async |body: &str| {
        client.send("PATCH", &format!("/assets/{laptop}"), Some("application/json"), body.to_owned()).await.field_errors()
    };
    assert_eq!(patch(r#"{"custom_fields_patch":{"ram_gb":null}}"#).await, ["/custom_fields_patch/ram_gb"]);
    let both = r#"{"custom_fields":{"ram_gb":"x"},"custom_fields_patch":{"color":1}}"#;
    assert_eq!(patch(both).await, ["/custom_fields/ram_gb", "/custom_fields_patch/color"]);
    for (both, pointer) in [
        (r#"{"custom_fields":{"foo":1},"custom_fields_patch":{"ram_gb":16}}"#, "/custom_fields/foo"),
        (r#"{"custom_fields":{"ram_gb":16},"custom_fields_patch":{"foo":1}}"#, "/custom_fields_patch/foo"),
        (r#"{"custom_fields":{"foo":1,"ram_gb":16},"custom_fields_patch":{"foo":2}}"#, "/custom_fields_patch/foo"),
        (r#"{"custom_fields":{},"custom_fields_patch":{"color":"red"}}"#, "/custom_fields"),
        (r#"{"custom_fields":{"ram_gb":16},"custom_fields_patch":{"ram_gb":null}}"#, "/custom_fields_patch/ram_gb"),
    ] {
        assert_eq!(patch(both).await, [pointer], "{both}");
    }
    for (unreadable, pointers) in [
        (r#"{"a/b":9007199254740993,"c":1,"d":1e400}"#, ["/custom_fields_patch/a~1b", "/custom_fields_patch/d"].as_slice()),
        (r#"{"a":{"b":1,"b":2}}"#, &["/custom_fields_patch/a"]),
        (r#"{"a":1,"a":2}"#, &["/custom_fields_patch"]),
        (r#"{"a":[[[[[[[[1]]]]]]]]}"#, &["/custom_fields_patch/a"]),
    ] {
        assert_eq!(patch(&format!(r#"{{"custom_fields_patch":{unreadable}}}"#)).await, pointers, "{unreadable}");
    }
    // Each value alone is within the size limit for custom fields; together they exceed it.
    let untyped = client.asset(json!({"name": "x", "custom_fields": {"a": "x".repeat(20_000)}})).await;
    let body = json!({"custom_fields_patch": {"b": "x".repeat(20_000)}});
    assert_eq!(client.patch(&format!("/assets/{untyped}"), body).await.field_errors(), ["/custom_fields_patch"]);
    let body = json!({"custom_fields_patch": {"a": null, "b": "x".repeat(20_000)}});
    client.patch(&format!("/assets/{untyped}"), body).await.data();

    let laptop = json!({"name": "x", "asset_type_id": asset_type, "custom_fields": {"ram_gb": 16, "color": "grey"}});
    let (one, other) = (client.asset(laptop.clone()).await, client.asset(laptop).await);
    let update = |id: &str, fields: Value| json!({"op": "update", "id": id, "body": {"custom_fields_patch": fields}});
    let wrong = [update(&one, json!({"color": "red"})), update(&other, json!({"ram_gb": "32"}))];
    let refused = client.batch("/assets/batch", &wrong).await;
    assert_eq!(refused.field_errors(), ["/operations/1/body/custom_fields_patch/ram_gb"]);
    assert_eq!(client.get(&format!("/assets/{one}")).await.data()["custom_fields"], json!({"ram_gb": 16, "color": "grey"}));
    let right = [update(&one, json!({"color": "red"})), update(&other, json!({"ram_gb": 32, "color": null}))];
    let done = client.batch("/assets/batch", &right).await.data();
    assert_eq!(done[0]["data"]["custom_fields"], json!({"ram_gb": 16, "color": "red"}));
    assert_eq!(done[1]["data"]["custom_fields"], json!({"ram_gb": 32}));
}

#[tokio::test(start_paused = true)]
async fn a_number_in_another_form_changes_nothing() {
    let client = over_http().await;
    let create = r#"{"name":"x","purchase_price":2499.00,"custom_fields":{"a":1,"b":[2.0,{"c":0.5}],"d":"1"}}"#;
    let path = format!("/assets/{}", client.post_text("/assets", create).await.id());
    let patch = async |body: &str| client.send("PATCH", &path, Some("application/json"), body.to_owned()).await;
    let entries = async || client.get(&format!("{path}/history")).await.data().as_array().unwrap().len();
    let read = client.get(&path).await;
    for same in [
        r#"{"purchase_price":2499}"#,
        r#"{"purchase_price":"2499.0"}"#,
        r#"{"custom_fields":{"a":1.0,"b":[2,{"c":5e-1}],"d":"1"}}"#,
        r#"{"custom_fields_patch":{"a":1.0}}"#,
        r#"{"purchase_price":2.499e3,"custom_fields":{"d":"1","b":[2,{"c":0.50}],"a":1.00}}"#,
    ] {
        let sent = patch(same).await;
        assert_eq!((sent.text(), sent.header("etag")), (read.text(), read.header("etag")), "{same}");
    }
    assert_eq!(entries().await, 1);
    // If another field changes, equal values keep their form.
    let changed = patch(r#"{"name":"y","purchase_price":2499,"custom_fields":{"a":1.0,"b":[2,{"c":0.5}],"d":1}}"#).await;
    assert!(changed.text().contains(r#""purchase_price":2499.00,"#), "{}", changed.text());
    assert!(changed.text().contains(r#""custom_fields":{"a":1,"b":[2.0,{"c":0.5}],"d":1}"#), "{}", changed.text());
    let entry = client.get(&format!("{path}/history")).await.data()[0]["changes"].clone();
    assert_eq!(entry.as_object().unwrap().keys().collect::<Vec<_>>(), ["custom_fields", "name"]);
}

#[tokio::test(start_paused = true)]
async fn errors_in_a_schema_point_into_it_in_a_post_and_a_patch() {
    let client = over_http().await;
    let asset_type = client.asset_type("Laptop", "LAP", "physical").await;
    let property = |rules: Value| json!({"properties": {"a": rules}});
    for (schema, pointer, words) in [
        (json!({"$defs": {}}), "/$defs", "known: type, title"),
        (property(json!({"type": "string", "pattern": r"\pL{200}"})), "/properties/a/pattern", "fewer repetitions"),
        (json!({"properties": {"\u{200b}a/b": {"type": "string"}}}), "/properties/\u{200b}a~1b", "no asset can have"),
        (property(json!({"type": "integer", "maximum": 9_007_199_254_740_993_u64})), "", "2^53"),
        (json!("x"), "", "an object"),
    ] {
        let body = json!({"name": "T", "code": "TT", "kind": "physical", "custom_fields_schema": schema});
        let refused = client.post("/catalog/asset-types", body).await;
        let pointer = format!("/custom_fields_schema{pointer}");
        assert_eq!(refused.field_errors(), [pointer.as_str()]);
        let detail = refused.json()["errors"][0]["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(words), "{detail}");
        let path = format!("/catalog/asset-types/{asset_type}");
        let patched = client.patch(&path, json!({"custom_fields_schema": schema})).await;
        assert_eq!(patched.field_errors(), [pointer]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_hundred_thousand_errors_make_a_small_response() {
    let client = over_http().await;
    let members: Vec<String> = (0..90_000).map(|n| format!("\"{n:x}\":1")).collect();
    let refused = client.post_text("/assets", &format!("{{\"name\":\"x\",{}}}", members.join(","))).await;
    assert_eq!(refused.field_errors().len(), 1000);
    let choices = json!({"enum": (0..90).map(|n| format!("{n}{}", "x".repeat(200))).collect::<Vec<_>>()});
    let schema = json!({"properties": {"f0": choices}, "additionalProperties": false});
    let asset_type = client.type_with_schema("T", "TT", schema).await;
    let fields: Map<String, Value> = (0..200).map(|n| (format!("f{n}"), json!("x"))).collect();
    let refused = client.post("/assets", json!({"name": "x", "asset_type_id": asset_type, "custom_fields": fields})).await;
    assert_eq!(refused.field_errors().len(), 100);
    assert!(refused.bytes.len() < 16_000, "{}", refused.bytes.len());
}

const RAW_VALUE: &str = "$serde_json::private::RawValue";

fn hidden(text: &str) -> Value {
    json!({ RAW_VALUE: text })
}

#[tokio::test(start_paused = true)]
async fn private_names_and_null_characters_are_refused_in_every_body_at_any_depth() {
    let client = over_http().await;
    let asset = client.asset(json!({"name": "x", "serial_number": "S1"})).await;
    let fields = format!("/custom_fields/{RAW_VALUE}");
    for text in ["[", "{}", "{\"$ref\":\"#\"}"] {
        refused_everywhere(&client, &asset, &json!({"name": "x", "custom_fields": hidden(text)}), &fields).await;
        let body = json!({"name": "T", "code": "TT", "kind": "physical", "custom_fields_schema": hidden(text)});
        assert_eq!(
            client.post("/catalog/asset-types", body).await.field_errors(),
            [format!("/custom_fields_schema/{RAW_VALUE}")]
        );
    }
    let nested = json!({"name": "x", "custom_fields": {"a": [0, {"b/c": hidden("[")}]}});
    assert_eq!(client.post("/assets", nested).await.field_errors(), [format!("/custom_fields/a/1/b~1c/{RAW_VALUE}")]);
    let escaped = r#"{"name":"x","custom_fields":{"a":{"\u0024serde_json::private::Number":"1"}}}"#;
    let refused = client.post_text("/assets", escaped).await;
    assert_eq!(refused.field_errors(), ["/custom_fields/a/$serde_json::private::Number"]);
    assert!(refused.text().contains("choose another name"), "{}", refused.text());
    let properties = json!({"custom_fields_schema": {"properties": {"a": {"const": hidden("1")}}}});
    let asset_type = client.asset_type("T", "TT", "physical").await;
    let refused = client.patch(&format!("/catalog/asset-types/{asset_type}"), properties).await;
    assert_eq!(refused.field_errors(), [format!("/custom_fields_schema/properties/a/const/{RAW_VALUE}")]);
    // A read-only field, which is compared with its current value, and a member of the body itself.
    let refused = client.patch(&format!("/assets/{asset}"), json!({"created_at": hidden("\"x\"")})).await;
    assert_eq!(refused.field_errors(), [format!("/created_at/{RAW_VALUE}")]);
    assert_eq!(client.patch(&format!("/assets/{asset}"), hidden("{}")).await.field_errors(), [format!("/{RAW_VALUE}")]);
    // No asset can have a field with this name, so no asset matches.
    assert_eq!(client.get(&format!("/assets?custom_fields.{RAW_VALUE}=1")).await.data(), json!([]));
    let value = json!({"name": "x", "custom_fields": {"a": RAW_VALUE}});
    client.post("/assets", value).await.data();

    let twice = json!({"a": {"u\u{308}": 1, "\u{fc}": 2}});
    for (fields, place) in [(json!({"a": [1, {"b/c": "x\0"}]}), "/a/1/b~1c"), (json!({"a": "\0"}), "/a"), (twice, "/a/\u{fc}")] {
        for field in ["custom_fields", "custom_fields_patch"] {
            refused_everywhere(&client, &asset, &json!({"name": "x", field: fields}), &format!("/{field}{place}")).await;
        }
        for row in [json!({"name": "x", "custom_fields": fields}), json!({"name": "x", "custom_fields.a": fields["a"]})] {
            let reply = client.send("POST", "/assets/import", Some("application/x-ndjson"), row.to_string()).await;
            let errors = row_errors(&reply, 0);
            assert_eq!(errors.iter().map(|(column, _)| column.as_str()).collect::<Vec<_>>(), ["custom_fields.a"], "{errors:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn null_in_a_row_removes_a_single_custom_field() {
    let client = over_http().await;
    let asset = client.post("/assets", json!({"name": "x", "custom_fields": {"a": 1, "b": 2}})).await.data();
    let row = json!({"id": asset["id"], "custom_fields.a": null, "custom_fields.c": null}).to_string();
    let reply = client.send("POST", "/assets/import?match=id", Some("application/x-ndjson"), row).await;
    assert_eq!(reply.data()[0]["outcome"], "updated");
    assert_eq!(client.get(&format!("/assets/{}", asset["id"].as_str().unwrap())).await.data()["custom_fields"], json!({"b": 2}));
}

#[tokio::test(start_paused = true)]
async fn private_names_are_refused_in_imports() {
    let client = over_http().await;
    let asset_type = client.asset_type("T", "TT", "physical").await;
    let schema = json!({"custom_fields_schema": {"properties": {"a": {"type": "array"}}}});
    client.patch(&format!("/catalog/asset-types/{asset_type}"), schema).await.data();
    for lines in [
        json!({"name": "x", "custom_fields": hidden("[")}).to_string(),
        json!({"name": "x", "custom_fields.a": {"b": hidden("[")}}).to_string(),
    ] {
        let reply = client.send("POST", "/assets/import", Some("application/x-ndjson"), lines.clone()).await;
        let errors = row_errors(&reply, 0);
        assert!(errors.len() == 1 && errors[0].0.starts_with("custom_fields"), "{lines}: {errors:?}");
    }
    let column = json!({"name": "x", format!("custom_fields.{RAW_VALUE}"): "["}).to_string();
    let reply = client.send("POST", "/assets/import", Some("application/x-ndjson"), column).await;
    assert!(reply.status == 422 && reply.text().contains(RAW_VALUE), "{}", reply.text());
    let reply = client.import("/assets", "", &format!("name,custom_fields.{RAW_VALUE}\nx,[\n")).await;
    assert!(reply.status == 422 && reply.text().contains(RAW_VALUE), "{}", reply.text());
    let cell = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    let reply = client.import("/assets", "", &format!("name,custom_fields\nx,{}\n", cell(&hidden("[").to_string()))).await;
    assert_eq!(row_errors(&reply, 0).len(), 1, "{}", reply.text());
    // A JSON cell that can't be parsed is imported as text.
    let csv = format!("name,asset_type_code,custom_fields.a\nx,TT,{}\n", cell(&hidden("[").to_string()));
    let reply = client.import("/assets", "", &csv).await;
    let errors = row_errors(&reply, 0);
    assert!(errors[0].1.contains("array"), "{errors:?}");
    assert_eq!(client.total("/assets").await, 0);
}

/// Replaces an asset type's schema with one that an older version of the service may have stored.
async fn store_schema(api: &Api, client: &Client, asset_type: &str, schema: &str) {
    let keys = Keys::of(client.tenant);
    let hash = schema_hash(schema);
    set_text(api, &keys.schema(&hash).item(), "custom_fields_schema", schema.to_owned()).await;
    let record = keys.record(Kind::AssetType, asset_type.parse().unwrap()).item();
    set_text(api, &record, "custom_fields_schema_hash", hash).await;
}

#[tokio::test(start_paused = true)]
async fn type_with_a_refused_stored_schema_has_no_new_assets_until_the_schema_is_replaced() {
    let (api, client) = Api::with_tenant().await;
    for (number, schema) in
        [&hidden(r##"{"$ref":"#"}"##).to_string(), r#"{"properties":{"a":{"anyOf":[]}}}"#].into_iter().enumerate()
    {
        let asset_type = client.type_with_schema("T", &format!("T{number}"), json!({"type": "object"})).await;
        let path = format!("/catalog/asset-types/{asset_type}");
        store_schema(&api, &client, &asset_type, schema).await;
        let body = json!({"name": "x", "asset_type_id": asset_type, "custom_fields": {"a": "x"}});
        let refused = client.post("/assets", body.clone()).await;
        assert_eq!(refused.field_errors(), ["/custom_fields"], "{schema}");
        assert!(refused.text().contains("custom_fields_schema is corrected"), "{schema}: {}", refused.text());
        assert_eq!(client.get(&path).await.data()["custom_fields_schema"].to_string(), *schema);
        assert!(client.get("/catalog/asset-types").await.text().contains(&asset_type));
        client.patch(&path, json!({"name": "Renamed"})).await.data();
        client.patch(&path, json!({"custom_fields_schema": {"properties": {"a": {"type": "string"}}}})).await.data();
        let asset = client.post("/assets", body).await.id();
        client.delete(&format!("/assets/{asset}")).await;
        assert_eq!(client.delete(&path).await.status, 200);
    }
}
