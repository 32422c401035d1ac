//! Attacks that once worked on this service or similar ones, and requests as long as they can be, with the CPU time and memory of
//! each. With a key that is refused, each takes next to none.

use crate::support::prelude::*;
use axum::body::Bytes;
use axum::http::{HeaderName, HeaderValue};
use dev_server::meter::cpu_time;
use dev_server::test_data::{PATTERN_WITH_MANY_STATES, made_up_key, made_up_link, text_with_many_states, unknown_tenant};
use png::{BitDepth, ColorType, Filter};
use shared::domain::keys::api_key::MAX_RATE_LIMIT;
use std::process::Command;

/// Maximum CPU time of a request in a debug build.
const MAX_CPU_TIME: Duration = Duration::from_secs(2);
/// Maximum CPU time of a request whose key is refused: its body isn't parsed.
const MAX_REFUSED_TIME: Duration = Duration::from_millis(100);
/// Runs of a refused request that takes longer. The fastest counts, because the machine can be busy.
const RUNS: usize = 10;
/// Maximum memory of a request, in KiB. The smallest functions have 256 MB.
const MAX_KILOBYTES: u64 = 128 * 1024;
/// The largest body that the API accepts, in bytes.
const MAX_BODY_BYTES: usize = 1024 * 1024;
/// Environment variable for the child process that measures memory.
const ALONE: &str = "KNOWN_ATTACKS_ALONE";

struct Attack {
    name: &'static str,
    method: &'static str,
    path: String,
    /// A header, in addition to `Content-Type: application/json` or replacing it.
    header: Option<(&'static str, Vec<u8>)>,
    /// Name and value of further headers, and their number.
    headers: Option<(&'static str, &'static str, usize)>,
    /// Built when the attack is sent, because some bodies take long to build.
    body: LazyLock<Bytes, Box<dyn FnOnce() -> Bytes>>,
}

fn get(name: &'static str, path: impl Into<String>) -> Attack {
    let body: Box<dyn FnOnce() -> Bytes> = Box::new(Bytes::new);
    Attack { name, method: "GET", path: path.into(), header: None, headers: None, body: LazyLock::new(body) }
}

fn post(name: &'static str, path: &str, body: impl Into<Bytes>) -> Attack {
    let body: Bytes = body.into();
    post_made(name, path, move || body)
}

fn post_made(name: &'static str, path: &str, body: impl FnOnce() -> Bytes + 'static) -> Attack {
    Attack { method: "POST", body: LazyLock::new(Box::new(body)), ..get(name, format!("/v1{path}")) }
}

fn post_json(name: &'static str, path: &str, body: &Value) -> Attack {
    post(name, path, body.to_string())
}

impl Attack {
    fn with(self, header: &'static str, value: impl Into<Vec<u8>>) -> Self {
        Self { header: Some((header, value.into())), ..self }
    }

    fn request(&self, key: &str) -> Request<Body> {
        let request = Request::builder().method(self.method).uri(&self.path).header("authorization", format!("Bearer {key}"));
        let mut request = request.body(Body::from(self.body.clone())).unwrap();
        let headers = request.headers_mut();
        for (name, value) in [("content-type", b"application/json".to_vec())].into_iter().chain(self.header.clone()) {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_bytes(&value).unwrap());
        }
        if let Some((name, value, count)) = self.headers {
            headers.remove(name);
            for _ in 0..count {
                headers.append(name, HeaderValue::from_static(value));
            }
        }
        request
    }
}

fn asset_type(name: &'static str, schema: &Value) -> Attack {
    let body = json!({"name": "Type", "code": "ZZ", "kind": "physical", "custom_fields_schema": schema});
    post_json(name, "/catalog/asset-types", &body)
}

/// Returns schemas whose patterns are small, but expensive to compile or to match.
fn schemas() -> Vec<Attack> {
    let patterns = |count: usize, pattern: fn(usize) -> String| {
        let property = |n: usize| (format!("f{n}"), json!({"type": "string", "pattern": pattern(n)}));
        json!({"properties": (0..count).map(property).collect::<Map<_, _>>()})
    };
    [
        ("100 patterns with a large class, repeated", patterns(100, |n| format!(r"\pL{{20}}%x{n}"))),
        ("100 patterns with a large class", patterns(100, |n| format!(r"\pL{{8}}{n}"))),
        ("nested repetitions", patterns(20, |n| format!("((a{{9}}){{9}}){{9}}{n}"))),
        ("a pattern that backtracks", patterns(1, |_| "^(a+)+$".to_owned())),
        ("look-around", patterns(1, |_| "(?=a)b".to_owned())),
    ]
    .map(|(name, schema)| asset_type(name, &schema))
    .into()
}

/// Returns bodies that are long, deeply nested, or of a different type than declared.
fn bodies() -> Vec<Attack> {
    let asset = |name, body: Vec<u8>| post(name, "/assets", body);
    let fields: Map<String, Value> = (0..60_000).map(|n| (format!("f{n}"), json!(n))).collect();
    let signature = json!({"step_data": {"sign": "e\u{301}\u{327}".repeat(100_000)}});
    let stranger = format!("Bearer {}", made_up_link(unknown_tenant()));
    let gzip = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xab, 0xae, 5, 0, 0x43, 0xbf, 0xa6, 0xa3, 2, 0, 0, 0];
    vec![
        asset("a body of the largest size", vec![b' '; MAX_BODY_BYTES]),
        asset("a body above the largest size", vec![b' '; MAX_BODY_BYTES + 1]),
        post_json("60,000 unknown fields", "/assets", &Value::Object(fields)),
        post_json("combining characters", "/assets", &json!({"name": "e\u{301}\u{327}".repeat(100_000)})),
        post_json(
            "as many assets as fit",
            "/processes/01890a5d-ac96-774b-bcce-b302099a8057/start",
            &json!({"asset_ids": vec![UNKNOWN_ID; MAX_BODY_BYTES / 40]}),
        ),
        post_json("5,000 steps", "/processes", &json!({"name": "n", "steps": (0..5_000).map(text_step).collect::<Vec<_>>()})),
        post_json("a long signature with an unknown link", "/sign/advance", &signature).with("authorization", stranger),
        asset("compressed content", gzip.to_vec()).with("content-encoding", "gzip"),
        asset("UTF-16", "\u{feff}{\"name\": \"a\"}".encode_utf16().flat_map(u16::to_le_bytes).collect()),
        asset("a different media type", b"<a/>".to_vec()).with("content-type", "text/xml"),
    ]
}

/// Returns headers and queries at and above their limits.
fn heads_and_queries() -> Vec<Attack> {
    let list = |name, query: &str| get(name, format!("/v1/assets?{query}"));
    let settings = |name| get(name, "/v1/settings");
    let create = |name| post_json(name, "/assets", &json!({"name": "a"}));
    vec![
        list("a search of 4,000 words", &format!("q={}", "a+".repeat(4000))),
        list("a search of 8,000 letters", &format!("q={}", "a".repeat(8000))),
        list("the largest page", "page=18446744073709551615&limit=100"),
        list("a page beyond all numbers", "page=99999999999999999999999999"),
        list("bad percent-encoding", "q=%ff%fe%zz"),
        settings("an empty list element").with("if-none-match", "\"a\" ,"),
        create("a long idempotency key").with("idempotency-key", "k".repeat(5000)),
        create("bytes in an idempotency key").with("idempotency-key", vec![0xff, 0xfe]),
        create("a forged address").with("x-forwarded-for", "169.254.169.254"),
        get("a path above the root", "/v1/../../etc/passwd"),
        get("an encoded slash", "/v1/assets/%2e%2e%2fkeys"),
        Attack { method: "BREW", ..get("an unknown method", "/v1/assets") },
        get("a long path", format!("/v1/assets/{}", "a".repeat(8000))),
    ]
}

fn text_step(n: usize) -> Value {
    json!({"type": "text", "key": format!("k{n}"), "label": "L"})
}

/// Returns requests with a part as long as it can be: a URL has at most 65,534 bytes (crate `http`). Comparing every element with
/// every other one would take seconds.
fn long_parts() -> Vec<Attack> {
    const LENGTH: usize = 60_000;
    let repeated = |text: &str, length: usize| text.repeat(length / text.len());
    let names: String = (0..10_000).map(|n| format!("&{n:x}")).collect();
    let mut attacks = vec![get("10,000 parameter names", format!("/v1/assets?a{names}"))];
    let paths = ["/", "/a", "/assets", "a", "%2F", "%ff", "/..", "/{id}"];
    attacks.extend(paths.map(|text| get(text, format!("/v1/{}", repeated(text, LENGTH)))));
    let queries = ["a", "&a=1", "&status=in_use", "&dry_run=true", "&", "=", "%41", "&expand=a,a"];
    attacks.extend(queries.map(|text| get(text, format!("/v1/assets?q={}", repeated(text, LENGTH)))));
    for (name, text) in [
        ("authorization", "a"),
        ("authorization", "Bearer "),
        ("cookie", "a=b; "),
        ("accept", "text/html;q=0.5,"),
        ("accept-language", "de;q=0.1,"),
        ("if-match", "\"1-0123456789abcdef\","),
        ("if-none-match", "\"a\","),
        ("idempotency-key", "k"),
        ("content-type", "text/csv; charset="),
        ("content-encoding", "identity, "),
        ("x-forwarded-for", "192.0.2.1, "),
    ] {
        attacks.push(get(text, "/v1/assets").with(name, repeated(text, LENGTH)));
        attacks.push(post_json(text, "/assets", &json!({"name": "a"})).with(name, repeated(text, LENGTH)));
    }
    for (name, value) in
        [("authorization", "Bearer apl_a"), ("cookie", "a=b"), ("accept", "text/*;a=b"), ("if-none-match", "\"a\"")]
    {
        attacks.push(Attack { headers: Some((name, value, LENGTH / value.len())), ..get(value, "/v1/assets") });
    }
    for text in ["[", "{\"a\":", "\"\\u0041\\ud83d\\ude00", "\u{323}\u{301}"] {
        attacks.push(post(text, "/assets", repeated(text, MAX_BODY_BYTES)));
    }
    for (content_type, text) in [("text/csv", "a,\"b\"\"\",c\r\n"), ("application/x-ndjson", "{\"name\":\"a\"}\n")] {
        attacks.push(post(text, "/assets/import", repeated(text, MAX_BODY_BYTES)).with("content-type", content_type));
    }
    attacks
}

/// Returns bodies with extreme or deceptive field values.
fn values() -> Vec<Attack> {
    let key =
        |name, expires_at| post_json(name, "/keys", &json!({"name": "k", "scopes": ["assets:read"], "expires_at": expires_at}));
    let raw = |name, body: &str| post(name, "/assets", body.to_owned());
    let price = format!(r#"{{"name": "a", "purchase_price": 1{}}}"#, "0".repeat(100_000));
    let prototype = json!({"name": "a", "custom_fields": {"__proto__": {"a": 1}, "constructor": 1}});
    let user = json!({"email": "a\u{202e}b@example.com", "display_name": "\u{202e}evil"});
    vec![
        key("a leap second at the end of time", "2199-12-31T23:59:60Z"),
        key("the last second of all years", "9999-12-31T23:59:59.999Z"),
        key("a year below zero", "-0001-01-01T00:00:00Z"),
        raw("a number beyond doubles", r#"{"name": "a", "custom_fields": {"n": 1e999999}}"#),
        raw("a number that a double rounds", r#"{"name": "a", "custom_fields": {"n": 9007199254740993.0}}"#),
        raw("a price with many digits", &price),
        raw("a price with an exponent", r#"{"name": "a", "purchase_price": 1e-2147483648}"#),
        raw("lone surrogates", r#"{"name": "\ud800"}"#),
        raw("a null character", r#"{"name": "a\u0000b", "notes": "\u0000"}"#),
        post_json("text that runs from right to left", "/users", &user),
        post_json("a name of zero-width characters", "/assets", &json!({"name": "\u{200b}\u{200b}\u{feff}"})),
        Attack {
            method: "PATCH",
            ..post_json("a template of numbers only", "/settings", &json!({"asset_tag_template": "NNNNNNNNNNNNN"}))
        },
        post_json("names of JavaScript's prototypes", "/assets", &prototype),
        post_json("100,000 wrong scopes", "/keys", &json!({"name": "k", "scopes": vec![1; 100_000]})),
        post_json("markup in a name", "/assets", &json!({"name": "<script>alert(1)</script>\"'`${7*7}{{7*7}}"})),
    ]
}

fn signature_steps(keys: &[String]) -> Value {
    keys.iter().map(|key| step("signature", key)).collect()
}

/// Returns a transparent image that takes 32 MB when decoded. `mark` is the visible first pixel, which makes images differ.
fn deep_image(mark: u8) -> String {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, 2000, 2000);
    encoder.set_color(ColorType::Rgba);
    encoder.set_depth(BitDepth::Sixteen);
    // Choosing PNG filters takes seconds in a debug build.
    encoder.set_filter(Filter::NoFilter);
    let mut data = vec![0; 2000 * 2000 * 8];
    data[0] = mark;
    data[6] = 0xff;
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(&data).unwrap();
    writer.finish().unwrap();
    shared::domain::values::signature_image::data_url(&bytes)
}

/// Returns images at and above the pixel limit: as many as fit in a body, for later steps of one instance; and three for a
/// movement of 20 assets.
async fn images(client: &Client) -> Vec<Attack> {
    let keys: Vec<String> = (0..20).map(|n| format!("s{n}")).collect();
    let process = create_process(client, signature_steps(&keys)).await;
    let instance = start(client, &process, &client.asset(json!({"name": "Tablet"})).await).await;
    let path = format!("/processes/instances/{instance}/advance");
    let process = create_process(client, signature_steps(&keys[..3])).await;
    let with_images = |name, path: &str, keys: &[String], image: Box<dyn Fn(u8) -> String>| {
        let keys = keys.to_vec();
        post_made(name, path, move || {
            let images: Map<String, Value> = keys.into_iter().zip((0..).map(image).map(Value::from)).collect();
            json!({"step_data": images}).to_string().into()
        })
    };
    let mut attacks = vec![with_images("many images of 32 MB", &path, &keys, Box::new(deep_image))];
    for (name, side) in
        [("4 million pixels, three times for 20 assets", 2000), ("16 million pixels, three times for 20 assets", 4096)]
    {
        let movement = start_movement(client, &process, &client.assets(20).await).await;
        let path = format!("/movements/{}/advance", movement["id"].as_str().unwrap());
        let image = move |offset: u8| dotted_signature(side, side - u32::from(offset));
        attacks.push(with_images(name, &path, &keys[..3], Box::new(image)));
    }
    attacks
}

/// Fills bodies with as many rows or operations as fit, with custom fields that are expensive to check.
async fn checks_of_fields(client: &Client) -> Vec<Attack> {
    let mut attacks = Vec::new();
    let patterns =
        json!({"properties": {"list": {"type": "array", "items": {"type": "string", "pattern": PATTERN_WITH_MANY_STATES}}}});
    let choices = json!({"properties": {"list": {"type": "array", "items": {"enum": (0..1_000).rev().collect::<Vec<_>>()}}}});
    let texts = |n: u64| json!([text_with_many_states(2 * n, 2_000), text_with_many_states(2 * n + 1, 2_000)]);
    let numbers = |n: u64| json!([vec![1; 1500], vec![n]].concat());
    for (code, schema, list) in [("CC", patterns, &texts as &dyn Fn(u64) -> Value), ("CE", choices, &numbers)] {
        let asset_type = client.type_with_schema(code, code, schema).await;
        let lists: Vec<Value> = (0..100).map(list).collect();
        let rows: String = lists.iter().map(|list| format!("a,{code},\"{}\"\n", list.to_string().replace('"', "\"\""))).collect();
        let rows = Bytes::from(format!("name,asset_type_code,custom_fields.list\n{rows}"));
        let import =
            |name, query: &str| post(name, &format!("/assets/import{query}"), rows.clone()).with("content-type", "text/csv");
        attacks.extend([
            import("100 expensive rows", ""),
            import("100 expensive rows, checked first", "?on_error=abort"),
            post_json("20 expensive operations", "/assets/batch", &json!({"operations": creations(&asset_type, &lists[..20])})),
        ]);
    }
    attacks
}

/// Reads the memory of this process: `VmRSS` for the current use, `VmHWM` for the peak.
fn kilobytes(figure: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let value = status.lines().find_map(|line| line.strip_prefix(figure)?.strip_prefix(':')).unwrap();
    value.trim().trim_end_matches(" kB").parse().unwrap()
}

async fn measure() {
    let (_api, client) = Api::with_tenant().await;
    let mut attacks: Vec<Attack> =
        [schemas(), bodies(), heads_and_queries(), long_parts(), values()].into_iter().flatten().collect();
    attacks.extend(images(&client).await);
    attacks.extend(checks_of_fields(&client).await);
    let all: Vec<&str> = Scope::ALL.iter().map(|scope| scope.as_str()).collect();
    let with_limit = |scopes: &[&str], limit: u32| json!({"name": "k", "scopes": scopes, "rate_limit_per_minute": limit});
    let unscoped = client.with_new_key(with_limit(&["events:read"], MAX_RATE_LIMIT)).await;
    let exhausted = client.with_new_key(with_limit(&all, 1)).await;
    exhausted.get("/settings").await.data();
    // Handlers of a recently verified key start before its check. A refusal ends that.
    exhausted.get("/settings").await.problem(429, "RATE_LIMITED");
    unscoped.get("/settings").await.problem(403, "FORBIDDEN");
    let keys = [client.key.clone(), made_up_key(client.tenant), unscoped.key, exhausted.key];
    let attacks = sample(attacks, 10);
    for (attack, key) in attacks.iter().flat_map(|attack| keys.iter().map(move |key| (attack, key))) {
        let request = attack.request(key);
        // Writing "5" resets the peak to the current use: https://man7.org/linux/man-pages/man5/proc_pid_clear_refs.5.html
        std::fs::write("/proc/self/clear_refs", "5").unwrap();
        let (resident, before) = (kilobytes("VmRSS"), cpu_time());
        let reply = call(&client.router, request).await;
        let (used, mut time) = (kilobytes("VmHWM").saturating_sub(resident), cpu_time() - before);
        let name = format!("{}, {} {:.60}: {}", attack.name, attack.method, attack.path, reply.status);
        assert!(time <= MAX_CPU_TIME, "{name}: {time:?}");
        assert!(used <= MAX_KILOBYTES, "{name}: {used} KB");
        assert!(!reply.status.is_server_error(), "{name}: {}", reply.text());
        assert!(reply.status.as_u16() < 400 || reply.json()["code"].is_string(), "{name}: {}", reply.text());
        let is_refused = [401, 403, 429].contains(&reply.status.as_u16());
        for _ in 0..RUNS {
            if is_refused && time > MAX_REFUSED_TIME {
                let (request, before) = (attack.request(key), cpu_time());
                assert_eq!(call(&client.router, request).await.status, reply.status, "{name}");
                time = time.min(cpu_time() - before);
            }
        }
        assert!(!is_refused || time <= MAX_REFUSED_TIME, "{name}: {time:?}");
    }
}

/// Tests in the same process share its memory, so these attacks run in a separate process.
#[cfg(target_os = "linux")]
#[tokio::test(start_paused = true)]
async fn no_attack_takes_much_time_or_memory() {
    if std::env::var_os(ALONE).is_some() {
        return measure().await;
    }
    let name = "http::known_attacks::no_attack_takes_much_time_or_memory";
    let alone = Command::new(std::env::current_exe().unwrap()).args(["--exact", name]).env(ALONE, "1").output().unwrap();
    let output = String::from_utf8(alone.stdout).unwrap();
    assert!(alone.status.success() && output.contains("1 passed"), "{output}");
}
