//! Names that the JSON library would interpret: refused wherever they are sent, and data wherever they are stored.

use crate::support::bulk::row_errors;
use crate::support::people::{MARK, erase_all, items_with};
use crate::support::table::history::set_text;
use crate::support::{Api, Client, over_http};
use serde_json::{Value, json};
use shared::domain::catalog::custom_fields::schema_hash;
use shared::domain::record::Kind;
use shared::store::keys::Keys;

const RAW_VALUE: &str = "$serde_json::private::RawValue";

fn hidden(text: &str) -> Value {
    json!({ RAW_VALUE: text })
}

#[tokio::test(start_paused = true)]
async fn private_names_are_refused_in_every_body_at_any_depth() {
    let client = over_http().await;
    let asset = client.asset(json!({"name": "x", "serial_number": "S1"})).await;
    let fields = format!("/custom_fields/{RAW_VALUE}");
    for text in ["[", "{}", "{\"$ref\":\"#\"}"] {
        let body = json!({"name": "x", "custom_fields": hidden(text)});
        assert_eq!(client.post("/assets", body.clone()).await.field_errors(), [fields.as_str()], "{text}");
        assert_eq!(client.patch(&format!("/assets/{asset}"), body.clone()).await.field_errors(), [fields.as_str()]);
        let put = client.send("PUT", "/assets/by-serial/S1", Some("application/json"), body.to_string()).await;
        assert_eq!(put.field_errors(), [fields.as_str()]);
        let batch = client.post("/assets/batch", json!({"operations": [{"op": "create", "body": body}]})).await;
        assert_eq!(batch.field_errors(), [format!("/operations/0/body{fields}")]);
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
    // A read-only field, which is compared with the present one, and a member of the body itself.
    let refused = client.patch(&format!("/assets/{asset}"), json!({"created_at": hidden("\"x\"")})).await;
    assert_eq!(refused.field_errors(), [format!("/created_at/{RAW_VALUE}")]);
    assert_eq!(client.patch(&format!("/assets/{asset}"), hidden("{}")).await.field_errors(), [format!("/{RAW_VALUE}")]);
    // No asset can have such a field.
    assert_eq!(client.get(&format!("/assets?custom_fields.{RAW_VALUE}=1")).await.data(), json!([]));
    let value = json!({"name": "x", "custom_fields": {"a": RAW_VALUE}});
    client.post("/assets", value).await.data();
}

#[tokio::test(start_paused = true)]
async fn private_names_are_refused_in_imports() {
    let client = over_http().await;
    let asset_type = client.asset_type("T", "TT", "physical").await;
    let schema = json!({"custom_fields_schema": {"properties": {"a": {"type": "object"}}}});
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
    // A cell whose schema says that it is JSON is a text if it can't be one of these.
    let csv = format!("name,asset_type_code,custom_fields.a\nx,TT,{}\n", cell(&hidden("[").to_string()));
    let reply = client.import("/assets", "", &csv).await;
    let errors = row_errors(&reply, 0);
    assert!(errors[0].1.contains("object"), "{errors:?}");
    assert_eq!(client.total("/assets").await, 0);
}

/// Puts another schema in place of the one of an asset type, as an older version may have stored it.
async fn store_schema(api: &Api, client: &Client, asset_type: &str, schema: &str) {
    let keys = Keys::of(client.tenant);
    let hash = schema_hash(schema);
    set_text(api, &keys.schema(&hash).item(), "custom_fields_schema", schema.to_owned()).await;
    let record = keys.record(Kind::AssetType, asset_type.parse().unwrap()).item();
    set_text(api, &record, "custom_fields_schema_hash", hash).await;
}

#[tokio::test(start_paused = true)]
async fn a_stored_schema_that_is_refused_today_validates_nothing_and_can_be_replaced() {
    let (api, client) = Api::with_tenant().await;
    let deep = (0..70).fold("{}".to_owned(), |inner, _| format!(r#"{{"not":{inner}}}"#));
    for (number, schema) in [
        &hidden(r##"{"$ref":"#"}"##).to_string(),
        r##"{"$ref":"#"}"##,
        r##"{"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"allOf":[{"$ref":"#/$defs/a"}]}}}"##,
        r#"{"$ref":"file:///etc/passwd"}"#,
        r#"{"properties":{"a":{"pattern":"(?=x)"}}}"#,
        r#"{"properties":{"a":{"pattern":"(x{1000}){1000}"}}}"#,
        r#"{"type":"nothing"}"#,
        &deep,
    ]
    .into_iter()
    .enumerate()
    {
        let code = format!("T{number}");
        let body = json!({"name": "T", "code": code, "kind": "physical", "custom_fields_schema": {"type": "object"}});
        let asset_type = client.post("/catalog/asset-types", body).await.id();
        let path = format!("/catalog/asset-types/{asset_type}");
        store_schema(&api, &client, &asset_type, schema).await;
        let body = json!({"name": "x", "asset_type_id": asset_type, "custom_fields": {"a": "x"}});
        // The library ignores the unknown keyword, whose name is private.
        if !schema.contains("private") {
            let refused = client.post("/assets", body.clone()).await;
            assert_eq!(refused.field_errors(), ["/custom_fields"], "{schema}");
            assert!(refused.text().contains("custom_fields_schema is corrected"), "{schema}: {}", refused.text());
        }
        assert_eq!(client.get(&path).await.data()["custom_fields_schema"].to_string(), *schema);
        assert!(client.get("/catalog/asset-types").await.text().contains(&asset_type));
        client.patch(&path, json!({"name": "Renamed"})).await.data();
        client.patch(&path, json!({"custom_fields_schema": {"properties": {"a": {"type": "string"}}}})).await.data();
        let asset = client.post("/assets", body).await.id();
        client.delete(&format!("/assets/{asset}")).await;
        assert_eq!(client.delete(&path).await.status, 200);
    }
}

#[tokio::test(start_paused = true)]
async fn stored_custom_fields_are_data_whatever_their_names_are() {
    let (api, client) = Api::with_tenant().await;
    let user = client.post("/users", json!({"email": "a@b.example", "display_name": "Ada"})).await.id();
    for text in ["[", r#"{"other": 1}"#] {
        let notes = format!("{MARK} has it");
        let body = json!({"name": "x", "assigned_to": user, "notes": notes, "custom_fields": {"a": text}});
        let asset = client.post("/assets", body).await.id();
        let path = format!("/assets/{asset}");
        // As an older version may have stored it.
        let record = Keys::of(client.tenant).record(Kind::Asset, asset.parse().unwrap()).item();
        set_text(&api, &record, "custom_fields", hidden(text).to_string()).await;
        assert_eq!(client.get(&path).await.data()["custom_fields"], hidden(text));
        client.patch(&path, json!({"name": "renamed"})).await.data();
        // The next change of the custom fields shows the old ones in its entry.
        client.patch(&path, json!({"custom_fields": {"a": 1}, "notes": format!("{MARK} has it still")})).await.data();
        let history = client.get(&format!("{path}/history?verify=true")).await;
        assert_eq!(history.json()["verification"]["valid"], true, "{}", history.text());
        assert_eq!(history.data()[0]["changes"]["custom_fields"]["old"], hidden(text));
        api.advance_clock(60);
        let feed = client.get("/events?limit=100").await;
        assert!(feed.text().contains(RAW_VALUE), "{}", feed.text());
        let now = api.now();
        assert_eq!(client.get(&format!("{path}?as_of={now}")).await.data()["custom_fields"], json!({"a": 1}));
        client.patch(&path, json!({"assigned_to": null})).await.data();
    }
    client.patch(&format!("/users/{user}"), json!({"is_active": false})).await.data();
    api.advance_clock(60);
    erase_all(&client, &user).await;
    assert_eq!(items_with(&api, MARK).await, Vec::<String>::new());
}
