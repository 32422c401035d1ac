//! `assetctl me`.

use crate::config::Connection;
use crate::error::{EXIT_SUCCESS, Result};
use crate::http::client::Client;
use crate::http::request::get_data;
use crate::lookup::text;
use crate::output::{print, print_json};
use serde_json::Value;

pub async fn me(connection: &Connection, is_json: bool) -> Result<u8> {
    let me = get_data(&Client::new(connection)?, "me", &[]).await?;
    if is_json {
        print_json(&me)?;
    } else {
        print(&summary(&me, terminal::width()))?;
    }
    Ok(EXIT_SUCCESS)
}

fn summary(me: &Value, width: Option<usize>) -> String {
    let (key, tenant, user) = (&me["key"], &me["tenant"], &me["user"]);
    let with_id = |name: &Value, id: &Value| format!("{} ({})", text(name), text(id));
    let user = match user {
        Value::Null => "none: the key is the tenant's own".to_owned(),
        user => format!("{} <{}>, {}", text(&user["display_name"]), text(&user["email"]), text(&user["role"])),
    };
    let scopes: Vec<&str> = key["scopes"].as_array().into_iter().flatten().map(text).collect();
    let expiry = key["expires_at"].as_str().map_or("never".to_owned(), |time| terminal::time(time) + " UTC");
    let members = [
        ("Tenant", with_id(&tenant["name"], &tenant["id"])),
        ("Time zone", text(&tenant["time_zone"]).to_owned()),
        ("Locale", text(&tenant["locale"]).to_owned()),
        ("User", user),
        ("Key", with_id(&key["name"], &key["id"])),
        ("Prefix", text(&key["prefix"]).to_owned()),
        ("Scopes", if scopes.is_empty() { "none".to_owned() } else { scopes.join(", ") }),
        ("Created", terminal::time(text(&key["created_at"])) + " UTC"),
        ("Expires", expiry),
        ("Rate limit", format!("{} requests a minute", key["rate_limit_per_minute"])),
    ];
    terminal::record(members, width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_summary_names_tenant_user_key_and_scopes() {
        let key = json!({
            "id": "k1", "name": "ci", "prefix": "apl_0351f4Sj", "scopes": ["assets:read", "users:read"],
            "expires_at": null, "rate_limit_per_minute": 600, "created_at": "2026-03-05T10:00:00.000Z"
        });
        let tenant = json!({"id": "t1", "name": "Müller & Söhne", "time_zone": "Europe/Berlin", "locale": "de"});
        let user = json!({"id": "u1", "email": "ada@example.com", "display_name": "Ada", "role": "technician"});
        let expected = "\
Tenant      Müller & Söhne (t1)
Time zone   Europe/Berlin
Locale      de
User        Ada <ada@example.com>, technician
Key         ci (k1)
Prefix      apl_0351f4Sj
Scopes      assets:read, users:read
Created     2026-03-05 10:00 UTC
Expires     never
Rate limit  600 requests a minute";
        let me = json!({"key": key, "tenant": tenant, "user": user});
        assert_eq!(summary(&me, Some(80)), expected);
        let unbound = json!({"key": key, "tenant": tenant, "user": null});
        assert!(summary(&unbound, None).contains("User        none: the key is the tenant's own"));
    }
}
