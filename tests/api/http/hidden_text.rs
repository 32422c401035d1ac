//! Characters that can't be seen: refused in fields of one line, and harmless on pages where they are stored already.

use crate::support::processes::{advance, start};
use crate::support::table::history::set_text;
use crate::support::{Api, over_http};
use serde_json::json;
use shared::domain::keys::token::Token;
use shared::domain::record::Kind;
use shared::store::keys::Keys;

/// Characters that make text look different.
const HIDDEN: [&str; 6] = ["\u{202e}", "\u{2066}", "\u{200b}", "\u{200f}", "\u{feff}", "\u{200d}"];

#[tokio::test(start_paused = true)]
async fn fields_of_one_line_have_no_hidden_characters() {
    let client = over_http().await;
    let bad = |hidden: &str| format!("a{hidden}b");
    for hidden in HIDDEN {
        let text = bad(hidden);
        let asset = json!({"name": text, "serial_number": text, "manufacturer": text, "model": text, "notes": text});
        assert_eq!(
            client.post("/assets", asset).await.field_errors(),
            ["/manufacturer", "/model", "/name", "/serial_number"],
            "{hidden:?}"
        );
        let user = json!({"email": format!("{text}@example.com"), "display_name": text});
        assert_eq!(client.post("/users", user).await.field_errors(), ["/display_name", "/email"]);
        assert_eq!(client.post("/keys", json!({"name": text, "scopes": ["assets:read"]})).await.field_errors(), ["/name"]);
        let settings = json!({"name": text, "asset_tag_template": format!("{text}-NNN")});
        assert_eq!(client.patch("/settings", settings).await.field_errors(), ["/asset_tag_template", "/name"]);
        let steps =
            json!([{"type": "text", "key": "k", "label": text}, {"type": "select", "key": "s", "label": "S", "options": [text]}]);
        let process = json!({"name": text, "trigger_status": "in_stock", "target_status": "in_use", "steps": steps});
        assert_eq!(client.post("/processes", process).await.field_errors(), ["/name", "/steps/0/label", "/steps/1/options"]);
        client.get(&format!("/assets?q={}", percent(&text))).await.data();
    }
    for name in
        ["\u{645}\u{6cc}\u{200c}\u{62e}\u{648}\u{627}\u{647}\u{645}", "\u{1f469}\u{200d}\u{1f4bb}", "\u{5d0}\u{5d1}\u{5d2}"]
    {
        assert_eq!(client.post("/assets", json!({"name": name})).await.data()["name"], name);
    }
}

fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[tokio::test(start_paused = true)]
async fn an_address_is_taken_however_it_is_spelt() {
    let client = over_http().await;
    let create = |email: &str| client.post("/users", json!({"email": email, "display_name": "x"}));
    let first = create("Ju\u{308}rgen@example.com").await;
    assert_eq!(first.data()["email"], "Ju\u{308}rgen@example.com", "it is kept as it was sent");
    for same in ["J\u{fc}rgen@example.com", "J\u{dc}RGEN@EXAMPLE.COM", "JU\u{308}RGEN@example.com"] {
        assert_eq!(create(same).await.problem(409, "DUPLICATE")["user_id"], first.id(), "{same}");
    }
    create("jurgen@example.com").await.data();
    let path = format!("/users/{}", first.id());
    client.patch(&path, json!({"email": "j\u{fc}rgen@example.com"})).await.data();
    client.delete(&path).await.data();
    create("J\u{fc}rgen@example.com").await.data();
}

#[tokio::test(start_paused = true)]
async fn names_from_before_are_shown_searched_and_isolated_on_pages() {
    let (api, client) = Api::with_tenant().await;
    let hostile = "evil\u{202e}\u{2066}name";
    let asset = client.asset(json!({"name": "x"})).await;
    let user = client.user("Ada").await;
    let own = Token::parse(&client.key).unwrap().id.to_string();
    let stored = [(Kind::Asset, &asset, "name"), (Kind::User, &user, "display_name"), (Kind::ApiKey, &own, "name")];
    for (kind, id, field) in stored {
        let key = Keys::of(client.tenant).record(kind, id.parse().unwrap()).item();
        set_text(&api, &key, field, hostile.into()).await;
    }
    let loaded = api.replica(0, usize::MAX).client(&client);
    assert_eq!(loaded.get(&format!("/assets?q={}", percent(hostile))).await.data()[0]["name"], hostile);
    assert_eq!(client.get(&format!("/users/{user}")).await.data()["display_name"], hostile);
    client.patch(&format!("/assets/{asset}"), json!({"notes": "n"})).await.data();
    let steps = json!([{"type": "user_picker", "key": "u", "label": "U"}]);
    let body = json!({"name": "p", "trigger_status": "in_stock", "target_status": "in_use", "steps": steps});
    let process = client.post("/processes", body).await.id();
    let instance = start(&client, &process, &asset).await;
    advance(&client, &instance, json!({"u": user})).await.data();
    let page = client.get(&format!("/processes/instances/{instance}/receipt?format=html")).await;
    let text = page.text();
    let isolated = format!("<bdi>{hostile}</bdi>");
    assert!(text.contains(&isolated), "{text}");
    assert!(!text.replace(&isolated, "").contains('\u{202e}'), "{text}");
}
