//! The receipt as a page to print.

use crate::support::processes::{advance, create_process, start};
use crate::support::samples::SIGNATURE;
use crate::support::table::history::set_attribute;
use crate::support::{Api, over_http};
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::json;
use sha2::Digest;
use shared::domain::processes::instance::Instance;
use shared::domain::tenants::tenant::{Language, Locale};
use shared::domain::tenants::time_zone::LocalClock;
use shared::domain::values::id::InstanceId;
use shared::store::keys::Keys;

#[tokio::test(start_paused = true)]
async fn the_page_shows_signatures_and_escapes_every_text() {
    let (api, client) = Api::with_tenant().await;
    let evil = "<script>alert('x')</script>&\"";
    let steps = json!([
        {"type": "text", "key": "t", "label": evil}, {"type": "checklist", "key": "l", "label": "L", "items": [evil, "b"]},
        {"type": "select", "key": "s", "label": "S", "options": [evil]}, {"type": "user_picker", "key": "u", "label": "U"},
        {"type": "signature", "key": "g", "label": "G"}, {"type": "confirmation", "key": "c", "label": "C"},
        {"type": "text", "key": "nothing", "label": "N"}
    ]);
    let body = json!({"name": evil, "trigger_status": "in_stock", "target_status": "in_use", "steps": steps});
    let process = client.post("/processes", body).await.id();
    let user = client.post("/users", json!({"email": "a@b.c", "display_name": evil})).await.id();
    let asset = client.asset(json!({"name": evil, "serial_number": evil, "manufacturer": evil, "model": evil})).await;
    let key = client.post("/keys", json!({"name": evil, "scopes": ["processes:read", "processes:write"]})).await.data();
    let client = client.with_key_of(&key);
    let instance = start(&client, &process, &asset).await;
    for data in [
        json!({"t": evil}),
        json!({"l": [evil]}),
        json!({"s": evil}),
        json!({"u": user}),
        json!({"g": SIGNATURE}),
        json!({"c": true}),
        json!({}),
    ] {
        advance(&client, &instance, data).await.data();
    }
    let path = format!("/processes/instances/{instance}/receipt?format=html");
    let page = client.get(&path).await;
    assert_eq!((page.status.as_u16(), page.header("content-type")), (200, "text/html; charset=utf-8"));
    let text = page.text();
    assert!(!text.contains("<script") && !text.contains("alert('x')"), "{text}");
    assert!(text.matches("&#60;script&#62;alert(&#39;x&#39;)&#60;/script&#62;&#38;&#34;").count() >= 12, "{text}");
    assert!(text.contains("<bdi>b</bdi>, not checked\n"), "{text}");
    assert!(text.contains(&format!("<img alt=\"Signature\" src=\"{SIGNATURE}\">")));
    let signed = client.get(&path.replace("?format=html", "")).await.json();
    assert!(text.contains(signed["signature"]["value"].as_str().unwrap()));
    // The policy forbids scripts and requests, and allows only the page's own style sheet.
    let policy = page.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'; img-src data:; style-src 'sha256-"), "{policy}");
    let style = text.split_once("<style>").unwrap().1.split_once("</style>").unwrap().0;
    let digest = sha2::Sha256::digest(style);
    assert!(policy.contains(&base64_simd::STANDARD.encode_to_string(digest)));
    assert!(!text.contains(" style=") && !text.contains("http"), "the page must load nothing");
    assert_eq!(page.header("x-content-type-options"), "nosniff");
    // An image that was replaced after signing is not shown.
    let id: InstanceId = instance.parse().unwrap();
    let instance = api.store.tenant(client.tenant).get::<Instance>(id).await.unwrap().unwrap();
    let (name, _) = instance.value.signatures().find(|(name, _)| name.step == "g").unwrap();
    let key = Keys::of(client.tenant).signature(&name).item();
    set_attribute(&api, &key, "image", AttributeValue::B(Blob::new(b"other"))).await;
    let text = client.get(&path).await.text().to_owned();
    assert!(!text.contains("<img") && text.contains("a different one now"), "{text}");
}

/// The template, the tag and the organization are typed by people too, in any direction of writing.
#[tokio::test(start_paused = true)]
async fn the_page_names_the_organization_and_isolates_every_typed_text() {
    let client = over_http().await;
    let settings =
        json!({"name": "שלום & Co", "asset_tag_template": "נכס-NNN", "time_zone": "America/New_York", "locale": "cs-CZ"});
    client.patch("/settings", settings).await.data();
    let steps = json!([
        {"type": "textarea", "key": "t", "label": "הערה"}, {"type": "date", "key": "d", "label": "D"},
        {"type": "complete", "key": "c", "label": "C"}
    ]);
    let process = create_process(&client, steps).await;
    let asset = client.asset(json!({"name": "מחשב", "serial_number": "ס-1"})).await;
    let body = json!({"asset_id": asset, "step_data": {"t": "א\nb", "d": "2026-03-05"}, "through": "c"});
    let instance = client.post(&format!("/processes/{process}/start"), body).await.data();
    let path = format!("/processes/instances/{}/receipt", instance["id"].as_str().unwrap());
    let page = client.get(&format!("{path}?format=html")).await.text().to_owned();
    let body = page.split_once("</head>").unwrap().1;
    let outside: String = body.split("<bdi>").map(|part| part.split_once("</bdi>").map_or(part, |(_, rest)| rest)).collect();
    assert!(!outside.chars().any(|c| ('\u{5d0}'..='\u{5ea}').contains(&c)), "{outside}");
    assert!(page.contains("<bdi>שלום &#38; Co</bdi>") && page.contains("<title>Receipt: &#x2068;Own&#x2069;</title>"), "{page}");
    // The signed receipt has times in UTC; the page has them as the organization's clocks show them.
    let signed = client.get(&path).await.json();
    let at = signed["receipt"]["completed_at"].as_str().unwrap();
    let shown = page.split_once(&format!("<time datetime=\"{at}\">")).unwrap().1.split_once("</time>").unwrap().0;
    let clock = LocalClock::from(&"America/New_York".parse().unwrap());
    assert_eq!(shown, "cs".parse::<Locale>().unwrap().format(&clock.local(at.parse().unwrap()), Language::English));
    assert!(shown.contains("E") && shown.contains("(UTC-0"), "{shown}");
    assert!(page.contains("those of America/New_York.") && page.contains("are not signed."));
    assert!(!signed.to_string().contains("שלום"));
}

#[tokio::test(start_paused = true)]
async fn the_page_is_in_the_readers_language_or_else_in_the_organizations() {
    let client = over_http().await;
    let process = create_process(&client, json!([{"type": "confirmation", "key": "c", "label": "C"}])).await;
    let asset = client.asset(json!({"name": "Laptop"})).await;
    let body = json!({"asset_id": asset, "step_data": {"c": true}, "through": "c"});
    let instance = client.post(&format!("/processes/{process}/start"), body).await.data();
    let path = format!("/processes/instances/{}/receipt?format=html", instance["id"].as_str().unwrap());
    for (locale, accepted, language, heading) in [
        ("en", "de-AT, en;q=0.5", "de", "Beleg"),
        ("en", "fr", "fr", "Reçu"),
        ("de", "es, de", "es", "Recibo"),
        ("de-CH", "ja", "de", "Beleg"),
        ("de-CH", "en-GB", "en", "Receipt"),
        ("ja", "ja", "en", "Receipt"),
    ] {
        client.patch("/settings", json!({"locale": locale})).await.data();
        let page = client.send_with("GET", &path, None, "", &[("accept-language", accepted)]).await;
        let page = page.text();
        assert!(page.contains(&format!("<html lang=\"{language}\">")), "{page}");
        assert!(page.contains(&format!("<h1>{heading}: <bdi>Own</bdi></h1>")), "{page}");
    }
}
