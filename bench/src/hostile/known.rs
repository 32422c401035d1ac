//! Attacks that once worked, or that services like this one have fallen to.

use super::attack::Attack;
use super::images;
use super::target::Target;
use anyhow::Result;
use serde_json::{Map, Value, json};
use shared::domain::signing::signature_image::data_url;

/// The largest body that the API accepts, in bytes.
const MAX_BODY_BYTES: usize = 1024 * 1024;

type Named = (&'static str, Attack);

/// Returns the attacks, each with its name.
pub async fn attacks(target: &mut Target) -> Result<Vec<Named>> {
    let mut attacks = schemas();
    attacks.extend(bodies());
    attacks.extend(heads_and_queries());
    attacks.extend(values());
    attacks.extend(movement(target).await?);
    attacks.push(signatures(target).await?);
    attacks.extend(validations(target).await?);
    Ok(attacks)
}

/// Schemas whose patterns are small, but expensive to compile or to match.
fn schemas() -> Vec<Named> {
    let patterns = |count: usize, pattern: fn(usize) -> String| {
        let properties: Map<String, Value> = (0..count).map(|n| (format!("f{n}"), json!({"pattern": pattern(n)}))).collect();
        asset_type(&json!({"properties": properties}))
    };
    let doubling: Map<String, Value> = (1..40)
        .map(|n| {
            (
                format!("a{n}"),
                json!({"allOf": [{"$ref": format!("#/$defs/a{}", n - 1)}, {"$ref": format!("#/$defs/a{}", n - 1)}]}),
            )
        })
        .chain([("a0".to_owned(), json!(true))])
        .collect();
    vec![
        ("200 patterns with a large class, repeated", patterns(200, |n| format!(r"\pL{{20}}%x{n}"))),
        ("250 patterns with a large class", patterns(250, |n| format!(r"\pL{n}"))),
        ("nested repetitions", patterns(20, |n| format!("((a{{9}}){{9}}){{9}}{n}"))),
        ("a pattern that backtracks", patterns(1, |_| "^(a+)+$".to_owned())),
        ("look-around", patterns(1, |_| "(?=a)b".to_owned())),
        ("references that double", asset_type(&json!({"$ref": "#/$defs/a39", "$defs": doubling}))),
        ("a reference elsewhere", asset_type(&json!({"$defs": {"a": {"$ref": "http://127.0.0.1:1/schema"}}}))),
        ("a reference to a file", asset_type(&json!({"$ref": "file:///etc/passwd"}))),
    ]
}

fn asset_type(schema: &Value) -> Attack {
    let body = json!({"name": "Type", "code": "ZZ", "kind": "physical", "custom_fields_schema": schema});
    Attack::new("POST", "/v1/catalog/asset-types", body.to_string())
}

/// Bodies that are long, deep, or not what they say.
fn bodies() -> Vec<Named> {
    let asset = |body: Vec<u8>| Attack::new("POST", "/v1/assets", body);
    let fields: Map<String, Value> = (0..60_000).map(|n| (format!("f{n}"), json!(n))).collect();
    let gzip = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xab, 0xae, 5, 0, 0x43, 0xbf, 0xa6, 0xa3, 2, 0, 0, 0].to_vec();
    vec![
        ("a body of the largest size", asset(vec![b' '; MAX_BODY_BYTES])),
        ("a body above the largest size", asset(vec![b' '; MAX_BODY_BYTES + 1])),
        ("half a million open brackets", asset(vec![b'['; MAX_BODY_BYTES / 2])),
        ("60,000 unknown fields", asset(Value::Object(fields).to_string().into_bytes())),
        ("combining characters", asset(json!({"name": "e\u{301}\u{327}".repeat(100_000)}).to_string().into_bytes())),
        ("compressed content", asset(gzip).with_header("content-encoding", "gzip")),
        ("UTF-16", asset("\u{feff}{\"name\": \"a\"}".encode_utf16().flat_map(u16::to_le_bytes).collect())),
        ("another media type", Attack { headers: vec![("content-type", b"text/xml".to_vec())], ..asset(b"<a/>".to_vec()) }),
    ]
}

/// Heads and queries at and beyond their limits.
fn heads_and_queries() -> Vec<Named> {
    let list = |query: &str| Attack::new("GET", format!("/v1/assets?{query}"), "");
    let tags = (0..500).map(|n| format!("\"{n}\"")).collect::<Vec<_>>().join(", ");
    let create = Attack::new("POST", "/v1/assets", r#"{"name": "a"}"#);
    vec![
        ("a search of 4,000 words", list(&format!("q={}", "a+".repeat(4000)))),
        ("a search of 8,000 letters", list(&format!("q={}", "a".repeat(8000)))),
        ("the largest page", list("page=18446744073709551615&limit=100")),
        ("a page beyond all numbers", list("page=99999999999999999999999999")),
        ("a parameter a hundred times", list(&"status=in_use&".repeat(100))),
        ("bad percent-encoding", list("q=%ff%fe%zz")),
        ("500 entity tags", Attack::new("GET", "/v1/settings", "").with_header("if-none-match", tags)),
        ("an empty list element", Attack::new("GET", "/v1/settings", "").with_header("if-none-match", "\"a\" ,")),
        ("a long idempotency key", create.clone().with_header("idempotency-key", "k".repeat(5000))),
        ("bytes in an idempotency key", create.clone().with_header("idempotency-key", vec![0xff, 0xfe])),
        ("a forged address", create.with_header("x-forwarded-for", "169.254.169.254")),
        ("a path above the root", Attack::new("GET", "/v1/../../etc/passwd", "")),
        ("an encoded slash", Attack::new("GET", "/v1/assets/%2e%2e%2fkeys", "")),
        ("a method that nobody knows", Attack::new("BREW", "/v1/assets", "")),
        ("a path of slashes", Attack::new("GET", format!("/v1{}", "/".repeat(60_000)), "")),
        ("a path of segments", Attack::new("GET", format!("/v1{}", "/a".repeat(30_000)), "")),
        ("a long path", Attack::new("GET", format!("/v1/assets/{}", "a".repeat(8000)), "")),
    ]
}

/// Values at the edge of what a field accepts.
fn values() -> Vec<Named> {
    let post = |path: &str, body: Value| Attack::new("POST", format!("/v1{path}"), body.to_string());
    let key = |expires_at: &str| post("/keys", json!({"name": "k", "scopes": ["assets:read"], "expires_at": expires_at}));
    let raw = |body: &str| Attack::new("POST", "/v1/assets", body);
    vec![
        ("a leap second at the end of time", key("2199-12-31T23:59:60Z")),
        ("the last second of all years", key("9999-12-31T23:59:59.999Z")),
        ("a year below zero", key("-0001-01-01T00:00:00Z")),
        ("a number beyond doubles", raw(r#"{"name": "a", "custom_fields": {"n": 1e999999}}"#)),
        ("a number that a double rounds", raw(r#"{"name": "a", "custom_fields": {"n": 9007199254740993.0}}"#)),
        ("a price with many digits", raw(&format!(r#"{{"name": "a", "purchase_price": 1{}}}"#, "0".repeat(100_000)))),
        ("a price with an exponent", raw(r#"{"name": "a", "purchase_price": 1e-2147483648}"#)),
        ("lone surrogates", raw(r#"{"name": "\ud800"}"#)),
        ("a null character", raw(r#"{"name": "a\u0000b", "notes": "\u0000"}"#)),
        (
            "text that runs from right to left",
            post("/users", json!({"email": "a\u{202e}b@example.com", "display_name": "\u{202e}evil"})),
        ),
        ("a name of zero-width characters", post("/assets", json!({"name": "\u{200b}\u{200b}\u{feff}"}))),
        ("a template of numbers only", Attack::new("PATCH", "/v1/settings", r#"{"asset_tag_template": "NNNNNNNNNNNNN"}"#)),
        (
            "names of JavaScript's prototypes",
            post("/assets", json!({"name": "a", "custom_fields": {"__proto__": {"a": 1}, "constructor": 1}})),
        ),
        ("100,000 wrong scopes", post("/keys", json!({"name": "k", "scopes": vec![1; 100_000]}))),
        ("markup in a name", post("/assets", json!({"name": "<script>alert(1)</script>\"'`${7*7}{{7*7}}"}))),
    ]
}

/// As many large images as a body holds, for later steps of one instance.
async fn signatures(target: &mut Target) -> Result<Named> {
    const COUNT: u8 = 20;
    let keys: Vec<String> = (0..COUNT).map(|n| format!("s{n}")).collect();
    let steps: Vec<Value> = keys.iter().map(|key| json!({"type": "signature", "key": key, "label": key})).collect();
    let process = json!({"name": "Many signatures", "trigger_status": "in_stock", "target_status": "in_use", "steps": steps});
    let process = target.create("/processes", &process).await?;
    let asset = target.create("/assets", &json!({"name": "Tablet"})).await?;
    let instance = target.create(&format!("/processes/{process}/start"), &json!({"asset_id": asset})).await?;
    let mut step_data = Map::new();
    for (key, mark) in keys.into_iter().zip(0..COUNT) {
        step_data.insert(key, json!(data_url(&images::deep(2000, 2000, mark)?)));
    }
    let body = json!({"step_data": step_data}).to_string();
    Ok(("many images of 32 MB", Attack::new("POST", format!("/v1/processes/instances/{instance}/advance"), body)))
}

/// As many rows and operations as a body holds, whose custom fields are expensive to validate.
async fn validations(target: &mut Target) -> Result<Vec<Named>> {
    let rules: Vec<Value> = (0..900).map(|n| json!({"type": "string", "minLength": n})).collect();
    let costly = json!({"not": {"anyOf": rules}});
    // What it costs takes long to find out.
    let to_estimate = json!({"enum": (0..5_000).collect::<Vec<_>>()});
    let mut attacks = validations_of(target, "CC", &costly).await?;
    attacks.extend(validations_of(target, "CE", &to_estimate).await?);
    Ok(attacks)
}

/// As many lists as a body holds, whose items are checked by this rule, for assets of a type with this code.
async fn validations_of(target: &mut Target, code: &str, rule: &Value) -> Result<Vec<Named>> {
    let schema = json!({"properties": {"list": {"items": rule}}});
    let body = json!({"name": code, "code": code, "kind": "physical", "custom_fields_schema": schema});
    let asset_type = target.create("/catalog/asset-types", &body).await?;
    let list = |n: usize| json!([vec![1; 1500], vec![n]].concat());
    let rows: String = (0..200).map(|n| format!("a,{code},\"{}\"\n", list(n))).collect();
    let rows = format!("name,asset_type_code,custom_fields.list\n{rows}");
    let operation =
        |n| json!({"op": "create", "body": {"name": "a", "asset_type_id": asset_type, "custom_fields": {"list": list(n)}}});
    let batch = json!({"operations": (0..100).map(operation).collect::<Vec<_>>()});
    let import = |query: &str| Attack {
        headers: vec![("content-type", b"text/csv".to_vec())],
        ..Attack::new("POST", format!("/v1/assets/import{query}"), rows.clone())
    };
    Ok(vec![
        ("200 expensive rows", import("")),
        ("200 expensive rows, checked first", import("?on_error=abort")),
        ("100 expensive operations", Attack::new("POST", "/v1/assets/batch", batch.to_string())),
    ])
}

/// A movement of 20 assets with three large signatures, at the permitted number of pixels and beyond.
async fn movement(target: &mut Target) -> Result<Vec<Named>> {
    let steps: Vec<Value> = ["a", "b", "c"].iter().map(|key| json!({"type": "signature", "key": key, "label": key})).collect();
    let process = json!({"name": "Three signatures", "trigger_status": "in_stock", "target_status": "in_use", "steps": steps});
    let process = target.create("/processes", &process).await?;
    let mut attacks = Vec::new();
    for (name, side) in
        [("4 million pixels, three times for 20 assets", 2000), ("16 million pixels, three times for 20 assets", 4096)]
    {
        let mut assets = Vec::new();
        for n in 0..20 {
            assets.push(target.create("/assets", &json!({"name": format!("Tablet {n}")})).await?);
        }
        let movement = target.create(&format!("/processes/{process}/start"), &json!({"asset_ids": assets})).await?;
        let mut step_data = Map::new();
        for (key, offset) in [("a", 0), ("b", 1), ("c", 2)] {
            step_data.insert(key.to_owned(), json!(data_url(&images::black(side, side - offset)?)));
        }
        let body = json!({"step_data": step_data}).to_string();
        attacks.push((name, Attack::new("POST", format!("/v1/movements/{movement}/advance"), body)));
    }
    Ok(attacks)
}
